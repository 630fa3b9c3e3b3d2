"""Registry of the declared primitives by name, and the primitives that the core itself records.

The core contains no rules. The primitives that it needs are attributes of `core_primitives`, set by the modules that declare
them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

PRIMITIVES: dict[str, Any] = {}
DECLARING_MODULES = ("gradlab.core.primitive", __name__)  # skipped in the stack to find the declaring module
Origin = tuple[str, str]  # the module of a declaration and the name of its function


def find_origin(function: Callable[..., Any]) -> Origin:
    """Return the module that is declaring a primitive and the name of its forward `function`."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") in DECLARING_MODULES and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")), str(getattr(function, "__qualname__", type(function).__name__))


def taken_name_message(kind: str, name: str, taken: Origin, origin: Origin) -> str | None:
    """Return the error message if `name` cannot be declared again, or None if it can.

    A notebook cell or a user's module that runs again may replace its own declaration: the same function of the same module.

    Parameters
    ----------
    kind : str
        Kind of the declaration: "a primitive" or "an operator".
    name : str
        Name to declare.
    taken, origin : tuple of str
        Module and function of the earlier declaration and of the new one.

    Returns
    -------
    str or None
        The error message.
    """
    if taken == origin and origin[0].partition(".")[0] != "gradlab":
        return None
    return (
        f"There is already {kind} named {name!r}: {taken[0]} declares it, with the function {taken[1]}. Choose another name for "
        f"the one that {origin[0]} declares, with the function {origin[1]}."
    )


class CorePrimitives:
    """Primitives that the core records without a call by the user."""

    astype: Any  # a tangent written into a tangent of another dtype
    clone: Any  # a tangent with a new layout; a gradient that is kept
    copy: Any  # the same, with the memory layout of a tensor
    overwrite: Any  # an in-place write
    transfer: Any  # a 0-d operand moved to the device of the others
    zero_derivative: Any  # a recorded cotangent whose derivative is zero


core_primitives = CorePrimitives()
