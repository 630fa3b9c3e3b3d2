"""The same elements in another shape: views, and copies where a view cannot be had.

These are called more often than anything else, on small tensors, so each checks its arguments by doing the thing: what is wrong
is worked out when NumPy has refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is an argument)
from gradlab.core.operator import composed
from gradlab.core.storage import FRESH, own_storage
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, many_dims, not_a_tensor, one_dim
from gradlab.ops.copies import contiguous
from gradlab.ops.inplace_views import in_place_view
from gradlab.rules import shapes as rules

__all__ = [
    "flatten",
    "numel",
    "ravel",
    "reshape",
    "squeeze",
    "unflatten",
    "unsqueeze",
]


# -------------------------------------------------------------------------------------------------------------------- arguments
def ints(name: str, argument: str, args: tuple[Any, ...], keyword: Any = None) -> tuple[int, ...]:
    """The integers args one by one, as one sequence, or by keyword."""
    if keyword is None and not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')
    values = keyword if keyword is not None else args[0] if len(args) == 1 and not is_int(args[0]) else args
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


def several_tensors(name: str, tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Tensors given one by one or as one sequence."""
    several = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for x in several:
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, "tensors")
    return several


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


# ------------------------------------------------------------------------------------------------------------------------ shape
def reshaped(name: str, input: Tensor, sizes: tuple[Any, ...], shape: Any) -> Tensor:
    """The primitive on whatever says the shape, and torch's errors."""
    if shape is None:
        shape = sizes if not sizes or type(sizes[0]) is int else sizes[0] if len(sizes) == 1 else sizes
    if type(shape) is not tuple or (not shape and not sizes):
        shape = ints(name, "shape", (shape,) if shape is not sizes else ())
    try:
        result = rules.reshape.record(input, shape=shape)
    except (TypeError, ValueError, AttributeError):
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, input) from None
        raise misshapen(ints(name, "shape", (shape,)), input.array.size) from None
    if result.array.shape != shape and -1 not in shape:
        raise misshapen(shape, input.array.size)
    return result


@composed()
def reshape(input: Tensor, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
    """The elements in another shape: a view where the memory allows, else a copy.

    Parameters
    ----------
    {input}
    *sizes : ints, or a sequence of ints
        The new shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`. One size may be -1: it follows from the others.
    shape : sequence of ints, optional
        The same by keyword.

    Returns
    -------
    Tensor
        The elements in the order of their indices, of the dtype of `input`.

    Raises
    ------
    TypeError
        If `input` is no tensor, or a size no integer.
    RuntimeError
        If the elements do not fill the shape, or more than one size is -1.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.reshape(gl.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    result = reshaped("reshape", input, sizes, shape)
    if result.storage is FRESH:
        return in_new_memory(input, result.array.shape)
    if result.node is not None and not input.array.flags.c_contiguous:
        return RESHAPE_ALIAS.record(input, shape=result.array.shape)
    return result


def in_new_memory(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshaped by way of a copy, which torch's graph shows."""
    return UNSAFE_VIEW.record(rules.contiguous.record(input), shape=shape)


RESHAPE_ALIAS = rules.reshape.named("ReshapeAliasBackward0")

UNSAFE_VIEW = rules.reshape.named("UnsafeViewBackward0", view=False)


@composed(top=False)
def view(self: Tensor, *sizes: Any, size: Sequence[int] | None = None, dtype: Dtype | None = None) -> Tensor:
    """The same memory in another shape, or with its bits read as another dtype.

    Parameters
    ----------
    *sizes : ints, a sequence of ints, or a dtype
        The new shape: `x.view(2, 3)` or `x.view((2, 3))`, of which one size may be -1. Or a dtype: `x.view(gl.int32)`.
    size : sequence of ints, optional
        The shape by keyword.
    dtype : dtype, optional
        The dtype by keyword. If its elements are larger or smaller, the last dimension changes with them.

    Returns
    -------
    Tensor
        A view. With a dtype it has no history.

    Raises
    ------
    TypeError
        If neither a shape nor a dtype is given.
    RuntimeError
        If the elements do not fill the shape, if it would need a copy, or if the last dimension does not hold whole elements
        of the dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.zeros(4)
    >>> x.view(2, 2)[0, 1] = 5.0
    >>> x
    tensor([0., 5., 0., 0.])
    >>> gl.tensor([1.0]).view(gl.int32)
    tensor([1065353216], dtype=gradlab.int32)
    """
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], Dtype)):
        return read_as(self, dtype if dtype is not None else sizes[0])
    if not sizes and size is None:
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (gradlab.dtype dtype)\n * (tuple of ints size)"
        )
    result = reshaped("view", self, sizes, size)
    if result.storage is FRESH:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return result


