"""(x - mean) / sqrt(var + eps) over groups of elements, times a weight, plus a bias: batch, layer, group and instance norm.

They differ in which elements form a group. x is seen in a `shape` in which the groups are the reduced axes `axis`, and in which
weight and bias, reshaped to `affine`, broadcast. The metadata `moments` are an empty list, which the forward fills with mean,
1 / deviation and variance, so that neither x - mean nor the result is kept: a node saves x, the weight, and three numbers a
group. A rule on arrays reads them there; a traced one, which must know that they depend on x, works them out again.

With x̂ the normalised x and u the cotangent times the weight, over a group of n elements

    x̄ = (u - mean(u) - x̂ mean(u x̂)) / deviation        (Ioffe and Szegedy 2015, collected; the Jacobian of x̂ is symmetric)

which is computed as u · scale - y · slope + shift, with one number a group for each of the three. y is x - mean. Where a group
is a row, whose sums are as quick as the subtraction, it is x itself, as in torch, and the numbers account for the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.core.sparsity import axis_groups, numbered
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Axes, Meta, Namespace, Shape


@lru_cache(16)
def ones(n: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(n, dtype)


def summed(xp: Namespace, x: Array, axis: Axes) -> Array:
    """The sum over (negative, sorted) axes, kept as 1. On NumPy a product with ones, which is twice as quick."""
    if xp is not np or x.dtype.char not in "fd" or not axis:
        return xp.sum(x, axis=axis, keepdims=True)
    if axis == (-2,):
        return (ones(x.shape[-2], x.dtype) @ x)[..., None, :]
    if axis[-1] == -1:
        total = (x @ ones(x.shape[-1], x.dtype))[..., None]
        return total if len(axis) == 1 else total.sum(axis=axis[:-1], keepdims=True)
    return x.sum(axis=axis, keepdims=True)


def dotted(xp: Namespace, x: Array, y: Array, axis: Axes) -> Array:
    """The sum of x · y over axes, kept as 1; along rows without the product in memory."""
    if xp is not np or axis[-1:] not in ((-1,), (-2,)):
        return xp.sum(x * y, axis=axis, keepdims=True)
    if axis == (-2,):
        return summed(np, x * y, axis)
    if axis[-1] == -1:
        total = np.vecdot(x, y)[..., None]
        return total if len(axis) == 1 else total.sum(axis=axis[:-1], keepdims=True)
    return (x * y).sum(axis=axis, keepdims=True)


def outer(column: Array, row: Array) -> Array:
    """column · row, a matrix. As a product of two columns and two rows, the second of zeros, BLAS makes it in half the time that
    broadcasting takes. (One column alone is a special case of its own there, and slow.)"""
    left, right = np.zeros((column.shape[0], 2), column.dtype), np.zeros((2, row.shape[0]), row.dtype)
    left[:, :1], right[0] = column, row
    return left @ right


def of_rows(xp: Namespace, axis: Axes, affine: Shape) -> bool:
    """Whether NumPy arrays are normalised along rows, with a weight for each column: a layer norm."""
    return xp is np and axis == (-1,) and len(affine) == 1


def size_of(shape: Shape, axis: Axes) -> int:
    return prod([shape[i] for i in axis])


def centred_and_scale(xp: Namespace, x: Array, shape: Shape, axis: Axes, eps: float, moments: list[Array]) -> tuple[Array, Array]:
    """x - mean in its `shape`, new memory, and 1 / deviation; the moments become known."""
    x, n = x.reshape(shape), size_of(shape, axis)
    mean = summed(xp, x, axis) / n
    centred = x - mean
    variance = dotted(xp, centred, centred, axis) / n
    scale = 1 / xp.sqrt(variance + eps)
    moments += mean, scale, variance
    return centred, scale


def normalized_forward(xp: Namespace, x: Array, *, shape: Shape, axis: Axes, eps: float, moments: list[Array]) -> Array:
    out, scale = centred_and_scale(xp, x, shape, axis, eps, moments)
    out *= scale
    return out.reshape(x.shape)


def affine_forward(
    xp: Namespace,
    x: Array,
    weight: Array,
    bias: Array,
    *,
    shape: Shape,
    axis: Axes,
    affine: Shape,
    eps: float,
    moments: list[Array],
) -> Array:
    out, scale = centred_and_scale(xp, x, shape, axis, eps, moments)
    weight = weight.reshape(affine)
    if of_rows(xp, axis, affine):
        out *= outer(scale, weight)
    elif scale.size == weight.size:  # one number a channel: one pass for both
        out *= scale * weight
    else:
        out *= scale
        out *= weight
    out += bias.reshape(affine)
    return out.reshape(x.shape)


def known_moments(xp: Namespace, x: Array, axis: Axes, eps: float, moments: list[Array]) -> Sequence[Array]:
    """(mean, 1 / deviation) of x as the rules need them: traced, as functions of x."""
    if not isinstance(x, Tensor):
        return moments[:2]
    mean = xp.mean(x, axis=axis, keepdims=True)
    centred = x - mean
    return mean, (xp.mean(centred * centred, axis=axis, keepdims=True) + eps) ** -0.5


def projected(
    xp: Namespace, u: Array, x: Array, shape: Shape, axis: Axes, eps: float, moments: list[Array], weight: Array | None = None
) -> Array:
    """The (symmetric) Jacobian of x̂ on u, which has batch axes in front; times a weight of one number a group."""
    mean, scale = known_moments(xp, x, axis, eps, moments)
    n, total = size_of(shape, axis), summed(xp, u, axis)
    if axis == (-1,):
        slope, shift = row_numbers(dotted(xp, u, x, axis), total, mean, scale, n)
        return combined(u * scale, x * slope, shift)
    along = x - mean
    slope, shift = dotted(xp, u, along, axis) * (scale * scale * scale / n), total * (scale / n)
    if weight is not None:
        scale, slope, shift = scale * weight, slope * weight, shift * weight
    return combined(u * scale, along * slope, shift)


def row_numbers(dot: Array, total: Array, mean: Array, scale: Array, n: int) -> tuple[Array, Array]:
    """Slope and shift of a group, from the sums of u · x and of u."""
    part = scale / n
    slope = (dot - mean * total) * (scale * scale * part)
    return slope, total * part - slope * mean


def combined(out: Array, along: Array, shift: Array) -> Array:
    """out - along - shift; arrays in place."""
    if isinstance(out, Tensor):
        return out - along - shift
    out -= along
    out -= shift
    return out


def normalized_pull(
    xp: Namespace, g: Array, x: Array, lead: Shape, shape: Shape, axis: Axes, eps: float, moments: list[Array]
) -> Array:
    return projected(xp, g.reshape(lead + shape), x.reshape(shape), shape, axis, eps, moments).reshape(g.shape)


def affine_pull(
    xp: Namespace,
    g: Array,
    x: Array,
    weight: Array,
    lead: Shape,
    shape: Shape,
    axis: Axes,
    affine: Shape,
    eps: float,
    moments: list[Array],
) -> Array:
    u, v, w = g.reshape(lead + shape), x.reshape(shape), weight.reshape(affine)
    if of_rows(xp, axis, affine):  # without u = g · w in memory
        mean, scale = moments[:2]
        along = u * v
        slope, shift = row_numbers((along @ w)[..., None], (u @ w)[..., None], mean, scale, shape[-1])
        return combined(u * outer(scale, w), np.multiply(v, slope, out=along), shift).reshape(g.shape)
    if spread_axes(shape, affine) == axis != (-1,):  # one number of the weight for each group
        return projected(xp, u, v, shape, axis, eps, moments, w).reshape(g.shape)
    return projected(xp, u * w, v, shape, axis, eps, moments).reshape(g.shape)


def affine_push(
    xp: Namespace,
    t: Array,
    x: Array,
    weight: Array,
    lead: Shape,
    shape: Shape,
    axis: Axes,
    affine: Shape,
    eps: float,
    moments: list[Array],
) -> Array:
    pushed = projected(xp, t.reshape(lead + shape), x.reshape(shape), shape, axis, eps, moments)
    return (pushed * weight.reshape(affine)).reshape(t.shape)


def spread_axes(shape: Shape, affine: Shape) -> Axes:
    """The axes along which weight and bias are repeated."""
    return tuple(i for i in range(-len(shape), 0) if -i > len(affine) or affine[i] == 1)


def weight_pull(
    xp: Namespace,
    g: Array,
    x: Array,
    lead: Shape,
    weight_shape: Shape,
    shape: Shape,
    axis: Axes,
    affine: Shape,
    eps: float,
    moments: list[Array],
) -> Array:
    """The sum of g · x̂ over what the weight was repeated along: first inside the groups, then over them."""
    u, x = g.reshape(lead + shape), x.reshape(shape)
    mean, scale = known_moments(xp, x, axis, eps, moments)
    if of_rows(xp, axis, affine):
        return (scale[:, 0] @ (u * x) - (mean * scale)[:, 0] @ u).reshape(lead + weight_shape)
    over = spread_axes(shape, affine)
    inside = tuple(i for i in over if i in axis)
    if inside:
        part = dotted(xp, u, x - mean, inside) * scale
        if inside == over:
            return part.reshape(lead + weight_shape)
    else:
        part = u * ((x - mean) * scale)
    return summed(xp, part, tuple(i for i in over if i not in axis)).reshape(lead + weight_shape)


def weight_push(
    xp: Namespace,
    t: Array,
    x: Array,
    lead: Shape,
    out_shape: Shape,
    shape: Shape,
    axis: Axes,
    affine: Shape,
    eps: float,
    moments: list[Array],
) -> Array:
    x = x.reshape(shape)
    mean, scale = known_moments(xp, x, axis, eps, moments)
    return ((x - mean) * scale * in_front(t, lead, shape, affine)).reshape(lead + out_shape)


def in_front(t: Array, lead: Shape, shape: Shape, affine: Shape) -> Array:
    """A tangent of weight or bias with axes of length 1 between the batch axes and its own."""
    return t.reshape(lead + (1,) * (len(shape) - len(affine)) + affine)


def bias_push(xp: Namespace, t: Array, lead: Shape, out_shape: Shape, shape: Shape, affine: Shape) -> Array:
    return xp.broadcast_to(in_front(t, lead, shape, affine), lead + shape).reshape(lead + out_shape)


def group_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Elements of a group read one another; weight and bias are read as they broadcast."""
    shape = meta["shape"]
    if arg != "x":
        return None, np.broadcast_to(numbered(meta["affine"]), shape).reshape(out_shape)
    groups, source = axis_groups(shape, shape, meta["axis"])
    return groups.reshape(x_shape), source.reshape(out_shape)


