"""`overwrite`: what a tensor is after a write into part of it.

The part is named by the steps that lead to it, (primitive, metadata) each, as a view is named: so the two rules are the steps
themselves, and whatever can be read can be written.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.core.engine import fit
from gradlab.core.primitive import primitive
from gradlab.core.registry import used
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.indexing import namespace_under


def pick(x: Array, steps: tuple[Any, ...], lead: Shape = ()) -> Array:
    """The part of x that the view steps lead to."""
    for op, meta in steps:
        x = op(x, **(op.batch(lead, *meta.values()) if op.batch else meta))
    return x


def place(xp: Namespace, part: Array, steps: tuple[Any, ...], shape: Shape, lead: Shape = ()) -> Array:
    """Transpose of `pick`: zeros of lead + shape with `part` where the steps lead."""
    array: Array = getattr(part, "array", part)
    probe, probes = namespace_under(part).zeros(shape, dtype=array.dtype), []
    for op, meta in steps:
        probes.append(probe)
        probe = op(probe, **meta)
    for (op, meta), x in zip(reversed(steps), reversed(probes), strict=True):
        part = fit(op.cotangent("x", g=part, xp=xp, lead=lead, x_shape=x.shape, **meta), x, lead, op.node_class)
    return part


def outside(xp: Namespace, g: Array, steps: tuple[Any, ...], shape: Shape) -> Array:
    """g, but 0 where the steps lead. (Not `g - place(pick(g))`: that is NaN where g is infinite.)"""
    return xp.where(overwritten(namespace_under(g).zeros(shape, dtype=bool), True, steps=steps), 0, g)


def overwritten(base: Array, patch: Array, *, steps: tuple[Any, ...]) -> Array:
    """A copy of `base` with `patch` where the steps lead (written in order: of repeated indices the last holds)."""
    result = base.copy()
    (op, meta) = steps[-1]
    part = pick(result, steps[:-1])
    if "index" in meta:
        part[meta["index"]] = patch
    else:
        op(part, **meta)[...] = patch
    return result


def overwrite_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """The base's own elements outside; the patch's go where the steps lead, all of them: so the rule has it where an index
    names a place twice (see core.sparsity)."""
    numbers = np.arange(prod(out_shape)).reshape(out_shape)
    return (None, overwritten(numbers, -1, **meta)) if arg == "base" else (pick(numbers, **meta), None)


overwrite = primitive(
    "overwrite",
    overwritten,
    reads=overwrite_reads,
    node="CopySlices",
    tex=r"{base}\,[\lnot s] + {patch}\,[s]",
    formula=r"\bar{x} = \bar{y}\,[\lnot s],\quad \bar{p} = \bar{y}\,[s]",
    vjp={
        "base": lambda xp, g, base_shape, steps: outside(xp, g, steps, base_shape),
        "patch": lambda g, lead, steps: pick(g, steps, lead),
    },
    jvp={
        "base": lambda xp, t, base_shape, steps: outside(xp, t, steps, base_shape),
        "patch": lambda xp, t, lead, steps, out_shape: place(xp, t, steps, out_shape, lead),
    },
)


def copied(xp: Namespace, base: Array, patch: Array) -> Array:
    """A copy of `patch` whose axes lie in memory as those of `base`."""
    copy = xp.empty_like(base)
    copy[...] = patch
    return copy


def copy_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """All of the patch, nothing of the base."""
    return np.full(out_shape, -1) if arg == "base" else np.arange(prod(out_shape)).reshape(out_shape), None


copy = primitive(
    "copy",
    copied,
    reads=copy_reads,
    node="CopyBackwards",
    tex="{patch}",
    vjp={"base": lambda xp, g: xp.zeros_like(g), "patch": lambda g: g},
    jvp={"base": lambda xp, t: xp.zeros_like(t), "patch": lambda t: t},
)
used.copy, used.overwrite = copy, overwrite
