"""How much of a program is looked at: which sweeps, so that looking takes a bounded share of its time and the last ones are seen.

Looking may take half of the time that the program took so far, of a long one a twentieth, and 0.4 s. Sweeps that there is no
time for go by unseen, together with the operations before them. The time of two looks is kept in reserve for the last twentieth
of the loops that the program is in. The first sweep of each model, and the last if the loops tell which that is, are looked at
in any case.
"""

from __future__ import annotations

from gradlab import clock

SHARE, FREE = 0.5, 0.4  # of the program's own time, and seconds besides
LONG, LATER = 10.0, 0.05  # seconds of its own time after which the share is smaller
NEAR = 0.95  # of a training, after which a look is near enough to its end


def allowance(own: float) -> float:
    """Seconds that may go into seeing a program that took so many itself."""
    return FREE + SHARE * min(own, LONG) + LATER * max(own - LONG, 0.0)


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
        self._resumed: float | None = 0.0  # what had been spent when looking began; None while nobody looks
        self._cost = 0.0  # seconds that the last look took
        self._near = False  # whether a sweep of the last twentieth was looked at

    def look_next(self, done: float | None, *, anyway: bool = False) -> bool:
        """Whether the next sweep is to be looked at, the one before being over.

        Parameters
        ----------
        done : float or None
            The share of the training that is behind when the next sweep has run; None if that cannot be told.
        anyway : bool, default False
            Whether it is looked at whatever time there is.
        """
        if self._resumed is not None:
            self._cost = self.spent - self._resumed
        near = done is not None and done >= NEAR
        kept = 1 if near and not self._near else 2
        left = allowance(clock.now() - self._began - self.spent) - self.spent
        look = anyway or left >= kept * self._cost
        self._near = near and (self._near or look)
        self._resumed = self.spent if look else None
        return look

    def resume(self) -> None:
        """A sweep is looked at that was not meant to be."""
        if self._resumed is None:
            self._resumed = self.spent
