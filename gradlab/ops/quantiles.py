"""Quantiles of all elements, or of the elements that are not NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import namespace_of
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, takes_axis
from gradlab.ops.shapes import flatten
from gradlab.ops.sorting import sort
from gradlab.rules import elementwise as el
from gradlab.rules import shapes
from gradlab.rules.indexing import gather

__all__ = ["nanquantile", "quantile"]

INTERPOLATIONS = "linear", "lower", "higher", "midpoint", "nearest"
RESHAPE_RESULT = shapes.reshape.with_node("SqueezeBackward4", view=False)
LEVELS_FIRST = shapes.permute.with_node("SqueezeBackward4", view=False)


def _quantile(name: str, skip_nan: bool, input: Tensor, q: Any, dim: int | None, keepdim: bool, kind: str) -> Tensor:
    x = input.array
    xp = namespace_of[type(x)]
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype. It is {input.dtype}: call .float().")
    if kind not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {kind}")
    axis = -1 if dim is None else negative_dim(dim, x.ndim)
    if not x.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    levels = parse_levels(name, input, q)
    rows = flatten(input) if dim is None or not x.ndim else input
    if axis != -1 and x.ndim:
        rows = shapes.permute.record(rows, axes=move_last(axis, x.ndim))
    ranked = sort(rows).values
    total = (rows.array == rows.array).sum(axis=-1, keepdims=True)  # number of elements that are not NaN
    n = rows.array.shape[-1]
    ranks = el.mul.record(levels, constant(xp.maximum(total - 1, 0).astype(x.dtype)) if skip_nan else n - 1)
    if not skip_nan:
        ranks = el.where.record(constant(total < n), constant(xp.asarray(n - 1, x.dtype)), ranks)
    values = interpolate(xp, ranked, ranks, kind)  # shape (rows, levels)
    if levels.array.ndim:
        values = LEVELS_FIRST.record(values, axes=(-1, *range(-values.array.ndim, -1)))
    shape = tuple(n for a, n in enumerate(x.shape, -x.ndim) if a != axis) if dim is not None else ()
    if keepdim:
        shape = tuple(1 if dim is None or a == axis else n for a, n in enumerate(x.shape, -x.ndim))
    return RESHAPE_RESULT.record(values, shape=levels.array.shape + shape)


def parse_levels(name: str, input: Tensor, q: Any) -> Tensor:
    """Return `q` as a tensor of the dtype of `input`, after checking that it is at most 1-d and between 0 and 1."""
    x = input.array
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return constant(namespace_of[type(x)].asarray(q, x.dtype))
    if q.array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.array.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor. They are {q.dtype} and {input.dtype}.")
    check_bounds(name, q.array, 0, 1, lambda wrong: RuntimeError(f"{name}() q values must be in the range [0, 1]"))
    return q


def move_last(axis: int, ndim: int) -> tuple[int, ...]:
    """Return the permutation that moves a negative axis to the end."""
    return (*(a for a in range(-ndim, 0) if a != axis), axis)


def interpolate(xp: Any, ranked: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """Interpolate the sorted last axis of `ranked` at fractional ranks, whose shape broadcasts to the rows of `ranked`."""
    at = ranks.array
    shape = (*ranked.array.shape[:-1], at.shape[-1] if at.ndim else 1)
    below = xp.round(at) if interpolation == "nearest" else xp.ceil(at) if interpolation == "higher" else xp.floor(at)

    def values_at(places: Any) -> Tensor:
        return gather.record(ranked, axis=-1, indices=xp.broadcast_to(places.astype(np.int64), shape), keepdims=True)

    low = values_at(below)
    if interpolation not in ("linear", "midpoint"):
        return low
    weight = ranks - constant(below) if interpolation == "linear" else constant(xp.full_like(at, 0.5))
    high = values_at(xp.ceil(at))
    near = constant(xp.broadcast_to(weight.array < 0.5, shape))
    step = high - low
    return el.where.record(near, low + weight * step, high - step * (1 - weight))


@composite()
@takes_axis
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Compute quantiles of all elements, or of the elements along one dimension.

    Parameters
    ----------
    input : Tensor
        Non-empty tensor, float32 or float64.
    q : number or Tensor
        Quantile to compute, between 0 and 1, or a 1-d tensor of quantiles in the dtype of `input`.
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default: "linear"
        Method for a quantile between two elements.
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. If `q` is 1-d, its dimension comes first.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is empty or neither float32 nor float64, if `q` is outside [0, 1], has a different dtype or more than one
        dimension, or if `interpolation` is unknown.

    Notes
    -----
    The quantile of n sorted elements is at position q (n - 1), counted from 0. If any of the elements is NaN, the result is NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.quantile(gl.tensor([1., 2., 4., 8.]), 0.5)
    tensor(3.)
    >>> gl.quantile(gl.tensor([1., 2., 4., 8.]), gl.tensor([0., 1.]))
    tensor([1., 8.])
    """
    return _quantile("quantile", False, input, q, dim, keepdim, interpolation)


@composite()
@takes_axis
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """Compute quantiles of the elements that are not NaN, of all or along one dimension.

    Parameters
    ----------
    input : Tensor
        Non-empty tensor, float32 or float64.
    q : number or Tensor
        Quantile to compute, between 0 and 1, or a 1-d tensor of quantiles in the dtype of `input`.
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default: "linear"
        Method for a quantile between two elements.
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. If `q` is 1-d, its dimension comes first.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is empty or neither float32 nor float64, if `q` is outside [0, 1], has a different dtype or more than one
        dimension, or if `interpolation` is unknown.

    Notes
    -----
    The quantile is at position q (n - 1) of the sorted elements, counted from 0, where n is the number of elements that are not
    NaN. If all elements are NaN, the result is NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nanquantile(gl.tensor([1., float("nan"), 4.]), 0.5)
    tensor(2.5000)
    """
    return _quantile("nanquantile", True, input, q, dim, keepdim, interpolation)
