"""Attention in three steps: scores, their softmax, and the mean of the values by those weights.

The products are of many small matrices, which are mostly views: heads that a transposition split off. `product` accounts for
that. `mask` is an array added to the scores (0 and -inf, or any numbers), or None; no gradient goes to it. A row that it forbids
whole has weights of zero, not NaN. `axis` is (-1,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import bilinear, primitive
from gradlab.core.sparsity import numbered
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Axes, Namespace, Shape
from gradlab.rules.matrix import matmul_groups, misfit
from gradlab.rules.normalization import dotted, summed


def product(a: Array, b: Array) -> Array:
    """a @ b. On NumPy it is laid out in memory as b is, so that heads are joined again without a copy; and a transposed b is
    copied first, since BLAS is quicker on small matrices in order, by more than the copy takes."""
    if type(a) is not np.ndarray or b.ndim < 3:
        return a @ b
    if b.strides[-1] != b.itemsize:
        return a @ np.ascontiguousarray(b)
    if b.flags.c_contiguous or a.shape[:-2] != b.shape[:-2]:
        return a @ b
    shape, last = (*a.shape[:-1], b.shape[-1]), b.ndim - 1
    order = sorted(range(last), key=lambda i: -b.strides[i])
    out = np.empty([shape[i] for i in order] + [shape[-1]], b.dtype).transpose([*map(order.index, range(last)), last])
    return np.matmul(a, b, out=out)


def scaled(x: Array, scale: float) -> Array:
    if isinstance(x, Tensor):
        return x * scale
    x *= scale
    return x


def similarity(query: Array, key: Array, *, scale: float) -> Array:
    return product(query * scale, key.mT)


def weighted_mean(weights: Array, value: Array) -> Array:
    return product(weights, value)


scores = bilinear(
    "scores",
    similarity,
    tex=r"{scale}\,{query}\,{key}^{{\top}}",
    node="BmmBackward0",
    reads=lambda arg, x_shape, out_shape, meta: pair_groups(arg, x_shape, out_shape),
    query=lambda g, key, scale: scaled(product(g, key), scale),
    key=lambda g, query, scale: scaled(product(g.mT, query), scale),
    explain=lambda query, key: misfit(query, (*key[:-2], key[-1], key[-2])),
)
mixture = bilinear(
    "mixture",
    weighted_mean,
    tex=r"{weights}\,{value}",
    node="BmmBackward0",
    reads=lambda arg, x_shape, out_shape, meta: matmul_groups({"weights": "a", "value": "b"}[arg], x_shape, out_shape, meta),
    weights=lambda g, value: product(g, value.mT),
    value=lambda g, weights: product(weights.mT, g),
    explain=misfit,
)


def pair_groups(arg: str, x_shape: Shape, out_shape: Shape) -> Any:
    """out[i, j] depends on row i of the queries and on row j of the keys."""
    rows = numbered((*x_shape[:-1], 1))
    return np.broadcast_to(rows, x_shape), np.broadcast_to(rows if arg == "query" else rows.mT, out_shape)


SAFE = 60.0  # e^60 and e^-60 are far inside float32, and so are sums of them


def weights_forward(xp: Namespace, x: Array, *, mask: Array | None, axis: Axes) -> Array:
    """Softmax, in one array. The largest of each row is only looked for (the dearest step by far) where it may matter."""
    if mask is None and xp is np and x.dtype.char in "fd" and x.size and x.min() > -SAFE and x.max() < SAFE:
        out = np.exp(x)
        out /= summed(np, out, axis)
        return out
    out = x.copy() if mask is None else x + mask
    largest = out.max(axis=axis, keepdims=True)
    forbidden = largest == -xp.inf
    out -= xp.where(forbidden, 0, largest)
    out = xp.exp(out)
    out /= summed(xp, out, axis) + forbidden
    return out


def weights_slope(xp: Namespace, g: Array, out: Array, axis: Axes) -> Array:
    slope = g - dotted(xp, g, out, axis)
    if type(slope) is np.ndarray:
        slope *= out
        return slope
    return slope * out


safe_softmax = primitive(
    "safe_softmax",
    weights_forward,
    tex=r"\mathrm{{softmax}}({x})",
    reads="axes",
    formula=r"\bar{x} = y\,\bigl(\bar{y} - \textstyle\sum \bar{y}\,y\bigr)",
    vjp={"x": weights_slope},
    jvp={"x": lambda xp, t, out, axis: weights_slope(xp, t, out, axis)},  # noqa: PLW0108  (it says t)
    promote="single",
)
