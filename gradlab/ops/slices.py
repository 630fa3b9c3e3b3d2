"""Slices of a dimension, read by a vector of integers, or written, added or combined at the places it names.

And `index_put`, which is x[indices] = values as a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import host, namespace_of
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out_apart
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor, number, one_dim
from gradlab.ops.copies import in_order
from gradlab.ops.gather_scatter import REDUCING, grid, reduced
from gradlab.ops.indexed_writes import (
    FULL,
    Write,
    check_range,
    in_rank_of,
    places,
    region,
    tensor_argument,
    with_an_axis,
    with_twin,
    zero_dim,
)
from gradlab.ops.indexing import INDEX_PUT, axes_used, beside, check_dtypes, misfit, spread_over, steps_for
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import indexing as rules
from gradlab.rules.writing import overwrite, pick

__all__ = ["index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select"]

INDEX_SELECT = rules.getitem.named("IndexSelectBackward0", view=False)
INDEX_COPY, INDEX_FILL, INDEX_FILL_TENSOR = (
    overwrite.named(name) for name in ("IndexCopyBackward0", "IndexFillBackward0", "IndexFillBackward1")
)
FILLED = el.where.named("IndexFillBackward1")


def before(x: Tensor, axis: int, at: Any) -> tuple[Any, ...]:
    """The index that picks slices along a negative axis."""
    return (FULL,) * (x.array.ndim + axis) + (at,)


@composed()
@takes_out_apart
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of a dimension at several indices.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {out}

    Returns
    -------
    Tensor
        A copy, as long along `dim` as `index` is.

    Raises
    ------
    TypeError
        If `index` is no tensor.
    IndexError
        If an index is out of range (a negative one too), or `index` has several dimensions.
    RuntimeError
        If it holds neither int64 nor int32.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_select(gl.tensor([[1, 2, 3], [4, 5, 6]]), 1, gl.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    array = tensor_argument("index_select", index, "index", 2).array
    axis = one_dim(dim, input.array.ndim or 1)
    if array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if array.dtype.kind != "i" or array.itemsize < 4:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    at, x = places(index).reshape(-1), with_an_axis(input)
    on_axis("index_select", at, x.array.shape[axis], lambda wrong: IndexError("index out of range in self"))
    return in_rank_of(in_order(INDEX_SELECT.record(x, index=before(x, axis, at), skip=0)), input)


def check_slices(name: str, **arguments: Any) -> None:
    """Refuse what is no tensor. (`dim` stands between the first and the others.)"""
    for (argument, x), position in zip(arguments.items(), (1, 3, 4), strict=False):
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, argument, position)


def slices(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor, error: type[Exception] = RuntimeError, words: str = ""
) -> tuple[int, Any]:
    """The (negative) axis along which slices of `source` go to those of `input`, and where they go, checked as torch checks."""
    check_slices(name, input=input, index=index, source=source)
    axis = one_dim(dim, input.array.ndim or 1)
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
    at = places(index).reshape(-1)
    n = (have or (1,))[axis]
    on_axis(name, at, n, lambda wrong: error(words or f"index {wrong} is out of bounds for dimension {d} with size {n}"))
    return axis, at


@composed(inplace="method")
@with_twin
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1, out: Tensor | None = None
) -> Tensor | Write:
    """A copy with slices added to those of a dimension, each as often as its index comes up.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {source_slices}
    alpha : number, default 1
        A factor of `source`.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    IndexError
        If `index` has several dimensions.
    RuntimeError
        If the dtypes differ, an index is out of range (a negative one too), or the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_add(gl.zeros(3), 0, gl.tensor([0, 2, 0]), gl.tensor([1., 2., 3.]), alpha=10)
    tensor([40.,  0., 20.])
    """
    axis, at = slices("index_add", input, dim, index, source)
    x = with_an_axis(input)
    scaled = source if alpha == 1 else source * number(alpha, source.array.dtype)
    return rules.index_add, before(x, axis, at), with_an_axis(scaled)


BY_INDEX = tuple([op.named("IndexReduceBackward0") for op in REDUCING])


@composed(inplace="method")
@takes_out_apart
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
    """A copy in which each slice that an index names holds a reduction of the slices that go there.

    Parameters
    ----------
    {input}
    {dimension}
    {slices}
    {source_slices}
    reduce : {"prod", "mean", "amax", "amin"}
        The reduction, element by element.
    {include_self}
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`. The gradient of an extreme is shared evenly among ties.

    Raises
    ------
    IndexError
        If an index is out of range (a negative one too), or `index` has several dimensions.
    RuntimeError
        If `reduce` is unknown, the dtypes differ, or the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_reduce(gl.ones(2), 0, gl.tensor([0, 1, 0]), gl.tensor([2., 3., 5.]), "prod")
    tensor([10.,  3.])
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    axis, at = slices("index_reduce", input, dim, index, source, IndexError, "index out of range in self")
    patch = with_an_axis(source)
    along = at.reshape(-1, *(1,) * (-axis - 1))
    whole = namespace_of[type(at)].broadcast_to(along, patch.array.shape)
    if not patch.array.size:
        return in_rank_of(BY_INDEX[0].record(with_an_axis(input), patch, index=grid(whole, axis)), input)
    return reduced(input, patch, grid(whole, axis), reduce, include_self, BY_INDEX)


@composed(inplace="method")
@with_twin
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """A copy with other slices at several indices of a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    index : Tensor
        int64, 0-d or 1-d: which slices of the dimension.
    {source_slices}
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    IndexError
        If an index is out of range (a negative one too), `index` has several dimensions, or there are not as many slices.
    RuntimeError
        If the dtypes differ, `index` is not int64, or the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_copy(gl.zeros(3), 0, gl.tensor([2, 0]), gl.tensor([5., 7.]))
    tensor([7., 0., 5.])
    """
    check_slices("index_copy", input=input, index=index, source=source)
    axis, array = one_dim(dim, input.array.ndim or 1), index.array
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
    x, source = with_an_axis(input), with_an_axis(source)
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
    at = places(index).reshape(-1)
    check_range("index_copy", at, have[axis], d, IndexError, "index_copy_(): ")
    return INDEX_COPY, before(x, axis, at), source


@composed(inplace="method")
@with_twin
def index_fill(input: Tensor, dim: int, index: Tensor, value: float | Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    """A copy with one number in several slices of a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    index : Tensor
        int64, 0-d or 1-d: which slices; negative ones count from the end.
    value : number or 0-d Tensor
        The number.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`. No gradient passes where it was filled.

    Raises
    ------
    IndexError
        If an index is out of range, or `index` is not int64.
    RuntimeError
        If `index` has several dimensions, or `value` has any.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.index_fill(gl.zeros(2, 3), 1, gl.tensor([0, 2]), 5)
    tensor([[5., 0., 5.],
            [5., 0., 5.]])
    """
    check_slices("index_fill", input=input, index=index)
    axis, array = one_dim(dim, input.array.ndim or 1), index.array
    if array.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    x, at = with_an_axis(input), places(index).reshape(-1)
    n = x.array.shape[axis]
    check_range("index_fill", at, n, axis + x.array.ndim, IndexError, negative=True)
    shape = (*x.array.shape[:axis], at.size, *x.array.shape[axis:][1:])
    one = zero_dim("index_fill_", value, input.array)
    if one.node is not None:  # each place counts once in its gradient
        filled = namespace_of[type(x.array)].zeros(n, dtype=bool)
        filled[at] = True
        return in_rank_of(FILLED.record(constant(filled.reshape(n, *(1,) * (-axis - 1))), one, x), input)
    patch = spread_over(one, shape, True)
    return INDEX_FILL_TENSOR if isinstance(value, Tensor) else INDEX_FILL, before(x, axis, at % n if n else at), patch


@composed(inplace="method")
@with_twin
def index_put(
    input: Tensor,
    indices: Sequence[Tensor],
    values: Tensor,
    accumulate: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor | Write:
    """A copy of which `x[indices] = values`.

    Parameters
    ----------
    {input}
    indices : sequence of Tensor
        Tensors of integers or of bools, one for each dimension from the first on (a mask for as many as it has).
    values : Tensor
        What is written, of a shape that broadcasts to that of `x[indices]`.
    accumulate : bool, default False
        Whether it is added instead, each as often as its place comes up.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    TypeError
        If `indices` is no list or tuple of tensors, or `values` no tensor.
    IndexError
        If there are too many indices, or one is out of range.
    RuntimeError
        If the dtypes differ, or the shapes do not broadcast.

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
    if (used := sum(map(axes_used, (x.array for x in whole)))) > input.array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.array.ndim} (got {used})")
    steps = beside(steps_for(whole, input.array.shape), input.array)
    index = steps[-1][1]
    try:
        shape = pick(
            np.broadcast_to(0, input.array.shape),
            region(
                tuple(  # of numbers the shape alone counts
                    i if type(i) in (slice, np.ndarray) else host(i) if i.dtype == bool else np.zeros(i.shape, int) for i in index
                )
            ),
        ).shape
    except IndexError as error:
        raise misfit(error, steps, input.array.shape) from None
    patch = spread_over(values, shape, True)
    check_dtypes(input, values, index)
    return INDEX_ADD_PUT if accumulate else INDEX_PUT, index, patch


INDEX_ADD_PUT = rules.index_add.named("IndexPutBackward0")
