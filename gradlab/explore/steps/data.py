"""What the steps of a sweep are made of: plain data, which refers to no tensor and to no node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from gradlab.explore.steps.factors import Factor
from gradlab.explore.trace.data import Line
from gradlab.explore.trace.values import Value

Held = float | complex | np.ndarray | Value  # the number of a scalar, the numbers of others, or how too many are distributed


class Share(TypedDict):
    """What a step hands on to one input.

    Attributes
    ----------
    to : int
        The node of the trace that it goes to.
    name : str
        The user's name for that tensor, or the node's label.
    local : float, complex, ndarray or None
        The local derivative: of a scalar by a scalar a number. Else a matrix (elements of the outputs) × (elements of the input)
        of at most 16×16; where the operation works on each element by itself and there are more of them, the matrix's diagonal,
        an array with one axis. None where it is larger, or the rule is the user's own.
    factor : Factor or None
        Where small matrices are multiplied what the cotangent is multiplied by.
    downstream : Held or None
        What is handed on now.
    total : Held or None
        What has arrived there in all by now. None in between, where it is too large to be kept.
    """

    to: int
    name: str
    local: Any
    factor: Factor | None
    downstream: Held | None
    total: Held | None


@dataclass(frozen=True, eq=False)
class Step:
    """One operation of the sweep.

    Attributes
    ----------
    number : int
        1 of the first.
    node : int
        The operation, by its number in the trace.
    label, operation, name : str
        "×", "MulBackward0", the user's name for what it made, or "".
    place : Line or None
        Where the user wrote it.
    line : int or None
        That line: of the cell, which counts `%%grad` as 1, or else of its file.
    upstream : Held, tuple or None
        What arrived. Of an operation with several outputs a tuple with an entry for each, None where nothing arrived.
    shares : tuple of Share
        What it hands on, in the order of its inputs; inputs that want no gradient are left out.
    hooked : bool
        Whether a hook of the user's changed what had arrived.
    """

    number: int
    node: int
    label: str
    operation: str
    name: str
    place: Line | None
    line: int | None
    upstream: Any
    shares: tuple[Share, ...]
    hooked: bool = False
    meets: tuple[tuple[int, int], ...] = field(default=(), repr=False)  # of each share: which sum, and which term of it
    rule: Any = field(default=None, repr=False)  # the formulas of the operation with what it was given, see `rule_math`


def plain(held: Any) -> Any:
    """An array with one number as Python's number; anything else as it is."""
    return held.item() if isinstance(held, np.ndarray) and not held.ndim else held
