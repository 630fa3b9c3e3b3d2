"""Run deeply nested work in a new thread, which has its own stack.

An interrupt (Ctrl-C) reaches the thread that waits. Sweeps in the new thread then stop at their next node, before it writes
`.grad`. They are stopped by an observer that exists only there, so that other sweeps have no extra cost.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradlab.core.modes import mode
from gradlab.core.observers import Observer, observers

T = TypeVar("T")
THREAD_LOCALS: list[Any] = [mode, observers]  # settings copied to the new thread


class Stop(Observer):
    """Observer that stops the sweeps of a thread at their next node once `requested` is set."""

    def __init__(self) -> None:
        self.requested = False

    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Raise if a stop was requested. For a leaf, this runs before its `.grad` is written."""
        if self.requested:
            raise KeyboardInterrupt


def run_in_fresh_thread(work: Callable[[], T]) -> T:
    """Run `work()` in a new thread with the settings of this one, and wait for it. (On Pyodide, which has no threads, call it.)

    An interrupt is raised after the thread has ended: its sweeps, and sweeps in threads that it waits for, stop at their next
    node. A second interrupt is raised at once, in case a hook does not return.

    Parameters
    ----------
    work : callable
        Called without arguments.

    Returns
    -------
    object
        What `work` returned.

    Raises
    ------
    BaseException
        What `work` raised.
    """
    if sys.platform == "emscripten":
        return work()
    settings = [dict(local.__dict__) for local in THREAD_LOCALS]
    results: list[Any] = []
    stop = Stop()

    def run() -> None:
        for local, setting in zip(THREAD_LOCALS, settings, strict=True):
            local.__dict__.update(setting)
        observers.sweeps = (*observers.sweeps, stop)
        try:
            if not stop.requested:
                results.append(work())
        except BaseException as error:  # noqa: BLE001  (raised in the waiting thread)
            results.extend((None, error))

    thread = threading.Thread(target=run)
    try:
        thread.start()
        thread.join()
    except BaseException:
        stop.requested = True
        if thread.is_alive():  # if not alive, it has not started and will do nothing
            thread.join()
        raise
    if len(results) > 1:
        raise results[1]
    result: T = results[0]
    return result
