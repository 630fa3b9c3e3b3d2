"""Losses that PyTorch records as one node: the terms, their weights and the mean or sum in one operation.

`total` is the divisor of the sum of the terms: 1 for the sum, None if the terms themselves are the result. A loss saves its two
arguments, which exist anyway, and computes the slopes of its terms again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from gradlab.core.primitive import Primitive, linear, primitive
from gradlab.core.properties import Loss, Properties
from gradlab.rules.activations import hardtanh, logsigmoid
from gradlab.rules.arguments import Array, Meta, Namespace, Shape
from gradlab.rules.elementary import sigmoid


def reads_terms(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity (see `core.sparsity`): a term reads the elements at its own position; the sum reads all."""
    return (None, None) if meta["total"] is None else (np.zeros(shape, int), np.zeros(out_shape, int))


def term_cotangents(
    xp: Namespace, g: Array, lead: Shape, x: Array, weight: Array | None, total: float | None, factor: Array | float
) -> Array:
    """Return the cotangent of each term, times the constant factor of the slope."""
    if factor != 1:
        g = g * factor
    if total is not None:
        g = g if total == 1 else g / total
        if lead:
            g = g.reshape(lead + (1,) * len(x.shape))
    return g if weight is None else g * xp.asarray(weight)


def combine_tangents(
    xp: Namespace, tangents: Array, x: Array, weight: Array | None, total: float | None, factor: Array | float
) -> Array:
    """Return the tangent of the result, given the tangents of the terms."""
    if weight is not None:
        tangents = tangents * xp.asarray(weight)
    if total is None:
        return tangents * factor
    return xp.sum(tangents, axis=tuple(range(-len(x.shape), 0))) * factor / total


def fused_loss(
    name: str,
    terms: Callable[..., Array],
    slopes: Mapping[str, Callable[..., Array]],
    *,
    node: str | None = None,
    tex: str,
    formula: str,
    factor: Array | float = 1,
    summed: Callable[..., Array] | None = None,
    properties: Properties,
) -> Primitive:
    """Create a loss of predictions x and targets y of the same shape.

    The terms are `terms(xp, x, y, parameter)`. `slopes` gives, for each argument, the slope of a term divided by `factor`.
    `summed` computes the sum of the terms, if there is a quicker way.
    """

    def forward(xp: Namespace, x: Array, y: Array, *, weight: Array | None, parameter: Any, total: float | None) -> Array:
        if summed is not None and weight is None and total is not None and x.dtype.itemsize > 2:
            return summed(xp, x, y) / total
        loss = terms(xp, x, y, parameter)
        if weight is not None:
            loss = loss * weight
        return loss if total is None else loss.sum() / total

    def vjp(slope: Callable[..., Array]) -> Callable[..., Array]:
        return lambda xp, g, lead, x, y, weight, parameter, total: (
            slope(xp, x, y, parameter) * term_cotangents(xp, g, lead, x, weight, total, factor)
        )

    def jvp(slope: Callable[..., Array]) -> Callable[..., Array]:
        return lambda xp, t, x, y, weight, parameter, total: combine_tangents(
            xp, slope(xp, x, y, parameter) * t, x, weight, total, factor
        )

    return primitive(
        name,
        forward,
        reads=reads_terms,
        node=node,
        tex=tex,
        formula=formula,
        promote="real tensors",
        vjp={arg: vjp(slope) for arg, slope in slopes.items()},
        jvp={arg: jvp(slope) for arg, slope in slopes.items()},
        properties=properties,
    )


def difference_slopes(slope: Callable[..., Array]) -> dict[str, Callable[..., Array]]:
    """Return the slopes of a function of x - y by both arguments."""
    return {"x": lambda xp, x, y, parameter: slope(x - y, parameter), "y": lambda xp, x, y, parameter: slope(y - x, parameter)}


def sum_of_squares(xp: Namespace, x: Array, y: Array) -> Array:
    d = x - y
    return xp.vdot(d, d)


def smooth_terms(xp: Namespace, x: Array, y: Array, beta: float) -> Array:
    """Compute d² / 2β where |d| < β, and |d| - β/2 elsewhere."""
    size = xp.absolute(x - y)
    near = xp.minimum(size, beta)
    return near * (size - near * 0.5) / beta


