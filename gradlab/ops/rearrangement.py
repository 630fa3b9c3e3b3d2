"""Copies of the elements repeated, shifted or turned, and views by windows and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import fits_in_memory, many_dims, one_dim
from gradlab.ops.copies import in_order
from gradlab.ops.permutation import exchanged
from gradlab.ops.shapes import flatten, ints, reshape, unsqueeze
from gradlab.rules import indexing as picks
from gradlab.rules import shapes as rules

__all__ = ["as_strided", "flip", "fliplr", "flipud", "repeat_interleave", "roll", "rot90", "tile"]


def repeat(self: Tensor, *times: Any, repeats: Any = None) -> Tensor:
    """A copy that is `repeats` times as long along each axis; further numbers in front make new axes."""
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


def tile(input: Tensor, *times: Any, dims: Any = None) -> Tensor:
    """`repeat`, in which leading numbers may be missing: they are 1."""
    counts = ints("tile", "dims", times, dims)
    return repeat(input, (1,) * (input.array.ndim - len(counts)) + counts)


def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times, or as often as a tensor of numbers says, side by side. With one
    argument: the indices of the elements so repeated."""
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
    return xp.repeat(xp.arange(n), counts.tolist() if xp is not np else counts.reshape(-1)).astype(counts.dtype)


INDEX_SELECT = picks.getitem.named("IndexSelectBackward0", view=False)


def picked(x: Tensor, axis: int, indices: Any) -> Tensor:
    """The slices at these indices along a negative axis."""
    indices = namespace_of[type(x.array)].asarray(indices)
    return in_order(INDEX_SELECT.record(x, index=(slice(None),) * (x.array.ndim + axis) + (indices,), skip=0))


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The elements moved `shifts` places along `dims`, those that leave coming back at the other end; without `dims` in the
    flattened tensor."""
    steps = ints("roll", "shifts", (shifts,)) if isinstance(shifts, (tuple, list)) else (int(shifts),)
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


def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """A copy with the order of elements reversed along the axes."""
    chosen = ints("flip", "dims", axes, dims)
    return rules.flip.record(input, axes=many_dims(chosen, input.array.ndim) if chosen else ())


def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reverse order."""
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reverse order."""
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned k times by 90 degrees in the plane of two axes, from the first towards the second."""
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
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All stretches of `size` elements along an axis, every `step`, as a view with one more axis, the last."""
    x = self if self.array.ndim else rules.reshape.record(self, shape=(1,))
    axis = one_dim(dimension, self.array.ndim) if self.array.ndim else -1
    length = x.array.shape[axis]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis + x.array.ndim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    made = rules.unfold.record(x, axis=axis, size=size, step=step)
    return made if self.array.ndim else UNFOLDED.record(made, shape=(size,))


UNFOLDED = rules.reshape.named("UnfoldBackward0")


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view by strides in elements. Of contiguous tensors alone, and within their own elements."""
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
