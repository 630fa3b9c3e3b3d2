"""Sorting along an axis, and operations based on it: the k largest elements, medians and modes.

The indices are computed on the array. The values are then picked at these indices, and the gradient flows back to the elements
that were picked. Sorting is always stable: equal elements keep their order. NaN counts as larger than any number.
"""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, takes_axis
from gradlab.ops.extremes import empty_reduction_error
from gradlab.ops.results import Result, ValuesAndIndices
from gradlab.rules import reductions as rules
from gradlab.rules.cumulative import accumulate_along, slice_along

__all__ = ["argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"]

SORT, TOPK, KTHVALUE = (ValuesAndIndices(name, f"{name.title()}Backward0") for name in ("sort", "topk", "kthvalue"))
STABLE_SORT = ValuesAndIndices("sort", "SortBackward1")
MODE = ValuesAndIndices("mode", "ModeBackward0")
MEDIAN, NANMEDIAN = (ValuesAndIndices(name, f"{name.title()}Backward1") for name in ("median", "nanmedian"))


def stable_order(x: Any, axis: int, descending: bool = False) -> Any:
    """Return the indices that sort along a negative axis, ascending or descending. Equal elements keep their order."""
    xp = namespace_of[type(x)]
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    return x.shape[axis] - 1 - xp.flip(xp.argsort(xp.flip(x, axis=axis), axis=axis, kind="stable"), axis=axis)


def index_of_rank(x: Any, axis: int, rank: int) -> Any:
    """Return the index of the element with this rank along a negative axis. Any of several equal elements may be chosen."""
    order = (
        stable_order(x, axis) if x.shape[axis] < MIN_SIZE_PARTITION else namespace_of[type(x)].argpartition(x, rank, axis=axis)
    )
    return slice_along(order, (axis,), rank, rank + 1)


MIN_SIZE_PARTITION = 64  # elements; for fewer, a full sort is as fast as a partition


