"""Euclidean distances of all pairs of rows, without the differences of all pairs in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.rules.arguments import Array, Meta, Namespace, Shape


def distances(xp: Namespace, a: Array, b: Array, *, by_product: bool) -> Array:
    """|aᵢ - bⱼ|. By |a|² + |b|² - 2 a·b that is one matrix product, but loses digits where two rows are close."""
    if by_product:
        squares = (a * a).sum(axis=-1)[..., :, None] + (b * b).sum(axis=-1)[..., None, :]
        squares -= 2 * (a @ b.mT)
        return xp.sqrt(xp.maximum(squares, 0))
    d = a[..., :, None, :] - b[..., None, :, :]
    d *= d
    return xp.sqrt(d.sum(axis=-1))


def inverse(xp: Namespace, out: Array) -> Array:
    """1 / distance, and 0 where rows coincide: the subgradient that PyTorch takes."""
    return xp.where(out == 0, 0, 1 / xp.where(out == 0, 1, out))


def pulled(xp: Namespace, w: Array, a: Array, b: Array) -> Array:
    """Σⱼ wᵢⱼ (aᵢ - bⱼ)."""
    return xp.sum(w, axis=-1, keepdims=True) * a - w @ b


def pushed(xp: Namespace, t: Array, a: Array, b: Array, out: Array) -> Array:
    """The tangent of the distances along a tangent t of a: Σ tᵢ (aᵢ - bⱼ) / distance."""
    return (xp.sum(t * a, axis=-1, keepdims=True) - t @ b.mT) * inverse(xp, out)


def reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """A distance reads one row of each (see core.sparsity)."""
    rows = np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1])
    groups = np.broadcast_to(rows[..., None], shape)
    return groups, np.broadcast_to(rows[..., :, None] if arg == "a" else rows[..., None, :], out_shape)


cdist = primitive(
    "cdist",
    distances,
    reads=reads,
    promote="real tensors",
    tex=r"\lVert {a}_i - {b}_j \rVert",
    formula=r"\bar{a}_i = \sum_j \bar{y}_{ij}\,\frac{a_i - b_j}{y_{ij}}",
    vjp={
        "a": lambda xp, g, a, b, out: pulled(xp, g * inverse(xp, out), a, b),
        "b": lambda xp, g, a, b, out: pulled(xp, (g * inverse(xp, out)).mT, b, a),
    },
    jvp={"a": pushed, "b": lambda xp, t, a, b, out: pushed(xp, t, b, a, out.mT).mT},
)
