"""How much of a program is looked at: which sweeps, so that looking takes a bounded share of its time and the last ones are seen.

Looking at the first ten sweeps may take as long as the program took so far, and a second. After these it may take a fifth of the
program's time, of a long one a twentieth. If there is no time for a sweep, it goes by unseen, together with the operations before
it; so does the rest of a sweep for which the time runs out, as after a rollout of a thousand operations. The time of two looks
is kept in reserve for the last twentieth of the loops that the program is in. The first sweep of each model, and the last if the
loops tell which that is, are looked at in any case.
"""

from __future__ import annotations

from math import inf

from gradlab import clock

EARLY, FREE = 10, 1.0  # sweeps that may take as long as the program itself, and seconds besides
SHARE = 0.2  # of the program's own time, after these
LONG, LATER = 10.0, 0.05  # seconds of its own time after which the share is smaller
NEAR = 0.95  # of a training, after which a look is near enough to its end


def allowance(own: float) -> float:
    """Return the seconds that may go into seeing a program that took `own` itself, after the first sweeps."""
    return SHARE * min(own, LONG) + LATER * max(own - LONG, 0.0)


class Pace:
    """Counts the time that looking takes, and says when to look.

    Attributes
    ----------
    spent : float
        Seconds that looking has taken.
    """

    def __init__(self) -> None:
        self.spent = 0.0
        self._began = clock.now()
        self._sweeps = 0
        self._early = 0.0, 0.0  # seconds of the program itself and of looking, when the first sweeps were over
        self._resumed: float | None = 0.0  # what had been spent when looking began; None while nobody looks
        self._limit = inf  # what may be spent before looking ends
        self._cost = 0.0  # seconds that the last look took
        self._near = False  # whether a sweep of the last twentieth was looked at

    def look_next(self, done: float | None, *, anyway: bool = False) -> bool:
        """Return whether the next sweep is to be looked at, the one before being over.

        Parameters
        ----------
        done : float or None
            The share of the training that is behind when the next sweep has run; None if that is not known.
        anyway : bool, default False
            Whether it is looked at whatever time there is.
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
        """Whether the time for the look that runs has run out."""
        return self.spent > self._limit

    def resume(self) -> None:
        """Look at a sweep that was not meant to be looked at."""
        self._limit = inf
        if self._resumed is None:
            self._resumed = self.spent
