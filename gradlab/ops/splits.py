"""Views of parts of a tensor along one dimension, one part or all of them.

While gradients are recorded, PyTorch refuses in-place writes to a view that a call returned together with others, and its error
names the call. `mark_outputs` stores that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from gradlab.core.modes import mode
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import negative_dim, not_a_tensor
from gradlab.ops.shapes import collect_ints, is_int
from gradlab.rules.indexing import getitem

__all__ = [
    "chunk",
    "narrow",
    "select",
    "split",
    "split_with_sizes",
    "unbind",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
]

SELECT, SLICE, SPLIT, SPLIT_WITH_SIZES, UNBIND = (
    getitem.with_node(f"{name}Backward0") for name in ("Select", "Slice", "Split", "SplitWithSizes", "Unbind")
)
UNSAFE_SPLIT, UNSAFE_SPLIT_WITH_SIZES = (
    getitem.with_node(f"Unsafe{name}Backward0", view=False) for name in ("Split", "SplitWithSizes")
)
FULL = slice(None)


def mark_outputs(parts: list[Tensor], name: str) -> tuple[Tensor, ...]:
    """Mark views that one call returned together, so that in-place writes to them are refused."""
    if mode.grad:
        for i, part in enumerate(parts):
            record = getattr(part, "view_record", None)
            if record is not None:
                part.view_record = (*record[:3], f"Output {i} of {name}")  # type: ignore[attr-defined]
    return tuple(parts)


def cut_axis(x: Tensor, axis: int, bounds: list[int], op: Any) -> list[Tensor]:
    """Return the parts of a nonnegative axis between consecutive bounds."""
    before = (FULL,) * axis
    return [op.record(x, index=(*before, slice(start, stop), Ellipsis), skip=0) for start, stop in pairwise(bounds)]


@composite()
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension, into parts of one size or of the listed sizes.

    Parameters
    ----------
    tensor : Tensor
        Tensor with at least one dimension.
    split_size_or_sections : int or sequence of ints
        Size of each part; the last part may be smaller. Or a list of the sizes, which must add up to that of the dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. They cannot be modified in place while gradients are recorded; see `unsafe_split`.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If a size is negative, if the sizes do not add up, or if `tensor` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.split(gl.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    >>> gl.split(gl.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if not isinstance(tensor, Tensor):
        raise not_a_tensor("split", tensor, "tensor", 1)
    sizes: Any = split_size_or_sections
    if not is_int(sizes):
        return split_with_sizes(tensor, sizes, dim)
    return mark_outputs(split_by_size(tensor, sizes, dim, SPLIT), "Split")


def split_by_size(tensor: Tensor, size: int, dim: int, op: Any) -> list[Tensor]:
    """Return parts of the given size, recorded by `op`, a renamed `getitem`."""
    shape = tensor.array.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    axis = negative_dim(dim, len(shape)) + len(shape)
    n, size = shape[axis], int(size)
    if not size and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    bounds = [*range(0, n, size), n] if n else [0, 0]
    return cut_axis(tensor, axis, bounds, op)


@composite()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension into parts of the listed sizes.

    Parameters
    ----------
    {at_least_1d}
    split_sizes : sequence of ints
        Sizes of the parts. They must add up to that of the dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. They cannot be modified in place while gradients are recorded; see `unsafe_split_with_sizes`.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If a size is negative, if the sizes do not add up, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.split_with_sizes(gl.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("split_with_sizes", input)
    return mark_outputs(split_by_sizes(input, split_sizes, dim, SPLIT_WITH_SIZES), "SplitWithSizes")


def split_by_sizes(input: Tensor, split_sizes: Sequence[int], dim: int, op: Any) -> list[Tensor]:
    """Return parts of the listed sizes, recorded by `op`, a renamed `getitem`."""
    sizes, shape = collect_ints("split_with_sizes", "split_sizes", (split_sizes,)), input.array.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    axis = negative_dim(dim, len(shape)) + len(shape)
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[axis]} (input tensor's size at "
            f"dimension {axis}), but got split_sizes={list(sizes)}"
        )
    return cut_axis(input, axis, [0, *accumulate(sizes)], op)


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension into a number of parts of equal size.

    Parameters
    ----------
    {at_least_1d}
    chunks : int
        Number of parts. Their size is rounded up, so there may be fewer.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views, of which the last may be smaller. They cannot be modified in place while gradients are recorded; see
        `unsafe_chunk`.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If `chunks` is not positive, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.chunk(gl.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("chunk", input)
    n = length_to_chunk("chunk", input, chunks, dim)
    return split(input, -(-n // chunks), dim) if n else split_with_sizes(input, [0] * chunks, dim)


def length_to_chunk(name: str, input: Tensor, chunks: int, dim: int) -> int:
    """Return the size of the dimension to split into chunks, or raise PyTorch's error."""
    shape = input.array.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"{name} expects `chunks` to be greater than 0, got: {chunks}")
    return shape[negative_dim(dim, len(shape))]


