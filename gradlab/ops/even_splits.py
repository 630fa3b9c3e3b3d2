"""Parts of nearly one length, or between indices: `tensor_split`, and NumPy's splits along one dimension each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor, one_dim
from gradlab.ops.shapes import is_int
from gradlab.ops.splits import FULL, SLICE, cut

__all__ = ["dsplit", "hsplit", "tensor_split", "vsplit"]


@composed()
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A number of parts of nearly one length along a dimension, or the parts between the indices listed.

    Parameters
    ----------
    {at_least_1d}
    indices_or_sections : int, sequence of ints, or Tensor of integers
        How many parts, the longer ones first; or the indices where a part ends and the next begins.
    {first_dim}

    Returns
    -------
    tuple of Tensor
        Views. Of a part that would begin after its end, there is nothing.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the number of parts is not positive, the tensor of indices holds no integers, or `input` is 0-d.

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
    axis = one_dim(dim, len(shape)) + len(shape)
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
        return tuple(cut(input, axis, [0, *accumulate([n // at + (i < long) for i in range(at)])], SLICE))
    inner = [i + n if i < 0 else i for i in map(int, at)]
    before = (FULL,) * axis
    return tuple(
        SLICE.record(input, index=(*before, slice(max(start, 0), max(stop, 0)), Ellipsis), skip=0)
        for start, stop in zip([0, *inner], [*inner, n], strict=True)
    )


@composed()
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Parts along the second dimension, or the only one: the columns of a matrix.

    Parameters
    ----------
    input : Tensor
        A tensor of at least one dimension.
    indices_or_sections : int, sequence of ints, or Tensor of integers
        How many parts, all of one length; or the indices where a part ends and the next begins.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has fewer dimensions, or the dimension cannot be divided into so many parts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.hsplit(gl.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return split_along("hsplit", input, indices_or_sections, 1, 1)


@composed()
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Parts along the first dimension: the rows of a matrix.

    Parameters
    ----------
    input : Tensor
        A tensor of at least two dimensions.
    indices_or_sections : int, sequence of ints, or Tensor of integers
        How many parts, all of one length; or the indices where a part ends and the next begins.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has fewer dimensions, or the dimension cannot be divided into so many parts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.vsplit(gl.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return split_along("vsplit", input, indices_or_sections, 0, 2)


@composed()
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
    """Parts along the third dimension.

    Parameters
    ----------
    input : Tensor
        A tensor of at least three dimensions.
    indices_or_sections : int, sequence of ints, or Tensor of integers
        How many parts, all of one length; or the indices where a part ends and the next begins.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    RuntimeError
        If `input` has fewer dimensions, or the dimension cannot be divided into so many parts.

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
