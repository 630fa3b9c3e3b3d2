"""A Jacobian as a matrix that is computed when it is looked at, and not more of it than was asked for.

A row that is asked for alone is one weighted backward; the whole is computed by the plan, block after block. What is known
is kept in one of three forms: single rows, a whole matrix that blocks are written into, or the numbers of a sparse pattern.
Products need none of them: vᵀJ is a backward sweep and Ju a forward one. When all is known the graph is let go.

Threads may share one. A lock is held for one row, product or block at a time, so that a view can show what a long run of another
thread has so far, and two that ask for the whole share the work.
"""
from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from gradlab.explore.cells import Cells
from gradlab.explore.jacobian.checked import compare
from gradlab.explore.jacobian.code import Labels, RowByHand
from gradlab.explore.jacobian.graph import Graph
from gradlab.explore.jacobian.memory import has_room, needs_room
from gradlab.explore.jacobian.methods import compute_block, entries, scatter
from gradlab.explore.jacobian.plan import Block, Plan, make_plan
from gradlab.explore.jacobian.runs import Run, run
from gradlab.explore.jacobian.showing import Showing, times
from gradlab.explore.jacobian.transposed import Transposed
from gradlab.explore.libraries import library_of
from gradlab.explore.warned import warn_at_the_caller

Shape = tuple[int, ...]
Method = TypeVar("Method", bound=Callable[..., Any])


def in_turn(method: Method) -> Method:
    """A method of a Jacobian that one thread at a time is in."""
    @functools.wraps(method)
    def held(self: Jacobian, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)
    return held  # type: ignore[return-value]


