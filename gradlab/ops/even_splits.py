"""Splits into nearly equal parts or at indices: `tensor_split`, `hsplit`, `vsplit` and `dsplit`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import negative_dim, not_a_tensor
from gradlab.ops.shapes import is_int
from gradlab.ops.splits import FULL, SLICE, cut_axis

__all__ = ["dsplit", "hsplit", "tensor_split", "vsplit"]


@composite()
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along a dimension into nearly equal parts, or at the given indices.

    Parameters
    ----------
    {at_least_1d}
    indices_or_sections : int, sequence of int, or Tensor
        Number of parts, longer ones first, or the indices at which to split.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. A part whose start is beyond its end is empty.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If the number of parts is not positive, a tensor of indices does not have an integer dtype, or `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor_split(gl.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> gl.tensor_split(gl.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("tensor_split", input)
    shape = input.array.shape
    at: Any = indices_or_sections
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = negative_dim(dim, len(shape)) + len(shape)
    n = shape[axis]
    if isinstance(at, Tensor):
        if at.array.ndim > 1 or at.array.dtype.kind != "i":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                f"tensor, but got a tensor with {at.array.ndim} dims"
                if at.array.ndim > 1
                else f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {at.dtype.word}"
            )
        at = at.array.tolist()
    if is_int(at):
        if at <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {at}")
        long = n % at
        return tuple(cut_axis(input, axis, [0, *accumulate([n // at + (i < long) for i in range(at)])], SLICE))
    inner = [i + n if i < 0 else i for i in map(int, at)]
    before = (FULL,) * axis
    return tuple(
        SLICE.record(input, index=(*before, slice(max(start, 0), max(stop, 0)), Ellipsis), skip=0)
        for start, stop in zip([0, *inner], [*inner, n], strict=True)
    )


@composite()
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Split a tensor along its second dimension, or a vector along its only dimension.

    Parameters
    ----------
    input : Tensor
        Tensor with at least one dimension.
    indices_or_sections : int, sequence of int, or Tensor
        Number of equal parts, or the indices at which to split.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has too few dimensions, or the size of the dimension is not divisible by the number of parts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.hsplit(gl.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return split_along("hsplit", input, indices_or_sections, 1, 1)


@composite()
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Split a tensor along its first dimension.

    Parameters
    ----------
    input : Tensor
        Tensor with at least two dimensions.
    indices_or_sections : int, sequence of int, or Tensor
        Number of equal parts, or the indices at which to split.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has too few dimensions, or the size of the dimension is not divisible by the number of parts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.vsplit(gl.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return split_along("vsplit", input, indices_or_sections, 0, 2)


@composite()
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Split a tensor along its third dimension.

    Parameters
    ----------
    input : Tensor
        Tensor with at least three dimensions.
    indices_or_sections : int, sequence of int, or Tensor
        Number of equal parts, or the indices at which to split.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has too few dimensions, or the size of the dimension is not divisible by the number of parts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.dsplit(gl.tensor([[[1, 2]]]), 2)
    (tensor([[[1]]]), tensor([[[2]]]))
    """
    return split_along("dsplit", input, indices_or_sections, 2, 3)


def split_along(name: str, input: Tensor, at: int | Sequence[int] | Tensor, axis: int, least: int) -> tuple[Tensor, ...]:
    if not isinstance(input, Tensor):
        raise not_a_tensor(name, input)
    shape = input.array.shape
    if len(shape) < least:
        raise RuntimeError(
            f"gradlab.{name} requires a tensor with at least {least} dimension, but got a tensor with {len(shape)} dimensions!"
        )
    dim = 0 if name == "hsplit" and len(shape) == 1 else axis
    if is_int(at) and (at <= 0 or shape[dim] % at):  # type: ignore[operator]
        raise RuntimeError(
            f"gradlab.{name} attempted to split along dimension {dim}, but the size of the dimension "
            f"{shape[dim]} is not divisible by the split_size {at}!"
        )
    return tensor_split(input, at, dim)
