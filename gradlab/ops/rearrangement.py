"""Copies of the elements repeated, shifted or turned, and views by windows and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import fits_in_memory, many_dims, not_a_tensor, one_dim
from gradlab.ops.copies import in_order
from gradlab.ops.permutation import exchanged
from gradlab.ops.shapes import flatten, ints, reshape, unsqueeze
from gradlab.rules import indexing as picks
from gradlab.rules import shapes as rules

__all__ = ["as_strided", "flip", "fliplr", "flipud", "repeat_interleave", "roll", "rot90", "tile"]


@composed(top=False)
def repeat(self: Tensor, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
    """A copy that is several times as long along each dimension.

    Parameters
    ----------
    *times : ints, or a sequence of ints
        How often, for each dimension: `x.repeat(2, 3)` or `x.repeat((2, 3))`. Further numbers in front make new dimensions.
    repeats : sequence of ints, optional
        The same by keyword.

    Returns
    -------
    Tensor
        The copies side by side. The gradients of copies add up.

    Raises
    ------
    RuntimeError
        If there are fewer numbers than dimensions, or one is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = ints("repeat", "repeats", times, repeats)
    if len(counts) < self.array.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor. Give "
            f"{self.array.ndim} numbers, or use tile."
        )
    padded = (1,) * (len(counts) - self.array.ndim) + self.array.shape
    if min(counts, default=0) < 0:
        wanted = [n * m for n, m in zip(counts, padded, strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(wanted)}: {wanted}")
    wide = self if len(padded) == self.array.ndim else rules.reshape.record(self, shape=padded)
    return rules.repeat.record(wide, repeats=counts)


@composed()
def tile(input: Tensor, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """A copy that is several times as long along each dimension, or along the last ones.

    Parameters
    ----------
    {input}
    *times : ints, or a sequence of ints
        How often, for each dimension: `x.tile(2, 3)` or `x.tile((2, 3))`. Where numbers are missing in front, they are 1.
    dims : sequence of ints, optional
        The same by keyword.

    Returns
    -------
    Tensor
        The copies side by side.

    Raises
    ------
    RuntimeError
        If a number is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tile(gl.tensor([[1, 2], [3, 4]]), (2,))
    tensor([[1, 2, 1, 2],
            [3, 4, 3, 4]])
    """
    counts = ints("tile", "dims", times, dims)
    return repeat(input, (1,) * (input.array.ndim - len(counts)) + counts)


@composed()
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element, or each slice of a dimension, several times in a row.

    Parameters
    ----------
    {input}
    repeats : int or Tensor, optional
        How often: a number, or a 1-d tensor of integers, one for each element. Without it, `input` holds the numbers, and the
        indices of the elements so repeated are the result.
    dim : int, optional
        The dimension; without it the flattened tensor is meant.
    output_size : int, optional
        Taken as torch takes it, and without effect.

    Returns
    -------
    Tensor
        A copy, longer along `dim`.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If a number is negative, or there are not as many as elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.repeat_interleave(gl.tensor([1, 2, 3]), 2)
    tensor([1, 1, 2, 2, 3, 3])
    >>> gl.repeat_interleave(gl.tensor([5, 6]), gl.tensor([1, 3]))
    tensor([5, 6, 6, 6])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("repeat_interleave", input)
    if repeats is None:
        return constant(repeated_indices(input, input.array.size))
    if dim is None:
        input, dim = flatten(input), 0
    axis = one_dim(dim, input.array.ndim)
    shape = input.array.shape if input.array.ndim else (1,)
    if isinstance(repeats, Tensor) and repeats.array.size != 1:
        if repeats.array.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if repeats.array.size != shape[axis]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.array.size} and input.size({axis + len(shape)}) = {shape[axis]}"
            )
        return picked(input, axis, repeated_indices(repeats, shape[axis]))
    if isinstance(repeats, Tensor):
        one = int(repeats.array.reshape(()))
        if one < 0:
            raise RuntimeError("repeats can not be negative")
        fits_in_memory(shape[axis] * one)
        return picked(input, axis, np.repeat(np.arange(shape[axis]), one))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    at = axis + len(shape) + 1
    apart = rules.expand.record(unsqueeze(reshape(input, shape), at), shape=(*shape[:at], repeats, *shape[at:]), skip=0)
    return rules.reshape.record(rules.contiguous.record(apart), shape=(*shape[: at - 1], shape[at - 1] * repeats, *shape[at:]))


def repeated_indices(repeats: Tensor, n: int) -> Any:
    counts = repeats.array
    if counts.dtype not in (np.int64, np.int32):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.word}'. Call .long() first.")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if counts.size and int(counts.max()) * n >= 2**60:
        fits_in_memory(sum(counts.reshape(-1).tolist()))
    xp = namespace_of[type(counts)]
    flat = counts.tolist() if xp is not np else counts.reshape(-1).astype(np.intp, copy=False)
    return xp.repeat(xp.arange(n), flat).astype(counts.dtype)


INDEX_SELECT = picks.getitem.named("IndexSelectBackward0", view=False)


def picked(x: Tensor, axis: int, indices: Any) -> Tensor:
    """The slices at these indices along a negative axis."""
    indices = namespace_of[type(x.array)].asarray(indices)
    return in_order(INDEX_SELECT.record(x, index=(slice(None),) * (x.array.ndim + axis) + (indices,), skip=0))


