"""Gather elements along a dimension by a tensor of indices, and write, add or reduce elements at indices."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from gradlab.backend.accumulate import add_at
from gradlab.backend.namespaces import namespace_of
from gradlab.core.observers import OBSERVERS, notify_index
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_disjoint_out, takes_out
from gradlab.core.promotion import cast
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, convert_number, negative_dim
from gradlab.ops.broadcasting import expand, joint_shape
from gradlab.ops.indexed_writes import (
    PICK,
    SLICE,
    Write,
    at_least_1d,
    check_range,
    copy_index,
    index_steps,
    no_overload_error,
    restore_rank,
    tensor_argument,
    with_twin,
)
from gradlab.ops.joins import cat
from gradlab.ops.shapes import reshape, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import indexing as rules
from gradlab.rules import reductions
from gradlab.rules.shapes import reshape as reshape_rule
from gradlab.rules.writing import overwrite

__all__ = [
    "gather",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "take_along_dim",
]


@composite()
@takes_disjoint_out
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    r"""Gather elements along a dimension at the given indices.

    Parameters
    ----------
    {input}
    {dimension}
    {index}
        In dimensions other than `dim`, its size must not exceed that of `input`.
    sparse_grad : bool, default: False
        Accepted for compatibility with PyTorch; it has no effect.
    {out}

    Returns
    -------
    Tensor
        A copy with the shape of `index`.

    Raises
    ------
    TypeError
        If `index` is not a Tensor.
    RuntimeError
        If `index` is not int64 or int32, an index is negative or out of range, or the shapes do not match.

    Notes
    -----
    For three dimensions and dim=1:

    .. math:: y_{ijk} = x_{i,\,index_{ijk},\,k}

    In the backward pass, the gradient is added at the indices that were read: `scatter_add` is the adjoint.

    Examples
    --------
    >>> import gradlab as gl
    >>> logits = gl.tensor([[1., 2.], [3., 4.]], requires_grad=True)
    >>> picked = gl.gather(logits, 1, gl.tensor([[1], [0]]))
    >>> picked.detach()
    tensor([[2.],
            [3.]])
    >>> picked.sum().backward()
    >>> logits.grad
    tensor([[0., 1.],
            [1., 0.]])
    """
    array = tensor_argument("gather", index, "index", 2).array
    x = at_least_1d(input)
    shape = x.array.shape
    axis = negative_dim(dim, len(shape))
    if array.size and (array.dtype.kind != "i" or array.itemsize < 4):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if not array.size:
        none = EMPTY_GATHER.record(reshape(input, (input.array.size,)), index=(slice(0, 0),), skip=0)
        return EMPTY_RESHAPE.record(none, shape=array.shape)
    at = copy_index(index) if array.ndim else copy_index(index).reshape(1)
    if at.ndim != len(shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (n, m) in enumerate(zip(at.shape, shape, strict=True)):
        if n > m and d - len(shape) != axis:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(at.shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {axis + len(shape)}"
            )
    check_range("gather", at, shape[axis], axis + len(shape))
    result = rules.gather.record(x, axis=axis, indices=at, keepdims=True)
    if OBSERVERS:
        notify_index(result, index)
    return restore_rank(result, index)


EMPTY_GATHER, EMPTY_RESHAPE = (op.with_node("GatherBackward0", view=False) for op in (rules.getitem, reshape_rule))


@composite()
@takes_disjoint_out
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the elements at indices along a dimension; the other dimensions broadcast.

    Parameters
    ----------
    {input}
    indices : Tensor
        Indices as returned by `argsort`, or by `argmax` with `keepdim`: int64, with as many dimensions as `input`. They are
        taken modulo the size of the dimension, so -1 is the last element.
    dim : int, optional
        Dimension. By default both tensors are flattened.
    {out}

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If `indices` are not int64, or the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([[3., 1., 2.]])
    >>> gl.take_along_dim(x, x.argsort(1), 1)
    tensor([[1., 2., 3.]])
    """
    check_tensors("take_along_dim", input=input, indices=indices)
    if indices.array.dtype != np.int64:
        raise RuntimeError(f"gradlab.take_along_dim(): dtype of indices should be Long but got {indices.dtype.word}")
    if dim is None:
        return gather(reshape(input, (-1,) if input.array.size else (0,)), 0, reshape(indices, (indices.array.size,)))
    have, at = input.array.shape, indices.array.shape
    if len(have) != len(at):
        raise RuntimeError(
            "gradlab.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(have)} dimensions for input, and {len(at)} dimensions for indices"
        )
    axis = negative_dim(dim, len(have))
    if not have:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    cut = len(have) + axis
    shape = joint_shape((*have[:cut], 1, *have[cut + 1 :]), (*at[:cut], 1, *at[cut + 1 :]))
    at_axis = indices if not have[cut] else constant(indices.array % have[cut])
    return gather(
        expand(input, shape[:cut] + have[cut : cut + 1] + shape[cut + 1 :]),
        dim,
        expand(at_axis, shape[:cut] + at[cut : cut + 1] + shape[cut + 1 :]),
    )


