"""Picks: x[index] in every form, gathering along an axis, and their transposes, which add where the picks came from.

Index rules count axes from the left, so `skip` says how many leading batch axes an index leaves alone: those go to the far
right while the index acts. (Full slices put in front would be silently wrong for separated advanced indices.)

Adding at repeated places is `add.at`, which is quick in one dimension alone: so places are numbered in memory order first (see
`backend.accumulate`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend import accumulate
from gradlab.backend.accumulate import add_rows
from gradlab.backend.namespaces import is_array, namespace_of
from gradlab.core.primitive import Primitive, elementwise, linear, primitive
from gradlab.core.sparsity import numbered
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.elementwise import kept


def namespace_under(x: Array) -> Namespace:
    """The array namespace that x lives in, be it an array or a Tensor."""
    return namespace_of[type(getattr(x, "array", x))]


def is_basic(index: tuple[Any, ...]) -> bool:
    return all(i is None or i is Ellipsis or isinstance(i, (slice, int)) for i in index)


def take(x: Array, *, index: tuple[Any, ...], skip: int) -> Array:
    """x[index] on all but the first `skip` axes."""
    if not skip:
        return x[index]
    if is_basic(index):
        return x[(slice(None),) * skip + index]
    xp, front, back = namespace_of[type(x)], tuple(range(skip)), tuple(range(-skip, 0))
    return xp.moveaxis(xp.moveaxis(x, front, back)[index], back, front)


def spread(xp: Namespace, x: Array, *, shape: Shape, index: tuple[Any, ...], skip: int) -> Array:
    """Transpose of `take`: zeros of `shape` with x added at the index."""
    if is_basic(index):
        total = xp.zeros(shape, dtype=x.dtype)
        total[(slice(None),) * skip + index] = x
        return total
    front, back = tuple(range(skip)), tuple(range(-skip, 0))
    x, shape = (xp.moveaxis(x, front, back), shape[skip:] + shape[:skip]) if skip else (x, shape)
    if x.size >= FEW and is_leading(index):
        total = in_rows(xp, x, index, shape)
    else:
        total = xp.zeros(shape, dtype=x.dtype)
        if all(not is_array(i) or i.dtype.kind == "b" for i in index):
            total[index] = x  # no element comes up twice
        else:
            accumulate.add_at(xp, total, index, x)
    return xp.moveaxis(total, back, front) if skip else total


FEW = 100  # elements up to which `add.at` is quick at any index


def add_part(total: Array, g: Array, lead: Shape, index: tuple[Any, ...], skip: int) -> bool:
    """total[…, index] += g, each repetition of a place counting; not with arrays of integers behind other axes."""
    skip += len(lead)
    if all(not is_array(i) or i.dtype.kind == "b" for i in index) and (is_basic(index) or not skip):
        total[(slice(None),) * skip + index] += g  # no element comes up twice
    elif skip:
        return False
    else:
        add_at(namespace_of[type(total)], total, index, g)
    return True


def is_leading(index: tuple[Any, ...]) -> bool:
    """Whether the index is arrays of integers alone, which pick from the first axes."""
    return all(is_array(i) and i.dtype.kind != "b" for i in index)


def flat_places(index: tuple[Any, ...], shape: Shape) -> Array:
    """The row numbers that leading indices pick, the first axes taken as one."""
    total: Array = 0
    step = 1
    for i, length in zip(reversed(index), reversed(shape[: len(index)]), strict=True):
        total = total + counted(i, length) * step
        step *= length
    return total.reshape(-1)


def counted(i: Array, length: int) -> Array:
    """An index with negative numbers counted from the end. (Looking whether there are any is quicker on the host alone.)"""
    return i if type(i) is np.ndarray and (not i.size or i.min() >= 0) else i % length


def in_rows(xp: Namespace, x: Array, index: tuple[Any, ...], shape: Shape) -> Array:
    """Zeros of `shape` with x added at a leading index."""
    width = prod(shape[len(index) :])
    return add_rows(xp, x.reshape(-1, width), flat_places(index, shape), prod(shape[: len(index)])).reshape(shape)


def add_at(xp: Namespace, total: Array, index: tuple[Any, ...], x: Array) -> None:
    """total[index] += x, in place, each repetition of a place counting."""
    if x.size < FEW or not is_leading(index):
        accumulate.add_at(xp, total, index, x)
    elif total.size > 8 * x.size and total.flags.c_contiguous:  # rather not pass over all of it
        places, width = flat_places(index, total.shape), prod(total.shape[len(index) :])
        accumulate.add_at(xp, total.reshape(-1), (places.reshape(-1, 1) * width + xp.arange(width)).reshape(-1), x.reshape(-1))
    else:
        total += in_rows(xp, x, index, total.shape)


getitem = linear(
    "getitem",
    take,
    reads="index",
    view=True,
    node="IndexBackward0",
    tex="{x}_{{i}}",
    accumulate_into=add_part,
    batch=lambda lead, index, skip: {"index": index, "skip": len(lead) + skip},
    x=lambda g, lead, x_shape, index, skip: scatter(g, shape=lead + x_shape, index=index, skip=len(lead) + skip),
)
scatter: Primitive = linear(
    "scatter",
    spread,
    reads="into",
    node="IndexPutBackward0",
    tex=r"\mathrm{{scatter}}({x})",
    batch=lambda lead, shape, index, skip: {"shape": lead + shape, "index": index, "skip": len(lead) + skip},
    x=lambda g, lead, index, skip: getitem(g, index=index, skip=len(lead) + skip),
)


def added(xp: Namespace, base: Array, patch: Array, *, index: tuple[Any, ...]) -> Array:
    """base with `patch` added at the index."""
    total = base.copy()
    add_at(xp, total, index, patch)
    return total


def added_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    return None if arg == "base" else numbered(out_shape)[meta["index"]], None


index_add = primitive(
    "index_add",
    added,
    reads=added_reads,
    tex=r"{base} + \mathrm{{scatter}}({patch})",
    node="IndexAddBackward0",
    formula=r"\bar{x} = \bar{y},\quad \bar{p} = \bar{y}\,[i]",
    vjp={"base": lambda g: g, "patch": lambda g, lead, index: getitem(g, index=index, skip=len(lead))},
    jvp={
        "base": lambda t: t,
        "patch": lambda t, lead, index, out_shape: scatter(t, shape=lead + out_shape, index=index, skip=len(lead)),
    },
)


# ---------------------------------------------------------------------------------------------------------- along an axis
def places(xp: Namespace, shape: Shape, axis: int, indices: Array) -> Array:
    """The element numbers, in an array of `shape`, of the picks along a negative axis. The other axes of `indices` may be
    shorter than those of `shape`, and it may have none of the leading ones."""
    total: Array = 0
    step, n = 1, len(shape)
    for at in range(-1, -n - 1, -1):
        if at == axis:
            total = total + indices * step
        else:
            length = indices.shape[at] if -at <= indices.ndim else shape[at]
            if length != 1 or -at > indices.ndim:
                along = xp.arange(0, length * step, step) if step else xp.arange(length)
                total = total + along.reshape((-1,) + (1,) * (-at - 1))
        step *= shape[at]
    return total


def taken_along(xp: Namespace, x: Array, *, axis: int, indices: Array, keepdims: bool) -> Array:
    """What x holds at the indices along a negative axis; without keepdims (one index each) that axis is dropped."""
    out = x.reshape(-1).take(places(xp, x.shape, axis, indices))
    return out if keepdims else out.squeeze(axis)


def put_at(xp: Namespace, x: Array, *, shape: Shape, axis: int, indices: Array, keepdims: bool) -> Array:
    """Transpose of `taken_along`: zeros of `shape`, x added where the indices point."""
    total = xp.zeros(shape, dtype=x.dtype)
    if x.size:
        accumulate.add_at(xp, total.reshape(-1), places(xp, shape, axis, indices).reshape(-1), x.reshape(-1))
    return total


gather = linear(
    "gather",
    taken_along,
    reads="index",
    node="GatherBackward0",
    tex="{x}_{{i}}",
    x=lambda g, lead, x_shape, axis, indices, keepdims: put_along(
        g, shape=lead + x_shape, axis=axis, indices=indices, keepdims=keepdims
    ),
)
put_along: Primitive = linear(
    "put_along",
    put_at,
    reads="into",
    node="ScatterAddBackward0",
    tex=r"\mathrm{{scatter}}({x})",
    x=lambda g, axis, indices, keepdims: gather(g, axis=axis, indices=indices, keepdims=keepdims),
    batch=lambda lead, shape, axis, indices, keepdims: {
        "shape": lead + shape,
        "axis": axis,
        "indices": indices,
        "keepdims": keepdims,
    },
)

masked_fill = elementwise(
    "masked_fill",
    lambda xp, x, *, mask, value: xp.where(mask, value, x),
    x=lambda xp, g, mask: kept(xp, ~mask, g),
    tex=r"[\lnot m]\,{x} + [m]\,{value}",
    formula=r"\bar{x} = [\lnot m]\,\bar{y}",
)
