"""The Jacobian as a matrix whose rows are computed when they are asked for.

Row i of J = ∂output/∂input is vᵀJ with v one-hot at i: one weighted backward. A `Jacobian` therefore keeps the graph
and nothing else until someone looks at a row, remembers each row it has computed, and lets the graph go once it knows
them all. It takes its rows from the library's `grad` on the kept graph, so no tensor of the user's is changed and no
`.grad` is written.

Shape and names: J is the plain matrix of shape (output.numel(), number of input elements), both sides flattened in C
order, several inputs side by side as column blocks. Rows and columns are labelled with the user's own names and the
element's index (`z[0,2]`); `tensor()` gives the array shape that torch.autograd.functional.jacobian gives.

All calculus goes through `_sweep`, one weighted backward. Other ways to fill the matrix (columns, batches, compressed
sweeps) are other ways to make rows known.
"""
from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.explore.jacobian_code import Called, Labels, RowByHand
from gradlab.explore.libraries import Library, library_of

if TYPE_CHECKING:
    from gradlab.explore.drawing import Drawing

CHEAP_ROWS = 64  # a display computes missing rows up to this many rows
CHEAP_SECONDS = 1.0  # and only for this long
DRAWABLE_CELLS = 20_000_000  # beyond, a display says how to look at a part instead


def jacobian(func_or_output: Any, inputs: Any, *, names: Mapping[str, Any] | None = None) -> Jacobian:
    """The Jacobian of a tensor, or of a function, by one or several input tensors.

    Parameters
    ----------
    func_or_output : Tensor or callable
        An output tensor that was computed from `inputs`, or a function that computes it. A function is called once,
        on detached copies of `inputs` that require grad, so the tensors that were passed stay as they are.
    inputs : Tensor or sequence of Tensor
        What to differentiate by. Several inputs become column blocks of one matrix, and are separate arguments of a
        function.
    names : mapping of str to Tensor, optional
        What to call the output (the tensor, or the function that makes it) and the inputs, as in `graph`. By default
        the names that the caller's variables have; an output without one is called "y", an input "x".

    Returns
    -------
    Jacobian
        A matrix of shape (output.numel(), number of input elements). No row is computed yet.

    Raises
    ------
    TypeError
        If `inputs` are not tensors of one library, or a function returned something else than one tensor.
    RuntimeError
        If the output does not require grad, or an input is not floating point or does not require grad.

    Notes
    -----
    J[i, j] = ∂output[i] / ∂input[j]. Row i is vᵀJ with v the i-th unit vector: one reverse sweep, a vector-Jacobian
    product (VJP). Many texts call the same product a Jacobian-vector product.
    """
    single = library_of(inputs) is not None
    if not single and (isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence)):
        raise TypeError(
            f"jacobian(func_or_output, inputs) differentiates by a tensor or a tuple of tensors; inputs is "
            f"{_kind(inputs)}"
        )
    given = (inputs,) if single else tuple(inputs)
    library = _one_library(given)
    called = Called(func_or_output, given, names, sys._getframe(1))
    is_function = library_of(func_or_output) is None
    if is_function:
        if not callable(func_or_output):
            raise TypeError(
                f"jacobian(func_or_output, inputs) takes a tensor that requires grad, or a function that returns "
                f"one; got {_kind(func_or_output)}"
            )
        leaves = tuple(value.detach().clone().requires_grad_() for value in given)
        output = func_or_output(*leaves)
        if library_of(output) is not library:
            raise TypeError(
                f"the function given to jacobian must return one {library.name} tensor; it returned {_kind(output)}"
                + (
                    ". Return the one to differentiate, or call jacobian once for each"
                    if isinstance(output, (tuple, list, dict))
                    else ""
                )
            )
    else:
        output, leaves = func_or_output, given
        if library_of(output) is not library:
            raise TypeError(
                f"the output is {_kind(output)}, the inputs are {library.name} tensors; "
                "a graph does not lead from one library to the other"
            )
        for name, leaf in zip(called.inputs, leaves, strict=True):
            if not leaf.requires_grad:
                raise RuntimeError(
                    f"One of the differentiated Tensors does not require grad: the input {name}, "
                    f"{_describe(library, leaf)}. Call {name}.requires_grad_() before the output is computed, "
                    "or give jacobian a function instead of its result"
                )
    if not output.requires_grad:
        raise RuntimeError(
            "element 0 of tensors does not require grad and does not have a grad_fn: the output "
            f"{called.output}, {_describe(library, output)}, was not computed from a tensor that requires grad. "
            + (
                "The function must compute it from its arguments by differentiable operations, without detach() or "
                "no_grad()"
                if is_function
                else f"Call requires_grad_() on the inputs first, or check for detach() and no_grad() on the way to "
                f"{called.output}"
            )
        )
    if library.dtype_name(output).startswith("complex"):
        raise RuntimeError(
            f"the output {called.output} is {library.dtype_name(output)}; jacobian handles real outputs. "
            "Differentiate its .real and .imag"
        )
    return Jacobian(
        output, leaves, library=library, output_name=called.output, input_names=called.inputs, single=single,
        remark=called.remark, opening=called.opening)


