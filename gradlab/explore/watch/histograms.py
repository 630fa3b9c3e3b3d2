"""Histograms of gradients and weights at up to `MAX_MOMENTS` steps, evenly spaced over a run of any length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradlab.explore.trace.values import Value
from gradlab.explore.watch.layers import WatchedModel

MAX_MOMENTS = 48  # an even number
MAX_LAYERS = 64  # maximum number of layers with histograms


@dataclass(frozen=True)
class Spread:
    """Histogram of a layer's largest parameter, or of its gradient: counts in equal parts of [low, high]."""

    low: float
    high: float
    bins: tuple[int, ...]


@dataclass(frozen=True)
class Moment:
    """Histograms of one step, counted from 0: the gradient (None without one) and the weights of each layer."""

    step: int
    gradients: tuple[Spread | None, ...]
    weights: tuple[Spread | None, ...]


class Histograms:
    """The histograms of a run."""

    def __init__(self, target: WatchedModel) -> None:
        self.target = target
        self.parameters = target.largest()[:MAX_LAYERS]
        self.moments: list[Moment] = []
        self.stride = 1  # minimum number of steps between two moments
        self._early_gradients: dict[int, Spread | None] = {}

    @property
    def next(self) -> int:
        """The next step to take histograms of."""
        return self.moments[-1].step + self.stride if self.moments else 0

    def note(self, parameter: int, gradient: Any) -> None:
        """Take the histogram of a gradient that may no longer exist at the end of the step."""
        if parameter in self.parameters:
            self._early_gradients[parameter] = _spread(self.target.library.values([gradient], histograms=True)[0])

    def take(self, step: int, unscale: Callable[[Any], Any]) -> None:
        """Take histograms of the current gradients and weights. `unscale` removes the factor that a gradient contains."""
        params = [self.target.params[i] for i in self.parameters]
        gradients = {
            i: unscale(p.grad)
            for i, p in zip(self.parameters, params, strict=True)
            if p.grad is not None and i not in self._early_gradients
        }
        values = self.target.library.values([*params, *gradients.values()], histograms=True)
        spread = [_spread(value) for value in values]
        of = {**dict(zip(gradients, spread[len(params) :], strict=True)), **self._early_gradients}
        self._early_gradients = {}
        self.moments.append(Moment(step, tuple(of.get(i) for i in self.parameters), tuple(spread[: len(params)])))
        if len(self.moments) >= MAX_MOMENTS:
            self.moments = self.moments[::2]
            self.stride = max(2 * self.stride, (self.moments[-1].step - self.moments[0].step) // (MAX_MOMENTS // 2))


def _spread(value: Value | None) -> Spread | None:
    if value is None or not value.size:
        return None
    statistics = value.statistics
    return Spread(statistics.minimum, statistics.maximum, statistics.bins) if statistics.finite else None
