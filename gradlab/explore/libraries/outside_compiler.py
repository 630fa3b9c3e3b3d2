"""Functions of ours that compiled code calls: hooks, and wrappers around `backward` and others.

`torch.compile` would look into them, and compile what it finds. `torch.compiler.disable` prevents that, but it imports Dynamo,
which takes seconds. So it is called only once the program has loaded it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

DYNAMO = "torch._dynamo.eval_frame"


class _Outside:
    """A function that Dynamo will be kept from when it is loaded."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


_waiting: weakref.WeakSet[_Outside] = weakref.WeakSet()


def _disable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that Dynamo, which is loaded, does not look into."""
    disabled: Callable[..., Any] = sys.modules["torch"].compiler.disable(function)
    return disabled


def outside_compiler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs as it is written if compiled code calls it, and so do those that it calls."""
    if DYNAMO in sys.modules:
        return _disable(function)
    held = _Outside(function)
    _waiting.add(held)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return held.function(*args, **kwargs)

    return call


def disable_waiting() -> None:
    """Keep Dynamo from looking into the functions of `outside_compiler`. Call this after `torch.compile` may have loaded it."""
    if DYNAMO in sys.modules:
        while _waiting:
            held = _waiting.pop()
            held.function = _disable(held.function)