def index_grid(index: Any, axis: int) -> tuple[Any, ...]:
    """Convert an `index` along one axis to one index array for each axis. The arrays broadcast."""
    xp, n = namespace_of[type(index)], index.ndim
    return tuple(index if d - n == axis else xp.arange(index.shape[d]).reshape((-1,) + (1,) * (n - d - 1)) for d in range(n))


def scatter_index(input: Tensor, dim: int, index: Any, src: Tensor | None) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Check the arguments of a scatter. Return the index into `input`, taken as at least 1-d, and its shape."""
    shape = input.array.shape or (1,)
    axis = negative_dim(dim, len(shape))
    array = index.array
    if array.size and (array.dtype.kind != "i" or array.itemsize < 4):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src.array.dtype != input.array.dtype:
        raise RuntimeError(f"scatter(): Expected self.dtype to be equal to src.dtype. Got {input.dtype} and {src.dtype}.")
    at = copy_index(index)
    at = at if at.ndim else at.reshape(1)
    if not at.size:
        return index_grid(at.reshape((0,) * len(shape)), axis), (0,) * len(shape)
    if at.ndim != len(shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    beyond = f" apart from dimension {axis + len(shape)}"
    if src is not None:
        if at.ndim != max(src.array.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        beyond += f" and to be no larger size than src {list(src.array.shape)}"
        fits = all(n <= m for n, m in zip(at.shape, src.array.shape or (1,), strict=True))
    if any(n > m and d - len(shape) != axis for d, (n, m) in enumerate(zip(at.shape, shape, strict=True))) or (
        src is not None and not fits
    ):
        raise RuntimeError(f"Expected index {list(at.shape)} to be no larger than self {list(shape)}{beyond}")
    check_range("scatter", at, shape[axis], axis + len(shape))
    return index_grid(at, axis), at.shape


def leading_part(src: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the part of `src` that an index of this shape uses; `src` may be larger."""
    src = at_least_1d(src)
    if src.array.shape == shape:
        return src
    return SLICE.record(src, index=(*(slice(0, n) for n in shape), Ellipsis), skip=0)


SCATTER, SCATTER_VALUE = overwrite.with_node("ScatterBackward0"), overwrite.with_node("ScatterBackward1")

SCATTER_ADD = rules.index_add.with_node("ScatterAddBackward0")


