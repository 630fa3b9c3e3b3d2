"""Rows of the table: a function of tensors that calls a primitive, and the shapes of its inputs.

Inputs are drawn from (0.5, 1.5), where every function is smooth. `coincidence` marks functions whose derivative can be zero for
some values (after a comparison) although its structure is not. Their sparsity pattern must only cover the nonzeros.
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
    """A sample of a primitive."""

    primitive: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    coincidence: bool = False

    def __str__(self) -> str:
        return f"{self.primitive}-{'-'.join('x'.join(map(str, s)) or '0d' for s in self.shapes)}"


def case(primitive: str, function: Callable[..., Any], *shapes: tuple[int, ...], coincidence: bool = False) -> Case:
    return Case(primitive, function, shapes, coincidence)


def like(x: Any, array: np.ndarray) -> Any:
    """Return a constant with the array type of `x`, for index arrays and masks on the backend under test."""
    return constant(namespace_of[type(x.array)].asarray(array))
