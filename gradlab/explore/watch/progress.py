"""The speed of a training, and the time left."""

from __future__ import annotations

from collections import deque
from typing import Any

from gradlab.explore.markup import count, group_digits, number

RECENT = 100  # number of frames over which the speed is measured
LEAST = 1.0  # minimum seconds that they span


class Speed:
    """The steps per second over the last frames."""

    def __init__(self, now: float) -> None:
        self._frames = deque([(now, 0)], maxlen=RECENT)

    def note(self, now: float, steps: int) -> None:
        """Record how many steps had ended at this time."""
        self._frames.append((now, steps))

    def add_pause(self, seconds: float) -> None:
        """Exclude a pause of the training."""
        self._frames = deque(((time + seconds, steps) for time, steps in self._frames), maxlen=RECENT)

    @property
    def per_second(self) -> float | None:
        """The steps per second; None if the training has not run long enough."""
        (began, first), (now, last) = self._frames[0], self._frames[-1]
        return (last - first) / (now - began) if now - began >= LEAST and last > first else None


def progress_text(watch: Any) -> str:
    """Return the speed of a run, and the time left if its number of steps is known; "" before there is a speed."""
    speed = watch.measuring.speed.per_second
    if speed is None:
        return ""
    if speed < 1:
        rate = f"{number(1 / speed, 2)} s per step"
    else:
        rate = f"{group_digits(round(speed)) if speed >= 10 else number(speed, 2)} steps per second"
    left = None if watch.ended or watch.total is None else (watch.total - watch.steps) / speed
    return rate if left is None or left < 1 else f"{rate}, {duration(left)} left"


def duration(seconds: float) -> str:
    """Return a time in words: "8 s", "3 min", "2 h 5 min", "1 day 4 h"."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{round(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(round(minutes / 60), 24)
    return f"{count(days, 'day')} {hours} h" if hours else count(days, "day")
