"""Compare the gradient with finite differences: a central difference for each input, its error, and the smoothness of f.

Three steps h are tried, and the one with the smallest error is used. The error is estimated from the change when the step is
halved and from the rounding error of the difference. If the slopes to the left and to the right remain different as the step
decreases, f has a kink; if the values remain different, it has a jump.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradlab import clock
from gradlab.explore.playground.function import Function
from gradlab.explore.playground.inputs import Input

LADDER = 1.0, 1e-2, 1e-4  # the steps that are tried, in units of the first
PARTS = 1.0, 0.5, 0.25  # of each step, to compare the differences as it decreases
CLEAR = 1e-6  # maximal rounding error, relative to the slope


@dataclass(frozen=True)
class Check:
    """The result of finite differences for one input at one point.

    Attributes
    ----------
    kind : str
        "agrees"; "differs"; "kink" (the slopes to the left and right are `left` and `right`); "jump" (`left` is the height of the
        jump); "edge" (f is finite only on one side, or not at all); "unclear" (the differences are inconclusive); "late" (not all
        values have been computed).
    slope, error, h : float
        The central difference, its error and its step.
    """

    kind: str
    slope: float = math.nan
    error: float = math.nan
    h: float = math.nan
    left: float = math.nan
    right: float = math.nan


class GradientCheck:
    """The check at one point. `refine` computes values for a limited time, `checks` returns the results so far.

    Parameters
    ----------
    function : Function
    inputs : sequence of Input
    point : ndarray
        One number for each input.
    """

    def __init__(self, function: Function, inputs: Sequence[Input], point: np.ndarray) -> None:
        self.function, self.inputs, self.point = function, inputs, point
        self._steps = [_steps(one, float(point[k]), function.kind.eps) for k, one in enumerate(inputs)]
        moved = [point[None]]
        for k, hs in enumerate(self._steps):
            for sign in (1, -1):
                shifted = np.repeat(point[None], len(hs), axis=0)
                shifted[:, k] += sign * hs
                moved.append(shifted)
        self._points = np.concatenate(moved)
        self._values = np.empty(0)  # at the first of the points

    @property
    def is_finished(self) -> bool:
        """True if all values have been computed."""
        return len(self._values) == len(self._points)

    def refine(self, seconds: float) -> None:
        """Compute more values for some time, at least one."""
        if not self.is_finished:
            more = self.function.values(self._points[len(self._values) :], clock.now() + seconds)
            self._values = np.concatenate([self._values, more])

    def checks(self, gradient: np.ndarray | None, spread: float = 0.0) -> list[Check]:
        """Return a `Check` for each input. Without a gradient, the difference is compared with 0. `spread` is the range of values
        in the picture, compared with which a slope may be negligible."""
        checks: list[Check] = []
        at = 1
        for k, (one, hs) in enumerate(zip(self.inputs, self._steps, strict=True)):
            ahead, behind = self._values[at : at + len(hs)], self._values[at + len(hs) : at + 2 * len(hs)]
            at += 2 * len(hs)
            if len(behind) < len(hs):
                checks.append(Check("late"))
                continue
            here, x, eps = float(self._values[0]), abs(float(self.point[k])), self.function.kind.eps
            differences = _Differences(here, ahead, behind, hs, x, eps, spread / one.width)
            checks.append(differences.check(0.0 if gradient is None else float(gradient[k])))
        return checks


def _steps(one: Input, x: float, eps: float) -> np.ndarray:
    """Return the steps of one input, the largest first, each with its half and quarter. They are larger than rounding errors of
    x."""
    first = max(eps ** (1 / 3) * one.width / 6, abs(x) * eps ** (2 / 3))
    first = 10.0 ** round(math.log10(first))
    ladder = [first * part for part in LADDER if first * part > abs(x) * eps**0.75] or [first]
    return np.array([h * part for h in ladder for part in PARTS])


class _Differences:
    """Values around a point, `ahead` and `behind` by the steps `hs`. `unit` is a typical slope in the picture."""

    def __init__(
        self, here: float, ahead: np.ndarray, behind: np.ndarray, hs: np.ndarray, x: float, eps: float, unit: float
    ) -> None:
        self.here, self.ahead, self.behind, self.hs, self.unit = here, ahead, behind, hs, unit
        self.finite = math.isfinite(here) and bool(np.isfinite(ahead).all() and np.isfinite(behind).all())
        if not self.finite:
            return
        self.noise = 4 * eps * max(abs(here), float(np.abs(ahead).max()), float(np.abs(behind).max()))
        with np.errstate(over="ignore", invalid="ignore"):
            self.right, self.left = (ahead - here) / hs, (here - behind) / hs
            self.central = (ahead - behind) / (2 * hs)
            self.shaken = self.noise / hs + 2 * eps * np.abs(self.central) * x / hs  # the rounding error of a central difference

    def check(self, g: float) -> Check:
        """Compare the differences with a gradient g."""
        if not self.finite:
            return Check("edge")
        starts = range(0, len(self.hs), len(PARTS))
        sizes = np.maximum(np.maximum(np.abs(self.right), np.abs(self.left)), self.unit)
        clear = [s for s in starts if self.shaken[s] <= CLEAR * sizes[s]]
        s = clear[-1] if clear else min(starts, key=self._error)  # the smallest step without much rounding error
        if (broken := self._broken(s)) is not None:
            return broken
        slope, error, h = float(self.central[s]), self._error(s), float(self.hs[s])
        larger = max(abs(slope), abs(g))
        unclear = error > 0.01 * larger and error > 1e-5 * self.unit
        if abs(slope - g) <= max(10 * error + 1e-6 * larger, 1e-7 * self.unit) and not unclear:
            best = min(
                (one for one in starts if abs(self.central[one] - slope) <= 10 * (error + self._error(one))), key=self._error
            )
            return Check("agrees", float(self.central[best]), self._error(best), float(self.hs[best]))
        for coarser in starts:
            if s - coarser == len(PARTS) and (broken := self._broken(coarser)) is not None:
                return broken
        return Check("unclear" if unclear and math.isfinite(g) else "differs", slope, error, h)

    def _error(self, s: int) -> float:
        return float(max(abs(self.central[s] - self.central[s + 1]) * 4 / 3, self.shaken[s]))

    def _broken(self, s: int) -> Check | None:
        """Return the jump or kink within a step, or None."""
        ahead, behind, right, left = self.ahead, self.behind, self.right, self.left
        slope, error, h, last = float(self.central[s]), self._error(s), float(self.hs[s]), s + len(PARTS) - 1
        sides = [max(abs(ahead[k] - self.here), abs(self.here - behind[k])) for k in (s, last)]
        gaps = [abs(ahead[k] - behind[k]) for k in (s, last)]
        if gaps[0] > 1e3 * self.noise and gaps[1] > 0.8 * gaps[0] and sides[1] > 0.8 * sides[0]:
            return Check("jump", slope, error, h, float(ahead[s] - behind[s]))
        bends = [abs(right[k] - left[k]) for k in (s, last)]
        steep = [max(abs(right[k]), abs(left[k])) for k in (s, last)]
        noticed = bends[0] > 1e-3 * steep[0] and bends[0] > 1e-6 * self.unit and bends[0] > 100 * self.shaken[last]
        if noticed and 0.8 * bends[0] < bends[1] and steep[1] < 1.2 * steep[0]:
            return Check("kink", slope, error, h, float(left[last]), float(right[last]))
        return None
