"""A value that is a function of a tensor, and has the derivative 0 with respect to it.

The gradient of relu depends on x through [x > 0] alone. It is a function of x all the same: when a sweep is recorded, PyTorch
lets its result require gradients (which are 0), and a second backward through it runs. `core.generate` says so by this node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.core.registry import used
from gradlab.rules.arguments import Array, Meta, Namespace, Shape


def reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """An element reads its own value, and nothing of what it does not move with (see core.sparsity)."""
    return (None, None) if arg == "value" else (np.full(shape, -1), np.full(out_shape, -1))


def still(xp: Namespace, g: Array, shape: Shape) -> Array:
    """Zeros of a shape, of g's dtype and on its device."""
    return xp.broadcast_to(xp.sum(xp.zeros_like(g)), shape)


zero_derivative = primitive(
    "zero_derivative",
    lambda value, source: value,
    reads=reads,
    tex="{value}",
    formula=r"\bar{v} = \bar{y}, \quad \bar{s} = 0",
    vjp={"value": lambda g: g, "source": lambda xp, g, lead, source_shape: still(xp, g, lead + source_shape)},
    jvp={"value": lambda t: t, "source": lambda xp, t, lead, out_shape: still(xp, t, lead + out_shape)},
)
used.zero_derivative = zero_derivative
