"""Distinct elements, counts, histograms and searches. None has a derivative; where torch's refuse one, so do these."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.destination import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import fits_in_memory, not_a_tensor, one_dim
from gradlab.ops.results import result_type, undifferentiable

__all__ = ["bincount", "bucketize", "histc", "histogram", "isin", "searchsorted", "unique", "unique_consecutive"]

UNIQUE, UNIQUE_DIM, CONSECUTIVE = (
    undifferentiable(node, derivative)
    for node, derivative in (
        ("Unique2Backward0", "_unique2"),
        ("UniqueDimBackward0", "unique_dim"),
        ("UniqueConsecutiveBackward0", "unique_consecutive"),
    )
)
REFUSED = undifferentiable("NotImplemented", "bincount"), undifferentiable("NotImplemented", "histogram")
HISTOGRAM = result_type("histogram", "hist", "bin_edges")


# -------------------------------------------------------------------------------------------------------------- distinct
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements in ascending order (always), or the distinct slices along `dim`. If asked for, after them where each
    input element is among them (`return_inverse`) and how often each occurs (`return_counts`). Every NaN is distinct."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("unique", input)
    x = input.array
    xp = namespace_of[type(x)]
    if dim is not None:
        rows = slices(x, dim, "unique")
        return handed_out(UNIQUE_DIM, input, *distinct_slices(xp, rows, x, dim), return_inverse, return_counts)
    values, inverse, counts = (
        xp.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
        if (return_inverse or return_counts)
        else (xp.unique(x, equal_nan=False), None, None)
    )
    return handed_out(
        UNIQUE, input, values, None if inverse is None else inverse.reshape(x.shape), counts, return_inverse, return_counts
    )


def handed_out(record: Any, input: Tensor, values: Any, inverse: Any, counts: Any, with_inverse: bool, with_counts: bool) -> Any:
    """The distinct values alone, or in a tuple with what was asked for."""
    made = record(input, value=values)
    more = [constant(extra.astype(np.int64)) for extra, wanted in ((inverse, with_inverse), (counts, with_counts)) if wanted]
    return (made, *more) if more else made


def slices(x: Any, dim: int, name: str) -> Any:
    """The slices of an array along `dim`, each as one row."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = one_dim(dim, x.ndim)
    if x.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if not x.size and x.shape[axis]:
        raise RuntimeError(f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied")
    return namespace_of[type(x)].moveaxis(x, axis, 0).reshape(x.shape[axis], prod(x.shape[:axis] + x.shape[axis:][1:]))


def distinct_slices(xp: Any, rows: Any, x: Any, dim: int) -> tuple[Any, Any, Any]:
    """Distinct rows in lexicographic order, as slices of x along `dim`; the inverse and the counts."""
    order = xp.lexsort(rows.T[::-1]) if rows.shape[1] else xp.arange(rows.shape[0])
    ranked = rows[order]
    new = starts_of_runs(xp, ranked)
    at = xp.nonzero(new)[0]
    inverse = xp.zeros(rows.shape[0], dtype=np.int64)
    inverse[order] = xp.cumsum(new) - 1
    return xp.take(x, order[at], axis=dim), inverse, lengths(xp, at, rows.shape[0])


def starts_of_runs(xp: Any, rows: Any) -> Any:
    """Which rows differ from the one before them; the first does."""
    return xp.concatenate([xp.ones(min(rows.shape[0], 1), dtype=bool), (rows[1:] != rows[:-1]).any(axis=1)])


def lengths(xp: Any, starts: Any, n: int) -> Any:
    """How long runs are that begin at `starts` and fill n places."""
    return xp.concatenate([starts[1:], xp.full(min(n, 1), n)]) - starts


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements (of all, in order, or the slices along `dim`) without those that equal the one before; if asked for, after
    them where each input element went and how long each run was."""
    if not isinstance(input, Tensor):
        raise not_a_tensor("unique_consecutive", input)
    x = input.array
    xp = namespace_of[type(x)]
    rows = x.reshape(-1, 1) if dim is None else slices(x, dim, "unique_consecutive")
    new = starts_of_runs(xp, rows)
    at = xp.nonzero(new)[0]
    inverse = xp.cumsum(new) - 1
    values = rows.reshape(-1)[at] if dim is None else xp.take(x, at, axis=dim)
    return handed_out(
        CONSECUTIVE,
        input,
        values,
        inverse.reshape(x.shape) if dim is None else inverse,
        lengths(xp, at, rows.shape[0]),
        return_inverse,
        return_counts,
    )


@takes_out
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each of `elements` is among `test_elements`; one of the two may be a number."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise not_a_tensor("isin", elements, "elements")
    like = (elements if isinstance(elements, Tensor) else test_elements).array
    one, other = (x.array if isinstance(x, Tensor) else namespace_of[type(like)].asarray(x) for x in (elements, test_elements))
    return constant(wrap(namespace_of[type(like)].isin(one, other, assume_unique=assume_unique, invert=invert)))


# -------------------------------------------------------------------------------------------------------------- searches
@takes_out
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where the elements of `input` (or a number) belong in a sequence sorted along its last axis: before equals, or with
    right=True (side="right") behind them. Several sequences are searched row by row. int64, or int32 if asked for."""
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
        on_axis("searchsorted", sorter.array, seq.shape[-1], lambda wrong: RuntimeError(f"{name}: sorter index out of range"))
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
        found = wrap(xp.searchsorted(seq, values, side=where))
    elif not values.size:
        found = xp.zeros(values.shape, dtype=np.int64)
    else:
        count = prod(seq.shape[:-1])
        rows = zip(seq.reshape(count, seq.shape[-1]), values.reshape(count, values.shape[-1]), strict=True)
        found = xp.stack([xp.searchsorted(s, v, side=where) for s, v in rows]).reshape(values.shape)
    return constant(found.astype(np.int32 if out_int32 else np.int64))


@takes_out
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """In which of the intervals between sorted `boundaries` each element of `input` (or a number) lies."""
    if boundaries.array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


# ---------------------------------------------------------------------------------------------------------------- counts
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2 … occurs in a 1-D tensor of integers (int64), or the sum of its weights."""
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
    if greatest >= np.iinfo(np.int64).max:  # NumPy would count one more than there is, and crash
        raise RuntimeError(f"maximum value of input overflowed, it should be < {np.iinfo(np.int64).max} but got {greatest}")
    fits_in_memory(max(greatest + 1, minlength) if x.size else minlength)
    xp = namespace_of[type(x)]
    if weights is None or not x.size:
        return constant(xp.bincount(x, minlength=minlength).astype(np.int64))
    if weights.array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = weights.array.dtype if weights.array.dtype == np.float32 else np.float64
    return REFUSED[0](weights, value=xp.bincount(x, weights.array, minlength=minlength).astype(dtype))


@takes_out
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal intervals from `min` to `max` (by default of the elements themselves), in
    input's dtype. What lies outside is not counted."""
    x = input.array
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{input.dtype.word}'. Call .float() first.")
    if bins <= 0:
        raise RuntimeError(f"gradlab.histogram(): bins must be > 0, but got {bins} for dimension 0")
    fits_in_memory(bins + 1)
    low, high = outer_edges(x, float(min), float(max))
    xp, flat = namespace_of[type(x)], x.reshape(-1)
    flat = flat[(flat >= low) & (flat <= high)]
    at = xp.minimum(((flat - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return constant(xp.bincount(at, minlength=bins).astype(x.dtype))


def outer_edges(x: Any, low: float, high: float) -> tuple[float, float]:
    """The outermost edges of `histc`: as given, or those of the elements, or a unit to each side where they are equal."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"gradlab.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"gradlab.histc: max must be larger than min. They are {high:g} and {low:g}.")
    return (low - 1, high + 1) if low == high else (low, high)


@takes_out
def histogram(input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False) -> Any:
    """Counts (or sums of `weight`) in the intervals between edges, as (hist, bin_edges): `bins` equal ones over `range` (by
    default of the elements), or those of a tensor of sorted edges. With `density` the histogram's integral is 1."""
    x = input.array
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.dtype.word}'. Call .float() first.")
    xp = namespace_of[type(x)]
    if isinstance(bins, Tensor):
        edges = bins.array
    else:
        if bins <= 0:
            raise RuntimeError(f"gradlab.histogram(): bins must be > 0, but got {bins} for dimension 0")
        fits_in_memory(bins + 1)
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
    return HISTOGRAM((REFUSED[1](input, value=counts), REFUSED[1](input, value=edges)))
