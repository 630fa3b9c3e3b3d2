"""Sorting along an axis, and what is found by it: the largest k, medians, modes, quantiles.

Places are found on the array. A sort is always stable: among equals the earlier comes first. A NaN counts as the greatest;
the values are then picked at them, and the gradient goes back to where they stood.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.bounds import within
from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim, over_dims
from gradlab.ops.extremes import empty_reduction
from gradlab.ops.results import Picking
from gradlab.ops.shapes import flatten
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules
from gradlab.rules import shapes
from gradlab.rules.cumulative import accumulated, part
from gradlab.rules.indexing import gather

__all__ = ["argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "nanquantile", "quantile", "sort", "topk"]

SORT, TOPK, KTHVALUE = (Picking(name, f"{name.title()}Backward0") for name in ("sort", "topk", "kthvalue"))
STABLE_SORT = Picking("sort", "SortBackward1")
MODE = Picking("mode", "ModeBackward0")


def order_of(x: Any, axis: int, descending: bool = False) -> Any:
    """Where the elements along a negative axis stand, in ascending or descending order, equals as they came."""
    xp = namespace_of[type(x)]
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(xp.argsort(xp.flip(x, axis=axis), axis=axis, kind="stable"), axis=axis)


def place_of_rank(x: Any, axis: int, rank: int) -> Any:
    """Where the element stands that sorting would put at `rank` along a negative axis. Which of equals, is not said."""
    order = order_of(x, axis) if x.shape[axis] < FEW else namespace_of[type(x)].argpartition(x, rank, axis=axis)
    return part(order, (axis,), rank, rank + 1)


FEW = 64  # elements, that sorting all of them is as quick


@over_dims
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """The elements in order along `dim`, and where they stood, as (values, indices). Equals keep their order in any case."""
    axis = one_dim(dim, input.array.ndim)
    picking = SORT if stable is None else STABLE_SORT
    return picking(input, axis, order_of(input.array, axis, descending), True) if input.array.ndim else picking.of_scalar(input)


@over_dims
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Where the elements stand, in order along `dim`."""
    axis = one_dim(dim, input.array.ndim)
    return constant(order_of(input.array, axis, descending)) if input.array.ndim else SORT.of_scalar(input).indices


@over_dims
def msort(input: Tensor) -> Tensor:
    """The elements in ascending order along the first axis."""
    return sort(input, 0).values


@over_dims
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along `dim` in order, and where they stood, as (values, indices)."""
    x = input.array
    axis = one_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(f"selected index k out of range. k={k} of {x.shape[axis] if x.ndim else 1} elements along dim {dim}.")
    if x.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU. Call .int() first.")
    if not x.ndim:
        return TOPK.of_scalar(input)
    n, xp = x.shape[axis], namespace_of[type(x)]
    if k == 1 and largest:
        return TOPK(input, axis, x.argmax(axis=axis, keepdims=True), True)
    if n < 8 * k or n < FEW:
        return TOPK(input, axis, part(order_of(x, axis, largest), (axis,), 0, k), True)
    chosen = xp.argpartition(x, n - k if largest else k - 1, axis=axis)  # those few first, then their order
    chosen = xp.sort(part(chosen, (axis,), n - k if largest else 0, n if largest else k), axis=axis)
    order = order_of(xp.take_along_axis(x, chosen, axis=axis), axis, largest)
    return TOPK(input, axis, xp.take_along_axis(chosen, order, axis=axis), True)


@over_dims
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along `dim` (the first is 1) and where it stands, as (values, indices)."""
    x = input.array
    axis = one_dim(dim, x.ndim)
    if error := empty_reduction("kthvalue", x.shape, (axis,) * bool(x.ndim)):
        raise error
    if not 1 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {axis + x.ndim if x.ndim else 0}. k={k} of "
            f"{x.shape[axis] if x.ndim else 1} elements, counted from 1."
        )
    return KTHVALUE(input, axis, place_of_rank(x, axis, k - 1), keepdim) if x.ndim else KTHVALUE.of_scalar(input)


