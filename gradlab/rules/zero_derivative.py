"""A primitive for values that depend on a tensor but have the derivative 0 with respect to it.

The gradient of relu depends on x only through [x > 0], but it still is a function of x. If a sweep is recorded, the gradient
requires grad in PyTorch, and a second backward through it works and returns 0. `core.generate` adds this node for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.core.registry import core_primitives
from gradlab.rules.arguments import Array, Meta, Namespace, Shape


def zero_derivative_reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity (see `core.sparsity`): an element reads its own value, and nothing of `source`."""
    return (None, None) if arg == "value" else (np.full(shape, -1), np.full(out_shape, -1))


def zeros_of_shape(xp: Namespace, g: Array, shape: Shape) -> Array:
    """Return zeros of a shape with the dtype and device of g."""
    return xp.broadcast_to(xp.sum(xp.zeros_like(g)), shape)


zero_derivative = primitive(
    "zero_derivative",
    lambda value, source: value,
    reads=zero_derivative_reads,
    tex="{value}",
    formula=r"\bar{v} = \bar{y}, \quad \bar{s} = 0",
    vjp={"value": lambda g: g, "source": lambda xp, g, lead, source_shape: zeros_of_shape(xp, g, lead + source_shape)},
    jvp={"value": lambda t: t, "source": lambda xp, t, lead, out_shape: zeros_of_shape(xp, t, lead + out_shape)},
)
core_primitives.zero_derivative = zero_derivative
