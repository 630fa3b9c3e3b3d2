"""Sizes of tasks: large enough that the overhead is small, small enough that a lost task costs little.

Dask's scheduler takes up to a millisecond per task (its documentation, "Best Practices"), whatever the number of workers. So W
workers with tasks of T seconds keep it busy for W · 1 ms / T of its time, and T must grow with W; at 1 000 workers and 5 s that
is a fifth. Near the end, the rest must be shared evenly: every worker should have a few tasks, or all wait for the last ones.

The share of their time that workers compute with these sizes, and the seconds per task, as estimated by
`benchmarks/distributed.py`:

    workers   blocks of 1 ms   of 0.1 s       of 0.5 s       of 2 s         of 10 s
         10   99.8 % (1.9)     99.9 % (1.9)   99.7 % (1.9)   98.5 % (2.0)   92.1 % (10)
        100   99.5 % (1.9)     99.5 % (1.9)   99.5 % (1.9)   98.7 % (2.0)   95.9 % (10)
      1 000   99.3 % (4.3)     99.3 % (4.3)   99.3 % (4.3)   98.3 % (3.8)   93.4 % (10)

A block of the plan is what one sweep computes. Its size is chosen before the run, for half a second by the time of sweeps here. A
task has as many blocks as the workers are measured to compute in the desired time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SHORTEST, USUAL, LONGEST = 0.5, 2.0, 5.0  # seconds of a task
OVERHEAD = 0.001  # scheduler's seconds per task
BUSY = 0.2  # maximum share of the scheduler's time
ROUNDS = 4  # tasks of at least the shortest duration that a worker should have near the end
BLOCK_SECONDS = 0.5
LATEST = 0.3  # weight of the latest measurement in the mean


def task_seconds(workers: int, left: float = math.inf) -> float:
    """Return the duration of a task, given the seconds of work left for all workers together."""
    wanted = min(max(USUAL, workers * OVERHEAD / BUSY), left / (ROUNDS * max(workers, 1)))
    return min(max(wanted, SHORTEST), LONGEST)


class Sizes:
    """Number of blocks per task, from measured times."""

    def __init__(self) -> None:
        self.seconds: float | None = None  # per block

    def note(self, seconds: float, blocks: int) -> None:
        """Record the time of some blocks."""
        if blocks:
            each = max(seconds / blocks, 1e-6)
            self.seconds = each if self.seconds is None else (1 - LATEST) * self.seconds + LATEST * each

    def blocks(self, left: int, workers: int) -> int:
        """Return the number of blocks of the next task, given those left: one, until there is a measurement."""
        if self.seconds is None:
            return 1
        return max(1, round(task_seconds(workers, left * self.seconds) / self.seconds))


def affordable(measure: Callable[[int], float], most: int) -> int:
    """Return how many vectors, at most `most`, can be swept in the time of a block; `measure` returns the time for a number."""
    count = 1
    while True:
        seconds = max(measure(count), 1e-9)
        if count >= most or seconds >= BLOCK_SECONDS / 4:
            return max(1, min(most, int(count * BLOCK_SECONDS / seconds)))
        count = min(most, 4 * count)
