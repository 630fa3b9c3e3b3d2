"""Diagonals and triangles of matrices, and copies of a tensor with one slice or diagonal replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.destination import takes_out
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.errors import view_of_leaf_in_place
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.promotion import cast as cast_to
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim
from gradlab.ops.indexing import write
from gradlab.ops.shapes import flatten
from gradlab.ops.splits import FULL, selected
from gradlab.rules import reductions
from gradlab.rules import shapes as rules
from gradlab.rules.indexing import getitem
from gradlab.rules.writing import overwrite, pick

__all__ = [
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "select_scatter",
    "slice_scatter",
    "trace",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
]


def two_dims(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Two different axes, negative."""
    axes = one_dim(dim1, ndim), one_dim(dim2, ndim)
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return axes


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the axes `dim1` and `dim2`, as the last axis; a view."""
    return rules.diagonal.record(input, offset=offset, axes=two_dims(dim1, dim2, input.array.ndim))


DIAGONAL_COPY = rules.contiguous.named("DiagonalBackward0_copy")
_diagonal = diagonal


@takes_out
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A copy of the diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.array.ndim == 2:
        return DIAGONAL_COPY.record(_diagonal(input, diagonal))
    if input.array.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    return diag_embed(input, diagonal)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last axis on the diagonal of two new axes, `dim1` and `dim2` of the result."""
    shape = input.array.shape
    ndim = len(shape) + 1
    if not shape:
        one_dim(dim1, 0)
    axes = two_dims(dim1, dim2, ndim)
    sizes = list(shape[:-1])
    for axis in sorted(axis + ndim for axis in axes):
        sizes.insert(axis, shape[-1] + abs(offset))
    return rules.fill_diagonal.record(input, shape=tuple(sizes), offset=offset, axes=axes)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all the elements on its diagonal."""
    return diag_embed(flatten(input), offset)


def _triangle(name: str, op: Any, side: str) -> Any:
    def triangle(input: Tensor, diagonal: int = 0) -> Tensor:
        if input.array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return op.record(input, diagonal=diagonal)

    triangle.__name__ = triangle.__qualname__ = name
    triangle.__doc__ = f"The elements on and {side} a diagonal of the last two axes; the others are 0."
    return takes_out(triangle)


tril, triu = _triangle("tril", rules.tril, "below"), _triangle("triu", rules.triu, "above")


def _triangle_indices(name: str, find: Any, side: str) -> Any:
    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Any = None,
        device: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        for n, text in ((row, "row"), (col, "col")):
            if n < 0:
                raise RuntimeError(f"{text} must be non-negative, got{n}")
        wanted = as_numpy_dtype(dtype) or np.dtype(np.int64)
        if wanted.kind != "i":
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.word}'. Ask for an integer dtype.")
        made = constant(np.stack(find(row, offset, col)).astype(wanted))
        return made if device is None else made.to(device)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = f"The row and column numbers of the elements on and {side} a diagonal of a matrix, as two rows."
    return indices


tril_indices = _triangle_indices("tril_indices", np.tril_indices, "below")
triu_indices = _triangle_indices("triu_indices", np.triu_indices, "above")

TRACE = reductions.sum_.named("TraceBackward0")


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.array.ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {input.array.ndim}. Of a batch: "
            "x.diagonal(dim1=-2, dim2=-1).sum(-1)."
        )
    if input.array.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'. Call .int() or .float() first.")
    return TRACE.record(diagonal(input), axis=(-1,), keepdims=False)


# ---------------------------------------------------------------------------------------------------- one part replaced
DIAGONAL_SCATTER, SELECT_SCATTER, SLICE_SCATTER = (
    overwrite.named(f"{name}ScatterBackward0") for name in ("Diagonal", "Select", "Slice")
)


def replaced(op: Any, input: Tensor, src: Tensor, step: tuple[Any, dict[str, Any]]) -> Tensor:
    """A copy of `input` with `src` where the step leads."""
    have = pick(np.broadcast_to(0, input.array.shape), (step,)).shape
    if src.array.shape != have:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.array.shape)}, slice "
            f"size = {list(have)}"
        )
    return op.record(input, cast_to(src, input.array.dtype), steps=(step,))


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with `src` on the diagonal of two axes."""
    axes = two_dims(dim1, dim2, input.array.ndim)
    return replaced(DIAGONAL_SCATTER, input, src, (rules.diagonal, {"offset": offset, "axes": axes}))


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with `src` at `index` of an axis."""
    shape = input.array.shape
    at = selected(shape, one_dim(dim, len(shape)) + len(shape), index)
    return replaced(SELECT_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with `src` in a slice of an axis."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    ndim = input.array.ndim
    at = (*(FULL,) * (one_dim(dim, ndim) + ndim), slice(start, end, step), Ellipsis)
    return replaced(SLICE_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """`fill_value` on the diagonal of a matrix, in place; with `wrap` again below, past every square of a tall one. Of more than
    two axes, all of one length, those elements whose indices are equal."""
    shape, xp = self.array.shape, namespace_of[type(self.array)]
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if mode.grad and type(self.node) is AccumulateGrad:
        raise view_of_leaf_in_place()
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        flat = xp.arange(0, shape[0] * shape[1], shape[1] + 1)
        index = tuple(xp.unravel_index(flat, shape))
    else:
        index = (xp.arange(min(shape)),) * len(shape)
    write(self, [(getitem, index)], fill_value, overwrite)
    return self
