"""How much one task has: enough that handing it out costs little, and not so much that a lost one costs much.

dask's scheduler takes up to a millisecond a task (its documentation, "Best Practices"), whatever the number of workers. So W
workers with tasks of T seconds keep it busy for W · 1 ms / T of its time, and T must grow with W; at 1 000 workers and 5 s that
is a fifth. What is left in the end must go round: every worker should have a few tasks, or the last ones are waited for.

What of their time workers compute by these sizes, and the seconds of a task, as `benchmarks/distributed.py` reckons it:

    workers   blocks of 1 ms   of 0.1 s       of 0.5 s       of 2 s         of 10 s
         10   99.8 % (1.9)     99.9 % (1.9)   99.7 % (1.9)   98.5 % (2.0)   92.1 % (10)
        100   99.5 % (1.9)     99.5 % (1.9)   99.5 % (1.9)   98.7 % (2.0)   95.9 % (10)
      1 000   99.3 % (4.3)     99.3 % (4.3)   99.3 % (4.3)   98.3 % (3.8)   93.4 % (10)

A block of the plan is what one sweep computes. Its size is chosen before the run, for half a second by what sweeps take here; a
task is as many blocks as the workers are measured to do in the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

SHORTEST, USUAL, LONGEST = 0.5, 2.0, 5.0  # seconds of a task
OVERHEAD = 0.001  # seconds of the scheduler's for a task
BUSY = 0.2  # of its time that the scheduler may be kept busy
ROUNDS = 4  # tasks of the shortest duration, or more, that a worker should have in the end
BLOCK_SECONDS = 0.5
LATEST = 0.3  # what the latest measurement counts in the mean


def task_seconds(workers: int, left: float = math.inf) -> float:
    """How long a task should take, given the seconds of work that are left for all workers together."""
    wanted = min(max(USUAL, workers * OVERHEAD / BUSY), left / (ROUNDS * max(workers, 1)))
    return min(max(wanted, SHORTEST), LONGEST)


class Sizes:
    """How many blocks a task has, by what blocks were measured to take."""

    def __init__(self) -> None:
        self.seconds: float | None = None  # of a block

    def note(self, seconds: float, blocks: int) -> None:
        """What some blocks took."""
        if blocks:
            each = max(seconds / blocks, 1e-6)
            self.seconds = each if self.seconds is None else (1 - LATEST) * self.seconds + LATEST * each

    def blocks(self, left: int, workers: int) -> int:
        """Of so many blocks that are left, how many the next task has: one, until something was measured."""
        if self.seconds is None:
            return 1
        return max(1, round(task_seconds(workers, left * self.seconds) / self.seconds))


def affordable(measure: Callable[[int], float], most: int) -> int:
    """How many vectors, `most` at most, are swept at once in the time of a block; `measure` says what some take."""
    count = 1
    while True:
        seconds = max(measure(count), 1e-9)
        if count >= most or seconds >= BLOCK_SECONDS / 4:
            return max(1, min(most, int(count * BLOCK_SECONDS / seconds)))
        count = min(most, 4 * count)
