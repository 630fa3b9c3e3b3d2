"""Contours of a function of two inputs with the others fixed: a grid of values that is refined, levels, and the lines.

The grid has 2ᵏ + 1 points on each side, so a finer grid contains the points of the coarser one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gradlab import clock
from gradlab.explore.playground.function import Function
from gradlab.explore.playground.inputs import Input

SIDES = 8, 16, 32, 64  # cells
LEVELS = 9


class Grid:
    """Values on a grid of two inputs through a point.

    Attributes
    ----------
    values : ndarray of shape (side + 1, side + 1)
        Rows from bottom to top; NaN where f has no value.
    finished : bool
    """

    def __init__(self, function: Function, across: tuple[int, Input], up: tuple[int, Input], point: np.ndarray) -> None:
        self._function, self._across, self._up, self._point = function, across, up, point.copy()
        self._stage = 0
        side = SIDES[0]
        self.values = np.full((side + 1, side + 1), np.nan)
        self._next, self._known = np.full((side + 1, side + 1), np.nan), np.zeros((side + 1, side + 1), bool)
        self.finished = False

    @property
    def xs(self) -> np.ndarray:
        """The coordinates along the first input."""
        return np.linspace(self._across[1].low, self._across[1].high, self.values.shape[1])

    @property
    def ys(self) -> np.ndarray:
        """The coordinates along the second input."""
        return np.linspace(self._up[1].low, self._up[1].high, self.values.shape[0])

    def refine(self, seconds: float) -> None:
        """Compute more values for some time: at least one point, and the whole coarsest grid unless that takes ten times as
        long."""
        began = clock.now()
        while not self.finished:
            until = began + seconds * (10 if self._stage == 0 else 1)
            rows, columns = np.nonzero(~self._known)
            values = self._function.values(self._points(rows, columns), until)
            some = rows[: len(values)], columns[: len(values)]
            self._next[some], self._known[some] = values, True
            if self._known.all() or self._stage == 0:
                self.values = self._next.copy()
            if self._known.all():
                self._finer()
            if clock.now() >= until:
                break

    def _points(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        points = np.repeat(self._point[None], len(rows), axis=0)
        side = self._known.shape[0] - 1
        for (k, one), places in ((self._across, columns), (self._up, rows)):
            points[:, k] = np.linspace(one.low, one.high, side + 1)[places]
        return points

    def _finer(self) -> None:
        self._stage += 1
        if self._stage == len(SIDES):
            self.finished = True
            return
        side = SIDES[self._stage]
        self._known = np.zeros((side + 1, side + 1), bool)
        self._known[::2, ::2] = True
        self._next = np.full((side + 1, side + 1), np.nan)
        self._next[::2, ::2] = self.values


def levels_of(values: np.ndarray) -> list[float]:
    """Return the levels of contours, at about equal distances in the picture and with as few digits as distinguish them."""
    finite = values[np.isfinite(values)]
    if not len(finite) or not finite.max() > finite.min():
        return []
    low, high = float(finite.min()), float(finite.max())
    wanted = np.quantile(finite, np.linspace(0.0, 1.0, LEVELS + 2)[1:-1] ** 1.25)
    levels: list[float] = []
    for k, level in enumerate(wanted):
        gap = min((abs(level - other) for j, other in enumerate(wanted) if j != k and other != level), default=high - low)
        if gap <= 0:
            continue
        digits = -math.floor(math.log10(gap))
        number = round(float(level), digits) + 0.0
        if low < number < high and number not in levels:
            levels.append(number)
    return levels


@dataclass(frozen=True)
class ContourLine:
    """One contour line, in units of the inputs."""

    level: float
    xs: np.ndarray
    ys: np.ndarray


def contours(xs: np.ndarray, ys: np.ndarray, values: np.ndarray, levels: list[float]) -> list[ContourLine]:
    """Return the contour lines of values on a grid, rows from bottom to top; none next to values that are not finite."""
    lines = []
    for level in levels:
        for chain in _chains(_segments(values, level)):
            rows, columns = np.array(chain).T
            lines.append(ContourLine(level, np.interp(columns, np.arange(len(xs)), xs), np.interp(rows, np.arange(len(ys)), ys)))
    return lines


Point = tuple[float, float]
Edge = tuple[int, int, int]  # of the grid: row, column, and 0 to the right or 1 upwards


def _segments(values: np.ndarray, level: float) -> dict[Edge, tuple[Point, list[Edge]]]:
    """Return for each edge that the level crosses the point, in (row, column), and the adjacent edges."""
    above = values >= level
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        right = (level - values[:, :-1]) / (values[:, 1:] - values[:, :-1])
        upward = (level - values[:-1]) / (values[1:] - values[:-1])
    segments: dict[Edge, tuple[Point, list[Edge]]] = {}

    def join(one: Edge, other: Edge) -> None:
        for edge, to in ((one, other), (other, one)):
            row, column, way = edge
            share = float((upward if way else right)[row, column])
            place = (row + share, float(column)) if way else (float(row), column + share)
            segments.setdefault(edge, (place, []))[1].append(to)

    corners = above[:-1, :-1] + 2 * above[:-1, 1:] + 4 * above[1:, 1:] + 8 * above[1:, :-1]
    whole = finite[:-1, :-1] & finite[:-1, 1:] & finite[1:, 1:] & finite[1:, :-1]
    for row, column in zip(*(part.tolist() for part in np.nonzero(whole & (corners > 0) & (corners < 15))), strict=True):
        case = int(corners[row, column])
        bottom, east, top, west = (row, column, 0), (row, column + 1, 1), (row + 1, column, 0), (row, column, 1)
        sides = {1: 0b1001, 2: 0b0011, 4: 0b0110, 8: 0b1100}
        if case in (5, 10):  # a saddle: decided by the mean of the cell
            middle = values[row : row + 2, column : column + 2].mean() >= level
            if middle == (case == 5):
                join(bottom, east)
                join(top, west)
            else:
                join(bottom, west)
                join(top, east)
            continue
        crossed = 0
        for corner, pair in sides.items():
            if case & corner:
                crossed ^= pair
        one, other = (edge for k, edge in enumerate((bottom, east, top, west)) if crossed >> k & 1)
        join(one, other)
    return segments


def _chains(segments: dict[Edge, tuple[Point, list[Edge]]]) -> Iterator[list[Point]]:
    """Yield the segments joined to lines. A closed line ends at its first point."""
    left = {edge: list(to) for edge, (_, to) in segments.items()}
    ends = [edge for edge, to in left.items() if len(to) == 1]
    for start in [*ends, *left]:
        if not left[start]:
            continue
        chain, edge = [segments[start][0]], start
        while left[edge]:
            after = left[edge].pop()
            left[after].remove(edge)
            edge = after
            chain.append(segments[edge][0])
        yield chain
