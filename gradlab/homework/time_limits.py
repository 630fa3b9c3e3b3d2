"""Time limits for a student's code: an exception after some seconds, and a budget for a whole submission."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gradlab import clock

AGAIN = 0.25  # seconds until the exception is raised again in code that caught it


class TimeUp(BaseException):
    """A time limit has passed."""

    def __str__(self) -> str:
        return "this did not end in time, and was stopped"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` in this thread after this time in the block, and again while the block goes on.

    The exception comes between two Python instructions: it does not stop a call into C that does not return, or an endless
    loop that catches every exception. (In grading, the process is killed then.)
    """
    thread, over, turn, struck = threading.get_ident(), threading.Event(), threading.Lock(), []
    ends = clock.now() + seconds

    def strike() -> None:
        until = ends
        while not clock.wait(over, until):
            with turn:
                if not over.is_set():
                    struck.append(1)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeUp))
            until = clock.now() + AGAIN

    threading.Thread(target=strike, name="gradlab: time limit", daemon=True).start()
    try:
        yield
    finally:
        while True:
            try:
                with turn:
                    over.set()
                if struck:  # one may be pending; it arrives at the end of a loop iteration
                    for _ in range(1000):
                        pass
                break
            except TimeUp:
                continue


class TimeBudget:
    """A time budget in seconds: at most `each` for one block, `together` for all, but at least `least` for each.

    So a few endless loops cost at most `together`, and correct code, which is fast, still runs after them.
    """

    def __init__(self, each: float, together: float, least: float) -> None:
        self.each, self.left, self.least = each, together, least

    def seconds(self) -> float:
        """Return the seconds for the next block."""
        return max(min(self.each, self.left), self.least)

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Subtract the time of the block from the budget."""
        began = clock.now()
        try:
            yield
        finally:
            self.left -= clock.now() - began