@composite(inplace="method")
@with_twin
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float | None = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor | Write:
    r"""Return a copy of `input` with elements written at indices along a dimension.

    Parameters
    ----------
    {input}
    {dimension}
    {index}
    src : Tensor or number
        Elements to write: a tensor with the dtype of `input`, at least as long as `index` in each dimension, or a number.
    value : number, optional
        Number to write, as a keyword.
    reduce : {"add", "multiply"}, optional
        Operation that combines new and existing elements instead of replacing them. `scatter_reduce` has more operations.
    {out}

    Returns
    -------
    Tensor
        A copy. If an index occurs more than once, the last element written is kept, and the gradient of `src` is incorrect, as
        in PyTorch. Use `scatter_add` in this case.

    Raises
    ------
    TypeError
        If neither `src` nor `value` is given, or `index` is not a Tensor.
    RuntimeError
        If the dtypes differ, an index is negative or out of range, or the shapes do not match.

    Notes
    -----
    For three dimensions and dim=1:

    .. math:: y_{i,\,index_{ijk},\,k} = src_{ijk}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.scatter(gl.zeros(2, 3), 1, gl.tensor([[2], [0]]), gl.tensor([[1.], [5.]]))
    tensor([[0., 0., 1.],
            [5., 0., 0.]])
    >>> gl.scatter(gl.zeros(3), 0, gl.tensor([0, 2]), 7)
    tensor([7., 0., 7.])
    """
    src = value if src is None else src
    if not isinstance(src, (Tensor, bool, int, float, np.generic)):
        raise no_overload_error(
            "scatter",
            (dim, index, src),
            "int dim, Tensor index, Tensor src",
            "int dim, Tensor index, Tensor src, *, str reduce",
            "int dim, Tensor index, Number value",
            "int dim, Tensor index, Number value, *, str reduce",
        )
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    tensor = src if isinstance(src, Tensor) else None
    at, shape = scatter_index(input, dim, tensor_argument("scatter", index, "index", 2), tensor)
    if tensor is not None:
        patch = leading_part(tensor, shape)
    else:
        xp = namespace_of[type(input.array)]
        patch = constant(xp.broadcast_to(xp.asarray(convert_number(src, input.array.dtype), dtype=input.array.dtype), shape))
    if reduce is not None and tensor is not None:
        warnings.warn(
            "The reduce argument of gradlab.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use gradlab.scatter_reduce instead for more reduction options.",
            UserWarning,
            stacklevel=3,
        )
    if reduce == "multiply":
        return restore_rank(combine_into(at_least_1d(input), patch, at, "prod", True, SCATTER_REDUCE_OPERATIONS[2]), input)
    return SCATTER_ADD if reduce == "add" else SCATTER if tensor is not None else SCATTER_VALUE, at, patch


