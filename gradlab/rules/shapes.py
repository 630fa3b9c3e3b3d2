"""Operations that move elements: views, joins and picks. All are linear, and each is the transpose of another.

Index rules count axes from the left, so `skip` says how many leading batch axes an index leaves alone: those go to the far
right while the index acts. (Full slices put in front would be silently wrong for separated advanced indices.)
"""
from __future__ import annotations

from math import prod

import numpy as np

from gradlab.backend.namespaces import moved, namespace_of, writable
from gradlab.core.primitive import Primitive, linear, primitive


def under(lead, axes):
    """A permutation (negative axes) behind the batch axes."""
    return (*range(len(lead)), *axes)


def inverse(axes):
    """The permutation back; axes negative, as all are."""
    return tuple(axes.index(i) - len(axes) for i in range(-len(axes), 0))


reshape = linear("reshape", lambda x, *, shape: x.reshape(shape), reads="index", view=True, node="ViewBackward0", tex="{x}",
                 x=lambda g, lead, x_shape: g.reshape(lead + x_shape), batch=lambda lead, shape: {"shape": lead + shape})
permute: Primitive = linear(
    "permute", lambda xp, x, *, axes: xp.permute_dims(x, axes), reads="index", view=True, tex=r"{x}^{{\top}}",
    x=lambda g, lead, axes: permute(g, axes=under(lead, inverse(axes))), batch=lambda lead, axes: {"axes": under(lead, axes)})


def expanded(xp, x, *, shape, skip):
    """Broadcast to `shape`; new axes go behind the first `skip` axes, which are batch axes."""
    if x.ndim < len(shape):
        x = x.reshape(x.shape[:skip] + (1,) * (len(shape) - x.ndim) + x.shape[skip:])
    return xp.broadcast_to(x, shape)


expand = linear("expand", expanded, reads="index", view=True, tex="{x}", x=lambda g: g,
                batch=lambda lead, shape, skip: {"shape": lead + shape, "skip": len(lead) + skip})
diagonal = linear("diagonal", lambda x, *, offset, axes: writable(x.diagonal(offset, *axes), x), reads="index", view=True,
                  tex=r"\mathrm{{diagonal}}({x})", batch=lambda lead, offset, axes: {"offset": offset, "axes": axes},
                  x=lambda g, lead, x_shape, offset, axes: fill_diagonal(g, shape=lead + x_shape, offset=offset, axes=axes))