mse_loss = fused_loss(
    "mse_loss",
    lambda xp, x, y, parameter: xp.square(x - y),
    difference_slopes(lambda d, _: d),
    factor=2,
    summed=sum_of_squares,
    tex=r"\tfrac{{1}}{{n}} \sum ({x} - {y})^2",
    formula=r"\bar{x} = \tfrac{2}{n}\,(x - y)\,\bar{L}",
    properties=Properties(still=True, loss=Loss(takes="values"), short_name="mse_loss"),
)
smooth_l1_loss = fused_loss(
    "smooth_l1_loss",
    smooth_terms,
    difference_slopes(lambda d, beta: hardtanh(d / beta, low=-1.0, high=1.0)),
    node="SmoothL1LossBackward0",
    tex=r"\mathrm{{smooth\ L1}}({x}, {y})",
    formula=r"\bar{x} = \tfrac{1}{n} \min(\max(\tfrac{x - y}{\beta}, -1), 1)\,\bar{L}",
    properties=Properties(still=True, loss=Loss(takes="values", bounded_slope=True)),
)
huber_loss = fused_loss(
    "huber_loss",
    lambda xp, x, y, delta: smooth_terms(xp, x, y, delta) * delta,
    difference_slopes(lambda d, delta: hardtanh(d, low=-delta, high=delta)),
    tex=r"\mathrm{{Huber}}({x}, {y})",
    formula=r"\bar{x} = \tfrac{1}{n} \min(\max(x - y, -\delta), \delta)\,\bar{L}",
    properties=Properties(still=True, loss=Loss(takes="values", bounded_slope=True)),
)


# -------------------------------------------------------------------------------------------------------------- two classes
def clamped_log(xp: Namespace, x: Array) -> Array:
    """Return log x, but at least -100, so that no term is infinite."""
    return xp.maximum(xp.log(x), -100)


def cross_entropy_slope(xp: Namespace, x: Array, y: Array, parameter: Any) -> Array:
    """Compute (x - y) / (x (1 - x)), with a denominator of at least 1e-12."""
    spread = x * (1 - x)
    return (x - y) / xp.where(spread < 1e-12, 1e-12, spread)


binary_cross_entropy = fused_loss(
    "binary_cross_entropy",
    lambda xp, x, y, parameter: (y - 1) * xp.maximum(xp.log1p(-x), -100) - y * clamped_log(xp, x),
    {"x": cross_entropy_slope, "y": lambda xp, x, y, parameter: xp.log(1 - x) - xp.log(x)},
    tex=r"-\tfrac{{1}}{{n}} \sum {y} \log {x} + (1 - {y}) \log(1 - {x})",
    formula=r"\bar{x} = \tfrac{1}{n}\,\frac{x - y}{x\,(1 - x)}\,\bar{L}",
    properties=Properties(poles=True, loss=Loss(takes="probabilities"), short_name="binary_cross_entropy"),
)


def logit_terms(xp: Namespace, x: Array, y: Array, pos_weight: Array | None) -> Array:
    logs = logsigmoid(x)
    return (1 - y) * x - (logs if pos_weight is None else ((pos_weight - 1) * y + 1) * logs)


def logit_slope(xp: Namespace, x: Array, y: Array, pos_weight: Array | None) -> Array:
    if pos_weight is None:
        return sigmoid(x) - y
    positive = xp.asarray(pos_weight) * y
    return (positive + 1 - y) * sigmoid(x) - positive


def logit_target_slope(xp: Namespace, x: Array, y: Array, pos_weight: Array | None) -> Array:
    return -x if pos_weight is None else -x - (xp.asarray(pos_weight) - 1) * logsigmoid(x)


binary_cross_entropy_with_logits = fused_loss(
    "binary_cross_entropy_with_logits",
    logit_terms,
    {"x": logit_slope, "y": logit_target_slope},
    tex=r"-\tfrac{{1}}{{n}} \sum {y} \log \sigma({x}) + (1 - {y}) \log \sigma(-{x})",
    formula=r"\bar{x} = \tfrac{1}{n}\,(\sigma(x) - y)\,\bar{L}",
    properties=Properties(loss=Loss(takes="logits", bounded_slope=True), short_name="binary_cross_entropy_with_logits"),
)

