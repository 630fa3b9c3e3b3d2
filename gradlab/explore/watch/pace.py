"""How often something is looked at, so that looking takes no more than its share of the time.

A `Pace` is told what each look cost and how long the program's own steps take. One look is enough to know the pace; the least of
the first few costs counts, since the first look also loads modules, and later the median of the last, so that one slow step of
a busy machine changes nothing. Strides are powers of two, so that what is looked at rarely is looked at together with what is
looked at often, and their hooks are attached once.
"""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median

SEEN = 31  # looks and steps that are remembered
FEW = 5  # looks of which the least costly one counts
FIRST = 64  # steps between the first look and the second, at most: the first may have been far too slow
MOST = 1 << 20  # steps between two looks


class Pace:
    """When to look.

    Parameters
    ----------
    share : float
        Of the program's own time.
    every : int
        The fewest steps between two looks.

    Attributes
    ----------
    stride : int
        Steps between two looks.
    next : int
        The step at which to look next, the steps being counted from 0.
    """

    def __init__(self, share: float, every: int = 1) -> None:
        self.share, self.every, self.stride, self.next = share, every, every, 0
        self._full = 0  # steps that are looked at however long that takes, but for `every`
        self._costs: deque[float] = deque(maxlen=SEEN)
        self._last = -1  # the step that was looked at last
        self._own = 0.0

    def look_in_full(self, steps: int) -> None:
        """Look at so many steps however long that takes, but for `every`; 0: at no more."""
        self._full = steps
        self._plan()

    def due(self, step: int) -> bool:
        """Whether to look at this step."""
        return step >= self.next

    def looked(self, step: int, seconds: float) -> None:
        """Note that a look at this step cost so much."""
        self._costs.append(seconds)
        self._last = step
        self.settle(self._own)

    def settle(self, own: float) -> None:
        """Note that the program's own steps take `own` seconds each."""
        self._own = own
        if self._costs and own > 0:
            wanted = min(ceil(self.cost / (self.share * own)), FIRST if len(self._costs) == 1 else MOST)
            self.stride = self.every << (max(1, ceil(wanted / self.every)) - 1).bit_length()
        self._plan()

    def _plan(self) -> None:
        if self._last >= 0:
            self.next = (self._last // self.stride + 1) * self.stride
            full = (self._last // self.every + 1) * self.every
            if full < self._full:
                self.next = min(self.next, full)

    @property
    def cost(self) -> float:
        """Seconds that a look takes; 0 before the first."""
        if len(self._costs) > FEW:
            return median(self._costs)
        return min(self._costs, default=0.0)