def read_as(x: Tensor, dtype: Any) -> Tensor:
    wanted = as_numpy_dtype(dtype)
    assert wanted is not None
    try:
        result = constant(x.array.view(wanted))
    except (TypeError, ValueError):
        have = x.array.dtype
        raise RuntimeError(
            f"self.size(-1) must be divisible by {wanted.itemsize // have.itemsize} to view {x.dtype.word} as "
            f"{Dtype.__repr__(dtype)} (different element sizes), and its elements side by side in memory. The "
            f"shape is {list(x.array.shape)}."
        ) from None
    result.storage = own_storage(x)
    return result


@composed(top=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        The tensor whose shape it is.

    Returns
    -------
    Tensor
        A view where the memory allows, else a copy.

    Raises
    ------
    RuntimeError
        If `other` has another number of elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(4).reshape_as(gl.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    check_tensors("reshape_as", self=self, other=other)
    return reshape(self, other.array.shape)


@composed(top=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        The tensor whose shape it is.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        If `other` has another number of elements, or it would need a copy.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(4).view_as(gl.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    check_tensors("view_as", self=self, other=other)
    return view(self, other.array.shape)


@composed()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` made one.

    Parameters
    ----------
    {input}
    start_dim, end_dim : int, default 0 and -1
        The first and the last of them.

    Returns
    -------
    Tensor
        `input` itself where nothing changes, else a view, or a copy where there is none. A 0-d tensor gets one dimension.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If `start_dim` comes after `end_dim`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.flatten(gl.zeros(2, 3, 4), start_dim=1).shape
    gradlab.Size([2, 12])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("flatten", input)
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


@composed()
def ravel(input: Tensor) -> Tensor:
    """All elements along one dimension.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        A view if the elements lie in memory in the order of their indices, else a copy.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ravel(gl.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("ravel", input)
    return rules.reshape.record(contiguous(input), shape=(-1,)) if input.array.ndim != 1 else contiguous(input)


@composed()
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension taken apart into several.

    Parameters
    ----------
    {input}
    {dimension}
    sizes : sequence of ints
        The sizes that take its place, of which one may be -1: it follows from the others.

    Returns
    -------
    Tensor
        A view of the other shape.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the product of the sizes is not that of the dimension, if there are none, or if `input` is 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unflatten(gl.zeros(3, 8), 1, (2, -1)).shape
    gradlab.Size([3, 2, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unflatten", input)
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


@composed(inplace="method")
@in_place_view(lambda dim=None: f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}")
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without the dimensions of length 1.

    Parameters
    ----------
    {input}
    dim : int or tuple of ints, optional
        The dimensions that are dropped if their length is 1; without it, all those.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If one is named twice.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.squeeze(gl.tensor([[[1.], [2.]]]))
    tensor([1., 2.])
    >>> gl.squeeze(gl.zeros(1, 2, 1), 0).shape
    gradlab.Size([2, 1])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("squeeze", input)
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


@composed(inplace="method")
@in_place_view("UnsqueezeBackward1")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more dimension, of length 1.

    Parameters
    ----------
    {input}
    dim : int
        Where it stands in the result; counted from the end of the result if it is negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If it is beyond the dimensions of the result.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unsqueeze(gl.tensor([1., 2.]), 1)
    tensor([[1.],
            [2.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("unsqueeze", input)
    shape = input.array.shape
    if dim == 0:
        return UNSQUEEZE.record(input, shape=(1, *shape))
    n = len(shape) + 1
    at = dim if dim >= 0 else dim + n
    if not 0 <= at < n:
        one_dim(dim, n)
    return UNSQUEEZE.record(input, shape=(*shape[:at], 1, *shape[at:]))


@composed(aliases="nelement")
def numel(input: Tensor) -> int:
    """The number of elements.

    Parameters
    ----------
    {input}

    Returns
    -------
    int
        The product of the sizes; 1 of a 0-d tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.numel(gl.zeros(2, 3))
    6
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("numel", input)
    return int(input.array.size)