# ------------------------------------------------------------------------------------------------------ medians and modes
def _median(everything: Any, name: str, places: Any) -> Any:
    picking = Picking(name, f"{name.title()}Backward1")

    def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        x = input.array
        if x.dtype.kind == "b":
            raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'. Call .int() first.")
        if dim is None:
            return everything.record(input, axis=tuple(range(-x.ndim, 0)), keepdims=False)
        axis = one_dim(dim, x.ndim)
        if not x.ndim:
            return picking.of_scalar(input)
        if error := empty_reduction("median", x.shape, (axis,)):
            raise error
        return picking(input, axis, places(namespace_of[type(x)], x, axis), keepdim)

    median.__name__ = median.__qualname__ = name
    return over_dims(median)


def median_places(xp: Any, x: Any, axis: int) -> Any:
    """Where the lower median stands along an axis; where there are NaNs, the first of them."""
    middle = place_of_rank(x, axis, (x.shape[axis] - 1) // 2)
    if x.dtype.kind != "f":
        return middle
    nans = x != x
    return xp.where(nans.any(axis=axis, keepdims=True), nans.argmax(axis=axis, keepdims=True), middle)


def number_median_places(xp: Any, x: Any, axis: int) -> Any:
    """The same among what is not NaN."""
    numbers = (x == x).sum(axis=axis, keepdims=True)
    return xp.take_along_axis(order_of(x, axis), xp.maximum(numbers - 1, 0) // 2, axis=axis)


median, nanmedian = (_median(rules.median, "median", median_places), _median(rules.nanmedian, "nanmedian", number_median_places))
median.__doc__ = (
    "The median, of an even number the lower one, of everything (a gradient is shared among equals) or, as "
    "(values, indices), along `dim`; a NaN is the median of what contains it."
)
nanmedian.__doc__ = "The median of what is not NaN, of everything or, as (values, indices), along `dim`."


@over_dims
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along `dim`, of several the smallest, and where it stands last, as (values, indices)."""
    x = input.array
    axis = one_dim(dim, x.ndim)
    if not x.ndim:
        return MODE.of_scalar(input)
    if error := empty_reduction("mode", x.shape, (axis,)):
        raise error
    xp = namespace_of[type(x)]
    order = order_of(x, axis)
    ranked = xp.moveaxis(xp.take_along_axis(x, order, axis=axis), axis, -1)
    starts = xp.concatenate([xp.ones((*ranked.shape[:-1], 1), dtype=bool), ranked[..., 1:] != ranked[..., :-1]], axis=-1)
    at = xp.arange(x.shape[axis])
    equals_before = at - accumulated(xp, "maximum", xp.where(starts, at, 0), -1)
    longest = xp.moveaxis(equals_before.argmax(axis=-1, keepdims=True), -1, axis)
    return MODE(input, axis, xp.take_along_axis(order, longest, axis=axis), keepdim)


# ------------------------------------------------------------------------------------------------------------- quantiles
INTERPOLATIONS = "linear", "lower", "higher", "midpoint", "nearest"
SQUEEZED = shapes.reshape.named("SqueezeBackward4", view=False)
FRONTED = shapes.permute.named("SqueezeBackward4", view=False)


def _quantile(name: str, numbers_only: bool) -> Any:
    def quantile(
        input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        x = input.array
        xp = namespace_of[type(x)]
        if x.dtype.kind != "f" or x.dtype.itemsize < 4:
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype. It is {input.dtype}: call .float().")
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
            )
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
        found = between(xp, ranked, ranks, interpolation)  # shape (rows, levels)
        if levels.array.ndim:
            found = FRONTED.record(found, axes=(-1, *range(-found.array.ndim, -1)))
        shape = tuple(n for a, n in enumerate(x.shape, -x.ndim) if a != axis) if dim is not None else ()
        if keepdim:
            shape = tuple(1 if dim is None or a == axis else n for a, n in enumerate(x.shape, -x.ndim))
        return SQUEEZED.record(found, shape=levels.array.shape + shape)

    quantile.__name__ = quantile.__qualname__ = name
    return over_dims(quantile)


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


quantile, nanquantile = _quantile("quantile", False), _quantile("nanquantile", True)
quantile.__doc__ = (
    "What a share `q` (a number or a 1-D tensor of them, which adds an axis in front) of the elements is not "
    "above: of everything, or along `dim`. Between two elements it is interpolated; a NaN makes it NaN."
)
nanquantile.__doc__ = "As `quantile`, of what is not NaN."
