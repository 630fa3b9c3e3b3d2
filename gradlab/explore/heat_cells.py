"""Cells of a matrix that may be too large to be drawn: for each cell, the extremes of its entries.

A cell of `HeatCells` holds the least and the greatest finite entry, the number of known entries, and whether a NaN or an infinity
is among them. So nothing that matters is lost by pooling, and the extremes of the cells are those of the matrix. Rows and columns
can be added one at a time: a view of a Jacobian that is being filled reads each new entry once. Entries of a store are
added at once: dense parts in bands of rows that fit into the cache, sparse ones from their entries, with zeros outside the
pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from gradlab.explore.pooled_matrix import bins

KNOWN, NAN, POSITIVE, NEGATIVE = 1, 2, 4, 8  # the bits of `flags`
KINDS: tuple[tuple[int, Any], ...] = ((NAN, np.isnan), (POSITIVE, np.isposinf), (NEGATIVE, np.isneginf))
BAND = 1 << 21  # bytes per band

Window = tuple[int, int, int, int]  # first row, end of the rows, first column, end of the columns


class KnownEntries(Protocol):
    """Known entries of a matrix, as `HeatCells` reads them. A Jacobian's `Store` implements and documents this."""

    @property
    def complete(self) -> bool: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def lock(self) -> AbstractContextManager[Any]: ...
    @property
    def known_rows(self) -> np.ndarray: ...
    @property
    def known_columns(self) -> np.ndarray: ...
    def alone(self, start: int, stop: int) -> dict[int, np.ndarray]: ...
    def band(self, start: int, stop: int, left: int, right: int) -> np.ndarray | None: ...
    def entries(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None: ...


class HeatCells:
    """The cells of a window of a matrix, initially empty.

    Attributes
    ----------
    window : tuple of int
        First row, end of the rows, first column, end of the columns.
    rows, columns : ndarray of int
        First matrix row or column of each cell. No cell crosses a boundary between blocks of columns.
    low, high : ndarray, shape (len(rows), len(columns))
        The least and the greatest finite known entry; +inf and −inf if there is none.
    flags : ndarray of uint8
        KNOWN: an entry is known. NAN, POSITIVE, NEGATIVE: a NaN, +inf or −inf is among them.
    count : ndarray of int
        Number of known entries.
    odd : dict of int
        Number of NaN, POSITIVE and NEGATIVE entries that were added.
    """

    def __init__(self, window: Window, blocks: Sequence[tuple[str, int]], limit: int | tuple[int, int]) -> None:
        first, end, left, right = self.window = window
        tall, broad = limit if isinstance(limit, tuple) else (limit, limit)
        stops = np.cumsum([0, *(size for _, size in blocks)])
        inside = [("", int(max(0, min(right, stop) - max(left, start)))) for start, stop in pairwise(stops)]
        self.rows = first + bins([("", end - first)], tall)
        self.columns = left + bins(inside, broad)
        self.low = np.full((len(self.rows), len(self.columns)), np.inf)
        self.high = np.full(self.low.shape, -np.inf)
        self.flags = np.zeros(self.low.shape, np.uint8)
        self.count = np.zeros(self.low.shape, np.int64)
        self.odd = {NAN: 0, POSITIVE: 0, NEGATIVE: 0}

    @property
    def exact(self) -> bool:
        """True if each cell is one entry."""
        first, end, left, right = self.window
        return self.low.shape == (end - first, right - left)

    @property
    def known_mask(self) -> np.ndarray:
        """Mask of the cells with a known entry."""
        return np.asarray(self.flags & KNOWN > 0)

    @property
    def whole(self) -> np.ndarray:
        """Mask of the cells whose entries are all known."""
        return np.asarray(self.count == self._area())

    @property
    def values(self) -> np.ndarray:
        """Known entry of largest magnitude of each cell, with its sign; NaN if the cell has one, 0 if nothing is known."""
        high, low = np.where(self.flags & POSITIVE, np.inf, self.high), np.where(self.flags & NEGATIVE, -np.inf, self.low)
        values = np.where(self.known_mask, np.where(high >= -low, high, low), 0.0)
        return np.where(self.flags & NAN, np.nan, values)

    def extremes(self) -> tuple[float, float] | None:
        """Return the least and the greatest finite known entry; None if there is none."""
        low, high = self.low.min(initial=np.inf), self.high.max(initial=-np.inf)
        return (float(low), float(high)) if low <= high else None

    def truth(self) -> tuple[float, float, dict[str, int]]:
        """Return the least and the greatest finite entry (0, 0 if there is none), and the numbers of NaN and infinities, of the
        matrix rather than its cells."""
        counts = {kind: self.odd[bit] for kind, bit in (("NaN", NAN), ("+inf", POSITIVE), ("−inf", NEGATIVE)) if self.odd[bit]}
        return (*(self.extremes() or (0.0, 0.0)), counts)

    def put_row(self, i: int, row: np.ndarray, present: np.ndarray | None = None) -> int | None:
        """Add the entries of row `i` (those that are `present`). Return the row of cells that changed, or None."""
        first, end, left, right = self.window
        if not first <= i < end or left == right:
            return None
        at = int(np.searchsorted(self.rows, i, side="right")) - 1
        self._put((at, slice(None)), row[None, left:right], None if present is None else present[left:right], self.columns - left)
        return at

    def put_column(self, j: int, column: np.ndarray, present: np.ndarray | None = None) -> int | None:
        """Add the entries of column `j`, as `put_row` does."""
        first, end, left, right = self.window
        if not left <= j < right or first == end:
            return None
        at = int(np.searchsorted(self.columns, j, side="right")) - 1
        self._put((slice(None), at), column[None, first:end], None if present is None else present[first:end], self.rows - first)
        return at

    def put_known(self, store: KnownEntries) -> None:
        """Add the known entries of a store."""
        if not self.low.size:
            return
        with store.lock:
            entries = store.entries(*self.window[:2])
            if entries is None:
                self._put_dense(store)
            else:
                self._put_pattern(*entries)

    def put_entries(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Add single entries."""
        inside, i, j = self.places(rows, columns)
        cell, values = i * len(self.columns) + j, values[inside]
        finite = np.isfinite(values)
        low, high, flags = (array.reshape(-1) for array in (self.low, self.high, self.flags))
        if not finite.all():
            for bit, test in KINDS:
                those = cell[test(values)]
                flags[those] |= bit
                self.odd[bit] += len(those)
        flags[cell] |= KNOWN
        self.count += self._count_cells(cell)
        cell, values = (cell, values) if finite.all() else (cell[finite], values[finite])
        np.minimum.at(low, cell, values)
        np.maximum.at(high, cell, values)

    def _put_dense(self, store: KnownEntries) -> None:
        first, end, left, right = self.window
        known, across = store.known_rows, store.known_columns
        here = across[left:right]
        by_columns = not store.complete and bool(here.any())
        height = max(1, BAND // ((right - left) * store.dtype.itemsize))
        for at, (start, stop) in enumerate(zip(self.rows, [*self.rows[1:], end], strict=True)):
            for begin in range(start, stop, height):
                until = min(begin + height, stop)
                band = store.band(begin, until, left, right) if by_columns or known[begin:until].any() else None
                if band is not None:
                    self._put((at, slice(None)), band, here if by_columns else None, self.columns - left)
        for i, row in store.alone(first, end).items() if by_columns else ():
            self.put_row(i, row, ~across)

    def _put_pattern(self, rows: np.ndarray, columns: np.ndarray, numbers: np.ndarray, known: np.ndarray) -> None:
        """Add the known entries of a pattern, and the zeros outside it."""
        self.put_entries(*((rows, columns, numbers) if known.all() else (rows[known], columns[known], numbers[known])))
        _, i, j = self.places(rows, columns)
        beside = self._area() - self._count_cells(i * len(self.columns) + j)
        self.count += beside
        zeros = beside > 0
        self.low[zeros], self.high[zeros] = np.minimum(self.low[zeros], 0), np.maximum(self.high[zeros], 0)
        self.flags[zeros] |= KNOWN

    def _area(self) -> np.ndarray:
        """Return the number of entries in each cell."""
        _, end, _, right = self.window
        return np.diff([*self.rows, end])[:, None] * np.diff([*self.columns, right])

    def _count_cells(self, cell: np.ndarray) -> np.ndarray:
        """Return how often each cell occurs."""
        return np.bincount(cell, minlength=self.low.size).reshape(self.low.shape)

    def places(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which entries are in the window, and their cells."""
        first, end, left, right = self.window
        inside = (rows >= first) & (rows < end) & (columns >= left) & (columns < right)
        return (
            inside,
            np.searchsorted(self.rows, rows[inside], side="right") - 1,
            np.searchsorted(self.columns, columns[inside], side="right") - 1,
        )

    def _put(self, where: Any, band: np.ndarray, present: np.ndarray | None, starts: np.ndarray) -> None:
        """Add parallel lines to one line of cells, which begin at `starts`; of each line the entries that are `present`."""
        low, high = (band.min(0), band.max(0)) if len(band) > 1 else (band[0],) * 2
        here = np.ones(low.shape, bool) if present is None else present
        flags = np.where(here, KNOWN, 0).astype(np.uint8)
        if present is not None or not (np.isfinite(low).all() and (high is low or np.isfinite(high).all())):
            finite = np.isfinite(band) & here
            low, high = np.where(finite, band, np.inf).min(0), np.where(finite, band, -np.inf).max(0)
            for bit, test in KINDS:
                those = np.count_nonzero(test(band) & here, 0)
                flags[those > 0] |= bit
                self.odd[bit] += int(those.sum())
        self.low[where] = np.minimum(self.low[where], np.minimum.reduceat(low, starts))
        self.high[where] = np.maximum(self.high[where], np.maximum.reduceat(high, starts))
        self.flags[where] |= np.bitwise_or.reduceat(flags, starts)
        self.count[where] += np.add.reduceat(here.astype(np.int64), starts) * len(band)
