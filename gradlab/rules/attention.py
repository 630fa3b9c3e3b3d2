"""Attention in three steps: scores, their softmax, and the mean of the values with these weights.

The products are of many small matrices, most of them transposed views (the heads); see `multiply_matrices`. `mask` is None or
an array that is added to the scores (0 and -inf, or any numbers). It receives no gradient. A row that is masked completely has
weights of 0, not NaN. `axis` is (-1,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import bilinear, primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import number_elements
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Axes, Namespace, Shape
from gradlab.rules.matrix import matmul_groups, shape_mismatch
from gradlab.rules.normalization import dot_keepdims, sum_keepdims


def multiply_matrices(a: Array, b: Array) -> Array:
    """Return a @ b.

    On NumPy the result has the memory order of b, so that heads are joined without a copy. BLAS reads a transposed b as it is;
    other strides are copied, because NumPy's own loop is slow.
    """
    if type(a) is not np.ndarray or b.ndim < 3:
        return a @ b
    if b.strides[-1] != b.itemsize:
        is_transposed = b.strides[-2] == b.itemsize and b.strides[-1] >= b.shape[-2] * b.itemsize
        return a @ (b if is_transposed else np.ascontiguousarray(b))
    if b.flags.c_contiguous or a.shape[:-2] != b.shape[:-2]:
        return a @ b
    shape, last = (*a.shape[:-1], b.shape[-1]), b.ndim - 1
    order = sorted(range(last), key=lambda i: -b.strides[i])
    out = np.empty([shape[i] for i in order] + [shape[-1]], b.dtype).transpose([*map(order.index, range(last)), last])
    return np.matmul(a, b, out=out)


def rescale(x: Array, scale: float) -> Array:
    if isinstance(x, Tensor):
        return x * scale
    x *= scale
    return x


def similarity(query: Array, key: Array, *, scale: float) -> Array:
    return multiply_matrices(query * scale, key.mT)


def weighted_mean(weights: Array, value: Array) -> Array:
    return multiply_matrices(weights, value)


scores = bilinear(
    "scores",
    similarity,
    tex=r"{scale}\,{query}\,{key}^{{\top}}",
    node="BmmBackward0",
    reads=lambda arg, x_shape, out_shape, meta: pair_groups(arg, x_shape, out_shape),
    query=lambda g, key, scale: rescale(multiply_matrices(g, key), scale),
    key=lambda g, query, scale: rescale(multiply_matrices(g.mT, query), scale),
    explain=lambda query, key: shape_mismatch(query, (*key[:-2], key[-1], key[-2])),
    properties=Properties(product="matrix", short_name="@"),
)
mixture = bilinear(
    "mixture",
    weighted_mean,
    tex=r"{weights}\,{value}",
    node="BmmBackward0",
    reads=lambda arg, x_shape, out_shape, meta: matmul_groups({"weights": "a", "value": "b"}[arg], x_shape, out_shape, meta),
    weights=lambda g, value: multiply_matrices(g, value.mT),
    value=lambda g, weights: multiply_matrices(weights.mT, g),
    explain=shape_mismatch,
    properties=Properties(product="matrix", short_name="@"),
)


def pair_groups(arg: str, x_shape: Shape, out_shape: Shape) -> Any:
    """Sparsity of `scores`: out[i, j] depends on row i of the queries and row j of the keys."""
    rows = number_elements((*x_shape[:-1], 1))
    return np.broadcast_to(rows, x_shape), np.broadcast_to(rows if arg == "query" else rows.mT, out_shape)


SAFE_EXPONENT = 60.0  # e^60, e^-60 and sums of them are well within the range of float32


def weights_forward(xp: Namespace, x: Array, *, mask: Array | None, axis: Axes) -> Array:
    """Compute the softmax in one array. The maximum of each row, the most expensive step, is skipped if all x are small."""
    if mask is None and xp is np and x.dtype.char in "fd" and x.size and x.min() > -SAFE_EXPONENT and x.max() < SAFE_EXPONENT:
        out = np.exp(x)
        out /= sum_keepdims(np, out, axis)
        return out
    out = x.copy() if mask is None else x + mask
    largest = out.max(axis=axis, keepdims=True)
    forbidden = largest == -xp.inf
    out -= xp.where(forbidden, 0, largest)
    out = xp.exp(out)
    out /= sum_keepdims(xp, out, axis) + forbidden
    return out


def weights_slope(xp: Namespace, g: Array, out: Array, axis: Axes) -> Array:
    slope = g - dot_keepdims(xp, g, out, axis)
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
    jvp={"x": lambda xp, t, out, axis: weights_slope(xp, t, out, axis)},  # noqa: PLW0108  (a jvp names its tangent `t`)
    promote="single",
    properties=Properties(low=0, high=1, ignores_minus_inf=True),
)