soft_margin_loss = fused_loss(
    "soft_margin_loss",
    lambda xp, x, y, parameter: xp.log1p(xp.exp(-y * x)),
    {"x": lambda xp, x, y, parameter: -y * sigmoid(-y * x)},
    tex=r"\tfrac{{1}}{{n}} \sum \log(1 + e^{{-{y} {x}}})",
    formula=r"\bar{x} = -\tfrac{1}{n}\,y\,\sigma(-y x)\,\bar{L}",
    properties=Properties(loss=Loss(takes="scores", bounded_slope=True)),
)


# ------------------------------------------------------------------------------------------------------------- many classes
def pick_terms(xp: Namespace, x: Array, *, shape: Shape, at: Array, weights: Array | None, total: float | None) -> Array:
    """Return -weights · x at the flat positions `at` of the last axes, which have `shape`.

    The terms are summed and divided by `total`, unless it is None.
    """
    lead = x.shape[: x.ndim - len(shape)]
    terms = x.reshape((*lead, prod(shape)))[..., at] if lead else x.reshape(-1)[at]
    if weights is not None:
        terms = terms * weights
    if total is None:
        return -terms
    return (0 - (terms.sum(axis=tuple(range(-at.ndim, 0))) if lead else terms.sum())) / total  # 0, not -0


def place_terms(xp: Namespace, scale: Array, *, shape: Shape, at: Array, weights: Array | None, total: float | None) -> Array:
    """Transpose of `pick_terms`: zeros of `shape` except for the entries at `at`, which are distinct."""
    lead = scale.shape[: scale.ndim - at.ndim] if total is None else scale.shape
    if total is not None:
        scale = (scale / -total).reshape(lead + (1,) * at.ndim)
    elif weights is None:
        scale = -scale
    if weights is not None:
        scale = scale * (weights if total is not None else -weights)
    placed = xp.zeros((*lead, prod(shape)), scale.dtype)
    placed[(..., at) if lead else at] = scale
    return placed.reshape(lead + shape)


def number_terms(meta: Meta) -> tuple[Array, Array]:
    """Return the positions of the entries, and the number of the term of each: 0 if they are summed, -1 if the weight is 0."""
    at, weights = meta["at"], meta["weights"]
    terms = np.zeros(at.shape, int) if meta["total"] is not None else np.arange(at.size).reshape(at.shape)
    return at, terms if weights is None else np.where(weights == 0, -1, terms)


def nll_reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    """Sparsity: only the picked entries are read; others are -1."""
    groups, (at, terms) = np.full(prod(shape), -1), number_terms(meta)
    groups[at] = terms
    return groups.reshape(shape), np.zeros(out_shape, int) if meta["total"] is not None else terms


def nll_entries_reads(arg: str, shape: Shape, out_shape: Shape, meta: Meta) -> Any:
    source, (at, terms) = np.full(prod(out_shape), -1), number_terms(meta)
    source[at] = terms
    return None, source.reshape(out_shape)


nll_loss = linear(
    "nll_loss",
    pick_terms,
    reads=nll_reads,
    promote="single",
    tex=r"-\tfrac{{1}}{{n}} \sum {x}_{{i, y_i}}",
    # The rule names x because PyTorch's node depends on it: the gradient has a derivative by x, which is 0. x is saved anyway.
    x=lambda g, x, shape, at, weights, total: nll_entries(g, shape=shape, at=at, weights=weights, total=total),
    properties=Properties(loss=Loss(takes="log-probabilities", bounded_slope=True), short_name="nll_loss"),
)
nll_loss_2d = nll_loss.with_node("NllLoss2DBackward0")
nll_entries: Primitive = linear(
    "nll_entries",
    place_terms,
    reads=nll_entries_reads,
    promote="single",
    tex=r"\mathrm{{scatter}}({scale})",
    scale=lambda g, shape, at, weights, total: nll_loss(g, shape=shape, at=at, weights=weights, total=total),
)