FORMULA = r"\bar{x} = \tfrac{1}{\sigma}\bigl(u - \mathrm{mean}\,u - \hat{x}\,\mathrm{mean}(u\,\hat{x})\bigr)"
normalized = primitive(
    "normalized",
    normalized_forward,
    reads=group_reads,
    tex=r"\frac{{{x} - \mu}}{{\sigma}}",
    formula=FORMULA + r",\quad u = \bar{y}",
    vjp={"x": normalized_pull},
    jvp={
        "x": lambda xp, t, x, lead, shape, axis, eps, moments: normalized_pull(  # noqa: PLW0108  (it says t)
            xp, t, x, lead, shape, axis, eps, moments
        )
    },
    promote="single",
)
affine_normalized = primitive(
    "affine_normalized",
    affine_forward,
    reads=group_reads,
    tex=r"{weight}\,\frac{{{x} - \mu}}{{\sigma}} + {bias}",
    formula=FORMULA + r",\quad u = \bar{y}\,w",
    vjp={
        "x": affine_pull,
        "weight": weight_pull,
        "bias": lambda xp, g, lead, bias_shape, shape, affine: summed(
            xp, g.reshape(lead + shape), spread_axes(shape, affine)
        ).reshape(lead + bias_shape),
    },
    jvp={"x": affine_push, "weight": weight_push, "bias": bias_push},
    promote="single",
)