@composed()
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """The elements moved along dimensions; those that leave come back at the other end.

    Parameters
    ----------
    {input}
    shifts : int or tuple of ints
        How far, towards higher indices; one number for each dimension.
    dims : int or tuple of ints, optional
        The dimensions; without them, the flattened tensor is rolled and gets its shape back.

    Returns
    -------
    Tensor
        A copy of the same shape.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If there are not as many shifts as dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.roll(gl.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("roll", input)
    steps = ints("roll", "shifts", (shifts,)) if isinstance(shifts, (tuple, list)) else (int(shifts),)  # type: ignore[call-overload, arg-type]
    axes = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(axes) != len(steps) and (axes or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if not axes:
        flat = rules.roll.record(reshape(input, (-1,)) if input.array.size else reshape(input, (0,)), shifts=steps, axes=(-1,))
        return ROLLED.record(flat, shape=input.array.shape)
    ndim = input.array.ndim
    return rules.roll.record(input, shifts=steps, axes=tuple(one_dim(d, ndim) for d in axes))


ROLLED = rules.reshape.named("RollBackward0", view=False)
ROT90 = [op.named("Rot90Backward0", view=False) for op in (rules.contiguous, rules.permute, rules.flip, rules.permute)]


@composed()
def flip(input: Tensor, *axes: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """A copy with the elements in reverse order.

    Parameters
    ----------
    {input}
    *axes : ints, or a sequence of ints
        The dimensions that are reversed: `x.flip(0, 1)` or `x.flip((0, 1))`.
    dims : sequence of ints, optional
        The same by keyword.

    Returns
    -------
    Tensor
        A copy of the same shape, never a view: strides are not negative.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If one is named twice.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.flip(gl.tensor([[1, 2], [3, 4]]), (1,))
    tensor([[2, 1],
            [4, 3]])
    """
    chosen = ints("flip", "dims", axes, dims)
    return rules.flip.record(input, axes=many_dims(chosen, input.array.ndim) if chosen else ())


@composed()
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reverse order.

    Parameters
    ----------
    input : Tensor
        A tensor of at least two dimensions.

    Returns
    -------
    Tensor
        A copy, reversed along the second dimension.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.fliplr(gl.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("fliplr", input)
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@composed()
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reverse order.

    Parameters
    ----------
    input : Tensor
        A tensor of at least one dimension.

    Returns
    -------
    Tensor
        A copy, reversed along the first dimension.

    Raises
    ------
    RuntimeError
        If it is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.flipud(gl.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("flipud", input)
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@composed()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned by right angles in the plane of two dimensions.

    Parameters
    ----------
    input : Tensor
        A tensor of at least two dimensions.
    k : int, default 1
        How many times by 90 degrees.
    dims : sequence of two ints, default (0, 1)
        The plane. It is turned from the first dimension towards the second; of a matrix that is counterclockwise.

    Returns
    -------
    Tensor
        A copy. If `k` is odd, the two sizes change places.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If there are fewer than two dimensions, or `dims` are not two different ones.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.rot90(gl.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("rot90", input)
    ndim = input.array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    one, two = (one_dim(d, ndim) for d in dims)
    turn = ROT90[k % 4]
    if k % 4 == 0:
        return turn.record(input)
    if k % 4 == 2:
        return turn.record(input, axes=tuple(sorted((one, two))))
    return turn.record(rules.flip.record(input, axes=(two if k % 4 == 1 else one,)), axes=exchanged(ndim, one, two))


# ------------------------------------------------------------------------------------------------------- windows and strides
@composed(top=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows along a dimension.

    Parameters
    ----------
    dimension : int
        The dimension.
    size : int
        The length of a window.
    step : int
        From the beginning of one window to that of the next.

    Returns
    -------
    Tensor
        A view: `dimension` counts the windows, and one more dimension, the last, the elements of each. Windows may overlap;
        their gradients add up.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the window is longer than the dimension, `size` is negative or `step` not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    x = self if self.array.ndim else rules.reshape.record(self, shape=(1,))
    axis = one_dim(dimension, self.array.ndim) if self.array.ndim else -1
    length = x.array.shape[axis]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis + x.array.ndim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    windows = rules.unfold.record(x, axis=axis, size=size, step=step)
    return windows if self.array.ndim else UNFOLDED.record(windows, shape=(size,))


UNFOLDED = rules.reshape.named("UnfoldBackward0")


@composed()
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view whose shape and strides are given.

    Parameters
    ----------
    input : Tensor
        A contiguous tensor.
    size : sequence of ints
        The shape.
    stride : sequence of ints
        For each dimension, how many elements of memory lie between neighbours; not negative.
    storage_offset : int, optional
        Where in memory the first element is; without it, where that of `input` is.

    Returns
    -------
    Tensor
        A view. Where one place is seen several times, its gradients add up.

    Raises
    ------
    NotImplementedError
        If `input` is not contiguous.
    RuntimeError
        If a stride is negative, there are not as many as sizes, or the view would leave the elements of `input`. (Torch lets
        it reach those of a base as well.)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.as_strided(gl.arange(6), (2, 3), (1, 2))
    tensor([[0, 2, 4],
            [1, 3, 5]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("as_strided", input)
    array, shape, steps = input.array, ints("as_strided", "size", (size,)), ints("as_strided", "stride", (stride,))
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(steps, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    if not array.flags.c_contiguous:
        raise NotImplementedError(
            "as_strided is supported for contiguous tensors only: call .contiguous() first, and give the strides of the copy."
        )
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    last = offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if 0 not in shape else 0
    if offset < 0 or last >= max(array.size, 1):
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {storage_offset or 0}, and "
            f"itemsize {array.itemsize} requiring a storage size of {(last + 1) * array.itemsize} are out of "
            f"bounds for storage of size {array.nbytes}. (Elements of a base outside the view cannot "
            "be reached.)"
        )
    return rules.as_strided.record(input, shape=shape, stride=steps, offset=offset, numel=array.size)
