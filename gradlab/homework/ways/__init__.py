"""Ways to use a student's work, for exercises where a call on tensors is not enough.

Each module is a way. Its `use(made, *args)` runs in the process of the student's code. `made` is the student's function or class.
The arguments come from the check: plain data (a program, numbers, text), tensors and functions. The result of `use` returns to
the check as plain data. If a way passes something else to the student's function, `case_arguments(*args)` returns that for
`case`: a tuple, or a dict with the names for the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def get_way(way: str) -> Callable[..., Any]:
    """Return the `use` of a way.

    Raises
    ------
    ValueError
        If there is no such way.
    """
    return _module(way).use  # type: ignore[no-any-return]


def case_arguments(way: str, args: tuple[Any, ...]) -> tuple[Any, ...] | dict[str, Any]:
    """Return the arguments that a student's function receives; a dict if the way names them."""
    make = getattr(_module(way), "case_arguments", None)
    if make is None:
        return args
    arguments = make(*args)
    return dict(arguments) if isinstance(arguments, dict) else tuple(arguments)


def _module(way: str) -> Any:
    there = sorted(module.name for module in iter_modules(__path__))
    if way not in there:
        raise ValueError(f"way={way!r}: expected one of {', '.join(there) or 'none'}.")
    return import_module(f"{__name__}.{way}")
