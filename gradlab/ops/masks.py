"""Select and fill elements by a boolean mask, and find the nonzero elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.observers import OBSERVERS
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_disjoint_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, convert_number, not_a_tensor
from gradlab.ops.broadcasting import expand, joint_shape
from gradlab.ops.indexed_writes import SLICE, Write, as_zero_dim, at_least_1d, index_steps, no_overload_error, with_twin
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import indexing as rules
from gradlab.rules.writing import overwrite

__all__ = [
    "argwhere",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
]
MASKED_SELECT = rules.getitem.with_node("MaskedSelectBackward0", view=False)

MASKED_SCATTER, MASKED_FILL_TENSOR = overwrite.with_node("MaskedScatterBackward0"), el.where.with_node("MaskedFillBackward1")


@composite(inplace="method")
def masked_fill(input: Tensor, mask: Tensor, value: float | Tensor) -> Tensor:
    """Return a copy with elements replaced by one value where a mask is True.

    Parameters
    ----------
    {input}
    {mask}
    value : number or 0-d Tensor
        Fill value.

    Returns
    -------
    Tensor
        A copy, of the dtype of `input` and the broadcast shape of `input` and `mask`. No gradient reaches `input` where the
        mask is True.

    Raises
    ------
    TypeError
        If `mask` is not a Tensor, or if `value` is neither a number nor a Tensor.
    RuntimeError
        If `mask` is not boolean, if the shapes do not broadcast, or if `value` is not 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.masked_fill(gl.tensor([1., 2., 3.]), gl.tensor([False, True, False]), 0)
    tensor([1., 0., 3.])
    """
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, bool, int, float, np.generic)):
        raise no_overload_error("masked_fill", (mask, value), "Tensor mask, Tensor value", "Tensor mask, Number value")
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_name}")
    if isinstance(value, Tensor):
        value = as_zero_dim("masked_fill_", value, input.array)
        if value.node is not None or OBSERVERS:
            joint_shape(mask.array.shape, input.array.shape)
            return MASKED_FILL_TENSOR.record(constant(mask.array.copy()), value, input)
        value = value.array.item()
    saved_mask = mask.array.copy() if input.node is not None else mask.array
    if input.array.dtype.kind != "f":
        value = convert_number(value, input.array.dtype)
    try:
        return rules.masked_fill.record(input, mask=saved_mask, value=value)
    except ValueError:
        joint_shape(mask.array.shape, input.array.shape)
        raise


@composite()
@takes_disjoint_out
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements at which a mask is True.

    Parameters
    ----------
    {input}
    {mask}
    {out}

    Returns
    -------
    Tensor
        A 1-d copy.

    Raises
    ------
    RuntimeError
        If `mask` is not boolean, or if the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1., -2., 3.])
    >>> gl.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    check_tensors("masked_select", input=input, mask=mask)
    if mask.array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = joint_shape(mask.array.shape, input.array.shape) or (1,)
    x = input if input.array.shape == shape else expand(input, shape)
    return MASKED_SELECT.record(x, index=(expand(mask, shape).array.copy(),), skip=0)


@composite(inplace="method")
@with_twin
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """Return a copy with elements of another tensor written, in order, where a mask is True.

    Parameters
    ----------
    {input}
    {mask}
    source : Tensor
        Elements to write, of the dtype of `input`. There must be at least as many as True values in the mask; the rest are
        unused.
    {out}

    Returns
    -------
    Tensor
        A copy, of the broadcast shape of `input` and `mask`.

    Raises
    ------
    RuntimeError
        If the dtypes differ, if `mask` is not boolean, if the shapes do not broadcast, or if `source` has too few elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.masked_scatter(gl.zeros(3), gl.tensor([True, False, True]), gl.tensor([5., 7.]))
    tensor([5., 0., 7.])
    """
    check_tensors("masked_scatter", input=input, mask=mask, source=source)
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.word} and {source.dtype.word}"
        )
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.word}")
    shape = joint_shape(mask.array.shape, input.array.shape)
    x = at_least_1d(input if input.array.shape == shape else expand(input, shape))
    at = expand(mask, x.array.shape).array.copy()
    count = int(at.sum())
    if count > source.array.size:
        raise RuntimeError(f"Number of elements of source < number of ones in mask. They are {source.array.size} and {count}.")
    flat = reshape(source, (source.array.size,))
    patch = SLICE.record(flat, index=(slice(0, count),), skip=0)
    if x.array.shape == (input.array.shape or (1,)):
        return MASKED_SCATTER, (at,), patch
    return MASKED_SCATTER.record(x, patch, steps=index_steps((at,)))


@composite()
@takes_disjoint_out
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Return the indices of the nonzero elements.

    Parameters
    ----------
    {input}
    as_tuple : bool, default: False
        Whether to return one tensor for each dimension. Together they index the tensor: `x[x.nonzero(as_tuple=True)]`.
    {out}

    Returns
    -------
    Tensor or tuple of Tensor
        int64, with one index per row. It never requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nonzero(gl.tensor([[1, 0], [0, 3]]))
    tensor([[0, 0],
            [1, 1]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("nonzero", input)
    array = input.array
    coordinates = (array if array.ndim else array.reshape(1)).nonzero()
    if as_tuple:
        return tuple(constant(as_long(i)) for i in coordinates)
    xp = namespace_of[type(array)]
    if not array.ndim:
        return constant(xp.zeros((coordinates[0].size, 0), dtype=np.int64))
    return constant(as_long(xp.stack(coordinates)).T)


@composite()
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements, one per row. Alias of `nonzero`, as in NumPy.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        int64, with one row for each nonzero element. It never requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argwhere(gl.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("argwhere", input)
    return nonzero(input)
