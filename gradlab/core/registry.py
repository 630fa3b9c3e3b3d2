"""The declared primitives by name, and those of them that the core records by itself.

The core knows no rule. What it needs one for, it asks of `used`, where the module that declares it puts it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

PRIMITIVES: dict[str, Any] = {}
DECLARING = ("gradlab.core.primitive", __name__)  # the modules through which a declaration gets here
Origin = tuple[str, str]  # the module of a declaration, and the name of its function


def find_origin(function: Callable[..., Any]) -> Origin:
    """The module whose code declares a primitive at the moment, and the name of its forward `function`."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in DECLARING and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")), str(getattr(function, "__qualname__", type(function).__name__))


def refuse_taken_name(kind: str, name: str, taken: Origin, origin: Origin) -> str | None:
    """Say why `name` cannot be declared again, or return None if it can.

    A notebook's cell that runs again, or a module of the user's that is loaded again, may replace what it declared before: the
    same function of the same module.

    Parameters
    ----------
    kind : str
        What is declared: "a primitive" or "an operator".
    name : str
        Its name.
    taken, origin : tuple of str
        Where the name was declared before, and where it is declared now: module and function.

    Returns
    -------
    str or None
        The text of the error.
    """
    if taken == origin and origin[0].partition(".")[0] != "gradlab":
        return None
    return (
        f"There is already {kind} named {name!r}: {taken[0]} declares it, with the function {taken[1]}. Give the one that "
        f"{origin[0]} declares, with the function {origin[1]}, another name."
    )


class Used:
    """What the core records where no function of the user's did."""

    astype: Any  # a tangent, written into one of another dtype
    clone: Any  # a tangent, laid out anew; a gradient that is kept
    copy: Any  # the same, as the axes of a tensor lie
    overwrite: Any  # a write in place
    transfer: Any  # a 0-d operand, sent to where the others are
    zero_derivative: Any  # a recorded cotangent that does not move with what it was computed from


used = Used()
