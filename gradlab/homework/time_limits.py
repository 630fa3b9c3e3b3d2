"""How long a student's code may run: an exception that comes from a clock, and a purse of seconds for a whole submission."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gradlab import clock

AGAIN = 0.25  # seconds after which code that swallowed the exception gets another


class TimeUp(BaseException):
    """The time for a piece of code is over."""

    def __str__(self) -> str:
        return "this did not end in time, and was stopped"


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` in this thread when the block has run for so long, and again while it goes on all the same.

    It comes between two instructions of Python: a call into C that does not return is not stopped. Code that catches every
    exception in an endless loop is not, either. (Where submissions are graded, their process is killed then.)
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
                if struck:  # one may be on its way; it comes at the end of a turn of a loop
                    for _ in range(1000):
                        pass
                break
            except TimeUp:
                continue


class Purse:
    """Seconds for a number of things: at most `each` for one, `together` for all, but `least` for one that comes late.

    So a few endless loops cost no more than `together`, and what is right, which takes no time, is seen all the same."""

    def __init__(self, each: float, together: float, least: float) -> None:
        self.each, self.left, self.least = each, together, least

    def seconds(self) -> float:
        """What the next thing may take."""
        return max(min(self.each, self.left), self.least)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Take what the block takes out of the purse."""
        began = clock.now()
        try:
            yield
        finally:
            self.left -= clock.now() - began
