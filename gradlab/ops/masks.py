"""Elements chosen by a mask of bools, or because they are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.observers import OBSERVERS
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out_apart
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, not_a_tensor, number
from gradlab.ops.broadcasting import expand, joint_shape
from gradlab.ops.indexed_writes import SLICE, Write, no_overload, region, with_an_axis, with_twin, zero_dim
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
MASKED_SELECT = rules.getitem.named("MaskedSelectBackward0", view=False)

MASKED_SCATTER, MASKED_FILL_TENSOR = overwrite.named("MaskedScatterBackward0"), el.where.named("MaskedFillBackward1")


@composed(inplace="method")
def masked_fill(input: Tensor, mask: Tensor, value: float | Tensor) -> Tensor:
    """A copy with one number where a mask holds.

    Parameters
    ----------
    {input}
    {mask}
    value : number or 0-d Tensor
        The number.

    Returns
    -------
    Tensor
        A copy, of the dtype of `input` and the shape that the two broadcast to. No gradient passes where the mask holds.

    Raises
    ------
    TypeError
        If `mask` is no tensor, or `value` neither a number nor a tensor.
    RuntimeError
        If the mask holds no bools, the shapes do not broadcast, or `value` has dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.masked_fill(gl.tensor([1., 2., 3.]), gl.tensor([False, True, False]), 0)
    tensor([1., 0., 3.])
    """
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, bool, int, float, np.generic)):
        raise no_overload("masked_fill", (mask, value), "Tensor mask, Tensor value", "Tensor mask, Number value")
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_name}")
    if isinstance(value, Tensor):
        value = zero_dim("masked_fill_", value, input.array)
        if value.node is not None or OBSERVERS:
            joint_shape(mask.array.shape, input.array.shape)
            return MASKED_FILL_TENSOR.record(constant(mask.array.copy()), value, input)
        value = value.array.item()
    kept = mask.array.copy() if input.node is not None else mask.array
    if input.array.dtype.kind != "f":
        value = number(value, input.array.dtype)
    try:
        return rules.masked_fill.record(input, mask=kept, value=value)
    except ValueError:
        joint_shape(mask.array.shape, input.array.shape)
        raise


@composed()
@takes_out_apart
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where a mask holds.

    Parameters
    ----------
    {input}
    {mask}
    {out}

    Returns
    -------
    Tensor
        A copy, 1-d.

    Raises
    ------
    RuntimeError
        If the mask holds no bools, or the shapes do not broadcast.

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


@composed(inplace="method")
@with_twin
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """A copy with the elements of another tensor, in order, where a mask holds.

    Parameters
    ----------
    {input}
    {mask}
    source : Tensor
        The elements, of the dtype of `input` and at least as many as the mask holds for; those beyond are not used.
    {out}

    Returns
    -------
    Tensor
        A copy, of the shape that `input` and `mask` broadcast to.

    Raises
    ------
    RuntimeError
        If the dtypes differ, the mask holds no bools, the shapes do not broadcast, or there are too few elements.

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
    x = with_an_axis(input if input.array.shape == shape else expand(input, shape))
    at = expand(mask, x.array.shape).array.copy()
    count = int(at.sum())
    if count > source.array.size:
        raise RuntimeError(f"Number of elements of source < number of ones in mask. They are {source.array.size} and {count}.")
    flat = reshape(source, (source.array.size,))
    patch = SLICE.record(flat, index=(slice(0, count),), skip=0)
    if x.array.shape == (input.array.shape or (1,)):
        return MASKED_SCATTER, (at,), patch
    return MASKED_SCATTER.record(x, patch, steps=region((at,)))


@composed()
@takes_out_apart
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of the elements that are not 0.

    Parameters
    ----------
    {input}
    as_tuple : bool, default False
        Whether they are one tensor for each dimension, which together are an index: `x[x.nonzero(as_tuple=True)]`.
    {out}

    Returns
    -------
    Tensor or tuple of Tensor
        int64: one index in each row. It has no history.

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


@composed()
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, one in each row: `nonzero` under NumPy's name.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        int64, one row for each such element. It has no history.

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
