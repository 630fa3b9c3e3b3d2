"""Parts of a tensor along one axis, as views: all of them at once, or one.

Several views from one call may not be written to while history is recorded (torch's rule, and its message says which call made
them): `several` notes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from gradlab.core.modes import mode
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor, one_dim
from gradlab.ops.shapes import ints, is_int
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

SELECT, SLICE, SPLIT, SIZES, UNBIND = (
    getitem.named(f"{name}Backward0") for name in ("Select", "Slice", "Split", "SplitWithSizes", "Unbind")
)
APART, APART_BY_SIZES = (getitem.named(f"Unsafe{name}Backward0", view=False) for name in ("Split", "SplitWithSizes"))
FULL = slice(None)


def several(parts: list[Tensor], name: str) -> tuple[Tensor, ...]:
    """The parts, noted as views of which a write is refused."""
    if mode.grad:
        for i, part in enumerate(parts):
            record = getattr(part, "view_record", None)
            if record is not None:
                part.view_record = (*record[:3], f"Output {i} of {name}")  # type: ignore[attr-defined]
    return tuple(parts)


def cut(x: Tensor, axis: int, bounds: list[int], op: Any) -> list[Tensor]:
    """The parts of a (nonnegative) axis between neighbouring bounds."""
    before = (FULL,) * axis
    return [op.record(x, index=(*before, slice(start, stop), Ellipsis), skip=0) for start, stop in pairwise(bounds)]


@composed()
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts along a dimension, of one length or of the lengths listed.

    Parameters
    ----------
    tensor : Tensor
        The tensor, of at least one dimension.
    split_size_or_sections : int or sequence of ints
        The length of each part, of which the last may be shorter; or the length of each part, which add up to that of the
        dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. They may not be written to while history is recorded: see `unsafe_split`.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If a length is negative, the lengths do not add up, or the tensor is 0-d.

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
    return several(of_size(tensor, sizes, dim, SPLIT), "Split")


def of_size(tensor: Tensor, size: int, dim: int, op: Any) -> list[Tensor]:
    """Parts of so many elements, made by one of `getitem`'s namesakes."""
    shape = tensor.array.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    axis = one_dim(dim, len(shape)) + len(shape)
    n, size = shape[axis], int(size)
    if not size and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    bounds = [*range(0, n, size), n] if n else [0, 0]
    return cut(tensor, axis, bounds, op)


@composed()
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the lengths listed along a dimension.

    Parameters
    ----------
    {at_least_1d}
    split_sizes : sequence of ints
        The lengths, which add up to that of the dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. They may not be written to while history is recorded: see `unsafe_split_with_sizes`.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If a length is negative, the lengths do not add up, or the tensor is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.split_with_sizes(gl.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("split_with_sizes", input)
    return several(of_sizes(input, split_sizes, dim, SIZES), "SplitWithSizes")


def of_sizes(input: Tensor, split_sizes: Sequence[int], dim: int, op: Any) -> list[Tensor]:
    """Parts of the lengths listed, made by one of `getitem`'s namesakes."""
    sizes, shape = ints("split_with_sizes", "split_sizes", (split_sizes,)), input.array.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    axis = one_dim(dim, len(shape)) + len(shape)
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[axis]} (input tensor's size at "
            f"dimension {axis}), but got split_sizes={list(sizes)}"
        )
    return cut(input, axis, [0, *accumulate(sizes)], op)


@composed()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """A number of parts of one length along a dimension.

    Parameters
    ----------
    {at_least_1d}
    chunks : int
        How many parts at most: their length is rounded up, so that there may be fewer.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views, of which the last may be shorter. They may not be written to while history is recorded: see `unsafe_chunk`.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If `chunks` is not positive, or the tensor is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.chunk(gl.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("chunk", input)
    n = chunked("chunk", input, chunks, dim)
    return split(input, -(-n // chunks), dim) if n else split_with_sizes(input, [0] * chunks, dim)


def chunked(name: str, input: Tensor, chunks: int, dim: int) -> int:
    """The length of the axis to cut into so many parts, or torch's errors."""
    shape = input.array.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"{name} expects `chunks` to be greater than 0, got: {chunks}")
    return shape[one_dim(dim, len(shape))]


# The same memory, but no views: the caller promises to use either the whole or the parts, and may write to each part.
@composed()
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `split` as tensors that autograd does not take for views.

    Parameters
    ----------
    tensor : Tensor
        The tensor, of at least one dimension.
    split_size : int
        The length of each part, of which the last may be shorter.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        The same memory. The parts may be written to, if the whole is not used any more.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the length is negative, or the tensor is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_split(gl.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(tensor, Tensor):
        raise not_a_tensor("unsafe_split", tensor, "tensor", 1)
    return tuple(of_size(tensor, split_size, dim, APART))


@composed()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `split_with_sizes` as tensors that autograd does not take for views.

    Parameters
    ----------
    {at_least_1d}
    split_sizes : sequence of ints
        The lengths, which add up to that of the dimension.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        The same memory. The parts may be written to, if the whole is not used any more.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If a length is negative, the lengths do not add up, or the tensor is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_split_with_sizes(gl.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unsafe_split_with_sizes", input)
    return tuple(of_sizes(input, split_sizes, dim, APART_BY_SIZES))


@composed()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of `chunk` as tensors that autograd does not take for views.

    Parameters
    ----------
    {at_least_1d}
    chunks : int
        How many parts at most.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        The same memory. The parts may be written to, if the whole is not used any more.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If `chunks` is not positive, or the tensor is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsafe_chunk(gl.arange(5), 3)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unsafe_chunk", input)
    n = chunked("chunk", input, chunks, dim)
    return unsafe_split(input, -(-n // chunks), dim) if n else unsafe_split_with_sizes(input, [0] * chunks, dim)


@composed()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, which is dropped.

    Parameters
    ----------
    {at_least_1d}
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views, one for each index. They may not be written to while history is recorded.

    Raises
    ------
    IndexError
        If there is no such dimension.

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
    axis = one_dim(dim, len(shape)) + len(shape)
    before, record = (FULL,) * axis, UNBIND.record
    return several([record(input, index=(*before, i, Ellipsis), skip=0) for i in range(shape[axis])], "Unbind")


@composed()
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """A stretch of a dimension.

    Parameters
    ----------
    {at_least_1d}
    {dimension}
    start : int or 0-d Tensor
        The index where it begins, counted from the end if it is negative.
    length : int
        How many indices it has.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If there is no such dimension, or `start` is beyond it.
    RuntimeError
        If the length is negative or reaches beyond the dimension, or `input` is 0-d.

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
    axis = one_dim(dim, len(shape)) + len(shape)
    n, start = shape[axis], int(start)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return SLICE.record(input, index=(*(FULL,) * axis, slice(start, start + length), Ellipsis), skip=0)


@composed()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice of a dimension at one index.

    Parameters
    ----------
    {at_least_1d}
    {dimension}
    index : int
        The index, counted from the end if it is negative.

    Returns
    -------
    Tensor
        A view without that dimension.

    Raises
    ------
    IndexError
        If there is no such dimension or index, or `input` is 0-d.

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
    axis = one_dim(dim, len(shape)) + len(shape)
    return SELECT.record(input, index=selected(shape, axis, index), skip=0)


def selected(shape: tuple[int, ...], axis: int, index: Any) -> tuple[Any, ...]:
    """The index of `select`, or torch's error."""
    index = int(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {axis}")
    return (*(FULL,) * axis, index, Ellipsis)
