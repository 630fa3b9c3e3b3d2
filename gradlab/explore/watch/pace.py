"""How often something is looked at, so that looking takes no more than its share of the time.

A `Pace` is told what each look cost and how long the program's own steps take; medians of the last few decide, so that one slow
step of a busy machine changes nothing. It looks at every step until it knows better, and never more often than `every`.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median

SEEN = 31  # looks and steps that are remembered
FIRST = 3  # looks before it knows: the first ones load modules
GROWTH = 4  # times the steps between two looks, at once
MOST = 1 << 20  # steps between two looks


class Pace:
    """When to look.

    Parameters
    ----------
    share : float
        Of the program's own time.
    every : int
        The fewest steps between two looks.
    """

    def __init__(self, share: float, every: int = 1) -> None:
        self.share, self.every, self.stride = share, every, every
        self.full = 0  # steps that are looked at however long that takes, but for `every`
        self._costs: deque[float] = deque(maxlen=SEEN)
        self._next = 0

    def due(self, step: int) -> bool:
        """Whether to look at this step, the steps being counted from 0."""
        return step >= self._next or (step < self.full and step % self.every == 0)

    def looked(self, step: int, seconds: float) -> None:
        """A look at this step cost so much."""
        self._costs.append(seconds)
        self._next = (step // self.stride + 1) * self.stride

    def settle(self, own: float) -> None:
        """The program's own steps take `own` seconds each."""
        if len(self._costs) >= FIRST and own > 0:
            wanted = min(ceil(median(self._costs) / (self.share * own)), GROWTH * self.stride, MOST)
            self.stride = self.every * max(1, ceil(wanted / self.every))

    @property
    def cost(self) -> float:
        """Seconds that a look takes, in the median; 0 before the first."""
        return median(self._costs) if self._costs else 0.0
