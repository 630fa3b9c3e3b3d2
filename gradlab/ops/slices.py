"""Select, add, replace and reduce slices of a dimension at the indices in a vector.

`index_put` is x[indices] = values as a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_axis_indices
from gradlab.backend.namespaces import namespace_of, to_host
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_disjoint_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import convert_number, negative_dim, not_a_tensor
from gradlab.ops.copies import make_contiguous
from gradlab.ops.gather_scatter import REDUCE_OPERATIONS, index_grid, reduce_into
from gradlab.ops.indexed_writes import (
    FULL,
    Write,
    as_zero_dim,
    at_least_1d,
    check_range,
    copy_index,
    index_steps,
    restore_rank,
    tensor_argument,
    with_twin,
)
from gradlab.ops.indexing import (
    INDEX_PUT,
    broadcast_value,
    check_dtypes,
    count_axes,
    index_error,
    index_to_steps,
    move_to_device_of,
)
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import indexing as rules
from gradlab.rules.writing import overwrite, pick

__all__ = ["index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select"]

INDEX_SELECT = rules.getitem.with_node("IndexSelectBackward0", view=False)
INDEX_COPY, INDEX_FILL, INDEX_FILL_TENSOR = (
    overwrite.with_node(name) for name in ("IndexCopyBackward0", "IndexFillBackward0", "IndexFillBackward1")
)
INDEX_FILL_WHERE = el.where.with_node("IndexFillBackward1")


def index_along(x: Tensor, axis: int, at: Any) -> tuple[Any, ...]:
    """Return the index that selects slices along a negative axis."""
    return (FULL,) * (x.array.ndim + axis) + (at,)


@composite()
@takes_disjoint_out
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Select slices of a dimension by their indices.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {out}

    Returns
    -------
    Tensor
        A copy, with one slice along `dim` for each index.

    Raises
    ------
    TypeError
        If `index` is not a Tensor.
    IndexError
        If an index is negative or out of range, or if `index` has more than one dimension.
    RuntimeError
        If `index` is neither int64 nor int32.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_select(gl.tensor([[1, 2, 3], [4, 5, 6]]), 1, gl.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    array = tensor_argument("index_select", index, "index", 2).array
    axis = negative_dim(dim, input.array.ndim or 1)
    if array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if array.dtype.kind != "i" or array.itemsize < 4:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    at, x = copy_index(index).reshape(-1), at_least_1d(input)
    check_axis_indices("index_select", at, x.array.shape[axis], lambda wrong: IndexError("index out of range in self"))
    return restore_rank(make_contiguous(INDEX_SELECT.record(x, index=index_along(x, axis, at), skip=0)), input)


def check_slice_tensors(name: str, **arguments: Any) -> None:
    """Raise an error if an argument is not a Tensor. `dim` is between the first argument and the others."""
    for (argument, x), position in zip(arguments.items(), (1, 3, 4), strict=False):
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, argument, position)


def parse_slice_write(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, error: type[Exception] = RuntimeError, words: str = ""
) -> tuple[int, Any]:
    """Check the arguments of a write of slices as PyTorch does. Return the negative axis and the indices along it."""
    check_slice_tensors(name, input=input, index=index, source=source)
    axis = negative_dim(dim, input.array.ndim or 1)
    array, d = index.array, axis + (input.array.ndim or 1)
    if array.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {array.ndim} with type: "
            f"{index.dtype.word} and size: {list(array.shape)}"
        )
    if array.dtype.kind != "i" or array.itemsize < 4:
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {index.dtype.word}")
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            f"{name}_(): self ({input.dtype.word}) and source ({source.dtype.word}) must have the same scalar type"
        )
    have, source_shape = input.array.shape, source.array.shape
    if len(have) != len(source_shape) or have[:d] + have[d + 1 :] != source_shape[:d] + source_shape[d + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape "
            f"= {list(have)} source.shape = {list(source_shape)}"
        )
    if (source_shape or (1,))[axis] != array.size:
        raise RuntimeError(
            f"{name}_(): Number of indices ({array.size}) should be equal to source.size(dim): "
            f"({(source_shape or (1,))[axis]}), for dim: {d}"
        )
    at = copy_index(index).reshape(-1)
    n = (have or (1,))[axis]
    check_axis_indices(
        name, at, n, lambda wrong: error(words or f"index {wrong} is out of bounds for dimension {d} with size {n}")
    )
    return axis, at


@composite(inplace="method")
@with_twin
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1, out: Tensor | None = None
) -> Tensor | Write:
    """Return a copy with slices added to those at the given indices of a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {source_slices}
    alpha : number, default: 1
        Multiplier of `source`.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`. All slices for a repeated index are added.

    Raises
    ------
    IndexError
        If `index` has more than one dimension.
    RuntimeError
        If the dtypes differ, if an index is negative or out of range, or if the shapes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_add(gl.zeros(3), 0, gl.tensor([0, 2, 0]), gl.tensor([1., 2., 3.]), alpha=10)
    tensor([40.,  0., 20.])
    """
    axis, at = parse_slice_write("index_add", input, dim, index, source)
    x = at_least_1d(input)
    scaled = source if alpha == 1 else source * convert_number(alpha, source.array.dtype)
    return rules.index_add, index_along(x, axis, at), at_least_1d(scaled)


INDEX_REDUCTIONS = tuple([op.with_node("IndexReduceBackward0") for op in REDUCE_OPERATIONS])


@composite(inplace="method")
@takes_disjoint_out
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy in which slices are reduced into those at the given indices of a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {source_slices}
    reduce : {"prod", "mean", "amax", "amin"}
        Reduction to apply, element by element.
    {include_self}
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`. The gradient of a maximum or minimum is shared evenly among ties.

    Raises
    ------
    IndexError
        If an index is negative or out of range, or if `index` has more than one dimension.
    RuntimeError
        If `reduce` is unknown, if the dtypes differ, or if the shapes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_reduce(gl.ones(2), 0, gl.tensor([0, 1, 0]), gl.tensor([2., 3., 5.]), "prod")
    tensor([10.,  3.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis, at = parse_slice_write("index_reduce", input, dim, index, source, IndexError, "index out of range in self")
    patch = at_least_1d(source)
    along = at.reshape(-1, *(1,) * (-axis - 1))
    whole = namespace_of[type(at)].broadcast_to(along, patch.array.shape)
    if not patch.array.size:
        return restore_rank(INDEX_REDUCTIONS[0].record(at_least_1d(input), patch, index=index_grid(whole, axis)), input)
    return reduce_into(input, patch, index_grid(whole, axis), reduce, include_self, INDEX_REDUCTIONS)


@composite(inplace="method")
@with_twin
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """Return a copy with slices replaced at the given indices of a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    index : Tensor
        Indices of the slices: int64, 0-d or 1-d.
    {source_slices}
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    IndexError
        If an index is negative or out of range, if `index` has more than one dimension, or if there is not one slice for each
        index.
    RuntimeError
        If the dtypes differ, if `index` is not int64, or if the shapes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_copy(gl.zeros(3), 0, gl.tensor([2, 0]), gl.tensor([5., 7.]))
    tensor([7., 0., 5.])
    """
    check_slice_tensors("index_copy", input=input, index=index, source=source)
    axis, array = negative_dim(dim, input.array.ndim or 1), index.array
    d = axis + (input.array.ndim or 1)
    if array.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {array.ndim})")
    if array.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.word}")
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.word} and (source) {source.dtype.word}"
        )
    x, source = at_least_1d(input), at_least_1d(source)
    have, source_shape = x.array.shape, source.array.shape
    if len(have) != len(source_shape):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(source_shape)}), destination dimensionality ({len(have)})"
        )
    if have[:d] + have[d + 1 :] != source_shape[:d] + source_shape[d + 1 :]:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, have[:d] + have[d + 1 :]))} at dimension {d} and source slice shape: "
            f"{' '.join(map(str, source_shape[:d] + source_shape[d + 1 :]))} at dimension 0."
        )
    if source_shape[axis] != array.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({array.size}) should be equal to source.size(dim) ({source_shape[axis]})"
        )
    at = copy_index(index).reshape(-1)
    check_range("index_copy", at, have[axis], d, IndexError, "index_copy_(): ")
    return INDEX_COPY, index_along(x, axis, at), source


