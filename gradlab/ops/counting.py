"""Unique elements, counts, histograms and searches. They are not differentiable, and raise where PyTorch raises."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_axis_indices
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_storage_size, negative_dim, not_a_tensor
from gradlab.ops.results import Result, result_type, undifferentiable

__all__ = ["bincount", "bucketize", "histc", "histogram", "isin", "searchsorted", "unique", "unique_consecutive"]

UNIQUE = undifferentiable("Unique2Backward0", "_unique2")
UNIQUE_DIM = undifferentiable("UniqueDimBackward0", "unique_dim")
CONSECUTIVE = undifferentiable("UniqueConsecutiveBackward0", "unique_consecutive")
BINCOUNT = undifferentiable("NotImplemented", "bincount")
HISTOGRAM_PART = undifferentiable("NotImplemented", "histogram")
HISTOGRAM = result_type("histogram", "hist", "bin_edges")


# ---------------------------------------------------------------------------------------------------------------- unique
@composite()
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the unique elements, or the unique slices along a dimension, in ascending order.

    Parameters
    ----------
    {input}
    sorted : bool, default: True
        Accepted for compatibility with PyTorch; the result is always sorted.
    return_inverse : bool, default: False
        Whether to also return the index of each element of `input` in the result.
    return_counts : bool, default: False
        Whether to also return the number of occurrences of each unique element.
    dim : int, optional
        Dimension whose slices are compared. Default: compare elements.

    Returns
    -------
    values : Tensor
        Unique elements, one-dimensional, or unique slices, with the dtype of `input`.
    inverse : Tensor
        If `return_inverse`: int64, with the shape of `input`, or one index for each slice.
    counts : Tensor
        If `return_counts`: int64, one-dimensional, one for each value.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If the slices along `dim` have no elements.
    NotImplementedError
        If a gradient of the values is requested.

    Notes
    -----
    Every NaN counts as unique. Slices are sorted lexicographically.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, counts = gl.unique(gl.tensor([3, 1, 3]), return_counts=True)
    >>> values, counts
    (tensor([1, 3]), tensor([1, 2]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unique", input)
    x = input.array
    xp = namespace_of[type(x)]
    if dim is not None:
        rows = slices_as_rows(x, dim, "unique")
        return pack_results(UNIQUE_DIM, input, *distinct_slices(xp, rows, x, dim), return_inverse, return_counts)
    values, inverse, counts = (
        xp.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
        if (return_inverse or return_counts)
        else (xp.unique(x, equal_nan=False), None, None)
    )
    return pack_results(
        UNIQUE, input, values, None if inverse is None else inverse.reshape(x.shape), counts, return_inverse, return_counts
    )


def pack_results(
    record: Any, input: Tensor, values: Any, inverse: Any, counts: Any, with_inverse: bool, with_counts: bool
) -> Any:
    """Return the unique values, or a tuple of them with the requested inverse and counts."""
    distinct = record(input, value=values)
    more = [constant(extra.astype(np.int64)) for extra, wanted in ((inverse, with_inverse), (counts, with_counts)) if wanted]
    return (distinct, *more) if more else distinct


def slices_as_rows(x: Any, dim: int, name: str) -> Any:
    """Return the slices of an array along `dim` as rows of a matrix."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = negative_dim(dim, x.ndim)
    if x.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if not x.size and x.shape[axis]:
        raise RuntimeError(f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied")
    return namespace_of[type(x)].moveaxis(x, axis, 0).reshape(x.shape[axis], prod(x.shape[:axis] + x.shape[axis:][1:]))


def distinct_slices(xp: Any, rows: Any, x: Any, dim: int) -> tuple[Any, Any, Any]:
    """Return the unique rows in lexicographic order, as slices of x along `dim`, with inverse and counts."""
    order = xp.lexsort(rows.T[::-1]) if rows.shape[1] else xp.arange(rows.shape[0])
    ranked = rows[order]
    new = run_starts(xp, ranked)
    at = xp.nonzero(new)[0]
    inverse = xp.zeros(rows.shape[0], dtype=np.int64)
    inverse[order] = xp.cumsum(new) - 1
    return xp.take(x, order[at], axis=dim), inverse, run_lengths(xp, at, rows.shape[0])


def run_starts(xp: Any, rows: Any) -> Any:
    """Mark the rows that differ from the previous one. The first row is marked."""
    return xp.concatenate([xp.ones(min(rows.shape[0], 1), dtype=bool), (rows[1:] != rows[:-1]).any(axis=1)])


def run_lengths(xp: Any, starts: Any, n: int) -> Any:
    """Return the lengths of runs in a sequence of n elements that begin at `starts`."""
    return xp.concatenate([starts[1:], xp.full(min(n, 1), n)]) - starts


@composite()
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Remove elements, or slices along a dimension, that equal the previous one.

    Parameters
    ----------
    {input}
    return_inverse : bool, default: False
        Whether to also return the index of each element of `input` in the result.
    return_counts : bool, default: False
        Whether to also return the length of each run.
    dim : int, optional
        Dimension whose slices are compared. Default: compare elements.

    Returns
    -------
    values : Tensor
        Remaining elements, one-dimensional, or remaining slices, with the dtype of `input`.
    inverse : Tensor
        If `return_inverse`: int64, with the shape of `input`, or one index for each slice.
    counts : Tensor
        If `return_counts`: int64, one-dimensional, one for each value.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If the slices along `dim` have no elements.
    NotImplementedError
        If a gradient of the values is requested.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, counts = gl.unique_consecutive(gl.tensor([1, 1, 2, 2, 1]), return_counts=True)
    >>> values, counts
    (tensor([1, 2, 1]), tensor([2, 2, 1]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unique_consecutive", input)
    x = input.array
    xp = namespace_of[type(x)]
    rows = x.reshape(-1, 1) if dim is None else slices_as_rows(x, dim, "unique_consecutive")
    new = run_starts(xp, rows)
    at = xp.nonzero(new)[0]
    inverse = xp.cumsum(new) - 1
    values = rows.reshape(-1)[at] if dim is None else xp.take(x, at, axis=dim)
    return pack_results(
        CONSECUTIVE,
        input,
        values,
        inverse.reshape(x.shape) if dim is None else inverse,
        run_lengths(xp, at, rows.shape[0]),
        return_inverse,
        return_counts,
    )


@composite(method=False)
@takes_out
def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Test whether each element of `elements` is in `test_elements`.

    Parameters
    ----------
    elements, test_elements : Tensor or number
        Values to look for, and values to search. At least one must be a Tensor.
    assume_unique : bool, default: False
        Whether both contain only unique elements, which allows a faster search.
    invert : bool, default: False
        Whether to test that each element is not in `test_elements`.
    {out}

    Returns
    -------
    Tensor
        Same shape as `elements`, boolean.

    Raises
    ------
    TypeError
        If neither is a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.isin(gl.tensor([1, 2, 3]), gl.tensor([2, 5]))
    tensor([False,  True, False])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise not_a_tensor("isin", elements, "elements")
    like = next(x.array for x in (elements, test_elements) if isinstance(x, Tensor))
    one, other = (x.array if isinstance(x, Tensor) else namespace_of[type(like)].asarray(x) for x in (elements, test_elements))
    return constant(wrap(namespace_of[type(like)].isin(one, other, assume_unique=assume_unique, invert=invert)))


# -------------------------------------------------------------------------------------------------------------- searches
@composite(method=False)
@takes_out
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Find the indices at which to insert elements into a sorted sequence.

    Parameters
    ----------
    sorted_sequence : Tensor
        Sequence in ascending order along its last dimension.
    input : Tensor or number
        Elements to insert: of any shape for a one-dimensional sequence, otherwise of the shape of `sorted_sequence` except in
        the last dimension.
    out_int32 : bool, default: False
        Whether to return int32 instead of int64.
    right : bool, default: False
        Whether to insert after equal elements instead of before.
    side : str, optional
        "left" or "right", an alternative to `right`.
    sorter : Tensor, optional
        Indices that sort `sorted_sequence` if it is not sorted, as returned by `argsort`.
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, int64 or int32. It never requires a gradient.

    Raises
    ------
    TypeError
        If `sorted_sequence` is not a Tensor.
    RuntimeError
        If the shapes do not match, `side` is invalid or contradicts `right`, or `sorter` is not int64 or contains an index out
        of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> sequence = gl.tensor([1., 3., 5.])
    >>> gl.searchsorted(sequence, gl.tensor([0., 3., 9.]))
    tensor([0, 1, 3])
    >>> gl.searchsorted(sequence, gl.tensor([0., 3., 9.]), right=True)
    tensor([0, 2, 3])
    """
    if not isinstance(sorted_sequence, Tensor):
        raise not_a_tensor("searchsorted", sorted_sequence, "sorted_sequence")
    name, seq = "gradlab.searchsorted()", sorted_sequence.array
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(f"{name}: side and right can't be set to opposites, got side of left while right was True")
    xp = namespace_of[type(seq)]
    if not seq.ndim:
        raise RuntimeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if sorter is not None:
        if sorter.array.dtype != np.int64:
            raise RuntimeError(f"{name}: sorter must be a tensor of long dtype but got dtype {sorter.dtype.word}")
        if sorter.array.shape != seq.shape:
            raise RuntimeError(
                f"{name}: boundary and sorter must have the same size, but got boundary tensor {list(seq.shape)}"
                f"and got sorter tensor {list(sorter.array.shape)}"
            )
        check_axis_indices(
            "searchsorted", sorter.array, seq.shape[-1], lambda wrong: RuntimeError(f"{name}: sorter index out of range")
        )
        seq = xp.take_along_axis(seq, sorter.array, axis=-1)
    if not isinstance(input, Tensor) and seq.ndim > 1:
        raise RuntimeError(
            f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({seq.ndim}) and input value's dim(0) numel(1)"
        )
    values = input.array if isinstance(input, Tensor) else xp.asarray(input)
    if seq.ndim > 1 and seq.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(seq.shape)} and input value "
            f"tensor {list(values.shape)}"
        )
    where = "right" if right or side == "right" else "left"
    if seq.ndim == 1:
        places = wrap(xp.searchsorted(seq, values, side=where))
    elif not values.size:
        places = xp.zeros(values.shape, dtype=np.int64)
    else:
        count = prod(seq.shape[:-1])
        rows = zip(seq.reshape(count, seq.shape[-1]), values.reshape(count, values.shape[-1]), strict=True)
        places = xp.stack([xp.searchsorted(s, v, side=where) for s, v in rows]).reshape(values.shape)
    return constant(places.astype(np.int32 if out_int32 else np.int64))


@composite(method=False)
@takes_out
def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the index of the interval between sorted boundaries that contains each element.

    Parameters
    ----------
    input : Tensor or number
        Elements.
    boundaries : Tensor
        One-dimensional, in ascending order.
    out_int32 : bool, default: False
        Whether to return int32 instead of int64.
    right : bool, default: False
        Whether an element equal to a boundary belongs to the interval above it instead of below.
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, int64 or int32: 0 below the first boundary. It never requires a gradient.

    Raises
    ------
    TypeError
        If `boundaries` is not a Tensor.
    RuntimeError
        If `boundaries` is not one-dimensional.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.bucketize(gl.tensor([0., 3., 9.]), gl.tensor([1., 3., 5.]))
    tensor([0, 1, 3])
    """
    if not isinstance(boundaries, Tensor):
        raise not_a_tensor("bucketize", boundaries, "boundaries", 2)
    if boundaries.array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# ---------------------------------------------------------------------------------------------------------------- counts
@composite()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count the occurrences of each non-negative integer, or sum their weights.

    Parameters
    ----------
    input : Tensor
        Non-negative integers, one-dimensional.
    weights : Tensor, optional
        Weight of each element, with the shape of `input`.
    minlength : int, default: 0
        Minimum length of the result. Integers that do not occur have the count 0.

    Returns
    -------
    Tensor
        One-dimensional, of length max(input) + 1 or `minlength`, whichever is larger. The dtype is int64 without weights,
        float32 for float32 weights, and float64 otherwise.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is floating point or boolean, or a gradient of the sums is requested.
    RuntimeError
        If `input` is not one-dimensional or has a negative element, `minlength` is negative, or the shape of `weights` differs.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.bincount(gl.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("bincount", input)
    x = input.array
    if x.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{input.dtype.word}'. Give integers: .long().")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if x.ndim != 1 or (x.size and x.dtype.kind == "i" and int(x.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    greatest = int(x.max()) if x.size else 0
    if greatest >= np.iinfo(np.int64).max:  # NumPy would add one to it, overflow and crash
        raise RuntimeError(f"maximum value of input overflowed, it should be < {np.iinfo(np.int64).max} but got {greatest}")
    check_storage_size(max(greatest + 1, minlength) if x.size else minlength)
    xp = namespace_of[type(x)]
    if weights is None or not x.size:
        return constant(xp.bincount(x, minlength=minlength).astype(np.int64))
    if weights.array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = weights.array.dtype if weights.array.dtype == np.float32 else np.float64
    return BINCOUNT(weights, value=xp.bincount(x, weights.array, minlength=minlength).astype(dtype))


@composite()
@takes_out
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """Count the elements in each of `bins` equal intervals.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of any shape.
    bins : int, default: 100
        Number of intervals.
    min, max : number, default: 0
        Range of the intervals. If both are equal, the range from the smallest to the largest element.
    {out}

    Returns
    -------
    Tensor
        One-dimensional, `bins` counts with the dtype of `input`. It never requires a gradient.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is not floating point.
    RuntimeError
        If `bins` is not positive, or the range is empty or not finite.

    Notes
    -----
    Elements outside the range are not counted. Each interval includes its lower edge, and the last one both edges.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.histc(gl.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("histc", input)
    x = input.array
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{input.dtype.word}'. Call .float() first.")
    if bins <= 0:
        raise RuntimeError(f"gradlab.histogram(): bins must be > 0, but got {bins} for dimension 0")
    check_storage_size(bins + 1)
    low, high = outer_edges(x, float(min), float(max))
    xp, flat = namespace_of[type(x)], x.reshape(-1)
    flat = flat[(flat >= low) & (flat <= high)]
    at = xp.minimum(((flat - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return constant(xp.bincount(at, minlength=bins).astype(x.dtype))


def outer_edges(x: Any, low: float, high: float) -> tuple[float, float]:
    """Return the range of `histc`, by default that of the elements. An empty range is extended by 1 on each side."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"gradlab.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"gradlab.histc: max must be larger than min. Got max={high:g} and min={low:g}.")
    return (low - 1, high + 1) if low == high else (low, high)


@composite()
@takes_out
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Result:
    """Count elements, or sum their weights, in the intervals between bin edges.

    Parameters
    ----------
    input : Tensor
        Floating-point tensor of any shape.
    bins : int or Tensor, default: 100
        Number of equal intervals, or a one-dimensional tensor of their edges in ascending order.
    range : tuple of two numbers, optional
        Range of the equal intervals. Default: from the smallest to the largest element.
    weight : Tensor, optional
        Weight of each element, with the shape of `input`.
    density : bool, default: False
        Whether to scale the result so that its integral is 1.
    {outs}

    Returns
    -------
    hist : Tensor
        One-dimensional, one element for each interval, with the dtype of `input`.
    bin_edges : Tensor
        One-dimensional, with one element more than `hist`.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is not floating point, or a gradient is requested.
    RuntimeError
        If `bins` is not positive, or the range is empty or not finite.

    Notes
    -----
    Elements outside the range are not counted. Each interval includes its lower edge, and the last one both edges.

    Examples
    --------
    >>> import gradlab as gl
    >>> hist, edges = gl.histogram(gl.tensor([1., 2., 1.]), bins=2, range=(0., 4.))
    >>> hist, edges
    (tensor([2., 1.]), tensor([0., 2., 4.]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("histogram", input)
    x = input.array
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.dtype.word}'. Call .float() first.")
    xp = namespace_of[type(x)]
    if isinstance(bins, Tensor):
        edges = bins.array
    else:
        if bins <= 0:
            raise RuntimeError(f"gradlab.histogram(): bins must be > 0, but got {bins} for dimension 0")
        check_storage_size(bins + 1)
        low, high = map(float, range) if range is not None else (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"gradlab.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"gradlab.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension 0"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = xp.linspace(low, high, bins + 1, dtype=x.dtype)
    counts, _ = xp.histogram(x.reshape(-1), edges, weights=None if weight is None else weight.array.reshape(-1))
    counts = counts.astype(x.dtype)
    if density:
        counts = counts / (counts.sum() * (edges[1:] - edges[:-1]))
    return HISTOGRAM((HISTOGRAM_PART(input, value=counts), HISTOGRAM_PART(input, value=edges)))