@composite(inplace="method")
@with_twin
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor | Write:
    r"""Return a copy of `input` with elements added at indices along a dimension. Repeated indices accumulate.

    Parameters
    ----------
    {input}
    {dimension}
    {index}
    src : Tensor
        Elements to add, with the dtype of `input`, at least as long as `index` in each dimension.
    {out}

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    TypeError
        If `index` or `src` is not a Tensor.
    RuntimeError
        If the dtypes differ, an index is negative or out of range, or the shapes do not match.

    Notes
    -----
    For three dimensions and dim=1, summed over all j that lead to the same index:

    .. math:: y_{i,\,index_{ijk},\,k} = x_{i,\,index_{ijk},\,k} + \sum src_{ijk}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.scatter_add(gl.zeros(3), 0, gl.tensor([0, 2, 0]), gl.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    tensor_argument("scatter_add", src, "src", 3)
    at, shape = scatter_index(input, dim, tensor_argument("scatter_add", index, "index", 2), src)
    return SCATTER_ADD, at, leading_part(src, shape)


REDUCE_OPERATIONS = rules.index_add, el.div, overwrite, el.clone

SCATTER_REDUCE_OPERATIONS = tuple([op.with_node("ScatterReduceBackward0") for op in REDUCE_OPERATIONS])


@composite(inplace="method")
@functools.partial(takes_out, disjoint_from=1)
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Return a copy of `input` in which the elements scattered to each index are reduced.

    Parameters
    ----------
    {input}
    {dimension}
    {index}
    src : Tensor
        Elements, with the dtype of `input`, at least as many as `index` has in each dimension.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
        Reduction to apply.
    {include_self}
    {out}

    Returns
    -------
    Tensor
        A copy. The gradient of a maximum or minimum is distributed evenly among equal elements.

    Raises
    ------
    RuntimeError
        If `reduce` is unknown, the dtypes differ, an index is out of range, or the shapes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.scatter_reduce(gl.zeros(2), 0, gl.tensor([0, 1, 0]), gl.tensor([1., 2., 3.]), "amax")
    tensor([3., 2.])
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got {reduce}.")
    at, shape = scatter_index(input, dim, index, src)
    return reduce_into(input, leading_part(src, shape), at, reduce, include_self, SCATTER_REDUCE_OPERATIONS)


def reduce_into(
    input: Tensor, patch: Tensor, at: tuple[Any, ...], reduce: str, include_self: bool, ops: tuple[Any, ...]
) -> Tensor:
    """Reduce the elements of `patch` into `input` at the index `at`. `ops` are the primitives with PyTorch's node names."""
    summed, averaged, combining, put_back = ops
    x = at_least_1d(input)
    if not patch.array.size:
        return restore_rank(put_back.record(x), input)
    if reduce in ("prod", "amax", "amin"):
        return restore_rank(combine_into(x, patch, at, reduce, include_self, combining), input)
    xp = namespace_of[type(x.array)]
    if not include_self:
        x = overwrite.record(x, constant(xp.zeros(patch.array.shape, dtype=x.array.dtype)), steps=index_steps(at))
    total = summed.record(x, patch, index=at)
    if reduce == "sum":
        return restore_rank(total, input)
    count = xp.full(x.array.shape, 1 if include_self else 0)
    add_at(xp, count, at, 1)
    count = xp.maximum(count, 1).astype(x.array.dtype)
    if x.array.dtype.kind != "f":
        return restore_rank(constant(total.array // count), input)
    return restore_rank(averaged.record(total, constant(count)), input)


def combine_into(x: Tensor, patch: Tensor, index: tuple[Any, ...], reduce: str, include_self: bool, combining: Any) -> Tensor:
    """Multiply or compare elements with the same index by arranging them in the rows of a matrix."""
    xp, shape = namespace_of[type(x.array)], x.array.shape
    flat = xp.ravel_multi_index(tuple(xp.broadcast_to(i, patch.array.shape) for i in index), shape).reshape(-1)
    order = xp.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = xp.flatnonzero(xp.concatenate((xp.ones(1, dtype=bool), ordered[1:] != ordered[:-1])))
    row = xp.cumsum(xp.concatenate((xp.zeros(1, dtype=np.int64), (ordered[1:] != ordered[:-1]).astype(np.int64))))
    column = xp.arange(flat.size) - starts[row]
    dtype, width = x.array.dtype, int(column.max()) + 1
    least, most = (
        (-np.inf, np.inf)
        if dtype.kind == "f"
        else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if dtype.kind in "iu"
        else (False, True)
    )
    neutral = {"prod": 1, "amax": least, "amin": most}[reduce]
    places = xp.unravel_index(ordered[starts], shape)
    table = overwrite.record(
        constant(xp.full((starts.size, width), neutral, dtype=dtype)),
        PICK.record(reshape(patch, (flat.size,)), index=(order,), skip=0),
        steps=index_steps((row, column)),
    )
    if include_self:
        own = rules.getitem.record(x, index=tuple(places), skip=0)
        table = cat([unsqueeze(own, 1), table], 1)
    if reduce == "prod":
        result = cast(reductions.product.record(table, axis=(-1,), keepdims=False), dtype)
    else:
        result = (reductions.amax if reduce == "amax" else reductions.amin).record(table, axis=(-1,), keepdims=False)
    return combining.record(x, result, steps=index_steps(tuple(places)))
