"""The steps of a sweep as plain data, which refers to no tensor or node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np

from gradlab.explore.steps.factors import Factor
from gradlab.explore.trace.data import Line
from gradlab.explore.trace.values import Value

Held = float | complex | np.ndarray | Value  # a scalar, an array, or the statistics of a large array


class Share(TypedDict):
    """The gradient that a step computes for one input.

    Attributes
    ----------
    to : int
        The node of the input in the trace.
    name : str
        The user's name for that tensor, or the label of the node.
    local : float, complex, ndarray or None
        The local derivative: a number if both tensors are scalars, else a matrix (elements of the outputs) × (elements of the
        input) of at most 16×16. For a larger elementwise operation, the diagonal of the matrix as an array with one axis. None if
        it is too large, or if the rule is defined by the user.
    factor : Factor or None
        For a product with a small matrix, the factor of the cotangent.
    downstream : Held or None
        The gradient that this step computes.
    total : Held or None
        The gradient of the input so far. None for a partial sum that is too large to store.
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
        The number of the step, from 1.
    node : int
        The index of the operation in the trace.
    label, operation, name : str
        "×", "MulBackward0", and the user's name for the result, or "".
    place : Line or None
        The user's line of the operation.
    line : int or None
        The number of that line in the cell, where `%%grad` is line 1, or in its file.
    upstream : Held, tuple or None
        The upstream gradient. For an operation with several outputs, a tuple with an entry for each, None if it got none.
    shares : tuple of Share
        The gradients for its inputs, in order, without inputs that require none.
    hooked : bool
        True if a hook of the user changed the upstream gradient.
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
    meets: tuple[tuple[int, int], ...] = field(
        default=(), repr=False
    )  # for each share: the index of its sum, and of its term in the sum
    rule: Any = field(default=None, repr=False)  # the formulas of the operation with its arguments, see `rule_math`


def plain(held: Any) -> Any:
    """Convert an array without axes to a Python number. Return any other value unchanged."""
    return held.item() if isinstance(held, np.ndarray) and not held.ndim else held
