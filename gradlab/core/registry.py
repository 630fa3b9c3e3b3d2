"""The declared primitives by name, and those of them that the core records by itself.

The core knows no rule. What it needs one for, it asks of `used`, where the module that declares it puts it.
"""

from __future__ import annotations

from typing import Any

PRIMITIVES: dict[str, Any] = {}


class Used:
    """What the core records where no function of the user's did."""

    astype: Any  # a tangent, written into one of another dtype
    clone: Any  # a tangent, laid out anew; a gradient that is kept
    copy: Any  # the same, as the axes of a tensor lie
    overwrite: Any  # a write in place
    transfer: Any  # a 0-d operand, sent to where the others are
    zero_derivative: Any  # a recorded cotangent that does not move with what it was computed from


used = Used()
