"""Sorting along an axis, and what is found by it: the largest k, medians, modes.

Places are found on the array. A sort is always stable: among equals the earlier comes first. A NaN counts as the greatest;
the values are then picked at them, and the gradient goes back to where they stood.
"""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim, over_dims
from gradlab.ops.extremes import empty_reduction
from gradlab.ops.results import Result, ValuesAndIndices
from gradlab.rules import reductions as rules
from gradlab.rules.cumulative import accumulated, part

__all__ = ["argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"]

SORT, TOPK, KTHVALUE = (ValuesAndIndices(name, f"{name.title()}Backward0") for name in ("sort", "topk", "kthvalue"))
STABLE_SORT = ValuesAndIndices("sort", "SortBackward1")
MODE = ValuesAndIndices("mode", "ModeBackward0")
MEDIAN, NANMEDIAN = (ValuesAndIndices(name, f"{name.title()}Backward1") for name in ("median", "nanmedian"))


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


@composed()
@over_dims
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> Result:
    """The elements in order along an axis, and where they stood.

    Parameters
    ----------
    {input}
    {last_dim}
    descending : bool, default False
        The largest first.
    stable : bool, optional
        Whether equals keep their order: they do in any case.
    {outs}

    Returns
    -------
    values : Tensor
        The shape of `input`, of its dtype.
    indices : Tensor
        Where they stand along the axis in `input`: the same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    A NaN counts as larger than all numbers. The gradient of a value goes to where it stood.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.sort(gl.tensor([3., 1., 2.]))
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    axis = one_dim(dim, input.array.ndim)
    picking = SORT if stable is None else STABLE_SORT
    return picking(input, axis, order_of(input.array, axis, descending), True) if input.array.ndim else picking.of_scalar(input)


@composed()
@over_dims
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Tensor | None = None) -> Tensor:
    """Where the elements stand that would be in order along an axis.

    Parameters
    ----------
    {input}
    {last_dim}
    descending : bool, default False
        The largest first.
    stable : bool, default False
        Whether equals keep their order: they do in any case.
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, int64. It has no history.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    A NaN counts as larger than all numbers.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argsort(gl.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    axis = one_dim(dim, input.array.ndim)
    return constant(as_long(order_of(input.array, axis, descending))) if input.array.ndim else SORT.of_scalar(input).indices


@composed()
@over_dims
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in ascending order along the first axis: the values of `sort(input, 0)`.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype.

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


@composed()
@over_dims
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: tuple[Tensor, Tensor] | None = None
) -> Result:
    """The `k` largest or smallest elements along an axis, in order, and where they stand.

    Parameters
    ----------
    {input}
    k : int
        How many, from 0 to the size of the axis.
    {last_dim}
    largest : bool, default True
        False for the smallest.
    sorted : bool, default True
        Whether they are in order, the most extreme first: they are in any case.
    {outs}

    Returns
    -------
    values : Tensor
        The shape of `input` with `k` elements along the axis, of its dtype.
    indices : Tensor
        Where they stand along the axis in `input`: the same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `k` is negative or above the size of the axis, or `input` holds bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.topk(gl.tensor([1., 5., 3., 4.]), 2)
    >>> values, indices
    (tensor([5., 4.]), tensor([1, 3]))
    """
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


@composed()
@over_dims
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """The `k`-th smallest element along an axis, and where it stands.

    Parameters
    ----------
    {input}
    k : int
        The rank, counted from 1.
    {last_dim}
    {keepdim}
    {outs}

    Returns
    -------
    values : Tensor
        The shape of `input` without the axis, of its dtype.
    indices : Tensor
        Where they stand along the axis in `input`: the same shape, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `k` is below 1 or above the size of the axis.

    Notes
    -----
    A NaN counts as larger than all numbers.

    Examples
    --------
    >>> import gradlab as gl
    >>> value, index = gl.kthvalue(gl.tensor([3., 1., 2.]), 2)
    >>> value, index
    (tensor(2.), tensor(2))
    """
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
def _median(everything: Any, picking: ValuesAndIndices, places: Any, input: Tensor, dim: int | None, keepdim: bool) -> Any:
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


@composed()
@over_dims
def median(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """The median of the elements, of all or along one axis: of an even number the lower one.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    out : Tensor or tuple of Tensor, optional
        Where the result is written: values and indices, if an axis is named. It is refused while a gradient is wanted.

    Returns
    -------
    Tensor or Result
        Of all elements, a 0-d tensor of the dtype of `input`; along an axis, (values, indices), each of the shape of `input`
        without it, the indices int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis, or it has no element.
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    What contains a NaN has the median NaN. Of all elements, a gradient is shared evenly among those that equal the
    median; along an axis it goes to the one that the index names.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.median(gl.tensor([4., 1., 3., 2.]))
    tensor(2.)
    """
    return _median(rules.median, MEDIAN, median_places, input, dim, keepdim)


@composed()
@over_dims
def nanmedian(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """The median of the elements that are not NaN, of all or along one axis: of an even number the lower one.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    out : Tensor or tuple of Tensor, optional
        Where the result is written: values and indices, if an axis is named. It is refused while a gradient is wanted.

    Returns
    -------
    Tensor or Result
        Of all elements, a 0-d tensor of the dtype of `input`; along an axis, (values, indices), each of the shape of `input`
        without it, the indices int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis, or it has no element.
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Of NaNs alone the median is NaN. Of all elements, a gradient is shared evenly among those that equal the
    median; along an axis it goes to the one that the index names.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nanmedian(gl.tensor([4., float("nan"), 3., 2.]))
    tensor(3.)
    """
    return _median(rules.nanmedian, NANMEDIAN, number_median_places, input, dim, keepdim)


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


@composed()
@over_dims
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """The most frequent element along an axis, and where it stands last.

    Parameters
    ----------
    {input}
    {last_dim}
    {keepdim}
    {outs}

    Returns
    -------
    values : Tensor
        The shape of `input` without the axis, of its dtype.
    indices : Tensor
        Where they stand along the axis in `input`: the same shape, int64.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis, or it has no element.

    Notes
    -----
    Of several that are equally frequent, it is the smallest.

    Examples
    --------
    >>> import gradlab as gl
    >>> value, index = gl.mode(gl.tensor([1, 2, 2, 3]))
    >>> value, index
    (tensor(2), tensor(2))
    """
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
