"""Known entries of a Jacobian: single rows, a whole matrix that blocks are written to, or the numbers of a sparse pattern.

The matrix is kept here, or is the user's `out`: a `Target`.

A store computes nothing. A runner adds rows and blocks of the plan to it; the store knows which entries it has, and returns them.
A lock that is held while it is written to lets threads read meanwhile. An interrupt between two lines leaves it consistent:
numbers are written before they are marked as known.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradlab.explore.jacobian.memory import needs_room
from gradlab.explore.jacobian.methods import entries, scatter
from gradlab.explore.jacobian.plan import Block, Plan
from gradlab.explore.jacobian.targets.target import Target


class Store:
    """Known entries of a matrix.

    Attributes
    ----------
    shape, dtype
        Shape and dtype of the matrix.
    out : Target or None
        Where the matrix is written; memory is allocated by default.
    plan : Plan or None
        The plan of its blocks; None until there is one.
    done : set of int
        Numbers of the plan's blocks that are stored.
    complete : bool
        Whether all entries are known.
    lock : RLock
        Held while entries are computed and written.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype, out: Target | None = None) -> None:
        self.shape, self.dtype, self.out = shape, dtype, out
        self.plan: Plan | None = None
        self.done: set[int] = set()
        self.lock = threading.RLock()
        self._rows: dict[int, np.ndarray] = {}  # rows that were computed separately
        self._matrix: Any = None  # target of blocks of rows and columns
        self._filled = np.zeros(shape[0], bool), np.zeros(shape[1], bool)  # masks of its rows and columns that are filled
        self._numbers: np.ndarray | None = None  # numbers of the plan's pattern
        self._read: Any = None  # all parts that `out` holds, once they were read
        self.complete = not shape[0] or not shape[1]
        if self.complete:
            self._matrix = np.zeros(shape, dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())

    # ------------------------------------------------------------------------------------------ masks
    @property
    def known_rows(self) -> np.ndarray:
        """Mask of the known rows: a new boolean array."""
        mask = np.full(self.shape[0], self.complete) | self._filled[0]
        mask[list(self._rows)] = True
        return mask

    @property
    def known_columns(self) -> np.ndarray:
        """Mask of the known columns: a new boolean array."""
        return np.full(self.shape[1], self.complete) | self._filled[1]

    @property
    def by_rows(self) -> bool:
        """True if only whole rows are known."""
        return self.complete or (self._numbers is None and not self._filled[1].any())

    @property
    def swept(self) -> int:
        """Number of rows, columns or colours in the stored blocks."""
        if self.plan is None:
            return 0
        last = (self.plan.sweeps - 1) // self.plan.chunk
        short = (last + 1) * self.plan.chunk - self.plan.sweeps
        return len(self.done) * self.plan.chunk - (short if last in self.done else 0)

    def all_rows(self) -> bool:
        """Return whether each row is known, separately or in a block."""
        counted = len(self._rows) + int(np.count_nonzero(self._filled[0]))  # quick; an interrupt may have left a row in both
        return self.complete or (counted >= self.shape[0] and bool(self.known_rows.all()))

    # ------------------------------------------------------------------------------------------ entries
    def row(self, i: int) -> np.ndarray | None:
        """Return row `i`, read-only; None if it is not known."""
        row: np.ndarray
        if self._matrix is not None and (self.complete or self._filled[0][i]):
            row = self._matrix[i]
        elif self._in_parts():
            assert self.plan is not None
            if not (self.complete or self._filled[0][i]):
                return self._rows.get(i)
            whole, first = (self._assemble(), 0) if self.complete else self._part_with(i)
            row = whole[[i - first]].toarray()[0].astype(self.dtype, copy=False)
        elif self.complete:
            assert self.plan is not None
            row, (columns, starts) = np.zeros(self.shape[1], self.dtype), self.plan.csr
            inside = slice(starts[i], starts[i + 1])
            row[columns[inside]] = self.numbers(inside)
        else:
            return self._rows.get(i)
        row.setflags(write=False)
        return row

    def column(self, j: int) -> np.ndarray | None:
        """Return column `j`, read-only; None if it is not known."""
        if not (self.complete or self._filled[1][j]):
            return None
        column: np.ndarray = self._matrix[:, j] if self._matrix is not None else self._lines()[:, [j]].toarray()[:, 0]
        column = column.astype(self.dtype, copy=False)
        column.setflags(write=False)
        return column

    def band(self, start: int, stop: int, left: int, right: int) -> np.ndarray | None:
        """Return the known rows among neighbouring ones, from column `left` to `right`; None if there are none. If blocks of
        columns are stored, return all rows; `known_columns` says which entries are known."""
        if self._matrix is not None and (self.complete or self._filled[1][left:right].any() or self._filled[0][start:stop].all()):
            return np.asarray(self._matrix[start:stop, left:right])
        rows = [row[left:right] for row in map(self.row, range(start, stop)) if row is not None]
        return np.stack(rows) if rows else None

    def alone(self, start: int, stop: int) -> dict[int, np.ndarray]:
        """Return the rows among neighbouring ones that were computed separately and are not in a block yet."""
        return {i: self._rows[i] for i in range(start, stop) if i in self._rows} if self._rows else {}

    def numbers(self, which: Any) -> np.ndarray:
        """Return the numbers of entries of the plan's pattern."""
        if self._numbers is not None:
            return np.asarray(self._numbers[which])
        assert self.plan is not None
        assert self.plan.pattern is not None
        if self._in_parts():
            return np.asarray(self._numbers_of_parts()[which])
        assert self._matrix is not None
        rows, columns = self.plan.pattern
        return np.asarray(self._matrix[rows[which], columns[which]])

    def entries(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Return (rows, columns, numbers, mask of known ones) of the entries of a coloured pattern in rows from `first` to `end`;
        all other entries are zero. None if no block of a coloured pattern is stored."""
        plan = self.plan
        if not (self._numbers is not None or self._coloured_out()) or not (self.done or self.complete):
            return None
        assert plan is not None
        assert plan.pattern is not None
        assert plan.gather is not None
        columns, starts = plan.csr
        span = slice(int(starts[first]), int(starts[end]))
        rows, columns, numbers = plan.pattern[0][span], columns[span], self.numbers(span)
        if self.complete:
            return rows, columns, numbers, np.ones(rows.size, bool)
        block = plan.gather[span] // plan.shape[0 if plan.by == "columns" else 1] // plan.chunk
        numbers, known = numbers.copy(), np.isin(block, list(self.done))
        for i, row in self.alone(first, end).items():
            inside = slice(*(np.clip(starts[i : i + 2], span.start, span.stop) - span.start))
            numbers[inside], known[inside] = row[columns[inside]], True
        return rows, columns, numbers, known

    def dense(self) -> np.ndarray:
        """Return the complete matrix. Read-only."""
        if self._matrix is not None and not isinstance(self._matrix, np.ndarray):
            needs_room(self.shape, self.dtype)
            read = np.asarray(self._matrix)
            read.setflags(write=False)
            return read
        if self._matrix is None:
            needs_room(self.shape, self.dtype)
            matrix: np.ndarray = self._lines().toarray().astype(self.dtype, copy=False)
            matrix.setflags(write=False)
            if self._in_parts():
                return matrix
            self._matrix = matrix
        return np.asarray(self._matrix)

    def csr(self) -> Any:
        """Return the complete matrix as a scipy.sparse.csr_array of the pattern's entries or, without a pattern, the nonzero
        ones."""
        from scipy.sparse import csr_array, vstack

        if self._in_parts():
            return self._assemble().copy()
        single = np.float32 if self.dtype.itemsize < 4 else self.dtype  # scipy has no float16
        if self._matrix is not None and not isinstance(self._matrix, np.ndarray):
            return vstack([csr_array(stripe.astype(single)) for _, stripe in self._matrix.stripes()], format="csr")
        if self.plan is None or self.plan.pattern is None:
            assert self._matrix is not None
            return csr_array(self._matrix.astype(single, copy=False))
        numbers, (columns, starts) = self.numbers(slice(None)), self.plan.csr
        numbers = numbers.astype(np.float32 if numbers.itemsize < 4 else numbers.dtype)  # scipy has no float16
        return csr_array((numbers, columns.copy(), starts.copy()), shape=self.shape)

    def factor(self) -> Any:
        """Return the complete matrix in the form with the cheapest products."""
        return self._lines() if self._matrix is None or self._coloured_out() else self._matrix

    def _lines(self) -> Any:
        """Return the complete matrix as a csr_array for reading."""
        return self._assemble() if self._in_parts() else self.csr()

    def _coloured_out(self) -> bool:
        """Return whether `out` holds a coloured pattern."""
        return self.out is not None and self.plan is not None and self.plan.colours is not None

    def _in_parts(self) -> bool:
        """Return whether `out` holds sparse parts."""
        return self.out is not None and self.out.takes == "sparse" and self._matrix is None

    def _parts(self) -> Any:
        return self.out

    def _assemble(self) -> Any:
        """Return all parts as one csr_array, which is cached since reading takes long."""
        if self._read is None:
            assert self.plan is not None
            self._read = self._parts().matrix_of(self.plan, self.plan.blocks())
        return self._read

    def _part_with(self, i: int) -> tuple[Any, int]:
        """Return (the rows of the part that contains row `i`, the number of its first row in the matrix)."""
        assert self.plan is not None
        block = self.plan.block_with(i)
        return self._parts().matrix_of(self.plan, [block]), self.plan.rows_of(block).start

    def _numbers_of_parts(self) -> np.ndarray:
        """Return the entries of the pattern that are in parts; zeros for the others."""
        assert self.plan is not None
        if self.complete:
            return np.asarray(self._assemble().data)
        numbers = np.zeros(self.plan.csr[0].size, self.dtype)
        for number in self.done:
            block = self.plan.block(number)
            across = self.plan.shape[0 if self.plan.by == "columns" else 1]
            which, _ = entries(self.plan, block, np.empty((block.size, across), np.uint8))
            numbers[which if isinstance(which, slice) else np.sort(which)] = self._parts().read_block(self.plan, block)[0]
        return numbers

    # ------------------------------------------------------------------------------------------ updates
    def keep_row(self, i: int, row: np.ndarray) -> None:
        """Keep a row that was computed separately."""
        row.setflags(write=False)
        self._rows[i] = row

    def put(self, block: Block, values: np.ndarray) -> None:
        """Write a block of the plan to its place."""
        assert self.plan is not None
        self.make_room()
        if self.out is not None:
            self.out.put(self.plan, block, values)
        elif self._numbers is not None:
            which, numbers = entries(self.plan, block, values)
            if isinstance(which, slice):
                self._numbers = numbers
            else:
                self._numbers[which] = numbers
        else:
            assert self._matrix is not None
            rows, columns, numbers = scatter(self.plan, block, values)
            self._matrix[rows, columns] = numbers
        self._mark(block)

    def make_room(self) -> None:
        """Prepare the matrix for the plan's blocks: `out` if it was given, else new memory."""
        assert self.plan is not None
        if self._matrix is not None:
            return
        if self.out is not None:
            matrix = self.out.matrix
            if self.plan.colours is not None and matrix is not None:
                matrix[...] = 0
            self._matrix = matrix
        elif self.plan.pattern is not None and self.plan.colours is not None:
            if self._numbers is None:
                self._numbers = np.empty(len(self.plan.pattern[0]), self.dtype)
        else:
            needs_room(self.shape, self.dtype)
            self._matrix = np.empty(self.shape, self.dtype)

    def take_over(self, blocks: Iterable[Block]) -> None:
        """Adopt blocks that `out` already holds, from an earlier run or from workers."""
        for block in blocks:
            assert self.out is not None
            if self._matrix is None:
                self._matrix = self.out.matrix
            self._mark(block)

    def gather(self) -> None:
        """Make a matrix of the rows, all of which are known."""
        matrix = np.empty(self.shape, self.dtype) if self._matrix is None else self._matrix
        for i, row in self._rows.items():
            matrix[i] = row
        self._matrix, self._numbers = matrix, None  # in one step, so that Ctrl-C leaves nothing half done

    def close(self) -> None:
        """Mark all entries as known."""
        self.complete, self._rows = True, {}
        for kept in (self._matrix, self._numbers):
            if isinstance(kept, np.ndarray):
                kept.setflags(write=False)

    def _mark(self, block: Block) -> None:
        """Mark a block as stored."""
        if block.kind != "colours":
            assert self.plan is not None
            axis = int(block.kind == "columns")
            lines = slice(block.start, block.stop) if axis else self.plan.rows_of(block)
            self._filled[axis][lines] = True
            for i in range(lines.start, lines.stop) if self._rows and not axis else ():
                self._rows.pop(i, None)
        self.done.add(block.number)
