"""Indexing: x[index] in every form, gathering along an axis, and their transposes, which add values at the indexed positions.

Indices count axes from the left, so `skip` is the number of leading batch axes that an index does not apply to. These are moved
to the far right while the index is applied. (Full slices in front would be silently wrong for separated advanced indices.)

Adding at repeated positions uses `add.at`, which is quick only in one dimension. Positions are therefore numbered in memory order
first (see `backend.accumulate`).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend import accumulate
from gradlab.backend.accumulate import add_rows
from gradlab.backend.namespaces import is_array, namespace_of
from gradlab.core.primitive import Primitive, elementwise, linear, primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import number_elements
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.masking import keep_where


def namespace_under(x: Array) -> Namespace:
    """Return the array namespace of an array or of the array of a Tensor."""
    return namespace_of[type(getattr(x, "array", x))]


def is_basic(index: tuple[Any, ...]) -> bool:
    return all(i is None or i is Ellipsis or isinstance(i, (slice, int)) for i in index)


def take(x: Array, *, index: tuple[Any, ...], skip: int) -> Array:
    """Return x[index], applied to all axes after the first `skip`."""
    if not skip:
        return x[index]
    if is_basic(index):
        return x[(slice(None),) * skip + index]
    xp, front, back = namespace_of[type(x)], tuple(range(skip)), tuple(range(-skip, 0))
    return xp.moveaxis(xp.moveaxis(x, front, back)[index], back, front)


def scatter_forward(xp: Namespace, x: Array, *, shape: Shape, index: tuple[Any, ...], skip: int) -> Array:
    """Transpose of `take`: add x at the index to zeros of `shape`."""
    if is_basic(index):
        total = xp.zeros(shape, dtype=x.dtype)
        total[(slice(None),) * skip + index] = x
        return total
    front, back = tuple(range(skip)), tuple(range(-skip, 0))
    x, shape = (xp.moveaxis(x, front, back), shape[skip:] + shape[:skip]) if skip else (x, shape)
    if x.size >= MIN_SIZE_BY_ROWS and is_integer_arrays(index):
        total = scatter_rows(xp, x, index, shape)
    else:
        total = xp.zeros(shape, dtype=x.dtype)
        if all(not is_array(i) or i.dtype.kind == "b" for i in index):
            total[index] = x  # no element comes up twice
        else:
            accumulate.add_at(xp, total, index, x)
    return xp.moveaxis(total, back, front) if skip else total


MIN_SIZE_BY_ROWS = 100  # elements up to which `add.at` is quick at any index


def add_at_index(total: Array, g: Array, lead: Shape, index: tuple[Any, ...], skip: int) -> bool:
    """Add g to total[…, index]; repeated positions add up. Return False, and do nothing, for integer arrays behind other axes."""
    skip += len(lead)
    if all(not is_array(i) or i.dtype.kind == "b" for i in index) and (is_basic(index) or not skip):
        total[(slice(None),) * skip + index] += g  # no element comes up twice
    elif skip:
        return False
    else:
        add_at(namespace_of[type(total)], total, index, g)
    return True


def is_integer_arrays(index: tuple[Any, ...]) -> bool:
    """Return True if the index consists only of integer arrays, which index the first axes."""
    return all(is_array(i) and i.dtype.kind != "b" for i in index)


def row_numbers(index: tuple[Any, ...], shape: Shape) -> Array:
    """Return the rows that integer arrays pick if the axes that they index are flattened to one."""
    total: Array = 0
    step = 1
    for i, length in zip(reversed(index), reversed(shape[: len(index)]), strict=True):
        total = total + wrap_negative(i, length) * step
        step *= length
    return total.reshape(-1)


def wrap_negative(i: Array, length: int) -> Array:
    """Wrap negative indices. (Testing whether there are any is quicker only on the host.)"""
    return i if type(i) is np.ndarray and (not i.size or i.min() >= 0) else i % length


def scatter_rows(xp: Namespace, x: Array, index: tuple[Any, ...], shape: Shape) -> Array:
    """Add x at an index of integer arrays to zeros of `shape`."""
    width = prod(shape[len(index) :])
    return add_rows(xp, x.reshape(-1, width), row_numbers(index, shape), prod(shape[: len(index)])).reshape(shape)


def add_at(xp: Namespace, total: Array, index: tuple[Any, ...], x: Array) -> None:
    """Add x to total[index] in place; repeated positions add up."""
    if x.size < MIN_SIZE_BY_ROWS or not is_integer_arrays(index):
        accumulate.add_at(xp, total, index, x)
    elif total.size > 8 * x.size and total.flags.c_contiguous:  # do not visit all of `total`
        places, width = row_numbers(index, total.shape), prod(total.shape[len(index) :])
        accumulate.add_at(xp, total.reshape(-1), (places.reshape(-1, 1) * width + xp.arange(width)).reshape(-1), x.reshape(-1))
    else:
        total += scatter_rows(xp, x, index, total.shape)


getitem = linear(
    "getitem",
    take,
    reads="index",
    view=True,
    node="IndexBackward0",
    tex="{x}_{{i}}",
    accumulate_into=add_at_index,
    batch=lambda lead, index, skip: {"index": index, "skip": len(lead) + skip},
    x=lambda g, lead, x_shape, index, skip: scatter(g, shape=lead + x_shape, index=index, skip=len(lead) + skip),
    properties=Properties(moves="part", inserts_axis=True),
)
scatter: Primitive = linear(
    "scatter",
    scatter_forward,
    reads="into",
    node="IndexPutBackward0",
    tex=r"\mathrm{{scatter}}({x})",
    batch=lambda lead, shape, index, skip: {"shape": lead + shape, "index": index, "skip": len(lead) + skip},
    x=lambda g, lead, index, skip: getitem(g, index=index, skip=len(lead) + skip),
    properties=Properties(writes=True),
)


def index_add_forward(xp: Namespace, base: Array, patch: Array, *, index: tuple[Any, ...]) -> Array:
    """Return a copy of `base` with `patch` added at the index."""
    total = base.copy()
    add_at(xp, total, index, patch)
    return total


def index_add_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    return None if arg == "base" else number_elements(out_shape)[meta["index"]], None


index_add = primitive(
    "index_add",
    index_add_forward,
    reads=index_add_reads,
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
def element_positions(xp: Namespace, shape: Shape, axis: int, indices: Array) -> Array:
    """Return the flat positions, in an array of `shape`, of `indices` along a negative axis.

    The other axes of `indices` may be shorter than those of `shape`, and leading axes may be missing.
    """
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


def take_along(xp: Namespace, x: Array, *, axis: int, indices: Array, keepdims: bool) -> Array:
    """Return the elements of x at the indices along a negative axis. Without keepdims (one index each) the axis is removed."""
    out = x.reshape(-1).take(element_positions(xp, x.shape, axis, indices))
    return out if keepdims else out.squeeze(axis)


def scatter_along(xp: Namespace, x: Array, *, shape: Shape, axis: int, indices: Array, keepdims: bool) -> Array:
    """Transpose of `take_along`: add x at the indices to zeros of `shape`."""
    total = xp.zeros(shape, dtype=x.dtype)
    if x.size:
        accumulate.add_at(xp, total.reshape(-1), element_positions(xp, shape, axis, indices).reshape(-1), x.reshape(-1))
    return total


gather = linear(
    "gather",
    take_along,
    reads="index",
    node="GatherBackward0",
    tex="{x}_{{i}}",
    x=lambda g, lead, x_shape, axis, indices, keepdims: put_along(
        g, shape=lead + x_shape, axis=axis, indices=indices, keepdims=keepdims
    ),
    properties=Properties(moves="part"),
)
put_along: Primitive = linear(
    "put_along",
    scatter_along,
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
    x=lambda xp, g, mask: keep_where(xp, ~mask, g),
    tex=r"[\lnot m]\,{x} + [m]\,{value}",
    formula=r"\bar{x} = [\lnot m]\,\bar{y}",
    properties=Properties(chooses=True, writes=True, short_name="masked_fill"),
)
