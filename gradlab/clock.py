"""The clock by which gradlab measures what it spends, and ends what takes too long.

All budgets and time limits read `now`, and none of them asks Python for the time, so that a test can set the time by hand and
gets the same answer however busy the machine is.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TURN = 0.05  # seconds after which something that waits looks at the clock again

_read: Callable[[], float] = time.perf_counter


def now() -> float:
    """Return the time in seconds. Only the difference of two times means anything."""
    return _read()


@contextmanager
def reading(source: Callable[[], float]) -> Iterator[None]:
    """Have `now` return what `source` returns while the block runs, in all threads."""
    global _read  # noqa: PLW0603  (one clock for the process)
    before, _read = _read, source
    try:
        yield
    finally:
        _read = before


def wait(event: threading.Event, until: float) -> bool:
    """Wait for an event, but not beyond the time `until`. Return whether it is set."""
    while not event.is_set() and (left := until - now()) > 0:
        event.wait(min(left, TURN))
    return event.is_set()


def get(items: queue.Queue[Any], until: float) -> Any:
    """Remove and return an item of a queue, waiting for one, but not beyond the time `until`.

    Raises
    ------
    queue.Empty
        If there is none by then.
    """
    while (left := until - now()) > 0:
        try:
            return items.get(timeout=min(left, TURN))
        except queue.Empty:
            pass
    return items.get_nowait()
