"""Select the sweeps that are recorded, so that recording takes a bounded share of the time and includes the last sweeps.

Recording the first ten sweeps may take as long as the program took so far, plus one second. After these, it may take a fifth of
the program's time, or a twentieth in a long program. If there is no time for a sweep, it is skipped, together with the operations
before it. If the time runs out during a sweep, as after a rollout of a thousand operations, the rest is skipped. The time for
recording two sweeps is reserved for the last twentieth of the current loops. The first sweep of each model is always recorded,
and the last one, if it can be predicted from the loops.
"""

from __future__ import annotations

from math import inf

from gradlab import clock

EARLY, FREE = 10, 1.0  # first sweeps, which may take as long as the program itself, plus these seconds
SHARE = 0.2  # of the program's own time, after the first sweeps
LONG, LATER = 10.0, 0.05  # seconds of its own time after which the share is smaller
NEAR = 0.95  # of a training; a sweep after this is near the end


def allowance(own: float) -> float:
    """Return the seconds that recording may take, after the first sweeps, if the program itself took `own` seconds."""
    return SHARE * min(own, LONG) + LATER * max(own - LONG, 0.0)


class Pace:
    """A counter of the time spent on recording, which decides when to record.

    Attributes
    ----------
    spent : float
        Seconds spent on recording.
    """

    def __init__(self) -> None:
        self.spent = 0.0
        self._began = clock.now()
        self._sweeps = 0
        self._early = 0.0, 0.0  # seconds of the program and of recording at the end of the first sweeps
        self._resumed: float | None = 0.0  # `spent` when recording began; None while not recording
        self._limit = inf  # of `spent`, after which recording stops
        self._cost = 0.0  # seconds for the last recorded sweep
        self._near = False  # whether a sweep of the last twentieth was recorded

    def look_next(self, done: float | None, *, anyway: bool = False) -> bool:
        """Return True if the next sweep should be recorded. Call it at the end of a sweep.

        Parameters
        ----------
        done : float or None
            The share of the training that is done after the next sweep; None if unknown.
        anyway : bool, default False
            Record it regardless of the time.
        """
        if self._resumed is not None:
            self._cost = self.spent - self._resumed
        near = done is not None and done >= NEAR
        kept = 1 if near and not self._near else 2
        own = clock.now() - self._began - self.spent
        self._sweeps += 1
        if self._sweeps < EARLY:
            left = FREE + own - self.spent
            self._early = own, self.spent
        else:
            before, spent = self._early
            left = allowance(own - before) - (self.spent - spent)
        look = anyway or left >= kept * self._cost
        self._near = near and (self._near or look)
        self._resumed = self.spent if look else None
        self._limit = inf if anyway or not look else self.spent + left
        return look

    @property
    def is_over(self) -> bool:
        """True if the time for the current recording has run out."""
        return self.spent > self._limit

    def resume(self) -> None:
        """Record a sweep that would have been skipped."""
        self._limit = inf
        if self._resumed is None:
            self._resumed = self.spent
