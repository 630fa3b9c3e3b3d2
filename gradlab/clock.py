"""The clock for time budgets and time limits.

All time budgets and limits use `now` instead of Python's clocks, so that tests can set the time and do not depend on the load of
the machine.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

POLL_INTERVAL = 0.05  # seconds between two looks at the clock while waiting

_read: Callable[[], float] = time.perf_counter


def now() -> float:
    """Return the time in seconds. Only differences between two times are meaningful."""
    return _read()


@contextmanager
def use_source(source: Callable[[], float]) -> Iterator[None]:
    """Make `now` return `source()` inside a `with` block, in all threads."""
    global _read  # noqa: PLW0603  (one clock for the process)
    before, _read = _read, source
    try:
        yield
    finally:
        _read = before


def wait(event: threading.Event, until: float) -> bool:
    """Wait for an event until the time `until`. Return True if it is set."""
    while not event.is_set() and (left := until - now()) > 0:
        event.wait(min(left, POLL_INTERVAL))
    return event.is_set()


def get(items: queue.Queue[Any], until: float) -> Any:
    """Remove and return an item of a queue, waiting for one until the time `until`.

    Raises
    ------
    queue.Empty
        If the queue is still empty at that time.
    """
    while (left := until - now()) > 0:
        try:
            return items.get(timeout=min(left, POLL_INTERVAL))
        except queue.Empty:
            pass
    return items.get_nowait()
