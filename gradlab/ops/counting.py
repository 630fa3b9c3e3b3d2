"""Distinct elements, counts, histograms and searches. None has a derivative; where torch's refuse one, so do these."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import fits_in_memory, not_a_tensor, one_dim
from gradlab.ops.results import Result, result_type, undifferentiable

__all__ = ["bincount", "bucketize", "histc", "histogram", "isin", "searchsorted", "unique", "unique_consecutive"]

UNIQUE = undifferentiable("Unique2Backward0", "_unique2")
UNIQUE_DIM = undifferentiable("UniqueDimBackward0", "unique_dim")
CONSECUTIVE = undifferentiable("UniqueConsecutiveBackward0", "unique_consecutive")
COUNTED = undifferentiable("NotImplemented", "bincount")
HISTOGRAMMED = undifferentiable("NotImplemented", "histogram")
HISTOGRAM = result_type("histogram", "hist", "bin_edges")


# -------------------------------------------------------------------------------------------------------------- distinct
@composed()
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements, or slices along an axis, in ascending order.

    Parameters
    ----------
    {input}
    sorted : bool, default True
        Whether they are in order: they are in any case.
    return_inverse : bool, default False
        Also return where each element of `input` is among them.
    return_counts : bool, default False
        Also return how often each occurs.
    dim : int, optional
        The axis whose slices are compared; by default elements are.

    Returns
    -------
    values : Tensor
        The distinct elements, of one axis, or slices, of the dtype of `input`.
    inverse : Tensor
        If asked for: of the shape of `input`, or of one axis with the slices' places, int64.
    counts : Tensor
        If asked for: of one axis, as many as there are values, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If slices are empty and there are some.
    NotImplementedError
        If a gradient of the values is asked for.

    Notes
    -----
    Every NaN is distinct. Slices are in lexicographic order.

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
    distinct = record(input, value=values)
    more = [constant(extra.astype(np.int64)) for extra, wanted in ((inverse, with_inverse), (counts, with_counts)) if wanted]
    return (distinct, *more) if more else distinct


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


@composed()
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The elements in order, or slices along an axis, without those that equal the one before.

    Parameters
    ----------
    {input}
    return_inverse : bool, default False
        Also return where each element of `input` is among them.
    return_counts : bool, default False
        Also return how long each run was.
    dim : int, optional
        The axis whose slices are compared; by default elements are.

    Returns
    -------
    values : Tensor
        The remaining elements, of one axis, or slices, of the dtype of `input`.
    inverse : Tensor
        If asked for: of the shape of `input`, or of one axis with the slices' places, int64.
    counts : Tensor
        If asked for: of one axis, as many as there are values, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If slices are empty and there are some.
    NotImplementedError
        If a gradient of the values is asked for.

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


@composed(method=False)
@takes_out
def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether each of `elements` is among `test_elements`.

    Parameters
    ----------
    elements, test_elements : Tensor or number
        What is searched for, and where. One of the two is a tensor.
    assume_unique : bool, default False
        Neither contains an element twice: then it is quicker.
    invert : bool, default False
        Whether each is not among them instead.
    {out}

    Returns
    -------
    Tensor
        The shape of `elements`, of bools.

    Raises
    ------
    TypeError
        If neither is a tensor.

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
@composed(method=False)
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
    """Where elements belong in a sorted sequence.

    Parameters
    ----------
    sorted_sequence : Tensor
        The sequence, in ascending order along its last axis.
    input : Tensor or number
        The elements: of any shape, if there is one sequence; if there are several, of their shape but for the last axis.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        An element belongs behind those that equal it, not before.
    side : str, optional
        The same in words: "left" or "right".
    sorter : Tensor, optional
        The places that put a sequence that is not sorted in order, as `argsort` returns them.
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, int64 or int32. It has no history.

    Raises
    ------
    TypeError
        If `sorted_sequence` is no tensor.
    RuntimeError
        If shapes do not fit, `side` is another word or contradicts `right`, or `sorter` is not int64 or names places that there
        are not.

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
        places = wrap(xp.searchsorted(seq, values, side=where))
    elif not values.size:
        places = xp.zeros(values.shape, dtype=np.int64)
    else:
        count = prod(seq.shape[:-1])
        rows = zip(seq.reshape(count, seq.shape[-1]), values.reshape(count, values.shape[-1]), strict=True)
        places = xp.stack([xp.searchsorted(s, v, side=where) for s, v in rows]).reshape(values.shape)
    return constant(places.astype(np.int32 if out_int32 else np.int64))


