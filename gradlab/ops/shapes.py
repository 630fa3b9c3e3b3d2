"""Views of the same elements in another shape, with a copy if a view is impossible.

These functions are called often and on small tensors. They check their arguments by trying the operation, and determine what is
wrong only after NumPy has raised an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is an argument)
from gradlab.core.operator import composite
from gradlab.core.storage import FRESH, own_storage
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, negative_dim, negative_dims, not_a_tensor
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
def collect_ints(name: str, argument: str, args: tuple[Any, ...], keyword: Any = None) -> tuple[int, ...]:
    """Return integers that were passed one by one, as one sequence, or by keyword."""
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


def collect_tensors(name: str, tensors: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return tensors that were passed one by one or as one sequence."""
    several = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for x in several:
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, "tensors")
    return several


def reshape_error(shape: tuple[int, ...], numel: int) -> Exception:
    """Return PyTorch's error for a shape that does not fit `numel` elements."""
    for at, n in enumerate(shape):
        if n < -1:
            return RuntimeError(f"invalid shape dimension {n} at index {at} of shape {list(shape)}")
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred. Pass all but one of the sizes.")
    if not numel and -1 in shape and 0 in shape:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension "
            "size -1 can be any value and is ambiguous"
        )
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


# ------------------------------------------------------------------------------------------------------------------------ shape
def record_reshape(name: str, input: Tensor, sizes: tuple[Any, ...], shape: Any) -> Tensor:
    """Record the reshape primitive with a shape passed in any form, or raise PyTorch's error."""
    if shape is None:
        shape = sizes if not sizes or type(sizes[0]) is int else sizes[0] if len(sizes) == 1 else sizes
    if type(shape) is not tuple or (not shape and not sizes):
        shape = collect_ints(name, "shape", (shape,) if shape is not sizes else ())
    try:
        result = rules.reshape.record(input, shape=shape)
    except (TypeError, ValueError, AttributeError):
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, input) from None
        raise reshape_error(collect_ints(name, "shape", (shape,)), input.array.size) from None
    if result.array.shape != shape and -1 not in shape:
        raise reshape_error(shape, input.array.size)
    return result


