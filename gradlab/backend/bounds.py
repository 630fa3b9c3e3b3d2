"""Bounds of values that arrive in an array: of indices, of class numbers, of probabilities.

On the host a value out of bounds raises at once. On a device looking at a value makes the host wait for everything that was
asked of the device before, and CuPy, which does not look, wraps an index silently. So the least and the greatest value are
computed there and left there, and whoever waits for the device next (`item`, `bool`, printing, `cpu`, `synchronize`) looks at
them first: nothing computed from a wrong index is read before the error is raised. `debug.at_once` looks when the operation
runs, so that the traceback leads to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

MANY = 1000  # so many are noted, then the host waits by itself: memory is bounded
NOTED: list[tuple[str, Any, Any, Any, Any, Callable[[Any], Exception]]] = []
LOOKING = threading.RLock()  # held by the thread that looks at what is noted
debug = SimpleNamespace(at_once=False)


def within(name: str, values: Any, low: Any, high: Any, error: Callable[[Any], Exception]) -> None:
    """Raise `error(value)` if one of the values is not in low … high (both belong to it). Of values on a device that is found
    when the host next waits, and the error says that the operation was `name`."""
    if not values.size:
        return
    least, greatest = values.min(), values.max()
    if isinstance(values, (np.ndarray, np.generic)) or debug.at_once:
        wrong = outside(least, greatest, low, high)
        if wrong is not None:
            raise error(wrong)
        return
    NOTED.append((name, least, greatest, low, high, error))
    if len(NOTED) >= MANY:
        settle()


def on_axis(name: str, index: Any, n: int, error: Callable[[Any], Exception], negative: bool = False) -> None:
    """The same for indices of an axis of length n, which may count from its end if `negative`. On the host it is one pass: a
    negative number, read without sign, is a huge one."""
    if negative or type(index) is not np.ndarray or (index.size and int(index.view(f"u{index.itemsize}").max()) >= n):
        within(name, index, -n if negative else 0, n - 1, error)


def outside(least: Any, greatest: Any, low: Any, high: Any) -> Any:
    """The extreme value that is out of bounds (or not a number), if there is one."""
    least, greatest = least.item(), greatest.item()
    return greatest if not greatest <= high else least if not least >= low else None


def settle() -> None:
    """Look at the bounds noted so far. Call before a value of a device is read.

    Threads take turns, so no thread reads a value before its bounds were looked at. A note is removed only after it was looked
    at: what another thread notes meanwhile stays, and so does everything if an interrupt or an error of the device comes first.

    Raises
    ------
    Exception
        What the first violation asks for. Its message names the later operations whose bounds are violated, too. These are not
        raised again: they often have the same cause, and a corrected cell should not fail with the errors of its last run.
    """
    with LOOKING:
        noted = NOTED[:]
        violated = [
            (name, error(wrong))
            for name, least, greatest, low, high, error in noted
            if (wrong := outside(least, greatest, low, high)) is not None
        ]
        refusal = word_violations(violated) if violated else None
        del NOTED[: len(noted)]  # no call from here to the error, so that no interrupt takes its place
        if refusal is not None:
            raise refusal


def word_violations(violated: list[tuple[str, Exception]]) -> Exception:
    """The error of the first of the (operation, error) pairs, with the names of the others."""
    (name, error), *later = violated
    others = ", ".join(dict.fromkeys(name for name, _ in later))
    return type(error)(
        f"{error} The operation was {name}; it ran on a device, whose values are looked at when one is read."
        f"{f' Values were out of bounds in later operations, too: {others}.' if later else ''}"
        " gradlab.cuda.set_sync_debug(True) raises at the operation itself."
    )
