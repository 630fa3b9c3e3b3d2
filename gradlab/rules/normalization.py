"""Batch, layer, group and instance norm: (x - mean) / sqrt(var + eps) over groups of elements, times a weight, plus a bias.

They differ in the elements that form a group. x is reshaped to `shape`, in which the axes `axis` are the groups, and in which
weight and bias, reshaped to `affine`, broadcast. The metadata `moments` is an empty list, to which the forward appends mean,
1 / deviation and variance. A node therefore saves x, the weight and three numbers per group, but neither x - mean nor the result.
Rules on arrays read `moments`. Traced rules, in which they must depend on x, compute them again.

With x̂ the normalised x and u the cotangent times the weight, over a group of n elements

    x̄ = (u - mean(u) - x̂ mean(u x̂)) / deviation        (Ioffe and Szegedy 2015, collected; the Jacobian of x̂ is symmetric)

which is computed as u · scale - y · slope - shift, where scale, slope and shift are one number per group and y is x - mean. If a
group is a row, whose sums are as quick as the subtraction, y is x itself as in PyTorch, and slope and shift account for the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.sums import MAX_PIECE, ones
from gradlab.core.primitive import primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import axis_groups, number_elements
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Axes, Meta, Namespace, Shape
from gradlab.rules.reductions import total


def sum_keepdims(xp: Namespace, x: Array, axis: Axes) -> Array:
    """Sum over (negative, sorted) axes, which stay with length 1. On NumPy, a short axis is summed by a product with ones."""
    if xp is np and x.dtype.char in "fd" and len(axis) == 1 and x.shape[axis[0]] <= MAX_PIECE:  # quick for small arrays, too
        if axis == (-2,):
            return (ones(x.shape[-2], x.dtype) @ x)[..., None, :]
        if axis == (-1,):
            return (x @ ones(x.shape[-1], x.dtype))[..., None]
    return total(xp, x, axis, True)


def dot_keepdims(xp: Namespace, x: Array, y: Array, axis: Axes) -> Array:
    """Sum x · y over axes, which stay with length 1. Along rows the product is not stored."""
    if xp is not np or axis[-1:] not in ((-1,), (-2,)):
        return xp.sum(x * y, axis=axis, keepdims=True)
    if axis == (-2,):
        return sum_keepdims(np, x * y, axis)
    if axis[-1] == -1:
        total = np.vecdot(x, y)[..., None]
        return total if len(axis) == 1 else total.sum(axis=axis[:-1], keepdims=True)
    return (x * y).sum(axis=axis, keepdims=True)


def outer(column: Array, row: Array) -> Array:
    """Return column · row, a matrix.

    As a product of two columns and two rows, the second ones zero, it takes BLAS half the time of broadcasting. (With one column,
    BLAS uses another, slow routine.)
    """
    left, right = np.zeros((column.shape[0], 2), column.dtype), np.zeros((2, row.shape[0]), row.dtype)
    left[:, :1], right[0] = column, row
    return left @ right


def is_layer_norm(xp: Namespace, axis: Axes, affine: Shape) -> bool:
    """Return True if NumPy arrays are normalised along rows with a weight for each column: a layer norm."""
    return xp is np and axis == (-1,) and len(affine) == 1


def group_size(shape: Shape, axis: Axes) -> int:
    return prod([shape[i] for i in axis])


def centred_and_scale(xp: Namespace, x: Array, shape: Shape, axis: Axes, eps: float, moments: list[Array]) -> tuple[Array, Array]:
    """Return x - mean with the given `shape`, in new memory, and 1 / deviation. Append the moments."""
    x, n = x.reshape(shape), group_size(shape, axis)
    mean = sum_keepdims(xp, x, axis) / n
    centred = x - mean
    variance = dot_keepdims(xp, centred, centred, axis) / n
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
    if is_layer_norm(xp, axis, affine):
        out *= outer(scale, weight)
    elif scale.size == weight.size:  # one number per channel: one pass for both
        out *= scale * weight
    else:
        out *= scale
        out *= weight
    out += bias.reshape(affine)
    return out.reshape(x.shape)


def read_moments(xp: Namespace, x: Array, axis: Axes, eps: float, moments: list[Array]) -> Sequence[Array]:
    """Return mean and 1 / deviation of x. In a traced rule they are computed as functions of x."""
    if not isinstance(x, Tensor):
        return moments[:2]
    mean = xp.mean(x, axis=axis, keepdims=True)
    centred = x - mean
    return mean, (xp.mean(centred * centred, axis=axis, keepdims=True) + eps) ** -0.5


def apply_jacobian(
    xp: Namespace, u: Array, x: Array, shape: Shape, axis: Axes, eps: float, moments: list[Array], weight: Array | None = None
) -> Array:
    """Apply the (symmetric) Jacobian of x̂ to u, which may have batch axes in front. `weight` is one number per group."""
    mean, scale = read_moments(xp, x, axis, eps, moments)
    n, total = group_size(shape, axis), sum_keepdims(xp, u, axis)
    if axis == (-1,):
        slope, shift = slope_and_shift(dot_keepdims(xp, u, x, axis), total, mean, scale, n)
        return subtract_both(u * scale, x * slope, shift)
    along = x - mean
    slope, shift = dot_keepdims(xp, u, along, axis) * (scale * scale * scale / n), total * (scale / n)
    if weight is not None:
        scale, slope, shift = scale * weight, slope * weight, shift * weight
    return subtract_both(u * scale, along * slope, shift)


def slope_and_shift(dot: Array, total: Array, mean: Array, scale: Array, n: int) -> tuple[Array, Array]:
    """Return slope and shift of each group, given the sums of u · x and of u."""
    part = scale / n
    slope = (dot - mean * total) * (scale * scale * part)
    return slope, total * part - slope * mean


def subtract_both(out: Array, along: Array, shift: Array) -> Array:
    """Return out - along - shift; arrays are changed in place."""
    if isinstance(out, Tensor):
        return out - along - shift
    out -= along
    out -= shift
    return out


def normalized_vjp(
    xp: Namespace, g: Array, x: Array, lead: Shape, shape: Shape, axis: Axes, eps: float, moments: list[Array]
) -> Array:
    return apply_jacobian(xp, g.reshape(lead + shape), x.reshape(shape), shape, axis, eps, moments).reshape(g.shape)


def affine_vjp(
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
    if is_layer_norm(xp, axis, affine):  # without storing u = g · w
        mean, scale = moments[:2]
        along = u * v
        slope, shift = slope_and_shift((along @ w)[..., None], (u @ w)[..., None], mean, scale, shape[-1])
        return subtract_both(u * outer(scale, w), np.multiply(v, slope, out=along), shift).reshape(g.shape)
    if repeated_axes(shape, affine) == axis != (-1,):  # one number of the weight for each group
        return apply_jacobian(xp, u, v, shape, axis, eps, moments, w).reshape(g.shape)
    return apply_jacobian(xp, u * w, v, shape, axis, eps, moments).reshape(g.shape)


def affine_jvp(
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
    pushed = apply_jacobian(xp, t.reshape(lead + shape), x.reshape(shape), shape, axis, eps, moments)
    return (pushed * weight.reshape(affine)).reshape(t.shape)


def repeated_axes(shape: Shape, affine: Shape) -> Axes:
    """Return the axes along which weight and bias are repeated."""
    return tuple(i for i in range(-len(shape), 0) if -i > len(affine) or affine[i] == 1)


def weight_vjp(
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
    """Sum g · x̂ over the axes along which the weight is repeated: first within the groups, then over them."""
    u, x = g.reshape(lead + shape), x.reshape(shape)
    mean, scale = read_moments(xp, x, axis, eps, moments)
    if is_layer_norm(xp, axis, affine):
        return (scale[:, 0] @ (u * x) - (mean * scale)[:, 0] @ u).reshape(lead + weight_shape)
    over = repeated_axes(shape, affine)
    inside = tuple(i for i in over if i in axis)
    if inside:
        part = dot_keepdims(xp, u, x - mean, inside) * scale
        if inside == over:
            return part.reshape(lead + weight_shape)
    else:
        part = u * ((x - mean) * scale)
    return sum_keepdims(xp, part, tuple(i for i in over if i not in axis)).reshape(lead + weight_shape)


def weight_jvp(
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
    mean, scale = read_moments(xp, x, axis, eps, moments)
    return ((x - mean) * scale * insert_affine_axes(t, lead, shape, affine)).reshape(lead + out_shape)


def insert_affine_axes(t: Array, lead: Shape, shape: Shape, affine: Shape) -> Array:
    """Reshape a tangent of weight or bias: axes of length 1 between the batch axes and its own."""
    return t.reshape(lead + (1,) * (len(shape) - len(affine)) + affine)


def bias_jvp(xp: Namespace, t: Array, lead: Shape, out_shape: Shape, shape: Shape, affine: Shape) -> Array:
    return xp.broadcast_to(insert_affine_axes(t, lead, shape, affine), lead + shape).reshape(lead + out_shape)


def group_reads(arg: str, x_shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: each element reads all elements of its group; weight and bias are read as they broadcast."""
    shape = meta["shape"]
    if arg != "x":
        return None, np.broadcast_to(number_elements(meta["affine"]), shape).reshape(out_shape)
    groups, source = axis_groups(shape, shape, meta["axis"])
    return groups.reshape(x_shape), source.reshape(out_shape)


