"""Histograms of gradients and weights at some steps: at most `KEPT` of them, spread evenly over the run however long it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradlab.explore.trace.values import Value
from gradlab.explore.watch.layers import WatchedModel

KEPT = 48  # even
LAYERS = 64  # that get one


@dataclass(frozen=True)
class Spread:
    """How the elements of the largest parameter of a layer are distributed: `bins` equal parts of [low, high]."""

    low: float
    high: float
    bins: tuple[int, ...]


@dataclass(frozen=True)
class Moment:
    """Of one step, counted from 0: for each layer its gradient (None without one) and its weights."""

    step: int
    gradients: tuple[Spread | None, ...]
    weights: tuple[Spread | None, ...]


class Histograms:
    """The moments of a run."""

    def __init__(self, watched: WatchedModel) -> None:
        self.watched = watched
        self.chosen = watched.largest()[:LAYERS]
        self.moments: list[Moment] = []
        self.stride = 1  # steps between two of them at least
        self._noted: dict[int, Spread | None] = {}

    @property
    def next(self) -> int:
        """The first step that would be kept."""
        return self.moments[-1].step + self.stride if self.moments else 0

    def note(self, parameter: int, gradient: Any) -> None:
        """A gradient that may be gone when the step is over."""
        if parameter in self.chosen:
            self._noted[parameter] = _spread(self.watched.library.values([gradient], histograms=True)[0])

    def take(self, step: int) -> None:
        """Look at the gradients and weights as they are."""
        params = [self.watched.params[i] for i in self.chosen]
        gradients = {i: p.grad for i, p in zip(self.chosen, params, strict=True) if p.grad is not None and i not in self._noted}
        values = self.watched.library.values([*params, *gradients.values()], histograms=True)
        spread = [_spread(value) for value in values]
        of = {**dict(zip(gradients, spread[len(params) :], strict=True)), **self._noted}
        self._noted = {}
        self.moments.append(Moment(step, tuple(of.get(i) for i in self.chosen), tuple(spread[: len(params)])))
        if len(self.moments) >= KEPT:
            self.moments = self.moments[::2]
            self.stride = max(2 * self.stride, (self.moments[-1].step - self.moments[0].step) // (KEPT // 2))


def _spread(value: Value | None) -> Spread | None:
    if value is None or not value.size:
        return None
    statistics = value.statistics
    return Spread(statistics.minimum, statistics.maximum, statistics.bins) if statistics.finite else None