def set_diagonal(xp, x, *, shape, offset, axes):
    """Zeros of `shape` with x on the diagonal of the two (negative) axes."""
    total = xp.zeros(shape, dtype=x.dtype)
    at = xp.arange(x.shape[-1])
    xp.moveaxis(total, axes, (-2, -1))[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return total


fill_diagonal: Primitive = linear(
    "fill_diagonal", set_diagonal, reads="index", node="DiagEmbedBackward0", tex=r"\mathrm{{diag}}({x})",
    x=lambda g, offset, axes: diagonal(g, offset=offset, axes=axes),
    batch=lambda lead, shape, offset, axes: {"shape": lead + shape, "offset": offset, "axes": axes})


# ------------------------------------------------------------------------------------------------------------- indexing
def is_basic(index):
    return all(i is None or i is Ellipsis or isinstance(i, (slice, int)) for i in index)


def take(xp, x, *, index, skip):
    """x[index] on all but the first `skip` axes."""
    if not skip:
        return x[index]
    if is_basic(index):
        return x[(slice(None),) * skip + index]
    front, back = tuple(range(skip)), tuple(range(-skip, 0))
    return xp.moveaxis(xp.moveaxis(x, front, back)[index], back, front)


def spread(xp, x, *, shape, index, skip):
    """Transpose of `take`: zeros of `shape` with x added at the index."""
    total = xp.zeros(shape[skip:] + shape[:skip], dtype=x.dtype)
    front, back = tuple(range(skip)), tuple(range(-skip, 0))
    x = xp.moveaxis(x, front, back) if skip else x
    if is_basic(index):
        total[index] = x                                                                       # no element comes up twice
    else:
        xp.add.at(total, index, x)
    return xp.moveaxis(total, back, front) if skip else total


getitem = linear("getitem", take, reads="index", view=True, node="IndexBackward0", tex="{x}_{{i}}",
                 batch=lambda lead, index, skip: {"index": index, "skip": len(lead) + skip},
                 x=lambda g, lead, x_shape, index, skip: scatter(g, shape=lead + x_shape, index=index, skip=len(lead) + skip))
scatter: Primitive = linear("scatter", spread, reads="into", node="IndexPutBackward0", tex=r"\mathrm{{scatter}}({x})",
                 batch=lambda lead, shape, index, skip: {"shape": lead + shape, "index": index, "skip": len(lead) + skip},
                 x=lambda g, lead, index, skip: getitem(g, index=index, skip=len(lead) + skip))

def taken_along(xp, x, *, axis, indices, keepdims):
    """What x holds at the indices along a negative axis; without keepdims (one index each) that axis is dropped."""
    out = xp.take_along_axis(x, along(xp, x, indices), axis=axis)
    return out if keepdims else out.squeeze(axis)


gather = linear("gather", taken_along, reads="index", node="GatherBackward0", tex="{x}_{{i}}",
                x=lambda g, lead, x_shape, axis, indices, keepdims: put_along(
                    g, shape=lead + x_shape, axis=axis, indices=indices, keepdims=keepdims))
put_along: Primitive = linear(
    "put_along", lambda xp, x, *, shape, axis, indices, keepdims: added_along(
        xp, x if keepdims else xp.expand_dims(x, axis), shape, axis, indices),
    reads="into", node="ScatterAddBackward0", tex=r"\mathrm{{scatter}}({x})",
    x=lambda g, axis, indices, keepdims: gather(g, axis=axis, indices=indices, keepdims=keepdims),
    batch=lambda lead, shape, axis, indices, keepdims: {
        "shape": lead + shape, "axis": axis, "indices": indices, "keepdims": keepdims})


def along(xp, x, indices):
    """The indices repeated over the batch axes in front."""
    return xp.broadcast_to(indices, x.shape[:x.ndim - indices.ndim] + indices.shape)


def added_along(xp, x, shape, axis, indices):
    """Transpose of `take_along_axis`: zeros of `shape`, x added where the indices point."""
    total = xp.zeros(shape, dtype=x.dtype)
    indices = along(xp, x, indices)
    grid = list(xp.meshgrid(*(xp.arange(n) for n in indices.shape), indexing="ij"))
    grid[axis] = indices
    xp.add.at(total, tuple(grid), x)
    return total


# ---------------------------------------------------------------------------------------------------------------- joins
def narrow(g, axis, start, stop):
    """g[..., start:stop, ...] on a negative axis."""
    return g[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis - 1)]


cat = linear("cat", lambda xp, *xs, axis, starts: xp.concatenate(xs, axis=axis), reads="index", tex=r"\mathrm{{cat}}({xs})",
             xs=lambda g, position, axis, starts: narrow(g, axis, starts[position], starts[position + 1]))
stack = linear("stack", lambda xp, *xs, axis: xp.stack(xs, axis=axis), reads="index", tex=r"\mathrm{{stack}}({xs})",
               xs=lambda g, position, axis: g[(Ellipsis, position) + (slice(None),) * (-axis - 1)])
astype = linear("astype", lambda x, *, dtype: x.astype(dtype), x=lambda g: g, reads="own", node="ToCopyBackward0", tex="{x}")


# ------------------------------------------------------------------------------------------- writing through a view
def pick(x, steps, lead=()):
    """The part of x that the view steps lead to."""
    for op, meta in steps:
        x = op(x, **(op.batch(lead, *meta.values()) if op.batch else meta))
    return x


def namespace_under(x):
    """The array namespace that x lives in, be it an array or a Tensor."""
    return namespace_of[type(getattr(x, "array", x))]


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


transfer = linear("transfer", lambda x, *, where: moved(x, where), reads="own", node="ToCopyBackward0", tex="{x}",
                  x=lambda g: g)
