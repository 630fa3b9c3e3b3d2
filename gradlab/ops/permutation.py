"""Reorder the dimensions of tensors. The results are views with permuted strides."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import negative_dim, not_a_tensor
from gradlab.ops.inplace_views import in_place_view
from gradlab.ops.shapes import is_int
from gradlab.rules import shapes as rules

__all__ = [
    "adjoint",
    "moveaxis",
    "movedim",
    "permute",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
]
AXES_IN_ORDER = [list(range(-n, 0)) for n in range(65)]  # for each number of dimensions

TRANSPOSE, T_PERMUTE = rules.permute.with_node("TransposeBackward0"), rules.permute.with_node("TBackward0")


@composite(inplace="method")
@in_place_view("TransposeBackward1")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions.

    Parameters
    ----------
    {input}
    dim0, dim1 : int
        Dimensions to swap, counted from the end if negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.transpose(gl.tensor([[1., 2., 3.]]), 0, 1)
    tensor([[1.],
            [2.],
            [3.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("transpose", input)
    return TRANSPOSE.record(input, axes=swapped_axes(input.array.ndim, dim0, dim1))


def swapped_axes(ndim: int, dim0: int, dim1: int) -> tuple[int, ...]:
    axes = AXES_IN_ORDER[ndim].copy()
    try:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    except (IndexError, TypeError):
        negative_dim(dim0, ndim), negative_dim(dim1, ndim)
    return tuple(axes)


@composite(inplace="method")
@in_place_view("TransposeBackward1")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Swap two dimensions. Alias of `transpose`, as in NumPy.

    Parameters
    ----------
    {input}
    axis0, axis1 : int
        Dimensions to swap, counted from the end if negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.swapaxes(gl.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("swapaxes", input)
    return transpose(input, axis0, axis1)


@composite(inplace="method")
@in_place_view("TransposeBackward1")
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions. Alias of `transpose`.

    Parameters
    ----------
    {input}
    dim0, dim1 : int
        Dimensions to swap, counted from the end if negative.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.swapdims(gl.tensor([[1., 2.], [3., 4.]]), 0, 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("swapdims", input)
    return transpose(input, dim0, dim1)


@composite()
def permute(input: Tensor, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
    """Reorder the dimensions.

    Parameters
    ----------
    {input}
    *order : ints, or a sequence of ints
        Dimensions of `input` in their new order: `x.permute(2, 0, 1)` or `x.permute((2, 0, 1))`.
    dims : sequence of ints, optional
        The order as a keyword argument.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If a dimension is missing or repeated.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.permute(gl.zeros(2, 3, 4), (2, 0, 1)).shape
    gradlab.Size([4, 2, 3])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("permute", input)
    wanted: Any = dims
    if wanted is None:
        wanted = order[0] if len(order) == 1 and type(order[0]) is not int else order
    ndim = input.array.ndim
    if len(wanted) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(wanted)}"
        )
    axes = tuple([d - ndim if d >= 0 else d for d in wanted])
    try:
        return rules.permute.record(input, axes=axes)
    except ValueError:
        for d in wanted:
            negative_dim(d, ndim)
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None


@composite(aliases="moveaxis")
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move dimensions to new positions. The others keep their order.

    Parameters
    ----------
    {input}
    source, destination : int or sequence of ints
        Dimensions to move, and their positions in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If `source` and `destination` have different lengths, or if a dimension is repeated.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.movedim(gl.zeros(2, 3, 4), 0, -1).shape
    gradlab.Size([3, 4, 2])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("movedim", input)
    ndim = input.array.ndim
    moved: tuple[Any, Any] = source, destination
    pairs = [[negative_dim(d, ndim) for d in ((dims,) if is_int(dims) else dims)] for dims in moved]
    if len(pairs[0]) != len(pairs[1]):
        both = [list(d) if isinstance(d, (tuple, list)) else [d] for d in moved]
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({both[0]} dims) should contain the same "
            f"number of dims as destination ({both[1]} dims)"
        )
    for axes, name, dims in ((pairs[0], "source", moved[0]), (pairs[1], "destination", moved[1])):
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not ndim:
        return ALIAS.record(input, axes=())
    rest = [a for a in AXES_IN_ORDER[ndim] if a not in pairs[0]]
    for to, a in sorted(zip((d + ndim for d in pairs[1]), pairs[0], strict=True)):
        rest.insert(to, a)
    return rules.permute.record(input, axes=tuple(rest))


moveaxis = movedim

ALIAS = rules.permute.with_node("AliasBackward0")


@composite(inplace="method")
@in_place_view("TBackward1")
def t(input: Tensor) -> Tensor:
    """Transpose a matrix.

    Parameters
    ----------
    input : Tensor
        Tensor with at most two dimensions. A 0-d or 1-d tensor keeps its shape.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        If `input` has more than two dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.t(gl.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("t", input)
    return T_PERMUTE.record(input, axes=transposed_axes(input))


def transposed_axes(input: Tensor) -> tuple[int, ...]:
    ndim = input.array.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D. See transpose.")
    return ((), (-1,), (-1, -2))[ndim]


@composite()
def adjoint(input: Tensor) -> Tensor:
    """Swap the last two dimensions. For real numbers, this is the conjugate transpose.

    Parameters
    ----------
    input : Tensor
        Matrix, or batch of matrices. A 0-d tensor is returned unchanged, with a warning.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        If `input` is 1-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.adjoint(gl.zeros(5, 2, 3)).shape
    gradlab.Size([5, 3, 2])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("adjoint", input)
    ndim = input.array.ndim
    if not ndim:
        warnings.warn("adjoint() is deprecated on 0-D tensors. Consider using x.conj().", UserWarning, stacklevel=2)
        return input
    if ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return transpose(input, -2, -1)
