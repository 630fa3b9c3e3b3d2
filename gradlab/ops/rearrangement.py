"""Repeat, shift, flip and rotate elements in a copy, and view them through windows or strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_storage_size, negative_dim, negative_dims, not_a_tensor
from gradlab.ops.copies import make_contiguous
from gradlab.ops.permutation import swapped_axes
from gradlab.ops.shapes import collect_ints, flatten, reshape, unsqueeze
from gradlab.rules import indexing as picks
from gradlab.rules import shapes as rules

__all__ = ["as_strided", "flip", "fliplr", "flipud", "repeat_interleave", "roll", "rot90", "tile"]


@composite(top=False)
def repeat(self: Tensor, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
    """Repeat the tensor along each dimension.

    Parameters
    ----------
    *times : ints, or a sequence of ints
        Number of repetitions for each dimension: `x.repeat(2, 3)` or `x.repeat((2, 3))`. Additional numbers at the front add
        new dimensions.
    repeats : sequence of ints, optional
        The numbers as a keyword argument.

    Returns
    -------
    Tensor
        A copy. The gradients of all repetitions are added up.

    Raises
    ------
    RuntimeError
        If there are fewer numbers than dimensions, or if a number is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    counts = collect_ints("repeat", "repeats", times, repeats)
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


@composite()
def tile(input: Tensor, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """Repeat the tensor along each dimension, or along the last ones.

    Parameters
    ----------
    {input}
    *times : ints, or a sequence of ints
        Number of repetitions for each dimension: `x.tile(2, 3)` or `x.tile((2, 3))`. Missing numbers at the front count as 1.
    dims : sequence of ints, optional
        The numbers as a keyword argument.

    Returns
    -------
    Tensor
        A copy.

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
    counts = collect_ints("tile", "dims", times, dims)
    return repeat(input, (1,) * (input.array.ndim - len(counts)) + counts)


@composite()
def repeat_interleave(
    input: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element, or each slice of a dimension, several times in a row.

    Parameters
    ----------
    {input}
    repeats : int or Tensor, optional
        Number of repetitions, or a 1-d tensor of integers with one number for each element. If omitted, `input` holds these
        numbers, and the result contains the index of each element that many times.
    dim : int, optional
        Dimension along which to repeat. Default: the flattened tensor is repeated.
    output_size : int, optional
        Accepted for compatibility with PyTorch; it has no effect.

    Returns
    -------
    Tensor
        A copy, longer along `dim`.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If a number is negative, or if there is not one number for each element.

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
    axis = negative_dim(dim, input.array.ndim)
    shape = input.array.shape if input.array.ndim else (1,)
    if isinstance(repeats, Tensor) and repeats.array.size != 1:
        if repeats.array.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if repeats.array.size != shape[axis]:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.array.size} and input.size({axis + len(shape)}) = {shape[axis]}"
            )
        return pick_slices(input, axis, repeated_indices(repeats, shape[axis]))
    if isinstance(repeats, Tensor):
        one = int(repeats.array.reshape(()))
        if one < 0:
            raise RuntimeError("repeats can not be negative")
        check_storage_size(shape[axis] * one)
        return pick_slices(input, axis, np.repeat(np.arange(shape[axis]), one))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    at = axis + len(shape) + 1
    expanded = rules.expand.record(unsqueeze(reshape(input, shape), at), shape=(*shape[:at], repeats, *shape[at:]), skip=0)
    return rules.reshape.record(rules.contiguous.record(expanded), shape=(*shape[: at - 1], shape[at - 1] * repeats, *shape[at:]))


def repeated_indices(repeats: Tensor, n: int) -> Any:
    counts = repeats.array
    if counts.dtype not in (np.int64, np.int32):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.word}'. Call .long() first.")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if counts.size and int(counts.max()) * n >= 2**60:
        check_storage_size(sum(counts.reshape(-1).tolist()))
    xp = namespace_of[type(counts)]
    flat = counts.tolist() if xp is not np else counts.reshape(-1).astype(np.intp, copy=False)
    return xp.repeat(xp.arange(n), flat).astype(counts.dtype)


INDEX_SELECT = picks.getitem.with_node("IndexSelectBackward0", view=False)


def pick_slices(x: Tensor, axis: int, indices: Any) -> Tensor:
    """Return the slices at the given indices along a negative axis."""
    indices = namespace_of[type(x.array)].asarray(indices)
    return make_contiguous(INDEX_SELECT.record(x, index=(slice(None),) * (x.array.ndim + axis) + (indices,), skip=0))


@composite()
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Shift the elements along dimensions. Elements shifted past the end reappear at the start.

    Parameters
    ----------
    {input}
    shifts : int or tuple of ints
        Number of places to shift towards higher indices, one for each dimension.
    dims : int or tuple of ints, optional
        Dimensions to shift along. By default, the tensor is flattened, shifted, and returned in its original shape.

    Returns
    -------
    Tensor
        A copy of the same shape.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If there is not one shift for each dimension.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.roll(gl.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("roll", input)
    steps = collect_ints("roll", "shifts", (shifts,)) if isinstance(shifts, (tuple, list)) else (int(shifts),)  # type: ignore[call-overload, arg-type]
    axes = () if dims is None else tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(axes) != len(steps) and (axes or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if not axes:
        flat = rules.roll.record(reshape(input, (-1,)) if input.array.size else reshape(input, (0,)), shifts=steps, axes=(-1,))
        return ROLL_RESHAPE.record(flat, shape=input.array.shape)
    ndim = input.array.ndim
    return rules.roll.record(input, shifts=steps, axes=tuple(negative_dim(d, ndim) for d in axes))


ROLL_RESHAPE = rules.reshape.with_node("RollBackward0", view=False)
ROT90 = [op.with_node("Rot90Backward0", view=False) for op in (rules.contiguous, rules.permute, rules.flip, rules.permute)]


@composite()
def flip(input: Tensor, *axes: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """Reverse the order of the elements along dimensions.

    Parameters
    ----------
    {input}
    *axes : ints, or a sequence of ints
        Dimensions to reverse: `x.flip(0, 1)` or `x.flip((0, 1))`.
    dims : sequence of ints, optional
        The dimensions as a keyword argument.

    Returns
    -------
    Tensor
        A copy of the same shape. It is never a view, because strides are not negative.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If a dimension is repeated.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.flip(gl.tensor([[1, 2], [3, 4]]), (1,))
    tensor([[2, 1],
            [4, 3]])
    """
    chosen = collect_ints("flip", "dims", axes, dims)
    return rules.flip.record(input, axes=negative_dims(chosen, input.array.ndim) if chosen else ())


@composite()
def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns.

    Parameters
    ----------
    input : Tensor
        Tensor with at least two dimensions.

    Returns
    -------
    Tensor
        A copy, reversed along the second dimension.

    Raises
    ------
    RuntimeError
        If `input` has fewer than two dimensions.

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


@composite()
def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows.

    Parameters
    ----------
    input : Tensor
        Tensor with at least one dimension.

    Returns
    -------
    Tensor
        A copy, reversed along the first dimension.

    Raises
    ------
    RuntimeError
        If `input` is 0-d.

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


@composite()
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Rotate a tensor by multiples of 90 degrees in the plane of two dimensions.

    Parameters
    ----------
    input : Tensor
        Tensor with at least two dimensions.
    k : int, default: 1
        Number of rotations by 90 degrees.
    dims : sequence of two ints, default: (0, 1)
        Plane of rotation. The rotation is from the first dimension towards the second, which is counterclockwise for a
        matrix.

    Returns
    -------
    Tensor
        A copy. If `k` is odd, the sizes of the two dimensions are swapped.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If `input` has fewer than two dimensions, or if `dims` does not hold two different ones.

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
    one, two = (negative_dim(d, ndim) for d in dims)
    turn = ROT90[k % 4]
    if k % 4 == 0:
        return turn.record(input)
    if k % 4 == 2:
        return turn.record(input, axes=tuple(sorted((one, two))))
    return turn.record(rules.flip.record(input, axes=(two if k % 4 == 1 else one,)), axes=swapped_axes(ndim, one, two))


# ------------------------------------------------------------------------------------------------------- windows and strides
@composite(top=False)
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return all windows along a dimension.

    Parameters
    ----------
    dimension : int
        Dimension to unfold.
    size : int
        Length of each window.
    step : int
        Distance between the starts of consecutive windows.

    Returns
    -------
    Tensor
        A view. `dimension` becomes the index of the window, and a new last dimension holds the elements of each window. Where
        windows overlap, gradients are added up.

    Raises
    ------
    IndexError
        If `dimension` is out of range.
    RuntimeError
        If the window is longer than the dimension, if `size` is negative, or if `step` is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    x = self if self.array.ndim else rules.reshape.record(self, shape=(1,))
    axis = negative_dim(dimension, self.array.ndim) if self.array.ndim else -1
    length = x.array.shape[axis]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis + x.array.ndim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    windows = rules.unfold.record(x, axis=axis, size=size, step=step)
    return windows if self.array.ndim else UNFOLD_RESHAPE.record(windows, shape=(size,))


UNFOLD_RESHAPE = rules.reshape.with_node("UnfoldBackward0")


@composite()
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Create a view with the given shape and strides.

    Parameters
    ----------
    input : Tensor
        A contiguous tensor.
    size : sequence of ints
        Shape of the view.
    stride : sequence of ints
        For each dimension, the distance in memory between neighbours, in elements. Not negative.
    storage_offset : int, optional
        Position of the first element in memory. Default: that of `input`.

    Returns
    -------
    Tensor
        A view. If it contains an element more than once, the gradients are added up.

    Raises
    ------
    NotImplementedError
        If `input` is not contiguous.
    RuntimeError
        If a stride is negative, if there is not one stride for each size, or if the view would reach outside the elements of
        `input`. (In PyTorch, it can reach all elements of a base.)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.as_strided(gl.arange(6), (2, 3), (1, 2))
    tensor([[0, 2, 4],
            [1, 3, 5]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("as_strided", input)
    array, shape, steps = (
        input.array,
        collect_ints("as_strided", "size", (size,)),
        collect_ints("as_strided", "stride", (stride,)),
    )
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(steps, default=0) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    if not array.flags.c_contiguous:
        raise NotImplementedError(
            "as_strided is only supported for contiguous tensors. Call .contiguous() first, and pass the strides of the copy."
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