@composed(method=False)
@takes_out
def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """In which of the intervals between sorted boundaries each element lies.

    Parameters
    ----------
    input : Tensor or number
        The elements.
    boundaries : Tensor
        The boundaries, of one axis, in ascending order.
    out_int32 : bool, default False
        Return int32 instead of int64.
    right : bool, default False
        An element that equals a boundary lies in the interval above it, not below.
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, int64 or int32: 0 below the first boundary. It has no history.

    Raises
    ------
    TypeError
        If `boundaries` is no tensor.
    RuntimeError
        If `boundaries` has not one axis.

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
@composed()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2 and so on occurs, or the sum of the weights of each.

    Parameters
    ----------
    input : Tensor
        Integers, none negative, of one axis.
    weights : Tensor, optional
        What each counts, of the shape of `input`.
    minlength : int, default 0
        The least number of counts: those of what does not occur are 0.

    Returns
    -------
    Tensor
        One axis, as long as the largest integer and one more: int64, or float64, or float32 if `weights` are.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is floating point or holds bools, or a gradient of the sums is asked for.
    RuntimeError
        If `input` has not one axis or holds a negative integer, `minlength` is negative, or `weights` has another shape.

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
    if greatest >= np.iinfo(np.int64).max:  # NumPy would count one more than there is, and crash
        raise RuntimeError(f"maximum value of input overflowed, it should be < {np.iinfo(np.int64).max} but got {greatest}")
    fits_in_memory(max(greatest + 1, minlength) if x.size else minlength)
    xp = namespace_of[type(x)]
    if weights is None or not x.size:
        return constant(xp.bincount(x, minlength=minlength).astype(np.int64))
    if weights.array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = weights.array.dtype if weights.array.dtype == np.float32 else np.float64
    return COUNTED(weights, value=xp.bincount(x, weights.array, minlength=minlength).astype(dtype))


@composed()
@takes_out
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """How many elements lie in each of equal intervals.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point.
    bins : int, default 100
        How many intervals.
    min, max : number, default 0
        Where they begin and end; if these are equal, at the least and the greatest element.
    {out}

    Returns
    -------
    Tensor
        One axis of `bins` counts, of the dtype of `input`. It has no history.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is not floating point.
    RuntimeError
        If `bins` is not positive, or the range is empty or not finite.

    Notes
    -----
    What lies outside is not counted. An interval holds its lower edge, the last both.

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


@composed()
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
    """How many elements, or the sum of what weights, lie in each of the intervals between edges.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point.
    bins : int or Tensor, default 100
        How many equal intervals, or their edges: of one axis, in ascending order.
    range : tuple of two numbers, optional
        Where equal intervals begin and end; by default at the least and the greatest element.
    weight : Tensor, optional
        What each element counts, of the shape of `input`.
    density : bool, default False
        Scale the result so that its integral is 1.
    {outs}

    Returns
    -------
    hist : Tensor
        One axis with an element for each interval, of the dtype of `input`.
    bin_edges : Tensor
        One axis with an element more.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If `input` is not floating point, or a gradient is asked for.
    RuntimeError
        If `bins` is not positive, or the range is empty or not finite.

    Notes
    -----
    What lies outside is not counted. An interval holds its lower edge, the last both.

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
    return HISTOGRAM((HISTOGRAMMED(input, value=counts), HISTOGRAMMED(input, value=edges)))