# The parts share memory but are not views. The caller promises to use either the whole or the parts, and may write to each part.
@composite()
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor like `split`, into parts that autograd does not treat as views.

    Parameters
    ----------
    tensor : Tensor
        Tensor with at least one dimension.
    split_size : int
        Size of each part. The last part may be smaller.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Tensors that share memory with `tensor`. They may be modified in place if `tensor` is not used afterwards.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If the size is negative, or if `tensor` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_split(gl.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(tensor, Tensor):
        raise not_a_tensor("unsafe_split", tensor, "tensor", 1)
    return tuple(split_by_size(tensor, split_size, dim, UNSAFE_SPLIT))


@composite()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor like `split_with_sizes`, into parts that autograd does not treat as views.

    Parameters
    ----------
    {at_least_1d}
    split_sizes : sequence of ints
        Sizes of the parts. They must add up to that of the dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Tensors that share memory with `input`. They may be modified in place if `input` is not used afterwards.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If a size is negative, if the sizes do not add up, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_split_with_sizes(gl.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unsafe_split_with_sizes", input)
    return tuple(split_by_sizes(input, split_sizes, dim, UNSAFE_SPLIT_WITH_SIZES))


@composite()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor like `chunk`, into parts that autograd does not treat as views.

    Parameters
    ----------
    {at_least_1d}
    chunks : int
        Number of parts. Their size is rounded up, so there may be fewer.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Tensors that share memory with `input`. They may be modified in place if `input` is not used afterwards.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If `chunks` is not positive, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_chunk(gl.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unsafe_chunk", input)
    n = length_to_chunk("chunk", input, chunks, dim)
    return unsafe_split(input, -(-n // chunks), dim) if n else unsafe_split_with_sizes(input, [0] * chunks, dim)


@composite()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return all slices along a dimension, which is removed.

    Parameters
    ----------
    {at_least_1d}
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views, one for each index. They cannot be modified in place while gradients are recorded.

    Raises
    ------
    IndexError
        If `dim` is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unbind(gl.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unbind", input)
    shape = input.array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = negative_dim(dim, len(shape)) + len(shape)
    before, record = (FULL,) * axis, UNBIND.record
    return mark_outputs([record(input, index=(*before, i, Ellipsis), skip=0) for i in range(shape[axis])], "Unbind")


@composite()
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a range of a dimension.

    Parameters
    ----------
    {at_least_1d}
    {dimension}
    start : int or 0-d Tensor
        First index of the range, counted from the end if negative.
    length : int
        Length of the range.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If `dim` or `start` is out of range.
    RuntimeError
        If `length` is negative, if the range reaches past the end of the dimension, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.narrow(gl.tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
    tensor([[2, 3],
            [5, 6]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("narrow", input)
    shape = input.array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = negative_dim(dim, len(shape)) + len(shape)
    n, start = shape[axis], int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return SLICE.record(input, index=(*(FULL,) * axis, slice(start, start + length), Ellipsis), skip=0)


@composite()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return the slice at one index of a dimension.

    Parameters
    ----------
    {at_least_1d}
    {dimension}
    index : int
        Index of the slice, counted from the end if negative.

    Returns
    -------
    Tensor
        A view without that dimension.

    Raises
    ------
    IndexError
        If `dim` or `index` is out of range, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.select(gl.tensor([[1, 2, 3], [4, 5, 6]]), 1, -1)
    tensor([3, 6])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("select", input)
    shape = input.array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = negative_dim(dim, len(shape)) + len(shape)
    return SELECT.record(input, index=select_index(shape, axis, index), skip=0)


def select_index(shape: tuple[int, ...], axis: int, index: Any) -> tuple[Any, ...]:
    """Return the index that `select` uses, or raise PyTorch's error."""
    index = int(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {axis}")
    return (*(FULL,) * axis, index, Ellipsis)