class Jacobian(Showing):
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
    """

    ndim = 2

    def __init__(self, graph: Graph, *, output_names: Sequence[str] = ("y",), input_names: Sequence[str] = ("x",),
                 single: tuple[bool, bool] = (True, True), remark: str = "", opening: str = "",
                 ask: dict[str, Any] | None = None, long: Run | None = None, spare: str = "y") -> None:
        self._lock = threading.RLock()
        self._graph: Graph | None = graph
        self._library, self._single = graph.library, single
        self._ask = ask or {}                                   # method, chunk_size, sparsity, plan: what the plan is made from
        self._long = long or Run()                              # out, progress, resume: how a long run goes
        self._plan: Plan | None = None
        self.shape, self.dtype = graph.shape, graph.dtype
        self.output_names, self.input_names = tuple(output_names), tuple(input_names)
        self.output_shapes, self.input_shapes = graph.output_shapes, graph.input_shapes
        self._like = ([_Like(y) for y in graph.outputs], [_Like(x) for x in graph.inputs])
        self._hand = RowByHand(
            self._library.alias,
            list(zip(self.output_names, self.output_shapes, strict=True)),
            list(zip(self.input_names, self.input_shapes, strict=True)),
            leaves=all(value.is_leaf for value in graph.inputs),
            plain=all(self._library.dtype_name(y) == "float32" for y in graph.outputs),
            remark=remark, opening=opening, spare=spare)
        self.sweeps = 0
        self._unused = graph.unused                             # which inputs the outputs do not depend on; None: not known yet
        self._done: set[int] = set()                            # the numbers of the plan's blocks that are stored
        self._rows: dict[int, np.ndarray] = {}                  # rows that were computed by themselves
        self._matrix: np.ndarray | None = None                  # (m, n), that blocks of rows and columns are written into
        self._filled = (np.zeros(self.shape[0], bool), np.zeros(self.shape[1], bool))   # its rows and columns that are
        self._data: np.ndarray | None = None                    # the numbers of the plan's pattern
        self._seen: np.ndarray | None = None                    # which of them are known; None: as `complete` says
        self.complete = not self.shape[0] or not self.shape[1]
        if self.complete:
            self._matrix, self._graph = np.zeros(self.shape, self.dtype), None

    # ------------------------------------------------------------------------------------------ what it is
    @property
    def output_name(self) -> str:
        """What the output is called; several, with commas between."""
        return ", ".join(self.output_names)

    @property
    def output_shape(self) -> Shape:
        """The shape of the output; of several, how many elements they have together."""
        return self.output_shapes[0] if len(self.output_shapes) == 1 else (self.shape[0],)

    @property
    @in_turn
    def plan(self) -> Plan:
        """How the whole is computed; found when first asked for."""
        if self._plan is None:
            if self._graph is None:
                self._plan = Plan("rows", self.shape, self.shape[0], 1, why="each was asked for by itself")
            else:
                self._plan = make_plan(self._graph, **self._ask)
        return self._plan

    @property
    def rows_known(self) -> int:
        """How many rows have been computed."""
        return self.shape[0] if self.complete else int(self.known.sum())

    @property
    def known(self) -> np.ndarray:
        """Which rows have been computed: a new boolean array of shape (len(J),)."""
        mask = np.full(self.shape[0], self.complete) | self._filled[0]
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
        return Labels(self._hand.outputs)

    def column_labels_lazily(self) -> Labels:
        """The labels of the columns as a sequence that makes each one when it is looked at."""
        return Labels(self._hand.inputs)

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """The column blocks from left to right: each input's name and number of elements."""
        return [(name, math.prod(shape)) for name, shape in self._hand.inputs]

    @property
    def row_blocks(self) -> list[tuple[str, int]]:
        """The row blocks from top to bottom: each output's name and number of elements."""
        return [(name, math.prod(shape)) for name, shape in self._hand.outputs]

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    # ------------------------------------------------------------------------------------------ computing
    def _sweep(self, weights: np.ndarray) -> np.ndarray:
        """vᵀJ by one weighted backward over the kept graph: (columns,) for (rows,), (k, columns) for (k, rows)."""
        assert self._graph is not None
        found = self._graph.vjp(weights)
        self.sweeps += len(weights) if weights.ndim == 2 else 1
        self._unused = self._graph.unused
        return found

    def _push(self, tangents: np.ndarray) -> np.ndarray:
        """Ju by one forward sweep over the kept graph: (rows,) for (columns,), (k, rows) for (k, columns)."""
        assert self._graph is not None
        found = self._graph.jvp(tangents)
        self.sweeps += len(tangents) if tangents.ndim == 2 else 1
        return found

    def _compute(self) -> None:
        """Make everything known, by the plan."""
        if self.complete:
            return
        if self.plan.sweeps == 0:                               # an empty pattern: all is zero
            with self._lock:
                self._allocate()
                self._finish()
            return
        self._run([block for block in self.plan.blocks() if block.number not in self._done])

    def _run(self, blocks: Iterable[Block], *, progress: Any = None) -> None:
        """Compute and store these blocks of the plan; the graph goes with the last."""
        run(self, blocks, progress)
        self._settle()

    def _values(self, block: Block) -> np.ndarray:
        """The numbers of a block: swept, but for rows that are known already."""
        assert self._graph is not None
        chosen = [i for i in range(block.start, block.stop) if i in self._rows] if block.kind == "rows" and self._rows else []
        if not chosen:
            values = compute_block(self._graph, self.plan, block)
            self.sweeps += block.stop - block.start
            self._unused = self._graph.unused
            return values
        values = np.empty((block.stop - block.start, self.shape[1]), self.dtype)
        missing = np.setdiff1d(np.arange(block.start, block.stop), chosen)
        for i in chosen:
            values[i - block.start] = self._rows[i]
        if missing.size:
            values[missing - block.start] = self._sweep(_unit(missing, self.shape[0], self.dtype))
        return values

    def _store(self, block: Block, values: np.ndarray) -> None:
        """Put a block where it belongs."""
        self._allocate()
        if self._data is not None:
            which, numbers = entries(self.plan, block, values)
            if isinstance(which, slice):
                self._data = numbers
            else:
                self._data[which] = numbers
        else:
            assert self._matrix is not None
            rows, columns, numbers = scatter(self.plan, block, values)
            self._matrix[rows, columns] = numbers
        self._mark(block)

    def _mark(self, block: Block) -> None:
        """Note that a block is stored."""
        if block.kind != "colours":
            axis = int(block.kind == "columns")
            self._filled[axis][block.start:block.stop] = True
            for i in range(block.start, block.stop) if self._rows and not axis else ():
                self._rows.pop(i, None)
        self._done.add(block.number)

    @in_turn
    def _settle(self) -> None:
        if not self.complete and len(self._done) * self.plan.chunk >= self.plan.sweeps:
            self._finish()

    def _allocate(self) -> None:
        """Room for what the plan's blocks bring: what was given as `out`, else made."""
        if self._matrix is None and self._long.out is not None:
            matrix = self._long.out.view(np.ndarray)            # a view: it will be read only, and what was given will not
            if self.plan.colours is not None:
                matrix[...] = 0
            self._matrix = matrix
        elif self._matrix is not None:
            return
        elif self.plan.pattern is not None and self.plan.colours is not None:
            if self._data is None:
                self._data = np.empty(len(self.plan.pattern[0]), self.dtype)
        else:
            needs_room(self.shape, self.dtype)
            self._matrix = np.empty(self.shape, self.dtype)

    def _take_over(self, blocks: Sequence[Block]) -> None:
        """Blocks that `out` holds from an earlier run."""
        if blocks:
            assert self._long.out is not None
            self._matrix = self._long.out.view(np.ndarray)
        for block in blocks:
            self._mark(block)
        self._settle()

    def _finish(self) -> None:
        """All is known: the graph is let go."""
        if self.complete:
            return
        assert self._graph is not None
        if self._plan is not None and self._plan.given and (self._done or not self._plan.sweeps):
            self._check_given()
        self._unused = self._graph.unused
        self.complete, self._graph, self._rows = True, None, {}
        for kept in (self._matrix, self._data):
            if kept is not None:
                kept.setflags(write=False)

    def _check_given(self) -> None:
        """Say so if the pattern that was given leaves out what is not zero."""
        forward = self.plan.by == "columns"
        whole = self._known_whole()
        sweep, lines, across = (self._push, "rows", whole) if forward else (self._sweep, "columns", whole.T)
        wrong, unknown = compare(sweep, across, self.dtype, self.plan.chunk)
        if wrong.any():
            warn_at_the_caller(
                f"the pattern that was given leaves out entries that are not zero: {int(wrong.sum())} of {wrong.size} {lines} "
                f"are wrong, the first of them {int(np.argmax(wrong))}. Compute this one without plan= and sparsity=, or give a "
                "pattern that has all of its entries")
        elif unknown.any():
            warn_at_the_caller(
                f"whether the pattern that was given has all entries that are not zero can be told of all {lines} but "
                f"{int(unknown.sum())} of {unknown.size}, which hold inf or NaN; the first of them is {int(np.argmax(unknown))}")

    @in_turn
    def row(self, i: int) -> np.ndarray:
        """Row `i`, 0 <= i < len(J), computed by one weighted backward if it is not known yet. Read only."""
        if self._matrix is not None and (self.complete or self._filled[0][i]):
            row = self._matrix[i]
            row.setflags(write=False)
            return row
        if self.complete:
            row = np.zeros(self.shape[1], self.dtype)
            which, numbers = self._sparse_row(i)
            row[which] = numbers
            row.setflags(write=False)
            return row
        if i not in self._rows:
            if self._long.out is not None and self.plan.kind == "rows":
                self._run([self.plan.block(i // self.plan.chunk)])
                return self.row(i)
            row = self._sweep(_unit(i, self.shape[0], self.dtype))
            row.setflags(write=False)
            self._rows[i] = row
            if len(self._rows) + np.count_nonzero(self._filled[0]) == self.shape[0]:
                if self._long.out is not None:
                    self._compute()
                    return self.row(i)
                matrix = np.empty(self.shape, self.dtype) if self._matrix is None else self._matrix
                for k, known in self._rows.items():
                    matrix[k] = known
                self._matrix = matrix                           # whole at once: Ctrl-C leaves no half of it
                self._finish()
            return row
        return self._rows[i]

    def _sparse_row(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._data is not None
        columns, starts = self.plan.csr
        inside = slice(starts[i], starts[i + 1])
        return columns[inside], self._data[inside]

    # ------------------------------------------------------------------------------------------ products
    @in_turn
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
        if self.complete:
            return weights @ self._known_whole()
        return self._sweep(weights)

    @in_turn
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
        if self.complete:
            return self._known_whole() @ tangents
        return self._push(tangents)

    def _flat(self, given: Any, call: str, what: str, of: str, shapes: Sequence[Shape], size: int) -> np.ndarray:
        """A vector for a sweep, from an array, a tensor or a tuple of them."""
        if len(shapes) > 1 and isinstance(given, (tuple, list)) and len(given) == len(shapes):
            parts = [_array(part) for part in given]
            if [part.shape for part in parts] == list(shapes):
                given = np.concatenate([part.reshape(-1) for part in parts])
        vector = _array(given)
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

    @in_turn
    def _product(self, vectors: np.ndarray, size: int, call: str, side: int) -> np.ndarray:
        """J @ u (side 1) or v @ J (side 0) for vectors (size,) or (size, k): sweeps in chunks, or the matrix once known."""
        if vectors.dtype.kind not in "fiub":
            raise TypeError(f"{call} takes real numbers; got dtype {vectors.dtype}")
        if vectors.ndim not in (1, 2) or vectors.shape[0] != size:
            got = vectors.shape if side else vectors.shape[::-1]
            raise ValueError(f"{call}: the Jacobian has shape {self.shape}, the other has {got}")
        vectors = vectors.astype(self.dtype, copy=False)
        if self.complete:
            whole = self._known_whole()
            return whole @ vectors if side else (whole.T @ vectors).T
        sweep = self._push if side else self._sweep
        if vectors.ndim == 1:
            return sweep(vectors)
        made = np.empty((vectors.shape[1], self.shape[1 - side]), self.dtype)
        chunk = max(1, self.plan.chunk)
        for start in range(0, len(made), chunk):
            made[start:start + chunk] = sweep(np.ascontiguousarray(vectors[:, start:start + chunk].T))
        return made.T if side else made

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not options and len(inputs) == 2:
            return inputs[0].__matmul__(inputs[1]) if isinstance(inputs[0], Jacobian) else inputs[1].__rmatmul__(inputs[0])
        return getattr(ufunc, method)(*(np.asarray(x) if isinstance(x, Jacobian) else x for x in inputs), **options)

    # ------------------------------------------------------------------------------------------ as an array
    def rows(self) -> Iterator[np.ndarray]:
        """The rows from first to last, computed a chunk at a time and not kept: for matrices larger than memory."""
        if self.complete or self.plan.colours is not None:
            self._compute()
            yield from map(self.row, range(self.shape[0]))
            return
        chunk = max(1, self.plan.chunk)
        for start in range(0, self.shape[0], chunk):
            numbers = range(start, min(start + chunk, self.shape[0]))
            with self._lock:
                known = self.complete or self._filled[0][start:numbers.stop].all()
                some = None if known else self._sweep(_unit(np.array(numbers), self.shape[0], self.dtype))
            yield from map(self.row, numbers) if some is None else some

    @in_turn
    def column(self, j: int) -> np.ndarray:
        """Column `j`, 0 <= j < J.shape[1]: by one forward sweep, unless it is known."""
        if self.complete or self._filled[1][j]:
            return self._matrix[:, j] if self._matrix is not None else self._csr()[:, [j]].toarray()[:, 0]
        return self._push(_unit(j, self.shape[1], self.dtype))

    @property
    def T(self) -> Transposed:                                  # noqa: N802  (NumPy's name)
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
            raise IndexError(
                f"row {which} of a Jacobian with {len(self)} rows; rows count from 0, or from -1 backwards"
            )
        if not rest and _whole_number(which):
            return self.row(int(which) % len(self))
        if isinstance(which, slice) and which == slice(None) and len(rest) == 1 and _whole_number(rest[0]):
            if not -self.shape[1] <= rest[0] < self.shape[1]:
                raise IndexError(f"column {rest[0]} of a Jacobian with {self.shape[1]} columns; columns count from 0, or from -1 "
                                 "backwards")
            return self.column(int(rest[0]) % self.shape[1])
        chosen = np.arange(self.shape[0])[which]  # NumPy's own rules for slices, lists and masks
        needed, position = np.unique(chosen, return_inverse=True)
        if needed.size == self.shape[0] > 1:
            self._compute()
        rows = np.stack([self.row(int(i)) for i in needed]) if needed.size else np.zeros((0, self.shape[1]), self.dtype)
        if isinstance(which, slice):
            return rows[position][(slice(None), *rest)]
        return rows[(position.reshape(np.shape(chosen)), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._compute()
        with self._lock:
            matrix = self._matrix
            if matrix is None:
                needs_room(self.shape, self.dtype)
                matrix = self.sparse().toarray()
                matrix.setflags(write=False)
                self._matrix = matrix
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
        from scipy.sparse import csr_array, hstack, vstack

        with self._lock:
            if not self.complete and self.plan.colours is None and not has_room(self.shape, self.dtype):
                stack = hstack if self.plan.kind == "columns" else vstack
                return stack([csr_array(self._values(block)) for block in self.plan.blocks()], format="csr")
        self._compute()
        return self._csr()

    def _csr(self) -> Any:
        """What is stored, as a scipy.sparse.csr_array."""
        from scipy.sparse import csr_array

        if self._plan is None or self._plan.pattern is None:
            assert self._matrix is not None
            return csr_array(self._matrix.astype(np.float32) if self.dtype.itemsize < 4 else self._matrix)
        columns, starts = self._plan.csr
        assert self._data is not None or self._matrix is not None
        numbers = self._data.copy() if self._data is not None else self._matrix[self._plan.pattern]  # type: ignore[index]
        numbers = numbers.astype(np.float32) if numbers.itemsize < 4 else numbers              # scipy has no float16
        return csr_array((numbers, columns.copy(), starts.copy()), shape=self.shape)

    def _known_whole(self) -> Any:
        dense = self._matrix is not None and (self._long.out is None or self._plan is None or self._plan.colours is None)
        return self._matrix if dense else self._csr()

    def tensor(self) -> Any:
        """The whole Jacobian as a tensor of shape output.shape + input.shape, in the library and dtype of the inputs.

        For a tuple of inputs a tuple of such tensors, for a tuple of outputs a tuple of these: what
        torch.autograd.functional.jacobian returns.
        """
        matrix = np.asarray(self)
        stops = np.cumsum([size for _, size in self.blocks])[:-1]
        made = []
        for rows, shape in zip(np.split(matrix, np.cumsum([size for _, size in self.row_blocks])[:-1]), self.output_shapes,
                               strict=True):
            parts = tuple(self._library.tensor(np.array(block).reshape(shape + tuple(like.shape)), like)
                          for block, like in zip(np.split(rows, stops, axis=1), self._like[1], strict=True))
            made.append(parts[0] if self._single[1] else parts)
        return made[0] if self._single[0] else tuple(made)

    def by_hand(self, weights: int | Sequence[float] | np.ndarray) -> str:
        """Runnable code that computes row `weights`, or the mix of rows with these weights, without an explorer.

        The code leaves the result, flat, in a variable `row`. It uses the names of this Jacobian's tensors, and writes
        the inputs' `.grad`, as anyone would who does it by hand.
        """
        return self._hand.code(weights, self._unused or (False,) * len(self.input_shapes))

    @in_turn
    def reduced(self, rows: slice = slice(None), columns: slice = slice(None), cells: tuple[int, int] = (64, 64)) -> Cells:
        """What is known of a part of the matrix, in `cells` along its sides at most: see `Cells`. Computes nothing."""
        (first, end, step), (left, right, across) = rows.indices(self.shape[0]), columns.indices(self.shape[1])
        if (step, across) != (1, 1):
            raise ValueError("reduced() takes ranges of neighbouring rows and columns; got a step of "
                             f"{step if step != 1 else across}")
        made = Cells((first, max(first, end), left, max(left, right)), self.blocks, cells)
        made.put_known(self)
        return made


class Hessian(Jacobian):
    """The Jacobian of a gradient: a symmetric matrix, made by `hessian`."""

    word = "Hessian"

    def heading(self) -> str:
        """Of what by what, in words: "loss by x (5)"."""
        first = self.output_names[0]
        return f"{first[1:first.index('/∂')]} by {', '.join(f'{name} ({times(shape)})' for name, shape in self._hand.inputs)}"


class _Like:
    """What a tensor is made like, without keeping the tensor."""

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype, self.device = tensor.shape, tensor.dtype, tensor.device


def _unit(rows: Any, size: int, dtype: Any) -> np.ndarray:
    """The unit vector of one row, or a batch of several."""
    if np.ndim(rows) == 0:
        v = np.zeros(size, dtype)
        v[rows] = 1
        return v
    v = np.zeros((len(rows), size), dtype)
    v[np.arange(len(rows)), rows] = 1
    return v


def _whole_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _array(value: Any) -> np.ndarray:
    library = library_of(value)
    return library.array(value) if library else np.asarray(value)
