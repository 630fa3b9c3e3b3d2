"""Elements chosen by a mask of bools, or because they are not 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.destination import takes_out_apart
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED
from gradlab.ops.arguments import number
from gradlab.ops.broadcasting import expand, joint_shape
from gradlab.ops.indexed_writes import SLICE, no_overload, region, with_an_axis, with_twin, zero_dim
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


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with a number, or a 0-d tensor, where the mask holds; the two broadcast."""
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, bool, int, float, np.generic)):
        raise no_overload("masked_fill", (mask, value), "Tensor mask, Tensor value", "Tensor mask, Number value")
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_name}")
    if isinstance(value, Tensor):
        value = zero_dim("masked_fill_", value, input.array)
        if value.node is not None or WATCHED:
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


@takes_out_apart
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, in a row; the two broadcast."""
    if mask.array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = joint_shape(mask.array.shape, input.array.shape) or (1,)
    x = input if input.array.shape == shape else expand(input, shape)
    return MASKED_SELECT.record(x, index=(expand(mask, shape).array.copy(),), skip=0)


@with_twin
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """A copy with the elements of `source`, in order, where the mask holds."""
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


@takes_out_apart
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0, one in a row; as a tuple, one tensor for each axis, which is an index."""
    array = input.array
    found = (array if array.ndim else array.reshape(1)).nonzero()
    if as_tuple:
        return tuple(constant(i) for i in found)
    xp = namespace_of[type(array)]
    if not array.ndim:
        return constant(xp.zeros((found[0].size, 0), dtype=np.int64))
    return constant(xp.stack(found).T)


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, one in a row."""
    return nonzero(input)
