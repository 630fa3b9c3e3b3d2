"""How a student's work is used where calling it on tensors is not enough: each module here is a way, and its `use(made, *args)`
runs where the student's code is.

`made` is the function or the class of the student's; the arguments are those of the check, plain data (a program to be built,
numbers, text) as well as tensors and functions. What `use` returns goes back to the check as plain data. A way that gives the
student something else than its arguments says in `shown(*args)` what that is, for `case`: a tuple, or a dict by the names that
the verdict gives to it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def named(way: str) -> Callable[..., Any]:
    """The `use` of a way.

    Raises
    ------
    ValueError
        If there is no such way.
    """
    return _module(way).use  # type: ignore[no-any-return]


def shown(way: str, args: tuple[Any, ...]) -> tuple[Any, ...] | dict[str, Any]:
    """What a student's function is given for these arguments; by name, where the way names it."""
    make = getattr(_module(way), "shown", None)
    if make is None:
        return args
    arguments = make(*args)
    return dict(arguments) if isinstance(arguments, dict) else tuple(arguments)


def _module(way: str) -> Any:
    there = sorted(module.name for module in iter_modules(__path__))
    if way not in there:
        raise ValueError(f"way={way!r}: there are {', '.join(there) or 'none'}.")
    return import_module(f"{__name__}.{way}")
