"""Quantiles, of all elements or of those that are not NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.bounds import within
from gradlab.backend.namespaces import namespace_of
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim, over_dims
from gradlab.ops.shapes import flatten
from gradlab.ops.sorting import sort
from gradlab.rules import elementwise as el
from gradlab.rules import shapes
from gradlab.rules.indexing import gather

__all__ = ["nanquantile", "quantile"]

INTERPOLATIONS = "linear", "lower", "higher", "midpoint", "nearest"
SQUEEZED = shapes.reshape.named("SqueezeBackward4", view=False)
FRONTED = shapes.permute.named("SqueezeBackward4", view=False)


def _quantile(name: str, numbers_only: bool, input: Tensor, q: Any, dim: int | None, keepdim: bool, kind: str) -> Tensor:
    x = input.array
    xp = namespace_of[type(x)]
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype. It is {input.dtype}: call .float().")
    if kind not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {kind}")
    axis = -1 if dim is None else one_dim(dim, x.ndim)
    if not x.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    levels = check_levels(name, input, q)
    rows = flatten(input) if dim is None or not x.ndim else input
    if axis != -1 and x.ndim:
        rows = shapes.permute.record(rows, axes=moved_last(axis, x.ndim))
    ranked = sort(rows).values
    total = (rows.array == rows.array).sum(axis=-1, keepdims=True)  # of what is not NaN
    n = rows.array.shape[-1]
    ranks = el.mul.record(levels, constant(xp.maximum(total - 1, 0).astype(x.dtype)) if numbers_only else n - 1)
    if not numbers_only:
        ranks = el.where.record(constant(total < n), constant(xp.asarray(n - 1, x.dtype)), ranks)
    values = between(xp, ranked, ranks, kind)  # shape (rows, levels)
    if levels.array.ndim:
        values = FRONTED.record(values, axes=(-1, *range(-values.array.ndim, -1)))
    shape = tuple(n for a, n in enumerate(x.shape, -x.ndim) if a != axis) if dim is not None else ()
    if keepdim:
        shape = tuple(1 if dim is None or a == axis else n for a, n in enumerate(x.shape, -x.ndim))
    return SQUEEZED.record(values, shape=levels.array.shape + shape)


def check_levels(name: str, input: Tensor, q: Any) -> Tensor:
    """`q` as a tensor of input's dtype with at most one axis, all between 0 and 1."""
    x = input.array
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return constant(namespace_of[type(x)].asarray(q, x.dtype))
    if q.array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.array.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor. They are {q.dtype} and {input.dtype}.")
    within(name, q.array, 0, 1, lambda wrong: RuntimeError(f"{name}() q values must be in the range [0, 1]"))
    return q


def moved_last(axis: int, ndim: int) -> tuple[int, ...]:
    """The permutation that puts a negative axis last."""
    return (*(a for a in range(-ndim, 0) if a != axis), axis)


def between(xp: Any, ranked: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """What stands at fractional `ranks` (their shape broadcast to `ranked`'s rows) of the sorted last axis."""
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


@composed()
@over_dims
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """What a share `q` of the elements does not exceed, of all or along one axis.

    Parameters
    ----------
    input : Tensor
        The tensor, float32 or float64, not empty.
    q : number or Tensor
        The share, from 0 to 1, or a 1-D tensor of them, of the dtype of `input`.
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    interpolation : str, default "linear"
        What stands between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype; in front of it an axis of the shares, if they are several.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is empty or neither float32 nor float64, `q` is not from 0 to 1, has another dtype or more than one axis, or
        `interpolation` is another word.

    Notes
    -----
    Of n sorted elements it stands at the place q (n - 1), counted from 0. What contains a NaN has the quantile NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.quantile(gl.tensor([1., 2., 4., 8.]), 0.5)
    tensor(3.)
    >>> gl.quantile(gl.tensor([1., 2., 4., 8.]), gl.tensor([0., 1.]))
    tensor([1., 8.])
    """
    return _quantile("quantile", False, input, q, dim, keepdim, interpolation)


@composed()
@over_dims
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """What a share `q` of the elements that are not NaN does not exceed, of all or along one axis.

    Parameters
    ----------
    input : Tensor
        The tensor, float32 or float64, not empty.
    q : number or Tensor
        The share, from 0 to 1, or a 1-D tensor of them, of the dtype of `input`.
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    interpolation : str, default "linear"
        What stands between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype; in front of it an axis of the shares, if they are several.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is empty or neither float32 nor float64, `q` is not from 0 to 1, has another dtype or more than one axis, or
        `interpolation` is another word.

    Notes
    -----
    Of n sorted elements it stands at the place q (n - 1), counted from 0, where n is the number of those
    that are not NaN; of none of them it is NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nanquantile(gl.tensor([1., float("nan"), 4.]), 0.5)
    tensor(2.5000)
    """
    return _quantile("nanquantile", True, input, q, dim, keepdim, interpolation)
