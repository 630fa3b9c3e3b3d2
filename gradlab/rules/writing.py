"""The primitive `overwrite`, which returns a tensor after a write into a part of it.

The part is given, like a view, as steps (primitive, metadata) that select it. Both rules are these steps or their transposes,
so every view that can be read can also be written.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.core.engine import unbroadcast
from gradlab.core.primitive import primitive
from gradlab.core.properties import Properties
from gradlab.core.registry import core_primitives
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.indexing import namespace_under


def pick(x: Array, steps: tuple[Any, ...], lead: Shape = ()) -> Array:
    """Return the part of x that the steps select."""
    for op, meta in steps:
        x = op(x, **(op.batch(lead, *meta.values()) if op.batch else meta))
    return x


def place(xp: Namespace, part: Array, steps: tuple[Any, ...], shape: Shape, lead: Shape = ()) -> Array:
    """Transpose of `pick`: put `part` at the selected position in zeros of lead + shape."""
    array: Array = getattr(part, "array", part)
    probe, probes = namespace_under(part).zeros(shape, dtype=array.dtype), []
    for op, meta in steps:
        probes.append(probe)
        probe = op(probe, **meta)
    for (op, meta), x in zip(reversed(steps), reversed(probes), strict=True):
        part = unbroadcast(op.cotangent("x", g=part, xp=xp, lead=lead, x_shape=x.shape, **meta), x, lead, op.node_class)
    return part


def zero_inside(xp: Namespace, g: Array, steps: tuple[Any, ...], shape: Shape) -> Array:
    """Return g with 0 in the selected part. (`g - place(pick(g))` would be NaN where g is infinite.)"""
    return xp.where(overwrite_forward(namespace_under(g).zeros(shape, dtype=bool), True, steps=steps), 0, g)


def overwrite_forward(base: Array, patch: Array, *, steps: tuple[Any, ...]) -> Array:
    """Return a copy of `base` with `patch` in the selected part. If an index is repeated, the last write counts."""
    result = base.copy()
    (op, meta) = steps[-1]
    part = pick(result, steps[:-1])
    if "index" in meta:
        part[meta["index"]] = patch
    else:
        op(part, **meta)[...] = patch
    return result


def overwrite_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity (see `core.sparsity`): `base` is read outside the selected part, `patch` inside it.

    All elements of `patch` count as read even if an index repeats a position, as in the rule.
    """
    numbers = np.arange(prod(out_shape)).reshape(out_shape)
    return (None, overwrite_forward(numbers, -1, **meta)) if arg == "base" else (pick(numbers, **meta), None)


overwrite = primitive(
    "overwrite",
    overwrite_forward,
    reads=overwrite_reads,
    node="CopySlices",
    tex=r"{base}\,[\lnot s] + {patch}\,[s]",
    formula=r"\bar{x} = \bar{y}\,[\lnot s],\quad \bar{p} = \bar{y}\,[s]",
    vjp={
        "base": lambda xp, g, base_shape, steps: zero_inside(xp, g, steps, base_shape),
        "patch": lambda g, lead, steps: pick(g, steps, lead),
    },
    jvp={
        "base": lambda xp, t, base_shape, steps: zero_inside(xp, t, steps, base_shape),
        "patch": lambda xp, t, lead, steps, out_shape: place(xp, t, steps, out_shape, lead),
    },
    properties=Properties(writes=True),
)


def copy_forward(xp: Namespace, base: Array, patch: Array) -> Array:
    """Return a copy of `patch` with the memory order of `base`."""
    copy = xp.empty_like(base)
    copy[...] = patch
    return copy


def copy_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: all of `patch` is read, and nothing of `base`."""
    return np.full(out_shape, -1) if arg == "base" else np.arange(prod(out_shape)).reshape(out_shape), None


copy = primitive(
    "copy",
    copy_forward,
    reads=copy_reads,
    node="CopyBackwards",
    tex="{patch}",
    vjp={"base": lambda xp, g: xp.zeros_like(g), "patch": lambda g: g},
    jvp={"base": lambda xp, t: xp.zeros_like(t), "patch": lambda t: t},
    properties=Properties(writes=True),
)
core_primitives.copy, core_primitives.overwrite = copy, overwrite
