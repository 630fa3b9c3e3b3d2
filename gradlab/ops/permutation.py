"""The axes in another order: views that NumPy makes by strides."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import one_dim
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
NATURAL = [list(range(-n, 0)) for n in range(65)]  # the axes in order, for each rank

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