NORM_FORMULA = r"\bar{x} = \tfrac{1}{\sigma}\bigl(u - \mathrm{mean}\,u - \hat{x}\,\mathrm{mean}(u\,\hat{x})\bigr)"
normalized = primitive(
    "normalized",
    normalized_forward,
    reads=group_reads,
    tex=r"\frac{{{x} - \mu}}{{\sigma}}",
    formula=NORM_FORMULA + r",\quad u = \bar{y}",
    vjp={"x": normalized_vjp},
    jvp={
        "x": lambda xp, t, x, lead, shape, axis, eps, moments: normalized_vjp(  # noqa: PLW0108  (named t)
            xp, t, x, lead, shape, axis, eps, moments
        )
    },
    promote="single",
    properties=Properties(normalises=True),
)
affine_normalized = primitive(
    "affine_normalized",
    affine_forward,
    reads=group_reads,
    tex=r"{weight}\,\frac{{{x} - \mu}}{{\sigma}} + {bias}",
    formula=NORM_FORMULA + r",\quad u = \bar{y}\,w",
    vjp={
        "x": affine_vjp,
        "weight": weight_vjp,
        "bias": lambda xp, g, lead, bias_shape, shape, affine: sum_keepdims(
            xp, g.reshape(lead + shape), repeated_axes(shape, affine)
        ).reshape(lead + bias_shape),
    },
    jvp={"x": affine_jvp, "weight": weight_jvp, "bias": bias_jvp},
    promote="single",
    properties=Properties(normalises=True),
)
