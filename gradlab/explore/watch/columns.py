"""Numbers over steps in constant memory: columns of several steps each, merged in pairs when all are in use.

A column stores of every series the sum, minimum and maximum of the finite values, their number, and the number of non-finite
values. So extremes and non-finite values survive merging, and means remain the means of all steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COLUMNS = 256  # at least half of them are in use in runs that are longer


@dataclass(frozen=True)
class ColumnSummary:
    """Statistics of each column, as arrays of shape (columns in use, series).

    Attributes
    ----------
    width : int
        Steps per column.
    mean, low, high : ndarray of float64
        Mean, minimum and maximum of the finite values; NaN if there are none.
    count, bad : ndarray of int64
        Number of finite values, and of NaN or infinite ones.
    """

    width: int
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    bad: np.ndarray

    def middles(self, steps: int) -> np.ndarray:
        """Return the step in the middle of each column of a run of `steps` steps. The last column may be incomplete."""
        middles: np.ndarray = np.minimum((np.arange(len(self.mean)) + 0.5) * self.width, steps)
        return middles


class Columns:
    """The columns of a run.

    Parameters
    ----------
    series : int
        Number of values per step.
    columns : int
        Maximum number of columns, an even number.
    """

    def __init__(self, series: int, columns: int = COLUMNS) -> None:
        self.width, self.used = 1, 0
        self.first_changed = 0  # the first column that changed since a view was last updated
        self._total = np.zeros((columns, series))
        self._low = np.full((columns, series), np.inf)
        self._high = np.full((columns, series), -np.inf)
        self._count = np.zeros((columns, series), np.int64)
        self._bad = np.zeros((columns, series), np.int64)

    def add(self, steps: np.ndarray, rows: np.ndarray) -> None:
        """Add steps, counted from 0 and in order, with their numbers: shape (steps, series). NaN means "not measured", an
        infinity "not finite"."""
        if not len(steps):
            return
        limit = len(self._total)
        while int(steps[-1]) // self.width >= limit:
            self._merge()
        columns = steps // self.width
        starts = np.flatnonzero(np.diff(columns, prepend=-1))
        at = columns[starts]
        finite, bad = np.isfinite(rows), np.isinf(rows)
        self._count[at] += np.add.reduceat(finite, starts, 0, np.int64)
        self._bad[at] += np.add.reduceat(bad, starts, 0, np.int64)
        self._total[at] += np.add.reduceat(np.where(finite, rows, 0.0), starts, 0)
        self._low[at] = np.minimum(self._low[at], np.minimum.reduceat(np.where(finite, rows, np.inf), starts, 0))
        self._high[at] = np.maximum(self._high[at], np.maximum.reduceat(np.where(finite, rows, -np.inf), starts, 0))
        self.used = max(self.used, int(at[-1]) + 1)
        self.first_changed = min(self.first_changed, int(at[0]))

    def _merge(self) -> None:
        """Merge pairs of columns."""
        half = len(self._total) // 2
        for array, join, empty in (
            (self._total, np.add, 0.0),
            (self._low, np.minimum, np.inf),
            (self._high, np.maximum, -np.inf),
            (self._count, np.add, 0),
            (self._bad, np.add, 0),
        ):
            array[:half] = join(array[0::2], array[1::2])
            array[half:] = empty
        self.width, self.used, self.first_changed = 2 * self.width, (self.used + 1) // 2, 0

    def summary(self, first: int = 0) -> ColumnSummary:
        """Return the columns from `first` on."""
        part = slice(first, self.used)
        count = self._count[part].copy()
        some = count > 0
        mean = np.divide(self._total[part], count, out=np.full(count.shape, np.nan), where=some)
        low, high = np.where(some, self._low[part], np.nan), np.where(some, self._high[part], np.nan)
        return ColumnSummary(self.width, mean, low, high, count, self._bad[part].copy())

    @property
    def nbytes(self) -> int:
        """The memory of the columns, which never grows."""
        return sum(array.nbytes for array in (self._total, self._low, self._high, self._count, self._bad))
