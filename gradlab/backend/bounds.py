"""Bounds checks for values in arrays: indices, class numbers and probabilities.

On the host a value out of bounds raises immediately. On a device, reading a value makes the host wait for all preceding work,
and CuPy, which does not check, silently wraps an index. So the minimum and maximum are computed and kept on the device, and the
next operation that waits for the device (`item`, `bool`, printing, `cpu`, `synchronize`) checks them first. Thus nothing computed
from a wrong index is read before the error is raised. With `debug.at_once` the check runs with the operation, so that the
traceback leads to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

MAX_PENDING_CHECKS = 1000  # at this number the host waits and runs them, which bounds memory
PENDING_CHECKS: list[tuple[str, Any, Any, Any, Any, Callable[[Any], Exception]]] = []
PENDING_LOCK = threading.RLock()  # held by the thread that runs the pending checks
debug = SimpleNamespace(at_once=False)


def check_bounds(name: str, values: Any, low: Any, high: Any, error: Callable[[Any], Exception]) -> None:
    """Raise `error(value)` if a value is outside the closed interval [low, high].

    Values on a device are checked when the host next waits for it. The error then says that the operation was `name`.
    """
    if not values.size:
        return
    least, greatest = values.min(), values.max()
    if isinstance(values, (np.ndarray, np.generic)) or debug.at_once:
        wrong = find_violation(least, greatest, low, high)
        if wrong is not None:
            raise error(wrong)
        return
    PENDING_CHECKS.append((name, least, greatest, low, high, error))
    if len(PENDING_CHECKS) >= MAX_PENDING_CHECKS:
        run_pending_checks()


def check_axis_indices(name: str, index: Any, n: int, error: Callable[[Any], Exception], negative: bool = False) -> None:
    """Check indices into an axis of length n. They may count from its end if `negative` is True.

    On the host this takes one pass, since a negative number read as unsigned is huge.
    """
    if negative or type(index) is not np.ndarray or (index.size and int(index.view(f"u{index.itemsize}").max()) >= n):
        check_bounds(name, index, -n if negative else 0, n - 1, error)


def find_violation(least: Any, greatest: Any, low: Any, high: Any) -> Any:
    """Return the maximum or minimum if it is out of bounds or NaN, and None otherwise."""
    least, greatest = least.item(), greatest.item()
    return greatest if not greatest <= high else least if not least >= low else None


def run_pending_checks() -> None:
    """Run the pending checks. Must be called before a value is read from a device.

    Threads take turns, so no thread reads a value before its bounds have been checked. A check is removed only after it ran.
    Checks added by other threads meanwhile stay, and all of them stay if an interrupt or a device error occurs first.

    Raises
    ------
    Exception
        The error of the first violation. Its message also names later operations with violations. These are not raised again:
        they often have the same cause, and a corrected cell should not fail with errors from its last run.
    """
    with PENDING_LOCK:
        checks = PENDING_CHECKS[:]
        violated = [
            (name, error(wrong))
            for name, least, greatest, low, high, error in checks
            if (wrong := find_violation(least, greatest, low, high)) is not None
        ]
        refusal = violation_error(violated) if violated else None
        del PENDING_CHECKS[: len(checks)]  # no call between here and the raise, so that no interrupt can replace the error
        if refusal is not None:
            raise refusal


def violation_error(violated: list[tuple[str, Exception]]) -> Exception:
    """Return the error of the first (operation, error) pair, with the names of the other operations in its message."""
    (name, error), *later = violated
    others = ", ".join(dict.fromkeys(name for name, _ in later))
    return type(error)(
        f"{error} The operation was {name}. It ran on a device, where values are checked when the host next reads one."
        f"{f' Values were also out of bounds in later operations: {others}.' if later else ''}"
        " gradlab.cuda.set_sync_debug(True) raises at the operation itself."
    )