class Jacobian:
    """A matrix ∂output/∂inputs whose rows are computed, one weighted backward each, when they are first asked for.

    Made by `jacobian`. It indexes, iterates and converts like a 2-D array: `J[i]`, `J[i, j]`, `J[:, j]`,
    `for row in J`, `np.asarray(J)`. All of these are NumPy arrays in the dtype of the inputs; rows are read only.
    It keeps the graph until all rows are known.
    """

    def __init__(
        self,
        output: Any,
        inputs: Sequence[Any],
        *,
        library: Library,
        output_name: str = "y",
        input_names: Sequence[str] = ("x",),
        single: bool = True,
        remark: str = "",
        opening: str = "",
    ) -> None:
        self._library, self._single = library, single
        self._graph: tuple[Any, tuple[Any, ...]] | None = (output, tuple(inputs))
        self.output_name = output_name
        self.output_shape = tuple(output.shape)
        self.input_names = tuple(input_names)
        self.input_shapes = tuple(tuple(value.shape) for value in inputs)
        self.shape = (math.prod(self.output_shape), sum(map(math.prod, self.input_shapes)))
        self._hand = RowByHand(
            library.alias,
            (self.output_name, self.output_shape),
            list(zip(self.input_names, self.input_shapes, strict=True)),
            leaves=all(value.is_leaf for value in inputs),
            plain=library.dtype_name(output) == "float32",
            remark=remark,
            opening=opening,
        )
        self._like = [SimpleNamespace(shape=value.shape, dtype=value.dtype, device=value.device) for value in inputs]
        self._unused: tuple[bool, ...] | None = None  # which inputs the graph does not reach; None: not known yet
        self._rows: dict[int, np.ndarray] = {}
        self._matrix: np.ndarray | None = None
        if not self.shape[0]:
            self._matrix, self._graph = np.zeros(self.shape, np.float32), None

    # ------------------------------------------------------------------------------------------ what it is
    @property
    def rows_known(self) -> int:
        """How many rows have been computed."""
        return self.shape[0] if self._matrix is not None else len(self._rows)

    @property
    def known(self) -> np.ndarray:
        """Which rows have been computed: a new boolean array of shape (len(J),)."""
        mask = np.full(self.shape[0], self._matrix is not None)
        mask[list(self._rows)] = True
        return mask

    @property
    def labels(self) -> list[str]:
        """What each row differentiates: `z[0,2]`."""
        return list(self.row_labels())

    @property
    def column_labels(self) -> list[str]:
        """What each column differentiates by: `x[3]`."""
        return list(self.column_labels_lazily())

    def row_labels(self) -> Labels:
        """The labels of the rows as a sequence that makes each one when it is looked at."""
        return Labels([(self.output_name, self.output_shape)])

    def column_labels_lazily(self) -> Labels:
        """The labels of the columns as a sequence that makes each one when it is looked at."""
        return Labels(list(zip(self.input_names, self.input_shapes, strict=True)))

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """The column blocks from left to right: each input's name and number of elements."""
        return [(name, math.prod(shape)) for name, shape in zip(self.input_names, self.input_shapes, strict=True)]

    def heading(self) -> str:
        """What by what, in words: "z (7) by x (5)"."""
        inputs = ", ".join(f"{name} ({_times(shape)})" for name, shape in self._hand.inputs)
        return f"{self.output_name} ({_times(self.output_shape)}) by {inputs}"

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Jacobian of {self.heading()}, {self.shape[0]}×{self.shape[1]}: {self._state()}>"

    def _state(self) -> str:
        rows = self.shape[0]
        if self.rows_known == rows:
            return f"all {rows} rows known" if rows != 1 else "its row is known"
        return f"{self.rows_known} of {rows} rows known" if rows != 1 else "its row is not computed yet"

    # ------------------------------------------------------------------------------------------ computing
    def _sweep(self, weights: np.ndarray) -> np.ndarray:
        """vᵀJ by one weighted backward over the kept graph: shape (columns,)."""
        assert self._graph is not None
        output, inputs = self._graph
        v = self._library.tensor(weights.reshape(self.output_shape), like=output)
        parts = self._library.grad([output], list(inputs), [v])
        self._unused = tuple(part is None for part in parts)
        return np.concatenate(
            [
                np.zeros(math.prod(shape), np.float32) if part is None else self._library.array(part).reshape(-1)
                for part, shape in zip(parts, self.input_shapes, strict=True)
            ]
        )

    def row(self, i: int) -> np.ndarray:
        """Row `i`, 0 <= i < len(J), computed by one weighted backward if it is not known yet. Read only."""
        if self._matrix is not None:
            return self._matrix[i]
        if i not in self._rows:
            weights = np.zeros(self.shape[0], self._weight_dtype())
            weights[i] = 1.0
            row = self._sweep(weights)
            row.setflags(write=False)
            self._rows[i] = row
            if len(self._rows) == self.shape[0]:
                self._matrix = np.stack([self._rows[k] for k in range(self.shape[0])])
                self._matrix.setflags(write=False)
                self._rows, self._graph = {}, None
                return self._matrix[i]
        return self._rows[i]

    def _weight_dtype(self) -> type:
        return np.float32 if self._hand.plain else np.float64

    def vjp(self, v: Any) -> np.ndarray:
        """vᵀJ, the mix of rows with weights `v`, by one weighted backward (by the rows, once all are known).

        Parameters
        ----------
        v : array_like or Tensor
            One weight per output element: the output's shape, or flat.

        Returns
        -------
        ndarray, shape (J.shape[1],)
        """
        library = library_of(v)
        weights = library.array(v) if library else np.asarray(v)
        if weights.dtype.kind not in "fiub":
            raise TypeError(f"vjp(v) takes real weights; v has dtype {weights.dtype}")
        if weights.shape != self.output_shape and weights.shape != (self.shape[0],):
            raise ValueError(
                f"vjp(v) takes one weight per element of {self.output_name}: shape {self.output_shape} or "
                f"({self.shape[0]},); v has shape {weights.shape}"
            )
        weights = weights.reshape(-1).astype(self._weight_dtype(), copy=False)
        if self._matrix is not None:
            return weights.astype(self._matrix.dtype, copy=False) @ self._matrix
        return self._sweep(weights)

    def __iter__(self) -> Iterator[np.ndarray]:
        for i in range(self.shape[0]):
            yield self.row(i)

    def __getitem__(self, key: Any) -> Any:
        which, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if which is None or which is Ellipsis or (isinstance(key, tuple) and not key):
            return np.asarray(self)[key]
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool) and not -len(self) <= which < len(self):
            raise IndexError(
                f"row {which} of a Jacobian with {len(self)} rows; rows count from 0, or from -1 backwards"
            )
        if not rest and isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            return self.row(int(which) % len(self))
        chosen = np.arange(self.shape[0])[which]  # NumPy's own rules for slices, lists and masks
        needed, position = np.unique(chosen, return_inverse=True)
        rows = np.stack([self.row(int(i)) for i in needed]) if needed.size else np.zeros((0, self.shape[1]), np.float32)
        if isinstance(which, slice):
            return rows[position][(slice(None), *rest)]
        return rows[(position.reshape(np.shape(chosen)), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        for i in range(self.shape[0]):
            self.row(i)
        matrix = self._matrix
        assert matrix is not None
        if dtype is not None and np.dtype(dtype) != matrix.dtype:
            if copy is False:
                raise ValueError(f"a Jacobian of {matrix.dtype} cannot be seen as {np.dtype(dtype)} without a copy")
            return matrix.astype(dtype)
        return matrix.copy() if copy else matrix

    def tensor(self) -> Any:
        """The whole Jacobian as a tensor of shape output.shape + input.shape, in the library and dtype of the inputs.

        For a tuple of inputs a tuple of such tensors: what torch.autograd.functional.jacobian returns.
        """
        matrix = np.asarray(self)
        stops = np.cumsum([size for _, size in self.blocks])
        parts = tuple(
            self._library.tensor(np.array(block).reshape(self.output_shape + tuple(like.shape)), like)
            for block, like in zip(np.split(matrix, stops[:-1], axis=1), self._like, strict=True)
        )
        return parts[0] if self._single else parts

    def by_hand(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Runnable code that computes row `weights`, or the mix of rows with these weights, without an explorer.

        The code leaves the result, flat, in a variable `row`. It uses the names of this Jacobian's tensors, and writes
        the inputs' `.grad`, as anyone would who does it by hand.
        """
        return self._hand.code(weights, self._unused or (False,) * len(self.input_shapes))

    # ------------------------------------------------------------------------------------------ showing
    def drawing(self, *, compute: bool = True) -> Drawing:
        """The heat map of the rows known, the others outlined; if `compute`, small Jacobians are completed first."""
        from gradlab.explore.heat import heatmap, note

        if compute:
            self._compute_if_cheap()
        heading = f"Jacobian of {self.heading()}"
        remark = (
            ""
            if self.rows_known == self.shape[0]
            else (
                f"{self._state()}. np.asarray(J) computes the rest by one weighted backward a row, J[i] one row, "
                "J.widget() step by step"
            )
        )
        unused = [name for name, missing in zip(self.input_names, self._unused or (), strict=False) if missing]
        if unused:
            remark += ("; " if remark else "") + f"{self.output_name} does not depend on {', '.join(unused)}: zero"
        if math.prod(self.shape) > DRAWABLE_CELLS:
            return note(
                heading,
                f"{self.shape[0]} × {self.shape[1]} is too large to draw whole; J[i] is one row of it. {remark}",
            )
        if self._matrix is not None:
            values, filled = self._matrix, None
        else:
            filled = self.known
            values = np.zeros(self.shape)
            for i, row in self._rows.items():
                values[i] = row
        return heatmap(
            values,
            title=heading,
            rows=self.row_labels(),
            columns=self.column_labels_lazily(),
            filled=filled,
            blocks=self.blocks if len(self.blocks) > 1 else None,
            remark=remark,
        )

    def _compute_if_cheap(self) -> None:
        if self._matrix is not None or self.shape[0] > CHEAP_ROWS or math.prod(self.shape) > DRAWABLE_CELLS:
            return
        start = time.perf_counter()
        for i in range(self.shape[0]):
            self.row(i)
            if time.perf_counter() - start > CHEAP_SECONDS:
                return

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.drawing()._repr_mimebundle_(include=include, exclude=exclude)

    def plot(self, ax: Any = None) -> Any:
        """Draw the whole Jacobian, computing what is missing, with matplotlib; returns the axes."""
        import matplotlib.pyplot as plt

        from gradlab.explore.heat import plot

        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        plot(np.asarray(self), ax, rows=self.row_labels(), columns=self.column_labels_lazily())
        ax.set_title(f"Jacobian of {self.heading()}".replace("$", r"\$"))
        return ax

    def widget(self) -> Any:
        """A live view for a notebook: step through the rows, or mix them with sliders."""
        # explore lies below notebook, so this is the one reference upwards, made by name when a user asks for a widget.
        return importlib.import_module("gradlab.notebook.jacobian_widget").JacobianWidget(self)


def _one_library(inputs: Sequence[Any]) -> Library:
    """The library of all `inputs`, which must be floating-point tensors."""
    if not inputs:
        raise ValueError("jacobian got an empty tuple of inputs; give at least one tensor to differentiate by")
    libraries = [library_of(value) for value in inputs]
    library = libraries[0]
    for k, value in enumerate(inputs):
        if library is None or libraries[k] is not library:
            raise TypeError(
                "jacobian(func_or_output, inputs) differentiates by a tensor or a tuple of tensors of one library; "
                f"inputs[{k}] is {_kind(value)}" + (f", inputs[0] {_kind(inputs[0])}" if k else "")
            )
        if not library.dtype_name(value).startswith(("float", "bfloat")):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients: "
                f"{'the input' if len(inputs) == 1 else f'inputs[{k}]'} is {_describe(library, value)}. "
                "Convert it first, for example with .float()"
            )
    assert library is not None
    return library


def _kind(value: Any) -> str:
    library = library_of(value)
    if library:
        return f"a {library.name} tensor"
    name = type(value).__name__
    if isinstance(value, (tuple, list)):
        return f"a {name} of {len(value)}"
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _describe(library: Library, value: Any) -> str:
    return f"shape {tuple(value.shape)}, dtype {library.dtype_name(value)}"


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"
