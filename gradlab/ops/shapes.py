"""The same elements in another shape or order: views, and copies where a view cannot be had.

These are called more often than anything else, on small tensors, so each checks its arguments by doing the thing: what is wrong
is worked out when NumPy has refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype, dtype, float16, float32
from gradlab.core.errors import Size, broadcast_mismatch
from gradlab.core.layout import arranged, contiguous_format, is_arranged
from gradlab.core.silence import quietly
from gradlab.core.storage import FRESH, own_storage
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED
from gradlab.core.watching import cut as cut_off
from gradlab.ops.arguments import many_dims, not_a_tensor, one_dim
from gradlab.rules import elementwise as el
from gradlab.rules import shapes as rules

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "clone",
    "flatten",
    "is_tensor",
    "moveaxis",
    "movedim",
    "numel",
    "permute",
    "ravel",
    "reshape",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unflatten",
    "unsqueeze",
]

NATURAL = [list(range(-n, 0)) for n in range(65)]  # the axes in order, for each rank


# --------------------------------------------------------------------------------------------------------------- arguments
def ints(name: str, argument: str, given: tuple[Any, ...], keyword: Any = None) -> tuple[int, ...]:
    """The integers given one by one, as one sequence, or by keyword."""
    if keyword is None and not given:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
    values = keyword if keyword is not None else given[0] if len(given) == 1 and not is_int(given[0]) else given
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, not {type(values).__name__}")
    for at, n in enumerate(values):
        if not is_int(n):
            raise TypeError(
                f"{name}(): argument '{argument}' (position 1) must be tuple of ints, but found element of type "
                f"{type(n).__name__} at pos {at}"
            )
    return tuple([int(n) for n in values])


def is_int(n: Any) -> bool:
    return isinstance(n, (int, np.integer)) or (isinstance(n, Tensor) and not n.array.ndim and n.array.dtype.kind != "f")


def misshapen(shape: tuple[int, ...], numel: int) -> Exception:
    """Torch's error for a shape that `numel` elements cannot take."""
    for at, n in enumerate(shape):
        if n < -1:
            return RuntimeError(f"invalid shape dimension {n} at index {at} of shape {list(shape)}")
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred. Give all but one of the sizes.")
    if not numel and -1 in shape and 0 in shape:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


# -------------------------------------------------------------------------------------------------------------------- shape
def reshaped(name: str, input: Tensor, sizes: tuple[Any, ...], shape: Any) -> Tensor:
    """The primitive on whatever says the shape, and torch's errors."""
    if shape is None:
        shape = sizes if not sizes or type(sizes[0]) is int else sizes[0] if len(sizes) == 1 else sizes
    if type(shape) is not tuple or (not shape and not sizes):
        shape = ints(name, "shape", (shape,) if shape is not sizes else ())
    try:
        made = rules.reshape.record(input, shape=shape)
    except (TypeError, ValueError, AttributeError):
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, input) from None
        raise misshapen(ints(name, "shape", (shape,)), input.array.size) from None
    if made.array.shape != shape and -1 not in shape:
        raise misshapen(shape, input.array.size)
    return made


def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The elements in another shape, of which one size may be -1; a view where the memory allows."""
    made = reshaped("reshape", input, sizes, shape)
    if made.storage is FRESH:
        return in_new_memory(input, made.array.shape)
    if made.node is not None and not input.array.flags.c_contiguous:
        return RESHAPE_ALIAS.record(input, shape=made.array.shape)
    return made


def in_new_memory(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshaped by way of a copy, which torch's graph shows."""
    return UNSAFE_VIEW.record(rules.contiguous.record(input), shape=shape)


RESHAPE_ALIAS = rules.reshape.named("ReshapeAliasBackward0")
UNSAFE_VIEW = rules.reshape.named("UnsafeViewBackward0", view=False)