@composite(inplace="method")
@with_twin
def index_fill(input: Tensor, dim: int, index: Tensor, value: float | Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """Return a copy with slices of a dimension filled with one value.

    Parameters
    ----------
    {input}
    {dimension}
    index : Tensor
        Indices of the slices: int64, 0-d or 1-d. Negative indices count from the end.
    value : number or 0-d Tensor
        Fill value.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`. No gradient reaches `input` at the filled slices.

    Raises
    ------
    IndexError
        If an index is out of range, or if `index` is not int64.
    RuntimeError
        If `index` has more than one dimension, or if `value` is not 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_fill(gl.zeros(2, 3), 1, gl.tensor([0, 2]), 5)
    tensor([[5., 0., 5.],
            [5., 0., 5.]])
    """
    check_slice_tensors("index_fill", input=input, index=index)
    axis, array = negative_dim(dim, input.array.ndim or 1), index.array
    if array.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    x, at = at_least_1d(input), copy_index(index).reshape(-1)
    n = x.array.shape[axis]
    check_range("index_fill", at, n, axis + x.array.ndim, IndexError, negative=True)
    shape = (*x.array.shape[:axis], at.size, *x.array.shape[axis:][1:])
    one = as_zero_dim("index_fill_", value, input.array)
    if one.node is not None:  # a repeated index counts once in the gradient of `value`
        filled = namespace_of[type(x.array)].zeros(n, dtype=bool)
        filled[at] = True
        return restore_rank(INDEX_FILL_WHERE.record(constant(filled.reshape(n, *(1,) * (-axis - 1))), one, x), input)
    patch = broadcast_value(one, shape, True)
    return INDEX_FILL_TENSOR if isinstance(value, Tensor) else INDEX_FILL, index_along(x, axis, at % n if n else at), patch


@composite(inplace="method")
@with_twin
def index_put(
    input: Tensor,
    indices: Sequence[Tensor],
    values: Tensor,
    accumulate: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor | Write:
    """Return a copy with values written as in `x[indices] = values`.

    Parameters
    ----------
    {input}
    indices : sequence of Tensor
        Tensors of integers or bools, one for each dimension from the first on. A mask covers as many dimensions as it has.
    values : Tensor
        Values to write, of a shape that broadcasts to that of `x[indices]`.
    accumulate : bool, default: False
        Whether to add the values instead. Values at repeated indices are then summed.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    TypeError
        If `indices` is not a list or tuple of Tensors, or if `values` is not a Tensor.
    IndexError
        If there are too many indices, or if one is out of range.
    RuntimeError
        If the dtypes differ, or if the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_put(gl.zeros(3), [gl.tensor([0, 0, 2])], gl.tensor([1., 2., 3.]), accumulate=True)
    tensor([3., 0., 3.])
    """
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}")
    for i, x in enumerate(indices):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    tensor_argument("index_put", values, "values", 2)
    whole = tuple(x if x.array.ndim else reshape(x, (1,)) for x in indices)
    if (used := sum(map(count_axes, (x.array for x in whole)))) > input.array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.array.ndim} (got {used})")
    steps = move_to_device_of(index_to_steps(whole, input.array.shape), input.array)
    index = steps[-1][1]
    try:
        shape = pick(
            np.broadcast_to(0, input.array.shape),
            index_steps(
                tuple(  # for integers, only the shape matters
                    i if type(i) in (slice, np.ndarray) else to_host(i) if i.dtype == bool else np.zeros(i.shape, int)
                    for i in index
                )
            ),
        ).shape
    except IndexError as error:
        raise index_error(error, steps, input.array.shape) from None
    patch = broadcast_value(values, shape, True)
    check_dtypes(input, values, index)
    return INDEX_ADD_PUT if accumulate else INDEX_PUT, index, patch


INDEX_ADD_PUT = rules.index_add.with_node("IndexPutBackward0")
