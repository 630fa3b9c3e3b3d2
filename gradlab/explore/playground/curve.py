"""A curve: the values of a function along one input, with more points where it bends, jumps or ends.

Points are computed on a coarse grid first and then refined within a given time, so a slow function is drawn at once and improved
later (`refine`). A segment between two points that does not become flatter when it is halved is a jump, and is left out.
"""

from __future__ import annotations

import numpy as np

from gradlab import clock
from gradlab.explore.playground.function import Function
from gradlab.explore.playground.inputs import Input

COARSE = 16  # segments at first
REGULAR = 128  # segments of equal length, before some are halved
MOST = 700  # points
ROUNDS = 24  # of halving
TURN = 0.05  # maximal angle between two segments in radians, in a square picture


class Curve:
    """The curve y = f along one input through a point.

    Attributes
    ----------
    xs, ys : ndarray
        Sorted by x; NaN where f has no value.
    finished : bool
        True if more points would not improve the curve.
    """

    def __init__(self, function: Function, one: Input, k: int, point: np.ndarray) -> None:
        self._function, self._input, self._k, self._point = function, one, k, point.copy()
        self.xs, self.ys = np.empty(0), np.empty(0)
        self._even = np.empty(0)  # the values at equal distances
        self._waiting = np.linspace(one.low, one.high, COARSE + 1)
        self._round = 0
        self.finished = False

    def refine(self, seconds: float) -> None:
        """Compute more points for some time, at least one."""
        until = clock.now() + seconds
        while not self.finished:
            done = self._compute(self._waiting, until)
            self._waiting = self._waiting[done:]
            if not len(self._waiting):
                self._waiting = self._next_places()
                self.finished = not len(self._waiting)
            if clock.now() >= until:
                break

    def _compute(self, xs: np.ndarray, until: float) -> int:
        points = np.repeat(self._point[None], len(xs), axis=0)
        points[:, self._k] = xs
        values = self._function.values(points, until)
        if not self._round:
            self._even = np.concatenate([self._even, values])
        order = np.argsort(np.concatenate([self.xs, xs[: len(values)]]), kind="stable")
        self.xs = np.concatenate([self.xs, xs[: len(values)]])[order]
        self.ys = np.concatenate([self.ys, values])[order]
        return len(values)

    def _next_places(self) -> np.ndarray:
        """Return the places to compute next."""
        xs, ys = self.xs, self.ys
        if len(xs) - 1 < REGULAR:
            return 0.5 * (xs[1:] + xs[:-1])
        self._round += 1
        if self._round > ROUNDS or len(xs) >= MOST:
            return np.empty(0)
        finite = np.isfinite(ys)
        low, high = self.extent()
        with np.errstate(all="ignore"):
            dx, dy = np.diff(xs) / self._input.width, np.diff(ys) / ((high - low) or 1.0)
            angle = np.arctan2(dy, dx)
            turn = np.abs(np.diff(angle))
        long = np.hypot(dx, np.nan_to_num(dy, nan=1.0, posinf=1.0, neginf=1.0)) > 0.004
        bent = np.zeros(len(dx), bool)
        turned = np.nan_to_num(turn) > TURN
        bent[:-1] |= turned
        bent[1:] |= turned
        edge = finite[1:] != finite[:-1]
        inside = finite[1:] & finite[:-1] & (np.maximum(ys[1:], ys[:-1]) >= low) & (np.minimum(ys[1:], ys[:-1]) <= high)
        segments = np.flatnonzero(((bent & long & inside) | edge) & (dx > 1e-6))
        if len(segments) > MOST - len(xs):
            size = np.where(edge, np.inf, np.hypot(dx, np.nan_to_num(dy)))[segments]
            segments = np.sort(segments[np.argsort(-size, kind="stable")[: MOST - len(xs)]])
        return 0.5 * (xs[segments] + xs[segments + 1])

    def extent(self) -> tuple[float, float]:
        """Return the range of values in the picture. It contains all values, unless the curve has a pole. Then it is computed
        from the values at equal distances, without the most extreme ones."""
        finite = self._even[np.isfinite(self._even)]
        if len(finite) and (self._breaks().any() or not np.isfinite(self.ys).all()):
            low, high = float(finite.min()), float(finite.max())
            a, b = (float(q) for q in np.quantile(finite, [0.08, 0.92]))
            if b > a:
                return extent(np.array([max(low, a - 0.5 * (b - a)), min(high, b + 0.5 * (b - a))]))
        return extent(self.ys[np.isfinite(self.ys)])

    def _breaks(self) -> np.ndarray:
        """Return a mask of segments that are so short that a difference of values is a jump."""
        finite = self._even[np.isfinite(self._even)]
        apart = float(np.ptp(finite)) if len(finite) else 0.0
        with np.errstate(all="ignore"):
            breaks: np.ndarray = (np.diff(self.xs) < 3e-6 * self._input.width) & (
                np.abs(np.diff(self.ys)) > 0.004 * (apart or 1.0)
            )
        return breaks

    def line(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the line, with gaps at jumps."""
        xs, ys = self.xs, self.ys
        if not len(xs):
            return xs, ys
        at = np.flatnonzero(self._breaks()) + 1
        return np.insert(xs, at, xs[at]), np.insert(ys, at, np.nan)


def extent(finite: np.ndarray) -> tuple[float, float]:
    """Return a range for some finite values, with a margin."""
    if not len(finite):
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        room = max(abs(low), abs(high)) * 0.5 or 1.0
        return low - room, high + room
    margin = 0.06 * (high - low)
    if not np.isfinite(high - low + 2 * margin):
        return low / 4, high / 4
    return low - margin, high + margin
