"""Pairwise Euclidean distances of rows, whose gradients do not store the differences of all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.primitive import primitive
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Meta, Namespace, Shape


def distances(xp: Namespace, a: Array, b: Array, *, by_product: bool) -> Array:
    """Compute |aᵢ - bⱼ|. As |a|² + |b|² - 2 a·b (`by_product`) it is one matrix product, but loses digits for close rows."""
    if by_product:
        squares = (a * a).sum(axis=-1)[..., :, None] + (b * b).sum(axis=-1)[..., None, :]
        squares -= 2 * (a @ b.mT)
        return xp.sqrt(xp.maximum(squares, 0))
    d = a[..., :, None, :] - b[..., None, :, :]
    d *= d
    return xp.sqrt(d.sum(axis=-1))


def reciprocal_or_zero(xp: Namespace, out: Array) -> Array:
    """Return 1 / distance, and 0 for equal rows: PyTorch's subgradient."""
    return xp.where(out == 0, 0, 1 / xp.where(out == 0, 1, out))


def pull_back(xp: Namespace, w: Array, a: Array, b: Array) -> Array:
    """Compute Σⱼ wᵢⱼ (aᵢ - bⱼ)."""
    return xp.sum(w, axis=-1, keepdims=True) * a - w @ b


def push_forward(xp: Namespace, t: Array, a: Array, b: Array, out: Array) -> Array:
    """Compute the tangent of the distances for a tangent t of a: Σ tᵢ (aᵢ - bⱼ) / distance."""
    return (xp.sum(t * a, axis=-1, keepdims=True) - t @ b.mT) * reciprocal_or_zero(xp, out)


def cdist_reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity (see `core.sparsity`): a distance reads one row of each argument."""
    rows = np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1])
    groups = np.broadcast_to(rows[..., None], shape)
    return groups, np.broadcast_to(rows[..., :, None] if arg == "a" else rows[..., None, :], out_shape)


cdist = primitive(
    "cdist",
    distances,
    reads=cdist_reads,
    promote="real tensors",
    tex=r"\lVert {a}_i - {b}_j \rVert",
    formula=r"\bar{a}_i = \sum_j \bar{y}_{ij}\,\frac{a_i - b_j}{y_{ij}}",
    vjp={
        "a": lambda xp, g, a, b, out: pull_back(xp, g * reciprocal_or_zero(xp, out), a, b),
        "b": lambda xp, g, a, b, out: pull_back(xp, (g * reciprocal_or_zero(xp, out)).mT, b, a),
    },
    jvp={"a": push_forward, "b": lambda xp, t, a, b, out: push_forward(xp, t, b, a, out.mT).mT},
    properties=Properties(poles=True, still=True, low=0, reduces="norm"),
)
