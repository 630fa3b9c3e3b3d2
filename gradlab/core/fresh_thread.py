"""A thread with a stack of its own, for what would recurse too deep in the thread that asks for it.

An interrupt (Ctrl-C) reaches the thread that waits. Sweeps in the other thread then stop at their next node, before it writes
`.grad`. The node is seen by an observer that exists only there, so that sweeps elsewhere pay nothing for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gradlab.core.modes import mode
from gradlab.core.observers import Observer, observers

T = TypeVar("T")
LOCALS: list[Any] = [mode, observers]  # what is set for a thread


class Stop(Observer):
    """Ends the sweeps of a thread at their next node, once it is `asked` to."""

    def __init__(self) -> None:
        self.asked = False

    def visit(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Called for a leaf before its `.grad` is written."""
        if self.asked:
            raise KeyboardInterrupt


def in_fresh_thread(work: Callable[[], T]) -> T:
    """Run `work()` in a thread of its own and wait for it. (Pyodide has no threads.)

    What is set for this thread holds there, too. An interrupt is raised once the thread has ended: its sweeps stop at the next
    node, and so do those of threads that they wait for. A second interrupt is raised at once, for a hook that does not return.

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
    settings = [dict(local.__dict__) for local in LOCALS]
    results: list[Any] = []
    stop = Stop()

    def run() -> None:
        for local, setting in zip(LOCALS, settings, strict=True):
            local.__dict__.update(setting)
        observers.sweeps = (*observers.sweeps, stop)
        try:
            if not stop.asked:
                results.append(work())
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            results.extend((None, error))

    thread = threading.Thread(target=run)
    try:
        thread.start()
        thread.join()
    except BaseException:
        stop.asked = True
        if thread.is_alive():  # if it has not begun by now, it does nothing
            thread.join()
        raise
    if len(results) > 1:
        raise results[1]
    result: T = results[0]
    return result
