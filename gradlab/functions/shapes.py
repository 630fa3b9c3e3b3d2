"""The same elements in another shape, order, place or dtype."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.storage import view_of
from gradlab.core.tensor import Tensor, constant
from gradlab.functions.arguments import many_dims, one_dim
from gradlab.rules import elementwise as el
from gradlab.rules import shapes as rules

__all__ = ["broadcast_to", "cat", "clone", "concat", "concatenate", "diag", "diagonal", "flatten", "is_tensor", "numel",
           "permute", "reshape", "squeeze", "stack", "t", "transpose", "unsqueeze"]


def new_shape(shape: tuple[Any, ...], numel: int) -> tuple[int, ...]:
    """The shape asked for, with -1 worked out, or torch's error."""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    unknown, known = shape.count(-1), 1
    for n in shape:
        if n != -1:
            known *= n
    if unknown > 1:
        raise RuntimeError("only one dimension can be inferred")
    if unknown == 1 and known == 0 and numel == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension "
                           "size -1 can be any value and is ambiguous")
    if (unknown == 0 and known != numel) or (unknown == 1 and (known == 0 or numel % known)):
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(int(numel // known if n == -1 else n) for n in shape)


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The elements in another shape; a view where the memory allows."""
    wanted = new_shape(shape, input.array.size)
    result = rules.reshape.record(input, shape=wanted)
    if view_of(result) is None:                                                # it took a copy, and torch's graph says so
        return UNSAFE_VIEW.record(clone(input), shape=wanted)
    return result


UNSAFE_VIEW = rules.reshape.named("UnsafeViewBackward0", view=False)


def view(self: Tensor, *shape: Any) -> Tensor:
    """The same memory in another shape; an error where that needs a copy. `view(dtype)` is not supported."""
    result = rules.reshape.record(self, shape=new_shape(shape, self.array.size))
    if view_of(result) is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans "
                           "across two contiguous subspaces). Use .reshape(...) instead.")
    return result


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` made one."""
    ndim = input.array.ndim
    if not ndim:
        return reshape(input, 1)
    start, end = one_dim(start_dim, ndim) + ndim, one_dim(end_dim, ndim) + ndim
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(input, *input.array.shape[:start], -1, *input.array.shape[end + 1:]) if start < end else input


TRANSPOSE, T2 = rules.permute.named("TransposeBackward0"), rules.permute.named("TBackward0")


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    ndim = input.array.ndim
    a, b = one_dim(dim0, ndim), one_dim(dim1, ndim)
    axes = list(range(-ndim, 0))
    if ndim:
        axes[a], axes[b] = axes[b], axes[a]
    return TRANSPOSE.record(input, axes=tuple(axes))


def permute(input: Tensor, *dims: Any) -> Tensor:
    """The axes in the given order."""
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    ndim = input.array.ndim
    if len(dims) != ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                           f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}")
    axes = tuple(one_dim(d, ndim) for d in dims)
    if len(set(axes)) < ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return rules.permute.record(input, axes=axes)


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector is left as it is."""
    if input.array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.array.ndim}D")
    return T2.record(input, axes=tuple(range(-1, -input.array.ndim - 1, -1)))


def expand(self: Tensor, *sizes: Any) -> Tensor:
    """Axes of length 1 repeated to the given sizes, without copying; -1 leaves an axis as it is."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    have = (1,) * (len(sizes) - self.array.ndim) + self.array.shape
    wanted = tuple(h if n == -1 else n for n, h in zip(sizes, have, strict=False))
    for at, (n, h) in enumerate(zip(wanted, have, strict=False)):
        if sizes[at] == -1 and at < len(sizes) - self.array.ndim:
            raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {at}")
        if h not in (1, n):
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({h}) at non-singleton "
                               f"dimension {at}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(self.array.shape)}")
    if len(sizes) < self.array.ndim:
        raise RuntimeError(f"expand({list(sizes)}): the number of sizes provided ({len(sizes)}) must be greater or equal to the "
                           f"number of dimensions in the tensor ({self.array.ndim})")
    return rules.expand.record(self, shape=wanted, skip=0)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of `other`."""
    return expand(self, other.array.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expanded to `size`."""
    return expand(input, tuple(size))


SQUEEZE, SQUEEZE1 = rules.reshape.named("SqueezeBackward0"), rules.reshape.named("SqueezeBackward1")
UNSQUEEZE = rules.reshape.named("UnsqueezeBackward0")


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the axes of length 1 (or without those of `dim` that are)."""
    shape, ndim = input.array.shape, input.array.ndim
    axes = many_dims(dim, ndim)
    kept = tuple(n for i, n in enumerate(shape) if n != 1 or i - ndim not in axes)
    return (SQUEEZE if dim is None else SQUEEZE1).record(input, shape=kept)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more axis, of length 1, at `dim`."""
    at = one_dim(dim, input.array.ndim + 1) + input.array.ndim + 1
    return UNSQUEEZE.record(input, shape=(*input.array.shape[:at], 1, *input.array.shape[at:]))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the axes `dim1` and `dim2`, as the last axis."""
    ndim = input.array.ndim
    axes = one_dim(dim1, ndim), one_dim(dim2, ndim)
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return rules.diagonal.record(input, offset=offset, axes=axes)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.array.ndim == 2:
        return clone(globals()["diagonal"](input, diagonal))
    if input.array.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    n = input.array.size + abs(diagonal)
    return rules.fill_diagonal.record(input, shape=(n, n), offset=diagonal, axes=(-2, -1))


def _sequence(name: str, tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}.")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return list(tensors)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after the other along an axis they have."""
    tensors = _sequence("cat", tensors)
    if not tensors:
        raise ValueError("gradlab.cat(): expected a non-empty list of Tensors")
    if len({x.array.ndim for x in tensors}) > 1:                   # torch lets tensors of shape [0] join any others
        tensors = [x for x in tensors if x.array.shape != (0,)]
    for i, x in enumerate(tensors):
        if not x.array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated. Use stack, or x.reshape(1).")
    first = tensors[0].array.shape
    axis = one_dim(dim, len(first))
    for i, x in enumerate(tensors):
        shape = x.array.shape
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for at, (n, m) in enumerate(zip(first, shape, strict=True)):
            if n != m and at - len(first) != axis:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {axis + len(first)}. Expected size {n} but "
                                   f"got size {m} for tensor number {i} in the list.")
    starts = (0, *np.cumsum([x.array.shape[axis] for x in tensors]).tolist())
    return in_order(rules.cat.record(*tensors, axis=axis, starts=starts))


concat = concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new axis."""
    tensors = _sequence("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].array.shape
    for i, x in enumerate(tensors):
        if x.array.shape != first:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                               f"{list(x.array.shape)} at entry {i}")
    return in_order(rules.stack.record(*tensors, axis=one_dim(dim, len(first) + 1)))


def in_order(made: Tensor) -> Tensor:
    """A fresh result with its elements in the order of their indices, as torch lays out picks and joins: `view` then works."""
    if not made.array.flags.c_contiguous:
        made.array = namespace_of[type(made.array)].ascontiguousarray(made.array)
    return made


def clone(input: Tensor) -> Tensor:
    """A copy with history."""
    return el.clone.record(input)


def cast(input: Tensor, dtype: Any) -> Tensor:
    """In another dtype; itself if it has it."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or input.array.dtype == wanted:
        return input
    return rules.astype.record(input, dtype=wanted) if wanted.kind == "f" else constant(input.array.astype(wanted))


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.array.size)
