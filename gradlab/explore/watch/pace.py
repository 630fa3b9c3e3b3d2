"""The pace of a measurement: which steps to measure, so that measuring takes at most a given share of the training's time.

A measurement that costs c seconds, made at one step in `stride`, takes the share c / (stride · t) of steps that take t seconds
by themselves. A `Pace` is given both times. It picks the smallest stride for which this is at most `share`:

    stride ≥ c / (share · t)

A gradient norm of 30 µs with a share of 0.0015 of steps of 2 ms needs a stride of 10 or more.

- c is an estimate from few samples. The first measurement also imports modules and warms caches, so the minimum of the first
  `FEW` costs is used, and after that the median of the last `MEMORY`, which ignores a slow step of a busy machine. After a single
  measurement the stride is at most `FIRST`, so that a far too slow first one is soon followed by a second.
- The stride is rounded up to `every` times a power of two, and measured steps are multiples of the stride. So each step at which
  a measurement with a long stride is due is also one at which those with shorter strides are due: they share one set of hooks,
  and most steps have none. Rounding at most doubles the stride (16 in the example), so between half and all of the share is
  used.
- While the doctor examines the first steps, every step is measured, at any cost (`measure_first_steps`).
"""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median

MEMORY = 31  # costs, and step times, that are remembered
FEW = 5  # measurements up to which the minimum cost is used
FIRST = 64  # maximum stride between the first measurement and the second
MOST = 1 << 20  # maximum stride, before rounding


class Pace:
    """The steps at which to make one kind of measurement.

    Parameters
    ----------
    share : float
        Share of the training's own time that the measurement may take.
    every : int
        Minimum number of steps between two measurements.

    Attributes
    ----------
    stride : int
        Steps between two measurements.
    next : int
        The next step to measure. Steps count from 0.
    """

    def __init__(self, share: float, every: int = 1) -> None:
        self.share, self.every, self.stride, self.next = share, every, every, 0
        self._first_steps = 0  # steps below this are measured at any cost, but at most one in `every`
        self._costs: deque[float] = deque(maxlen=MEMORY)
        self._last = -1  # the last step that was measured
        self._step_time = 0.0

    def measure_first_steps(self, steps: int) -> None:
        """Measure one in `every` of the steps below `steps`, at any cost. 0 ends this."""
        self._first_steps = steps
        self._plan()

    def due(self, step: int) -> bool:
        """Return whether to measure this step."""
        return step >= self.next

    def add_cost(self, step: int, seconds: float) -> None:
        """Record that this step was measured, and what it cost."""
        self._costs.append(seconds)
        self._last = step
        self.set_step_time(self._step_time)

    def set_step_time(self, seconds: float) -> None:
        """Set the time that the program's own steps take, and adjust the stride."""
        self._step_time = seconds
        if self._costs and seconds > 0:
            wanted = min(ceil(self.cost / (self.share * seconds)), FIRST if len(self._costs) == 1 else MOST)
            # `every` times the smallest power of two that is at least wanted / every
            self.stride = self.every << (max(1, ceil(wanted / self.every)) - 1).bit_length()
        self._plan()

    def _plan(self) -> None:
        """Set `next` to the first multiple of the stride after the last measured step."""
        if self._last >= 0:
            self.next = (self._last // self.stride + 1) * self.stride
            soonest = (self._last // self.every + 1) * self.every
            if soonest < self._first_steps:
                self.next = min(self.next, soonest)

    @property
    def cost(self) -> float:
        """Estimated seconds of a measurement; 0 before the first."""
        if len(self._costs) > FEW:
            return median(self._costs)
        return min(self._costs, default=0.0)
