"""A path of descent: the steps of an optimizer of the library on the inputs, and why the path ends.

Only the inputs of the function are optimized. The gradient comes from `autograd.grad`, so no other `.grad` is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.explore.playground.function import Function
from gradlab.explore.playground.inputs import Input

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adam": ("Adam", {}),
    "AdamW": ("AdamW", {}),
    "RMSprop": ("RMSprop", {}),
    "Adagrad": ("Adagrad", {}),
    "Adamax": ("Adamax", {}),
    "NAdam": ("NAdam", {}),
}
MOST = 500  # steps
FAR = 100.0  # ranges; a path that is further away diverges
STILL = 1e-7  # of the range; smaller steps count as no movement
CALM = 3  # consecutive steps without movement after which a path has converged


class Descent:
    """Steps of an optimizer from a point.

    Attributes
    ----------
    points : list of ndarray
        The points of the path, the start first.
    values, slopes : list of float, list of (ndarray or None)
        The value and the gradient at all points except the last, which is computed on request (`look`).
    ended : str
        Why the path ended: "settled", "left", "nan", "flat" (a gradient of exactly 0), "none" (no gradient), "raised"; or "".
    trouble : str
        The error that f raised.
    """

    def __init__(self, function: Function, inputs: Sequence[Input], start: np.ndarray, optimizer: str, lr: float) -> None:
        self.function, self.inputs = function, inputs
        self._widths = np.array([one.width for one in inputs])
        name, options = OPTIMIZERS[optimizer]
        with function.kind.recording():
            self._given = function.tensors(start, True)
        self._optimizer = getattr(function.kind.optim, name)(self._given, lr=lr, **options)
        self.points = [start.copy()]
        self.values: list[float] = []
        self.slopes: list[np.ndarray | None] = []
        self.ended = self.trouble = ""
        self._calm = 0

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.points) - 1

    def run(self, steps: int, seconds: float) -> None:
        """Continue until there are `steps` steps, the path ends, or the time is over. At least one step is made."""
        until = clock.now() + seconds
        while self.steps < min(steps, MOST) and not self.ended:
            self._step()
            if clock.now() >= until:
                break

    def look(self) -> None:
        """Compute the value and the gradient at the last point, if they are unknown."""
        if len(self.values) < len(self.points):
            self._measure()

    def _measure(self) -> Any:
        function = self.function
        try:
            with function.kind.recording():
                output = function.output(self._given)
                slope = function.gradient_of(output, self._given)
        except Exception as error:  # noqa: BLE001  (f is the user's)
            if not self.ended:
                self.ended, self.trouble = "raised", f"{type(error).__name__}: {error}"
            return None
        self.values.append(float(np.asarray(function.kind.library.array(output)).reshape(())))
        self.slopes.append(slope)
        return slope

    def _step(self) -> None:
        if len(self.values) < len(self.points) and self._measure() is None and self.ended:
            return
        slope, kind = self.slopes[-1], self.function.kind
        if slope is None:
            self.ended = "none"
            return
        if not np.isfinite(slope).all() or not math.isfinite(self.values[-1]):
            self.ended = "nan"
            return
        at = 0
        for one in self._given:
            size = int(np.prod(tuple(one.shape), dtype=int))
            one.grad = kind.tensor(slope[at : at + size].reshape(tuple(one.shape)))
            at += size
        try:
            self._optimizer.step()
        finally:
            for one in self._given:
                one.grad = None
        after = np.concatenate([np.asarray(kind.library.array(one), float).reshape(-1) for one in self._given])
        moved = float(np.max(np.abs(after - self.points[-1]) / self._widths))
        self.points.append(after)
        self._calm = self._calm + 1 if moved < STILL else 0
        if not np.isfinite(after).all():
            self.ended = "nan"
        elif np.max(np.abs(after - self.points[0]) / self._widths) > FAR:
            self.ended = "left"
        elif moved == 0 and not slope.any():
            self.points.pop()
            self.ended = "flat"
        elif self._calm >= CALM:
            self.ended = "settled"


def curvature(function: Function, inputs: Sequence[Input], point: np.ndarray) -> np.ndarray | None:
    """Return the matrix of second derivatives of a quadratic function, from differences of gradients at three points. None if
    they differ, if there are more than three inputs, or if f or a gradient fails."""
    n = len(inputs)
    if n > 3:
        return None
    centre = np.array([0.5 * (one.low + one.high) for one in inputs])
    other = np.array([one.low + share * one.width for one, share in zip(inputs, (0.29, 0.83, 0.41), strict=False)])
    matrices = []
    try:
        for place in (point, centre, other):
            matrix = np.empty((n, n))
            for k, one in enumerate(inputs):
                h = np.zeros(n)
                h[k] = 0.05 * one.width
                ends = [function.gradient(place + sign * h)[1] for sign in (1, -1)]
                if ends[0] is None or ends[1] is None:
                    return None
                matrix[k] = (ends[0] - ends[1]) / (2 * h[k])
            matrices.append(0.5 * (matrix + matrix.T))
    except Exception:  # noqa: BLE001  (f is the user's)
        return None
    first = matrices[0]
    scale = float(np.abs(first).max())
    if not math.isfinite(scale) or scale == 0:
        return None
    tolerance = max(1e-7, 1e3 * function.kind.eps) * scale
    return first if all(np.abs(matrix - first).max() <= tolerance for matrix in matrices[1:]) else None