@composite()
def reshape(input: Tensor, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
    """Return the elements in another shape, as a view if possible and otherwise as a copy.

    Parameters
    ----------
    {input}
    *sizes : ints, or a sequence of ints
        New shape: `x.reshape(2, 3)` or `x.reshape((2, 3))`. One size may be -1; it is inferred from the others.
    shape : sequence of ints, optional
        The shape as a keyword argument.

    Returns
    -------
    Tensor
        The elements in the order of their indices, same dtype as `input`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor, or if a size is not an integer.
    RuntimeError
        If the number of elements does not match, or if more than one size is -1.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.reshape(gl.arange(6), (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    result = record_reshape("reshape", input, sizes, shape)
    if result.storage is FRESH:
        return reshape_copy(input, result.array.shape)
    if result.node is not None and not input.array.flags.c_contiguous:
        return RESHAPE_ALIAS.record(input, shape=result.array.shape)
    return result


def reshape_copy(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Reshape through a contiguous copy, with the nodes that PyTorch records."""
    return UNSAFE_VIEW.record(rules.contiguous.record(input), shape=shape)


RESHAPE_ALIAS = rules.reshape.with_node("ReshapeAliasBackward0")

UNSAFE_VIEW = rules.reshape.with_node("UnsafeViewBackward0", view=False)


@composite(top=False)
def view(self: Tensor, *sizes: Any, size: Sequence[int] | None = None, dtype: Dtype | None = None) -> Tensor:
    """Return a view in another shape, or of the same bits as another dtype.

    Parameters
    ----------
    *sizes : ints, a sequence of ints, or a dtype
        New shape: `x.view(2, 3)` or `x.view((2, 3))`. One size may be -1. Or a dtype: `x.view(gl.int32)`.
    size : sequence of ints, optional
        The shape as a keyword argument.
    dtype : dtype, optional
        The dtype as a keyword argument. If its elements are larger or smaller, the size of the last dimension changes
        accordingly.

    Returns
    -------
    Tensor
        A view. With a dtype, it does not require a gradient.

    Raises
    ------
    TypeError
        If neither a shape nor a dtype is given.
    RuntimeError
        If the number of elements does not match, if a copy would be needed, or if the last dimension does not hold a whole
        number of elements of the dtype.

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
        return view_as_dtype(self, dtype if dtype is not None else sizes[0])
    if not sizes and size is None:
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n"
            " * (gradlab.dtype dtype)\n * (tuple of ints size)"
        )
    result = record_reshape("view", self, sizes, size)
    if result.storage is FRESH:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return result


def view_as_dtype(x: Tensor, dtype: Any) -> Tensor:
    wanted = as_numpy_dtype(dtype)
    assert wanted is not None
    try:
        result = constant(x.array.view(wanted))
    except (TypeError, ValueError):
        have = x.array.dtype
        raise RuntimeError(
            f"self.size(-1) must be divisible by {wanted.itemsize // have.itemsize} to view {x.dtype.word} as "
            f"{Dtype.__repr__(dtype)} (different element sizes), and its elements must be contiguous. The "
            f"shape is {list(x.array.shape)}."
        ) from None
    result.storage = own_storage(x)
    return result


@composite(top=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        Tensor whose shape to use.

    Returns
    -------
    Tensor
        A view if possible, otherwise a copy.

    Raises
    ------
    RuntimeError
        If the tensors have different numbers of elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(4).reshape_as(gl.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    check_tensors("reshape_as", self=self, other=other)
    return reshape(self, other.array.shape)


@composite(top=False)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view in the shape of another tensor.

    Parameters
    ----------
    other : Tensor
        Tensor whose shape to use.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        If the tensors have different numbers of elements, or if a copy would be needed.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(4).view_as(gl.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    check_tensors("view_as", self=self, other=other)
    return view(self, other.array.shape)


@composite()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Flatten the dimensions from `start_dim` to `end_dim` into one.

    Parameters
    ----------
    {input}
    start_dim : int, default: 0
        First dimension to flatten.
    end_dim : int, default: -1
        Last dimension to flatten.

    Returns
    -------
    Tensor
        `input` itself if nothing changes, otherwise a view if possible, or else a copy. A 0-d tensor becomes 1-d.

    Raises
    ------
    IndexError
        If a dimension is out of range.
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
        start, end = negative_dim(start_dim, ndim) + ndim, negative_dim(end_dim, ndim) + ndim
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if start == end and ndim:
            return input
        have = array.shape
        shape = (*have[:start], prod(have[start : end + 1]), *have[end + 1 :])
    return reshape(input, shape) if not array.flags.c_contiguous else rules.reshape.record(input, shape=shape)


@composite()
def ravel(input: Tensor) -> Tensor:
    """Flatten all dimensions into one.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        A view if `input` is contiguous, otherwise a copy.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ravel(gl.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("ravel", input)
    return rules.reshape.record(contiguous(input), shape=(-1,)) if input.array.ndim != 1 else contiguous(input)


@composite()
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several.

    Parameters
    ----------
    {input}
    {dimension}
    sizes : sequence of ints
        Sizes that replace the dimension. One may be -1; it is inferred from the others.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If the product of `sizes` does not match the dimension, if `sizes` is empty, or if `input` is 0-d.

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
    at = negative_dim(dim, len(have)) + len(have)
    parts = collect_ints("unflatten", "sizes", (sizes,))
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


SQUEEZE, SQUEEZE1, SQUEEZE2 = (rules.reshape.with_node(f"SqueezeBackward{n}") for n in range(3))

UNSQUEEZE = rules.reshape.with_node("UnsqueezeBackward0")


@composite(inplace="method")
@in_place_view(lambda dim=None: f"SqueezeBackward{3 if dim is None else 4 if isinstance(dim, int) else 5}")
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Remove dimensions of size 1.

    Parameters
    ----------
    {input}
    dim : int or tuple of ints, optional
        Dimensions to remove if their size is 1. Default: all of size 1.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If a dimension is repeated.

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
            negative_dim(dim, len(shape))
        return SQUEEZE1.record(input, shape=shape)
    axes = negative_dims(dim, len(shape)) if dim else ()
    return SQUEEZE2.record(input, shape=tuple(n for i, n in enumerate(shape) if n != 1 or i - len(shape) not in axes))


@composite(inplace="method")
@in_place_view("UnsqueezeBackward1")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a dimension of size 1.

    Parameters
    ----------
    {input}
    dim : int
        Position of the new dimension in the result, counted from the end if negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If `dim` is out of range for the result.

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
        negative_dim(dim, n)
    return UNSQUEEZE.record(input, shape=(*shape[:at], 1, *shape[at:]))


@composite(aliases="nelement")
def numel(input: Tensor) -> int:
    """Return the number of elements.

    Parameters
    ----------
    {input}

    Returns
    -------
    int
        The product of the sizes, which is 1 for a 0-d tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.numel(gl.zeros(2, 3))
    6
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("numel", input)
    return int(input.array.size)
