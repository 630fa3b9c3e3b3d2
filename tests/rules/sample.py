"""What a row of the table is: a function of tensors that reaches a primitive, and the shapes of its inputs.

Inputs are drawn from (0.5, 1.5), so that every function is smooth at them. `coincidence` marks functions whose derivative can
be zero by value where it is not by structure (a comparison chose it), for which the sparsity pattern is only required to
cover the nonzeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import constant


@dataclass(frozen=True)
class Case:
    """One sample of one primitive."""

    primitive: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    coincidence: bool = False

    def __str__(self) -> str:
        return f"{self.primitive}-{'-'.join('x'.join(map(str, s)) or '0d' for s in self.shapes)}"


def case(primitive: str, function: Callable[..., Any], *shapes: tuple[int, ...], coincidence: bool = False) -> Case:
    return Case(primitive, function, shapes, coincidence)


def like(x: Any, array: np.ndarray) -> Any:
    """A constant of the samples, in the array type of `x` (index arrays and masks follow the backend under test)."""
    return constant(namespace_of[type(x.array)].asarray(array))
