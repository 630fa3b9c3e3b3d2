"""A Jacobian as a matrix that is computed on demand, and only the parts that are needed.

`Jacobian` combines its parts, and adds the interface of arrays: indices, products, conversions. A `Store` holds the known
entries, a `Runner` computes the others by a `Plan`, a `Display` draws the matrix, and `HandCode` writes it as code.
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
from gradlab.explore.views import open_view

Shape = tuple[int, ...]


class Like:
    """Dtype and device for new tensors, without keeping a tensor alive."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device


class Jacobian(Pictured):
    """A matrix ∂outputs/∂inputs, computed on demand.

    Made by `jacobian` and `hessian`. It indexes, iterates and converts like a 2-D array: `J[i]`, `J[i, j]`, `J[:, j]`,
    `for row in J`, `np.asarray(J)`. `J @ u` and `v @ J` are sweeps, without the matrix. The results are NumPy arrays with the
    dtype of the inputs; rows are read-only. `J.vjp` and `J.jvp` correspond to rmatvec and matvec of
    scipy.sparse.linalg.LinearOperator.

    Attributes
    ----------
    shape : tuple of int
        (elements of the outputs, elements of the inputs).
    sweeps : int
        Number of vectors swept through the graph so far, forward or backward.
    runner, store, code, library, likes
        Its parts: `runner` computes, `store` holds the known entries, `code` names rows and columns, `library` is the tensors'
        library, and `likes` has the dtype and device of each input.
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
        """True if all entries are known."""
        return self.store.complete

    @property
    def sweeps(self) -> int:
        """Number of vectors swept through the graph so far."""
        return self.runner.sweeps

    @property
    def output_name(self) -> str:
        """Name of the output; several names are separated by commas."""
        return ", ".join(self.output_names)

    @property
    def plan(self) -> Plan:
        """Plan for computing the whole matrix, made on first access."""
        return self.runner.plan

    @property
    def rows_known(self) -> int:
        """Number of rows that have been computed."""
        return int(self.known_mask.sum())

    @property
    def known_mask(self) -> np.ndarray:
        """Mask of the rows that have been computed: a new boolean array of shape (len(J),)."""
        return self.store.known_rows

    @property
    def labels(self) -> list[str]:
        """Labels of the rows: `z[0,2]`."""
        return list(self.row_labels())

    @property
    def column_labels(self) -> list[str]:
        """Labels of the columns: `x[3]`."""
        return list(self.column_labels_lazily())

    def row_labels(self) -> Labels:
        """Return the labels of the rows as a lazy sequence."""
        return self.code.row_labels()

    def column_labels_lazily(self) -> Labels:
        """Return the labels of the columns as a lazy sequence."""
        return self.code.column_labels()

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """Column blocks from left to right: each input's name and number of elements."""
        return blocks_of(self.code.inputs)

    @property
    def row_blocks(self) -> list[tuple[str, int]]:
        """Row blocks from top to bottom: each output's name and number of elements."""
        return blocks_of(self.code.outputs)

    def __len__(self) -> int:
        return self.shape[0]

    # ------------------------------------------------------------------------------------------ the whole
    def compute(self, executor: Any = None, *, progress: Any = None) -> Self:
        """Compute all entries, here or on the workers of `executor`, and return the Jacobian.

        Parameters
        ----------
        executor : dask.distributed.Client or concurrent.futures.Executor, optional
            The function and its inputs are sent to each worker once, by cloudpickle (threads share them). The plan's blocks
            become tasks of about a second or a few, by measured time. Workers write their blocks to `out` if it is Zarr that they
            can access; otherwise blocks are gathered here. By default the `executor` of `jacobian`, or else this thread.
        progress : None, bool or callable, optional
            Overrides the `progress` of `jacobian`. With workers it counts blocks.

        Raises
        ------
        TypeError
            If the function cannot be sent, before anything starts.
        Exception
            An error of the function or a rule on a worker, with a note on the block, its rows and the user's line. Computed
            blocks are kept, also after Ctrl-C; another call continues.

        Notes
        -----
        If a worker is lost, another one computes its blocks again (with Dask; a dead process of concurrent.futures breaks its
        executor). `J.plan` says whether the workers' results equal one process's bit for bit, or up to rounding. If versions,
        BLAS, kernels and threads agree, the same blocks give the same bits.
        """
        check_progress(progress)
        elsewhere = None
        if executor is not None and not self.complete:
            from gradlab.explore.jacobian import distributed  # rarely needed

            assert self.runner.question is not None
            elsewhere = distributed.Workers(executor, self.runner.question)
        self.runner.compute(elsewhere, progress)
        return self

    # ------------------------------------------------------------------------------------------ products
    def vjp(self, v: Any) -> np.ndarray:
        """Compute vᵀJ, the sum of the rows with weights `v`, by one weighted backward (by the matrix, once it is known).

        Parameters
        ----------
        v : array_like or Tensor
            One weight per output element: the output's shape, or flat. For several outputs flat, or a tuple with one array each.

        Returns
        -------
        ndarray, shape (J.shape[1],)
        """
        weights = self._flat(v, "vjp(v)", "weight", self.output_name, self.output_shapes, self.shape[0])
        return self.runner.vjp(weights)

    def jvp(self, u: Any) -> np.ndarray:
        """Compute Ju, the sum of the columns with weights `u`, by one forward sweep (by the matrix, once it is known).

        Parameters
        ----------
        u : array_like or Tensor
            One weight per input element: the input's shape, or flat. For several inputs flat, or a tuple with one array each.

        Returns
        -------
        ndarray, shape (J.shape[0],)
        """
        tangents = self._flat(u, "jvp(u)", "weight", ", ".join(self.input_names), self.input_shapes, self.shape[1])
        return self.runner.jvp(tangents)

    def _flat(self, value: Any, call: str, what: str, of: str, shapes: Sequence[Shape], size: int) -> np.ndarray:
        """Return a flat vector for a sweep, from an array, a tensor or a tuple of them."""
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
        """Compute J @ u (side 1) or v @ J (side 0) for vectors (size,) or (size, k): in chunks of sweeps, or by the known
        matrix."""
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
        """Return row `i`, 0 <= i < len(J), computed by one weighted backward if it is not known yet. Read-only."""
        return self.runner.row(i)

    def column(self, j: int) -> np.ndarray:
        """Return column `j`, 0 <= j < J.shape[1], computed by one forward sweep if it is not known yet."""
        return self.runner.column(j)

    def rows(self) -> Iterator[np.ndarray]:
        """Return the rows in order, computed a chunk at a time and not stored: for matrices larger than memory."""
        return self.runner.rows()

    @property
    def T(self) -> Transposed:  # noqa: N802  (NumPy's name)
        """Transpose, as lazy as the matrix."""
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
                raise ValueError(f"a Jacobian of {matrix.dtype} cannot be viewed as {np.dtype(dtype)} without a copy")
            return matrix.astype(dtype)
        return matrix.copy() if copy else matrix

    def dense(self) -> np.ndarray:
        """Return the matrix as a NumPy array of shape J.shape. Read-only."""
        return np.asarray(self)

    def sparse(self) -> Any:
        """Return the matrix as a scipy.sparse.csr_array with the entries of the pattern or, without one, the nonzero entries."""
        return self.runner.sparse()

    def tensor(self) -> Any:
        """Return the Jacobian as a tensor of shape output.shape + input.shape, in the library and dtype of the inputs.

        For a tuple of inputs it returns a tuple of such tensors, and for a tuple of outputs a tuple of these, like
        torch.autograd.functional.jacobian.
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
        """Return runnable code that computes row `weights`, or the weighted sum of rows, without an explorer.

        The code leaves the result, flat, in a variable `row`. It uses the names of this Jacobian's tensors, and writes the
        inputs' `.grad`, as code by hand does.
        """
        return self.code.row(weights, self.runner.unused or (False,) * len(self.input_shapes))

    # ------------------------------------------------------------------------------------------ showing
    def heading(self) -> str:
        """Return for example "z (7) with respect to x (5)"."""
        return heading_of(self.code)

    def __repr__(self) -> str:
        return self._display.sentence()

    def drawing(self, *, compute: bool = True, columns: Mapping[int, np.ndarray] | None = None) -> Drawing:
        """Draw a heat map of the known entries, the rest outlined. With `compute`, complete the matrix first if that takes under
        a second.

        `columns`: known columns that are not stored, by number, from a view that stepped through them.
        """
        return self._display.drawing(compute=compute, columns=columns or {})

    def pool(self, rows: slice = slice(None), columns: slice = slice(None), cells: tuple[int, int] = (64, 64)) -> HeatCells:
        """Return the known entries of a part of the matrix, in at most `cells` per side: see `HeatCells`. Computes nothing."""
        return self._display.pool(rows, columns, cells)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.drawing()._repr_mimebundle_(include=include, exclude=exclude)

    def plot(self, ax: Any = None) -> Any:
        """Draw the complete Jacobian with matplotlib, computing missing entries, and return the axes. Large ones are pooled."""
        return self._display.plot(ax)

    def widget(self, *, columns: bool = True) -> Any:
        """Make a live view for a notebook: step through the rows, or weight them with sliders.

        Parameters
        ----------
        columns : bool
            Whether the view can also step through columns, by forward sweeps. False for a lesson that shows only rows.
        """
        return open_view("jacobian", self, columns=columns)


class Hessian(Jacobian):
    """Jacobian of a gradient: a symmetric matrix, made by `hessian`."""

    word = "Hessian"

    def heading(self) -> str:
        """Return for example "loss with respect to x (5)"."""
        first = self.output_names[0]
        inputs = ", ".join(f"{name} ({times(shape)})" for name, shape in self.code.inputs)
        return f"{first[1 : first.index('/∂')]} with respect to {inputs}"


def _whole_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _array(value: Any) -> np.ndarray:
    library = library_of(value)
    return library.array(value) if library else np.asarray(value)


class SampleJacobians(Jacobian):
    """Jacobians of a batch's samples, stacked. Made by `jacobian` with `batch`.

    Row s·m + i is row i of sample s, where m is the number of output elements of one sample. A column is an element of a sample's
    input.
    """

    word = "Jacobian of each sample"

    def __init__(
        self, runner: Runner, code: HandCode, library: Library, likes: Sequence[Like], single: tuple[bool, bool] = (True, True)
    ) -> None:
        super().__init__(runner, code, library, likes, single)
        self.samples = self.output_shapes[0][0]

    def sample(self, s: int) -> np.ndarray:
        """Return the Jacobian of sample `s`, (outputs of one, inputs of one). If the matrix is kept in memory or written to
        `out`, the sample's whole chunk is computed."""
        if not -self.samples <= s < self.samples:
            raise IndexError(f"sample {s} of {self.samples}; samples count from 0, or from -1 backwards")
        lines = self.shape[0] // self.samples
        first = s % self.samples * lines
        return np.stack([self.row(i) for i in range(first, first + lines)])

    def by_hand(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Raise, since code for a row is written by the Jacobian of one sample.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"by_hand() writes code for a row of one Jacobian, but this has one for each of {self.samples} samples. Ask for the "
            "function's Jacobian by one sample, jacobian(f, x[:1]).by_hand(0) for example"
        )

    def widget(self, *, columns: bool = True) -> Any:
        """Raise, since a view shows one sample's Jacobian.

        Raises
        ------
        ValueError
        """
        raise ValueError(
            f"widget() shows one Jacobian, but this has one for each of {self.samples} samples. Ask for the function's Jacobian "
            "by one sample, jacobian(f, x[:1]).widget() for example"
        )
