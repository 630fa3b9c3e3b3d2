"""Distances and similarities of vectors, as `torch.nn.functional` spells them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.destination import into
from gradlab.core.errors import broadcast_mismatch
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.toplevel import norm
from gradlab.ops import clone, div
from gradlab.ops.arguments import Called, one_dim
from gradlab.ops.broadcasting import expand
from gradlab.ops.shapes import unsqueeze
from gradlab.rules import distances as rules
from gradlab.rules import elementwise as el
from gradlab.rules import reductions, shapes

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]

NORM, PDIST = reductions.vector_norm.named("NormBackward1"), reductions.vector_norm.named("PdistBackward0")
EUCLIDEAN = rules.cdist.named("EuclideanDistBackward0")
CLAMP_MIN = el.where.named("ClampMinBackward0")
CDIST = reductions.vector_norm.named("CdistBackward0")


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """input / max(|input|ₚ, eps), the norms being taken along `dim`."""
    lengths = norm(input, p, dim, keepdim=True)
    made = div(input, expand(at_least(lengths, eps), input.array.shape))
    return made if out is None else into("div", out, made)


def at_least(x: Tensor, low: float) -> Tensor:
    """max(x, low); where they are equal, the gradient is x's."""
    return CLAMP_MIN.record(constant(wrap(~(x.array < low))), x, low)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along `dim`: x₁·x₂ / (max(|x₁|, eps) max(|x₂|, eps))."""
    for position, (name, x) in enumerate((("x1", x1), ("x2", x2)), start=1):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"cosine_similarity(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}."
            )
    a, b = agree(Called("cosine_similarity"), x1, x2)
    if a.array.dtype.kind != "f":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {a.dtype.word}. Call .float() on both."
        )
    if error := broadcast_mismatch(a.array.shape, b.array.shape):
        raise error
    shape = np.broadcast_shapes(a.array.shape, b.array.shape)
    a, b = (x if x.array.shape == shape else expand(x, shape) for x in (a, b))
    axis = one_dim(dim, len(shape))
    return (directed(a, axis, eps) * directed(b, axis, eps)).sum(axis)


def directed(x: Tensor, axis: int, eps: float) -> Tensor:
    """x over its norm, which counts as at least eps; its gradient is that of the norm itself, as torch has it."""
    length = clone(reductions.vector_norm.record(x, axis=(axis,) if x.array.ndim else (), keepdims=True, order=2.0))
    length.array = namespace_of[type(x.array)].maximum(length.array, eps)
    return div(x, length)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """|x₁ - x₂ + eps|ₚ along the last axis."""
    difference = x1 - x2 + eps
    return NORM.record(difference, axis=(-1,) if difference.array.ndim else (), keepdims=keepdim, order=float(p))


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances |xᵢ - xⱼ|ₚ of the rows i < j of a matrix, in the order (0, 1), (0, 2) …"""
    if input.array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.array.ndim}D")
    check_order("pdist", input, p)
    xp = namespace_of[type(input.array)]
    i, j = xp.triu_indices(input.array.shape[0], 1)
    return PDIST.record(input[i] - input[j], axis=(-1,), keepdims=False, order=float(p))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The distances |aᵢ - bⱼ|ₚ of the rows of x1 (…, n, d) and x2 (…, m, d): (…, n, m)."""
    modes = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode. It is one of {modes[1:]}.")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.array.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.word}. Call .float() first.")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.array.ndim}D")
    (n, width), (m, other) = x1.array.shape[-2:], x2.array.shape[-2:]
    if width != other:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {width} X2: {other}")
    check_order("cdist", x1, p)
    if x1.array.dtype != x2.array.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.word} but found {x2.dtype.word}. Convert one of them.")
    lead = x1.array.shape[:-2], x2.array.shape[:-2]
    if error := broadcast_mismatch(*lead):
        raise error
    if p == 2:
        by_product = compute_mode == modes[2] or (compute_mode != modes[3] and (n > 25 or m > 25))
        shape = np.broadcast_shapes(*lead)
        a, b = (x if x.array.shape[:-2] == shape else expand(x, (*shape, *x.array.shape[-2:])) for x in (x1, x2))
        if not by_product:
            return rules.cdist.record(a, b, by_product=False)
        made = EUCLIDEAN.record(a, b, by_product=True)
        return shapes.reshape.record(made, shape=made.array.shape)  # torch's node is a view's
    return CDIST.record(unsqueeze(x1, -2) - unsqueeze(x2, -3), axis=(-1,), keepdims=False, order=float(p))


def check_order(name: str, x: Tensor, p: float) -> None:
    if x.array.dtype.kind != "f":
        raise RuntimeError(f"{name} only supports floating-point dtypes. This tensor has dtype {x.dtype}; call .float() first.")
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values. It is {p}.")
