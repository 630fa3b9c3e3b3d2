"""`overwrite`: what a tensor is after a write into part of it.

The part is named by the steps that lead to it, (primitive, metadata) each, as a view is named: so the two rules are the steps
themselves, and whatever can be read can be written.
"""
from __future__ import annotations

from math import prod

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.rules.indexing import namespace_under


def pick(x, steps, lead=()):
    """The part of x that the view steps lead to."""
    for op, meta in steps:
        x = op(x, **(op.batch(lead, *meta.values()) if op.batch else meta))
    return x


def place(xp, part, steps, shape, lead=()):
    """Transpose of `pick`: zeros of lead + shape with `part` where the steps lead."""
    probe, shapes = namespace_under(part).zeros(shape, dtype=bool), []
    for op, meta in steps:
        shapes.append(probe.shape)
        probe = op(probe, **meta)
    for (op, meta), x_shape in zip(reversed(steps), reversed(shapes), strict=True):
        part = op.cotangent("x", g=part, xp=xp, lead=lead, x_shape=x_shape, **meta)
    return part


def outside(xp, g, steps, shape):
    """g, but 0 where the steps lead. (Not `g - place(pick(g))`: that is NaN where g is infinite.)"""
    return xp.where(overwritten(namespace_under(g).zeros(shape, dtype=bool), True, steps=steps), 0, g)


def overwritten(base, patch, *, steps):
    """A copy of `base` with `patch` where the steps lead (written in order: of repeated indices the last holds)."""
    result = base.copy()
    (op, meta) = steps[-1]
    part = pick(result, steps[:-1])
    if "index" in meta:
        part[meta["index"]] = patch
    else:
        op(part, **meta)[...] = patch
    return result


def overwrite_reads(arg, x_shape, out_shape, meta):
    """The base's own elements outside, the patch's inside (see core.sparsity)."""
    inside = pick(np.broadcast_to(0, out_shape), meta["steps"]).shape
    base = np.arange(prod(out_shape)).reshape(out_shape) if arg == "base" else np.full(out_shape, -1)
    patch = np.arange(prod(inside)).reshape(inside) if arg == "patch" else np.full(inside, -1)
    return None, overwritten(base, patch, **meta)


overwrite = primitive(
    "overwrite", overwritten, reads=overwrite_reads, node="CopySlices", tex=r"{base}\,[\lnot s] + {patch}\,[s]",
    formula=r"\bar{x} = \bar{y}\,[\lnot s],\quad \bar{p} = \bar{y}\,[s]",
    vjp={"base": lambda xp, g, base_shape, steps: outside(xp, g, steps, base_shape),
         "patch": lambda g, lead, steps: pick(g, steps, lead)},
    jvp={"base": lambda xp, t, base_shape, steps: outside(xp, t, steps, base_shape),
         "patch": lambda xp, t, lead, steps, out_shape: place(xp, t, steps, out_shape, lead)})
