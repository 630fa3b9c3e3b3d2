"""A Jacobian as a matrix that is computed when it is looked at, and not more of it than was asked for.

`Jacobian` is the face of its parts, and adds what arrays have: indices, products, conversions. A `Store` has what is known, a
`Runner` computes what is not by a `Plan`, a `Display` shows it, `HandCode` says the same as code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from gradlab.explore.drawing import Drawing, Pictured
from gradlab.explore.heat_cells import HeatCells
from gradlab.explore.jacobian.code import HandCode, Labels
from gradlab.explore.jacobian.display import Display, blocks_of, heading_of, times
from gradlab.explore.jacobian.plan import Plan
from gradlab.explore.jacobian.progress import check_progress
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.jacobian.transposed import Transposed
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.views import opened

Shape = tuple[int, ...]


class Like:
    """What a tensor is made like, without keeping the tensor."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device


class Jacobian(Pictured):
    """A matrix ∂outputs/∂inputs, computed when it is first looked at.

    Made by `jacobian` and `hessian`. It indexes, iterates and converts like a 2-D array: `J[i]`, `J[i, j]`, `J[:, j]`,
    `for row in J`, `np.asarray(J)`; `J @ u` and `v @ J` are sweeps, without the matrix. All of these are NumPy arrays in the
    dtype of the inputs; rows are read only. `J.vjp` and `J.jvp` are what scipy.sparse.linalg.LinearOperator calls rmatvec and
    matvec.

    Attributes
    ----------
    shape : tuple of int
        (elements of the outputs, elements of the inputs).
    sweeps : int
        How many vectors have been swept through the graph so far, forward or backward.
    runner, store, code, library, likes
        What it is made of: what computes, what is known, what rows and columns are called in code, the tensors' library, and
        what tensors are made like, one for each input.
    """

    ndim = 2
    word = "Jacobian"

    def __init__(
        self, runner: Runner, code: HandCode, library: Library, likes: Sequence[Like], single: tuple[bool, bool] = (True, True)
    ) -> None:
        self.runner, self.store, self.code = runner, runner.store, code
        self.library, self.likes, self._single = library, tuple(likes), single
        self.shape, self.dtype = self.store.shape, self.store.dtype
        self.output_names, self.output_shapes = (tuple(some) for some in zip(*code.outputs, strict=True))
        self.input_names, self.input_shapes = (tuple(some) for some in zip(*code.inputs, strict=True))
        self._display = Display(runner, code, self.word, self.heading())

    # ------------------------------------------------------------------------------------------ what it is
    @property
    def complete(self) -> bool:
        """Whether all is known."""
        return self.store.complete

    @property
    def sweeps(self) -> int:
        """How many vectors have been swept through the graph so far."""
        return self.runner.sweeps

    @property
    def output_name(self) -> str:
        """What the output is called; several, with commas between."""
        return ", ".join(self.output_names)

    @property
    def plan(self) -> Plan:
        """How the whole is computed; found when first asked for."""
        return self.runner.plan

    @property
    def rows_known(self) -> int:
        """How many rows have been computed."""
        return int(self.known.sum())

    @property
    def known(self) -> np.ndarray:
        """Which rows have been computed: a new boolean array of shape (len(J),)."""
        return self.store.known_rows

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
        return self.code.row_labels()

    def column_labels_lazily(self) -> Labels:
        """The labels of the columns as a sequence that makes each one when it is looked at."""
        return self.code.column_labels()

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """The column blocks from left to right: each input's name and number of elements."""
        return blocks_of(self.code.inputs)

    @property
    def row_blocks(self) -> list[tuple[str, int]]:
        """The row blocks from top to bottom: each output's name and number of elements."""
        return blocks_of(self.code.outputs)

    def __len__(self) -> int:
        return self.shape[0]

    # ------------------------------------------------------------------------------------------ the whole
    def compute(self, executor: Any = None, *, progress: Any = None) -> Self:
        """Make everything known, here or on the workers of `executor`; returns the Jacobian.

        Parameters
        ----------
        executor : dask.distributed.Client or concurrent.futures.Executor, optional
            The function and its inputs travel to each worker once, by cloudpickle (threads share them); the plan's blocks
            become tasks of about a second or a few, by what they are measured to take. Workers write what they compute where
            `out` is Zarr that they see, else it is gathered here. By default the `executor` of `jacobian`, or else this thread.
        progress : None, bool or callable, optional
            Instead of the one that `jacobian` was given. With workers it counts blocks.

        Raises
        ------
        TypeError
            If the function cannot travel: before anything starts.
        Exception
            What the function or a rule raised on a worker, with the block, its rows and the user's line as a note. What is
            computed stays, on Ctrl-C too; asking again goes on.

        Notes
        -----
        Blocks of a worker that is lost are computed again by another (`dask`; a process of concurrent.futures that dies breaks
        its executor). `J.plan` says whether what workers computed equals one process's to the bit, or to rounding: where the
        versions, BLAS, kernels and threads agree, the same blocks give the same bits.
        """
        check_progress(progress)
        elsewhere = None
        if executor is not None and not self.complete:
            from gradlab.explore.jacobian import distributed  # late: most do without it

            assert self.runner.question is not None
            elsewhere = distributed.Workers(executor, self.runner.question)
        self.runner.compute(elsewhere, progress)
        return self

    # ------------------------------------------------------------------------------------------ products
    def vjp(self, v: Any) -> np.ndarray:
        """vᵀJ, the mix of rows with weights `v`, by one weighted backward (by the matrix, once it is known).

        Parameters
        ----------
        v : array_like or Tensor
            One weight per output element: the output's shape, or flat. For several outputs flat, or a tuple of one each.

        Returns
        -------
        ndarray, shape (J.shape[1],)
        """
        weights = self._flat(v, "vjp(v)", "weight", self.output_name, self.output_shapes, self.shape[0])
        return self.runner.vjp(weights)

    def jvp(self, u: Any) -> np.ndarray:
        """Ju, the mix of columns with weights `u`, by one forward sweep (by the matrix, once it is known).

        Parameters
        ----------
        u : array_like or Tensor
            One weight per input element: the input's shape, or flat. For several inputs flat, or a tuple of one each.

        Returns
        -------
        ndarray, shape (J.shape[0],)
        """
        tangents = self._flat(u, "jvp(u)", "weight", ", ".join(self.input_names), self.input_shapes, self.shape[1])
        return self.runner.jvp(tangents)

    def _flat(self, value: Any, call: str, what: str, of: str, shapes: Sequence[Shape], size: int) -> np.ndarray:
        """A vector for a sweep, from an array, a tensor or a tuple of them."""
        if len(shapes) > 1 and isinstance(value, (tuple, list)) and len(value) == len(shapes):
            parts = [_array(part) for part in value]
            if [part.shape for part in parts] == list(shapes):
                value = np.concatenate([part.reshape(-1) for part in parts])
        vector = _array(value)
        if vector.dtype.kind not in "fiub":
            raise TypeError(f"{call} takes real weights; {call[4]} has dtype {vector.dtype}")
        if vector.shape != (size,) and not (len(shapes) == 1 and vector.shape == shapes[0]):
            wanted = f"shape {shapes[0]} or ({size},)" if len(shapes) == 1 else f"shape ({size},), or a tuple of shapes {shapes}"
            raise ValueError(f"{call} takes one {what} per element of {of}: {wanted}; {call[4]} has shape {vector.shape}")
        return vector.reshape(-1).astype(self.dtype, copy=False)

    def __matmul__(self, u: Any) -> np.ndarray:
        return self._product(_array(u), self.shape[1], "J @ u", 1)

    def __rmatmul__(self, v: Any) -> np.ndarray:
        v = _array(v)
        return self._product(v.T if v.ndim == 2 else v, self.shape[0], "v @ J", 0)

    def _product(self, vectors: np.ndarray, size: int, call: str, side: int) -> np.ndarray:
        """J @ u (side 1) or v @ J (side 0) for vectors (size,) or (size, k): sweeps in chunks, or the matrix once known."""
        if vectors.dtype.kind not in "fiub":
            raise TypeError(f"{call} takes real numbers; got dtype {vectors.dtype}")
        if vectors.ndim not in (1, 2) or vectors.shape[0] != size:
            got = vectors.shape if side else vectors.shape[::-1]
            raise ValueError(f"{call}: the Jacobian has shape {self.shape}, the other has {got}")
        return self.runner.product(vectors.astype(self.dtype, copy=False), side)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options and len(inputs) == 2:
            return inputs[0].__matmul__(inputs[1]) if isinstance(inputs[0], Jacobian) else inputs[1].__rmatmul__(inputs[0])
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Jacobian) else x for x in inputs), **options)

    # ------------------------------------------------------------------------------------------ as an array
    def row(self, i: int) -> np.ndarray:
        """Row `i`, 0 <= i < len(J), computed by one weighted backward if it is not known yet. Read only."""
        return self.runner.row(i)

    def column(self, j: int) -> np.ndarray:
        """Column `j`, 0 <= j < J.shape[1]: by one forward sweep, unless it is known."""
        return self.runner.column(j)

    def rows(self) -> Iterator[np.ndarray]:
        """The rows from first to last, computed a chunk at a time and not kept: for matrices larger than memory."""
        return self.runner.rows()

    @property
    def T(self) -> Transposed:  # noqa: N802  (NumPy's name)
        """The transpose, as lazy as the matrix."""
        return Transposed(self)

    def __iter__(self) -> Iterator[np.ndarray]:
        for i in range(self.shape[0]):
            yield self.row(i)

    def __getitem__(self, key: Any) -> Any:
        which, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        if which is None or which is Ellipsis or (isinstance(key, tuple) and not key):
            return np.asarray(self)[key]
        if _whole_number(which) and not -len(self) <= which < len(self):
            raise IndexError(f"row {which} of a Jacobian with {len(self)} rows; rows count from 0, or from -1 backwards")
        if not rest and _whole_number(which):
            return self.row(int(which) % len(self))
        if isinstance(which, slice) and which == slice(None) and len(rest) == 1 and _whole_number(rest[0]):
            if not -self.shape[1] <= rest[0] < self.shape[1]:
                raise IndexError(
                    f"column {rest[0]} of a Jacobian with {self.shape[1]} columns; columns count from 0, or from -1 backwards"
                )
            return self.column(int(rest[0]) % self.shape[1])
        chosen = np.arange(self.shape[0])[which]  # NumPy's own rules for slices, lists and masks
        needed, position = np.unique(chosen, return_inverse=True)
        if needed.size == self.shape[0] > 1:
            self.runner.compute()
        rows = np.stack([self.row(int(i)) for i in needed]) if needed.size else np.zeros((0, self.shape[1]), self.dtype)
        if isinstance(which, slice):
            return rows[position][(slice(None), *rest)]
        return rows[(position.reshape(np.shape(chosen)), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        matrix = self.runner.dense()
        if dtype is not None and np.dtype(dtype) != matrix.dtype:
            if copy is False:
                raise ValueError(f"a Jacobian of {matrix.dtype} cannot be seen as {np.dtype(dtype)} without a copy")
            return matrix.astype(dtype)
        return matrix.copy() if copy else matrix

    def dense(self) -> np.ndarray:
        """The whole as a NumPy array of shape J.shape. Read only."""
        return np.asarray(self)

    def sparse(self) -> Any:
        """The whole as a scipy.sparse.csr_array; its entries are the pattern's, or else what is not zero."""
        return self.runner.sparse()

    def tensor(self) -> Any:
        """The whole Jacobian as a tensor of shape output.shape + input.shape, in the library and dtype of the inputs.

        For a tuple of inputs a tuple of such tensors, for a tuple of outputs a tuple of these: what
        torch.autograd.functional.jacobian returns.
        """
        matrix = np.asarray(self)
        stops = np.cumsum([size for _, size in self.blocks])[:-1]
        blocks = []
        for rows, shape in zip(
            np.split(matrix, np.cumsum([size for _, size in self.row_blocks])[:-1]), self.output_shapes, strict=True
        ):
            parts = tuple(
                self.library.tensor(np.array(block).reshape(shape + tuple(like.shape)), like)
                for block, like in zip(np.split(rows, stops, axis=1), self.likes, strict=True)
            )
            blocks.append(parts[0] if self._single[1] else parts)
        return blocks[0] if self._single[0] else tuple(blocks)

    def by_hand(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Runnable code that computes row `weights`, or the mix of rows with these weights, without an explorer.

        The code leaves the result, flat, in a variable `row`. It uses the names of this Jacobian's tensors, and writes
        the inputs' `.grad`, as anyone would who does it by hand.
        """
        return self.code.row(weights, self.runner.unused or (False,) * len(self.input_shapes))

    # ------------------------------------------------------------------------------------------ showing
    def heading(self) -> str:
        """Of what with respect to what, in words: "z (7) with respect to x (5)"."""
        return heading_of(self.code)

    def __repr__(self) -> str:
        return self._display.sentence()

    def drawing(self, *, compute: bool = True, columns: Mapping[int, np.ndarray] | None = None) -> Drawing:
        """The heat map of what is known, the rest outlined; if `compute`, completed first where that takes under a second.

        `columns` are such as are known beside what is stored, by number: those that somebody stepped through.
        """
        return self._display.drawing(compute=compute, columns=columns or {})

    def reduced(self, rows: slice = slice(None), columns: slice = slice(None), cells: tuple[int, int] = (64, 64)) -> HeatCells:
        """What is known of a part of the matrix, in `cells` along its sides at most: see `HeatCells`. Computes nothing."""
        return self._display.reduced(rows, columns, cells)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.drawing()._repr_mimebundle_(include=include, exclude=exclude)

    def plot(self, ax: Any = None) -> Any:
        """Draw the whole Jacobian, computing what is missing, with matplotlib; returns the axes. Large ones are pooled."""
        return self._display.plot(ax)

    def widget(self, *, columns: bool = True) -> Any:
        """A live view for a notebook: step through the rows, or mix them with sliders.

        Parameters
        ----------
        columns : bool
            Whether the view can go by columns, with forward sweeps, as well. False for a lesson that shows rows only.
        """
        return opened("jacobian", self, columns=columns)


class Hessian(Jacobian):
    """The Jacobian of a gradient: a symmetric matrix, made by `hessian`."""

    word = "Hessian"

    def heading(self) -> str:
        """Of what with respect to what, in words: "loss with respect to x (5)"."""
        first = self.output_names[0]
        inputs = ", ".join(f"{name} ({times(shape)})" for name, shape in self.code.inputs)
        return f"{first[1 : first.index('/∂')]} with respect to {inputs}"


def _whole_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _array(value: Any) -> np.ndarray:
    library = library_of(value)
    return library.array(value) if library else np.asarray(value)


class SampleJacobians(Jacobian):
    """The Jacobians of a batch's samples, one below the other: made by `jacobian` with `batch`.

    Row s·m + i is row i of sample s, m being the number of output elements of one; a column is an element of one sample's input.
    """

    word = "Jacobian of each sample"

    def __init__(
        self, runner: Runner, code: HandCode, library: Library, likes: Sequence[Like], single: tuple[bool, bool] = (True, True)
    ) -> None:
        super().__init__(runner, code, library, likes, single)
        self.samples = self.output_shapes[0][0]

    def sample(self, s: int) -> np.ndarray:
        """The Jacobian of sample `s`, (outputs of one, inputs of one); computed with the chunk that it is in where the whole is
        kept in memory or written to `out`."""
        if not -self.samples <= s < self.samples:
            raise IndexError(f"sample {s} of {self.samples}; samples count from 0, or from -1 backwards")
        lines = self.shape[0] // self.samples
        first = s % self.samples * lines
        return np.stack([self.row(i) for i in range(first, first + lines)])

    def by_hand(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Refused: code for a row is of one sample, whose own Jacobian writes it.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"by_hand() writes code for a row of one Jacobian, and this is one for each of {self.samples} samples: ask for the "
            "function's Jacobian by one sample, jacobian(f, x[:1]).by_hand(0) for example"
        )

    def widget(self, *, columns: bool = True) -> Any:
        """Refused: a view is of one sample's Jacobian.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"widget() shows one Jacobian, and this is one for each of {self.samples} samples: ask for the function's Jacobian "
            "by one sample, jacobian(f, x[:1]).widget() for example"
        )