@composite()
@takes_axis
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> Result:
    """Sort the elements along a dimension, and return their original indices too.

    Parameters
    ----------
    {input}
    {last_dim}
    descending : bool, default: False
        Whether to sort in descending order.
    stable : bool, optional
        Whether equal elements keep their order. They always do.
    {outs}

    Returns
    -------
    values : Tensor
        Same shape as `input`, same dtype.
    indices : Tensor
        Indices of the values along the dimension in `input`: same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    NaN counts as larger than any number. The gradient of a value flows to its original position.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.sort(gl.tensor([3., 1., 2.]))
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    axis = negative_dim(dim, input.array.ndim)
    picking = SORT if stable is None else STABLE_SORT
    return (
        picking(input, axis, stable_order(input.array, axis, descending), True) if input.array.ndim else picking.of_scalar(input)
    )


@composite()
@takes_axis
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Tensor | None = None) -> Tensor:
    """Return the indices that sort the elements along a dimension.

    Parameters
    ----------
    {input}
    {last_dim}
    descending : bool, default: False
        Whether to sort in descending order.
    stable : bool, default: False
        Whether equal elements keep their order. They always do.
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, int64. It never requires a gradient.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    NaN counts as larger than any number.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argsort(gl.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    axis = negative_dim(dim, input.array.ndim)
    return constant(as_long(stable_order(input.array, axis, descending))) if input.array.ndim else SORT.of_scalar(input).indices


@composite()
@takes_axis
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sort the elements along the first dimension in ascending order. Same as `sort(input, 0).values`.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype.

    Raises
    ------
    {no_tensor}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.msort(gl.tensor([[3, 1], [2, 4]]))
    tensor([[2, 1],
            [3, 4]])
    """
    return sort(input, 0).values


@composite()
@takes_axis
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: tuple[Tensor, Tensor] | None = None
) -> Result:
    """Return the `k` largest or smallest elements along a dimension, in order, and their indices.

    Parameters
    ----------
    {input}
    k : int
        Number of elements, from 0 to the size of the dimension.
    {last_dim}
    largest : bool, default: True
        Whether to return the largest elements. If False, the smallest are returned.
    sorted : bool, default: True
        Whether to sort the elements, the most extreme first. They always are.
    {outs}

    Returns
    -------
    values : Tensor
        Shape of `input` with size `k` along the dimension, same dtype.
    indices : Tensor
        Indices of the values along the dimension in `input`: same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `k` is negative or larger than the size of the dimension, or if `input` is boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.topk(gl.tensor([1., 5., 3., 4.]), 2)
    >>> values, indices
    (tensor([5., 4.]), tensor([1, 3]))
    """
    x = input.array
    axis = negative_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(f"selected index k out of range. k={k} of {x.shape[axis] if x.ndim else 1} elements along dim {dim}.")
    if x.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU. Call .int() first.")
    if not x.ndim:
        return TOPK.of_scalar(input)
    n, xp = x.shape[axis], namespace_of[type(x)]
    if k == 1 and largest:
        return TOPK(input, axis, x.argmax(axis=axis, keepdims=True), True)
    if n < 8 * k or n < MIN_SIZE_PARTITION:
        return TOPK(input, axis, slice_along(stable_order(x, axis, largest), (axis,), 0, k), True)
    chosen = xp.argpartition(x, n - k if largest else k - 1, axis=axis)  # select the k elements first, then sort them
    chosen = xp.sort(slice_along(chosen, (axis,), n - k if largest else 0, n if largest else k), axis=axis)
    order = stable_order(xp.take_along_axis(x, chosen, axis=axis), axis, largest)
    return TOPK(input, axis, xp.take_along_axis(chosen, order, axis=axis), True)


@composite()
@takes_axis
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """Return the `k`-th smallest element along a dimension, and its index.

    Parameters
    ----------
    {input}
    k : int
        Rank of the element, counted from 1.
    {last_dim}
    {keepdim}
    {outs}

    Returns
    -------
    values : Tensor
        Shape of `input` without the dimension, same dtype.
    indices : Tensor
        Indices of the values along the dimension in `input`: same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `k` is less than 1 or larger than the size of the dimension.

    Notes
    -----
    NaN counts as larger than any number.

    Examples
    --------
    >>> import gradlab as gl
    >>> value, index = gl.kthvalue(gl.tensor([3., 1., 2.]), 2)
    >>> value, index
    (tensor(2.), tensor(2))
    """
    x = input.array
    axis = negative_dim(dim, x.ndim)
    if error := empty_reduction_error("kthvalue", x.shape, (axis,) * bool(x.ndim)):
        raise error
    if not 1 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {axis + x.ndim if x.ndim else 0}. k={k} of "
            f"{x.shape[axis] if x.ndim else 1} elements, counted from 1."
        )
    return KTHVALUE(input, axis, index_of_rank(x, axis, k - 1), keepdim) if x.ndim else KTHVALUE.of_scalar(input)


# ------------------------------------------------------------------------------------------------------ medians and modes
def _median(everything: Any, picking: ValuesAndIndices, places: Any, input: Tensor, dim: int | None, keepdim: bool) -> Any:
    x = input.array
    if x.dtype.kind == "b":
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'. Call .int() first.")
    if dim is None:
        return everything.record(input, axis=tuple(range(-x.ndim, 0)), keepdims=False)
    axis = negative_dim(dim, x.ndim)
    if not x.ndim:
        return picking.of_scalar(input)
    if error := empty_reduction_error("median", x.shape, (axis,)):
        raise error
    return picking(input, axis, places(namespace_of[type(x)], x, axis), keepdim)


@composite()
@takes_axis
def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Compute the median of all elements or along one dimension. For an even number of elements, it is the lower one.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    out : Tensor or tuple of Tensor, optional
        Tensor to write the result to, or two tensors for values and indices if `dim` is given. Not allowed if a gradient is
        required.

    Returns
    -------
    Tensor or Result
        For all elements, a 0-d tensor of the dtype of `input`. Along a dimension, (values, indices), each with the shape of
        `input` without that dimension. The indices are int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `dim` is out of range, or if the dimension is empty.
    NotImplementedError
        If `input` is boolean.

    Notes
    -----
    If any of the elements is NaN, the median is NaN. The gradient of the median of all elements is shared evenly among the
    elements equal to it. Along a dimension, the gradient flows to the element at the returned index.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.median(gl.tensor([4., 1., 3., 2.]))
    tensor(2.)
    """
    return _median(rules.median, MEDIAN, median_indices, input, dim, keepdim)


@composite()
@takes_axis
def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Compute the median of the elements that are not NaN. For an even number of elements, it is the lower one.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    out : Tensor or tuple of Tensor, optional
        Tensor to write the result to, or two tensors for values and indices if `dim` is given. Not allowed if a gradient is
        required.

    Returns
    -------
    Tensor or Result
        For all elements, a 0-d tensor of the dtype of `input`. Along a dimension, (values, indices), each with the shape of
        `input` without that dimension. The indices are int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `dim` is out of range, or if the dimension is empty.
    NotImplementedError
        If `input` is boolean.

    Notes
    -----
    If all elements are NaN, the median is NaN. The gradient of the median of all elements is shared evenly among the elements
    equal to it. Along a dimension, the gradient flows to the element at the returned index.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nanmedian(gl.tensor([4., float("nan"), 3., 2.]))
    tensor(3.)
    """
    return _median(rules.nanmedian, NANMEDIAN, nanmedian_indices, input, dim, keepdim)


def median_indices(xp: Any, x: Any, axis: int) -> Any:
    """Return the index of the lower median along an axis, or of the first NaN if there is one."""
    middle = index_of_rank(x, axis, (x.shape[axis] - 1) // 2)
    if x.dtype.kind != "f":
        return middle
    nans = x != x
    return xp.where(nans.any(axis=axis, keepdims=True), nans.argmax(axis=axis, keepdims=True), middle)


def nanmedian_indices(xp: Any, x: Any, axis: int) -> Any:
    """Return the index of the lower median of the elements that are not NaN."""
    numbers = (x == x).sum(axis=axis, keepdims=True)
    return xp.take_along_axis(stable_order(x, axis), xp.maximum(numbers - 1, 0) // 2, axis=axis)


@composite()
@takes_axis
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """Return the most frequent element along a dimension, and its last index.

    Parameters
    ----------
    {input}
    {last_dim}
    {keepdim}
    {outs}

    Returns
    -------
    values : Tensor
        Shape of `input` without the dimension, same dtype.
    indices : Tensor
        Indices of the values along the dimension in `input`: same shape, int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `dim` is out of range, or if the dimension is empty.

    Notes
    -----
    If several elements are equally frequent, the smallest is returned.

    Examples
    --------
    >>> import gradlab as gl
    >>> value, index = gl.mode(gl.tensor([1, 2, 2, 3]))
    >>> value, index
    (tensor(2), tensor(2))
    """
    x = input.array
    axis = negative_dim(dim, x.ndim)
    if not x.ndim:
        return MODE.of_scalar(input)
    if error := empty_reduction_error("mode", x.shape, (axis,)):
        raise error
    xp = namespace_of[type(x)]
    order = stable_order(x, axis)
    ranked = xp.moveaxis(xp.take_along_axis(x, order, axis=axis), axis, -1)
    starts = xp.concatenate([xp.ones((*ranked.shape[:-1], 1), dtype=bool), ranked[..., 1:] != ranked[..., :-1]], axis=-1)
    at = xp.arange(x.shape[axis])
    equals_before = at - accumulate_along(xp, "maximum", xp.where(starts, at, 0), -1)
    longest = xp.moveaxis(equals_before.argmax(axis=-1, keepdims=True), -1, axis)
    return MODE(input, axis, xp.take_along_axis(order, longest, axis=axis), keepdim)