def view(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or with its bits read as another dtype (without history, as in torch); an error where
    that needs a copy."""
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], Dtype)):
        return read_as(self, dtype if dtype is not None else sizes[0])
    if not sizes and size is None:
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (gradlab.dtype dtype)\n * (tuple of ints size)"
        )
    made = reshaped("view", self, sizes, size)
    if made.storage is FRESH:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return made


Dtype = dtype


def read_as(x: Tensor, dtype: Any) -> Tensor:
    wanted = as_numpy_dtype(dtype)
    assert wanted is not None
    try:
        made = constant(x.array.view(wanted))
    except (TypeError, ValueError):
        have = x.array.dtype
        raise RuntimeError(
            f"self.size(-1) must be divisible by {wanted.itemsize // have.itemsize} to view {x.dtype.word} as "
            f"{Dtype.__repr__(dtype)} (different element sizes), and its elements side by side in memory. The "
            f"shape is {list(x.array.shape)}."
        ) from None
    made.storage = own_storage(x)
    return made


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` made one."""
    array = input.array
    ndim = array.ndim
    if start_dim == 0 and end_dim == -1:
        if ndim == 1:
            return input
        shape: tuple[int, ...] = (array.size,)
    else:
        start, end = one_dim(start_dim, ndim) + ndim, one_dim(end_dim, ndim) + ndim
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if start == end and ndim:
            return input
        have = array.shape
        shape = (*have[:start], prod(have[start : end + 1]), *have[end + 1 :])
    return reshape(input, shape) if not array.flags.c_contiguous else rules.reshape.record(input, shape=shape)


def ravel(input: Tensor) -> Tensor:
    """All elements along one axis; a view if they lie in order."""
    return rules.reshape.record(contiguous(input), shape=(-1,)) if input.array.ndim != 1 else contiguous(input)


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """The axis `dim` taken apart into axes of these sizes, of which one may be -1."""
    have = input.array.shape
    if not have:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    at = one_dim(dim, len(have)) + len(have)
    parts = ints("unflatten", "sizes", (sizes,))
    if not parts:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = prod(n for n in parts if n != -1)
    if parts.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    if known != have[at] and not (-1 in parts and known and have[at] % known == 0):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {at} ({have[at]}) in the input tensor"
        )
    return view(input, have[:at] + tuple(have[at] // known if n == -1 else n for n in parts) + have[at + 1 :])


SQUEEZE, SQUEEZE1, SQUEEZE2 = (rules.reshape.named(f"SqueezeBackward{n}") for n in range(3))
UNSQUEEZE = rules.reshape.named("UnsqueezeBackward0")


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the axes of length 1 (or without those of `dim` that are)."""
    if dim is None:
        return SQUEEZE.record(input, shape=input.array.squeeze().shape)
    shape = input.array.shape
    if type(dim) is int:
        try:
            if shape[dim] == 1:
                dim %= len(shape)
                shape = shape[:dim] + shape[dim + 1 :]
        except IndexError:
            one_dim(dim, len(shape))
        return SQUEEZE1.record(input, shape=shape)
    axes = many_dims(dim, len(shape)) if dim else ()
    return SQUEEZE2.record(input, shape=tuple(n for i, n in enumerate(shape) if n != 1 or i - len(shape) not in axes))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more axis, of length 1, at `dim`."""
    shape = input.array.shape
    if dim == 0:
        return UNSQUEEZE.record(input, shape=(1, *shape))
    n = len(shape) + 1
    at = dim if dim >= 0 else dim + n
    if not 0 <= at < n:
        one_dim(dim, n)
    return UNSQUEEZE.record(input, shape=(*shape[:at], 1, *shape[at:]))


# ------------------------------------------------------------------------------------------------------------ order of axes
TRANSPOSE, T2 = rules.permute.named("TransposeBackward0"), rules.permute.named("TBackward0")


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    return TRANSPOSE.record(input, axes=exchanged(input.array.ndim, dim0, dim1))


def exchanged(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    axes = NATURAL[ndim].copy()
    try:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    except (IndexError, TypeError):
        one_dim(dim0, ndim), one_dim(dim1, ndim)
    return tuple(axes)


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
    return transpose(input, axis0, axis1)


def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    return transpose(input, dim0, dim1)


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """The axes in the given order."""
    if dims is None:
        dims = order[0] if len(order) == 1 and type(order[0]) is not int else order
    ndim = input.array.ndim
    if len(dims) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    axes = tuple([d - ndim if d >= 0 else d for d in dims])
    try:
        return rules.permute.record(input, axes=axes)
    except ValueError:
        for d in dims:
            one_dim(d, ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The axes `source` put at `destination`; the others keep their order."""
    ndim = input.array.ndim
    pairs = [[one_dim(d, ndim) for d in ((dims,) if is_int(dims) else dims)] for dims in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        given = [list(d) if isinstance(d, (tuple, list)) else [d] for d in (source, destination)]
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({given[0]} dims) should contain the same "
            f"number of dims as destination ({given[1]} dims)"
        )
    for axes, name, dims in ((pairs[0], "source", source), (pairs[1], "destination", destination)):
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not ndim:
        return ALIAS.record(input, axes=())
    rest = [a for a in NATURAL[ndim] if a not in pairs[0]]
    for to, a in sorted(zip((d + ndim for d in pairs[1]), pairs[0], strict=True)):
        rest.insert(to, a)
    return rules.permute.record(input, axes=tuple(rest))


moveaxis = movedim
ALIAS = rules.permute.named("AliasBackward0")


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector is left as it is."""
    return T2.record(input, axes=transposed_axes(input))


def transposed_axes(input: Tensor) -> tuple[int, ...]:
    ndim = input.array.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D. See transpose.")
    return ((), (-1,), (-1, -2))[ndim]


def adjoint(input: Tensor) -> Tensor:
    """The last two axes exchanged (and conjugated, which for real numbers is nothing)."""
    ndim = input.array.ndim
    if not ndim:
        warnings.warn("adjoint() is deprecated on 0-D tensors. Consider using x.conj().", UserWarning, stacklevel=2)
        return input
    if ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return transpose(input, -2, -1)


# ------------------------------------------------------------------------------------------------------------- broadcasting
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Axes of length 1 repeated to the given sizes, without copying; -1 leaves an axis as it is."""
    if size is None:
        size = sizes[0] if len(sizes) == 1 and type(sizes[0]) is not int else sizes
    if type(size) is not tuple:
        size = ints("expand", "size", (size,))
    if -1 not in size:
        try:
            return rules.expand.record(self, shape=size, skip=0)
        except (TypeError, ValueError, AttributeError):
            size = ints("expand", "size", (size,))
    have = self.array.shape
    extra = len(size) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(gradlab.{self.dtype.legacy}{{{list(have)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    for at, n in enumerate(size):
        if n == -1 and at < extra:
            raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {at}")
    shape = tuple(n if n != -1 else have[at - extra] for at, n in enumerate(size))
    for at in range(len(size) - 1, extra - 1, -1):
        if have[at - extra] not in (1, shape[at]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[at]}) must match the existing size ({have[at - extra]}) "
                f"at non-singleton dimension {at}.  Target sizes: {list(size)}.  Tensor sizes: {list(have)}"
            )
    return rules.expand.record(self, shape=shape, skip=0)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of `other`."""
    return expand(self, other.array.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expanded to `size`."""
    return expand(input, tuple(size))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape that they broadcast to."""
    given = several_tensors("broadcast_tensors", tensors)
    shape: tuple[int, ...] = ()
    for x in given:
        shape = joint_shape(shape, x.array.shape)
    return tuple(x if x.array.shape == shape else expand(x, shape) for x in given)


def joint_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes broadcast to, or torch's RuntimeError."""
    if error := broadcast_mismatch(a, b):
        raise error
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    return tuple(m if n == 1 else n for n, m in zip(a, b, strict=True))


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that the shapes (or lengths of one axis) broadcast to."""
    whole: list[int] = []
    for at, shape in enumerate(shapes):
        sizes = [int(shape)] if is_int(shape) else [int(n) for n in shape]
        if any(n < 0 for n in sizes):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(sizes)}): ({min(sizes)})")
        whole = [1] * (len(sizes) - len(whole)) + whole
        for i in range(-1, -len(sizes) - 1, -1):
            if sizes[i] not in (1, whole[i]) and whole[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[i]} at {i}! Mismatching argument at "
                    f"index {at} had {tuple(sizes)}; but expected shape should be broadcastable to {whole}"
                )
            whole[i] = whole[i] if sizes[i] == 1 else sizes[i]
    return Size(whole)


def several_tensors(name: str, tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Tensors given one by one or as one sequence."""
    given = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for x in given:
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, "tensors")
    return given


def _at_least(n: int) -> Any:
    def atleast(*tensors: Any) -> Any:
        made = tuple(with_axes(x, n) for x in several_tensors(f"atleast_{n}d", tensors))
        return made[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else made

    atleast.__name__ = atleast.__qualname__ = f"atleast_{n}d"
    atleast.__doc__ = f"Each tensor with {n} ax{'is' if n == 1 else 'es'} or more: missing ones have length 1."
    return atleast


def with_axes(x: Tensor, n: int) -> Tensor:
    ndim = x.array.ndim
    if ndim >= n:
        return x
    if not ndim:
        return rules.reshape.record(x, shape=(1,) * n)
    return unsqueeze(unsqueeze(x, 0) if ndim == 1 else x, -1) if n == 3 else unsqueeze(x, 0)


atleast_1d, atleast_2d, atleast_3d = map(_at_least, (1, 2, 3))


# ------------------------------------------------------------------------------------------------------------------- copies
def in_order(made: Tensor) -> Tensor:
    """A fresh result with its elements in the order of their indices, as torch lays out picks and joins: `view` then works."""
    if not made.array.flags.c_contiguous:
        made.array = namespace_of[type(made.array)].ascontiguousarray(made.array)
    return made


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with history, in the memory order of the original or in the one given."""
    made = el.clone.record(input)
    if memory_format is not None:
        made.array = arranged(made.array, memory_format)
    return made


def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """Itself if its elements lie in memory in the order of their indices (or in the one given), else a copy that does."""
    if is_arranged(self.array, memory_format) if memory_format is not contiguous_format else self.array.flags.c_contiguous:
        return self
    made = rules.contiguous.record(self)
    made.array = arranged(made.array, memory_format)
    return made


def cast(input: Tensor, dtype: Any) -> Tensor:
    """In another dtype; itself if it has it."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or input.array.dtype == wanted:
        return input
    if wanted.kind == "f":
        return rules.astype.record(input, dtype=wanted)
    made = constant(quietly(input.array.astype, wanted))
    if WATCHED:
        cut_off(made, input, "cast")
    return made


def in_single(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """A function of several operations, for which torch has one kernel, of float16: computed in float32 and rounded once."""
    wide = [cast(x, float32) if isinstance(x, Tensor) and x.array.dtype.char == "e" else x for x in args]
    return cast(function(*wide), float16)


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.array.size)
