"""Diagonals and triangles of matrices, and copies of a tensor with one slice or diagonal replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import DTYPE_OF_NUMPY, as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is an argument)
from gradlab.core.errors import view_of_leaf_in_place
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.operator import Operator, build_docstring, composite
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import cast as cast_to
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, negative_dim, not_a_tensor
from gradlab.ops.indexing import write
from gradlab.ops.shapes import flatten
from gradlab.ops.splits import FULL, select_index
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


def negative_dim_pair(dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Return two different dimensions as negative axes, or raise PyTorch's RuntimeError."""
    axes = negative_dim(dim1, ndim), negative_dim(dim2, ndim)
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return axes


@composite()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonal with respect to two dimensions, as the last dimension.

    Parameters
    ----------
    input : Tensor
        Tensor with at least two dimensions.
    {offset}
    dim1, dim2 : int, default: 0 and 1
        Dimensions of the rows and of the columns.

    Returns
    -------
    Tensor
        View without these two dimensions and with the diagonal as a new last dimension.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If the two dimensions are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diagonal(gl.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("diagonal", input)
    return rules.diagonal.record(input, offset=offset, axes=negative_dim_pair(dim1, dim2, input.array.ndim))


DIAGONAL_COPY = rules.contiguous.with_node("DiagonalBackward0_copy")
_diagonal = diagonal


@composite()
@takes_out
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    Parameters
    ----------
    input : Tensor
        Matrix or vector.
    diagonal : int, default: 0
        Diagonal to use: positive is above the main diagonal, negative is below.
    {out}

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    RuntimeError
        If `input` does not have one or two dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diag(gl.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("diag", input)
    if input.array.ndim == 2:
        return DIAGONAL_COPY.record(_diagonal(input, diagonal))
    if input.array.ndim != 1:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.array.ndim}D")
    return diag_embed(input, diagonal)


@composite()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last dimension of `input` on a diagonal.

    Parameters
    ----------
    {at_least_1d}
    {offset}
    dim1, dim2 : int, default: -2 and -1
        Dimensions of the rows and of the columns in the result.

    Returns
    -------
    Tensor
        A copy with one more dimension.

    Raises
    ------
    IndexError
        If a dimension is out of range for the result, or `input` is 0-d.
    RuntimeError
        If the two dimensions are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diag_embed(gl.tensor([[1, 2], [3, 4]]))
    tensor([[[1, 0],
             [0, 2]],
    <BLANKLINE>
            [[3, 0],
             [0, 4]]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("diag_embed", input)
    shape = input.array.shape
    ndim = len(shape) + 1
    if not shape:
        negative_dim(dim1, 0)
    axes = negative_dim_pair(dim1, dim2, ndim)
    sizes = list(shape[:-1])
    for axis in sorted(axis + ndim for axis in axes):
        sizes.insert(axis, shape[-1] + abs(offset))
    return rules.fill_diagonal.record(input, shape=tuple(sizes), offset=offset, axes=axes)


@composite()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix of zeros with all elements of `input` on a diagonal.

    Parameters
    ----------
    {input}
    {offset}

    Returns
    -------
    Tensor
        Square matrix.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diagflat(gl.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("diagflat", input)
    return diag_embed(flatten(input), offset)


def _make_triangle(name: str, op: Any, side: str, result: str) -> Callable[..., Tensor]:
    @takes_out
    def triangle(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, input)
        if input.array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return op.record(input, diagonal=diagonal)

    triangle.__name__ = triangle.__qualname__ = name
    triangle.__doc__ = build_docstring(
        f"Return the elements on and {side} a diagonal of matrices, with zeros elsewhere.",
        "matrices diagonal out",
        "A copy.",
        ["RuntimeError\n    If `input` has fewer than two dimensions."],
        f"{name}(gl.tensor([[1, 2], [3, 4]])) -> tensor({result})",
    )
    Operator(name, triangle, inplace="method")
    return triangle


tril = _make_triangle("tril", rules.tril, "below", "[[1, 0],\n        [3, 4]]")
triu = _make_triangle("triu", rules.triu, "above", "[[1, 2],\n        [0, 4]]")


def _make_triangle_indices(name: str, find: Callable[..., Any], side: str, result: str) -> Callable[..., Tensor]:
    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Dtype | None = None,
        device: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        for n, text in ((row, "row"), (col, "col")):
            if n < 0:
                raise RuntimeError(f"{text} must be non-negative, got{n}")
        wanted = as_numpy_dtype(dtype) or np.dtype(np.int64)
        if wanted.kind != "i":
            raise NotImplementedError(f"\"{name}\" not implemented for '{DTYPE_OF_NUMPY[wanted].word}'. Use an integer dtype.")
        pairs = constant(np.stack(find(row, offset, col)).astype(wanted))
        return pairs if device is None else pairs.to(device)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = build_docstring(
        f"Return the indices of the elements on and {side} a diagonal of a matrix.",
        "row_col offset result_dtype device ignored",
        "Row and column indices, of shape [2, n]; int64 by default.",
        ["RuntimeError\n    If a size is negative.", "NotImplementedError\n    If `dtype` is not a signed integer dtype."],
        f"{name}(2, 2) -> tensor({result})",
    )
    Operator(name, indices, method=False)
    return indices


tril_indices = _make_triangle_indices("tril_indices", np.tril_indices, "below", "[[0, 1, 1],\n        [0, 0, 1]]")
triu_indices = _make_triangle_indices("triu_indices", np.triu_indices, "above", "[[0, 0, 1],\n        [0, 1, 1]]")

TRACE = reductions.sum_.with_node("TraceBackward0")


@composite()
def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    Parameters
    ----------
    input : Tensor
        Matrix.

    Returns
    -------
    Tensor
        0-d tensor. Its gradient is the identity matrix.

    Raises
    ------
    RuntimeError
        If `input` is not a matrix.
    NotImplementedError
        If `input` is boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.trace(gl.tensor([[1., 2.], [3., 4.]]))
    tensor(5.)
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("trace", input)
    if input.array.ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {input.array.ndim}. For a batch use "
            "x.diagonal(dim1=-2, dim2=-1).sum(-1)."
        )
    if input.array.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'. Call .int() or .float() first.")
    return TRACE.record(diagonal(input), axis=(-1,), keepdims=False)


# ------------------------------------------------------------------------------------------ copies with one part replaced
DIAGONAL_SCATTER, SELECT_SCATTER, SLICE_SCATTER = (
    overwrite.with_node(f"{name}ScatterBackward0") for name in ("Diagonal", "Select", "Slice")
)


def replace_part(op: Any, input: Tensor, src: Tensor, step: tuple[Any, dict[str, Any]]) -> Tensor:
    """Return a copy of `input` with `src` in the part that the step selects."""
    have = pick(np.broadcast_to(0, input.array.shape), (step,)).shape
    if src.array.shape != have:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.array.shape)}, slice "
            f"size = {list(have)}"
        )
    return op.record(input, cast_to(src, input.array.dtype), steps=(step,))


@composite()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of `input` with the elements of `src` on a diagonal.

    Parameters
    ----------
    input : Tensor
        Tensor with at least two dimensions.
    src : Tensor
        Elements, of the shape returned by `diagonal` with the same arguments. They are cast to the dtype of `input`.
    {offset}
    dim1, dim2 : int, default: 0 and 1
        Dimensions of the rows and of the columns.

    Returns
    -------
    Tensor
        A copy. Gradients flow to `src` and to the elements of `input` that are not replaced.

    Raises
    ------
    IndexError
        If a dimension is out of range.
    RuntimeError
        If the shape of `src` does not match, or the two dimensions are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diagonal_scatter(gl.zeros(2, 2), gl.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    check_tensors("diagonal_scatter", input=input, src=src)
    axes = negative_dim_pair(dim1, dim2, input.array.ndim)
    return replace_part(DIAGONAL_SCATTER, input, src, (rules.diagonal, {"offset": offset, "axes": axes}))


@composite()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` with `src` at one index of a dimension.

    Parameters
    ----------
    {at_least_1d}
    src : Tensor
        Slice, of the shape returned by `select` with the same arguments. It is cast to the dtype of `input`.
    {dimension}
    index : int
        Index, counted from the end if negative.

    Returns
    -------
    Tensor
        A copy. Gradients flow to `src` and to the elements of `input` that are not replaced.

    Raises
    ------
    IndexError
        If `dim` or `index` is out of range.
    RuntimeError
        If the shape of `src` does not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.select_scatter(gl.zeros(2, 2), gl.tensor([1., 2.]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    check_tensors("select_scatter", input=input, src=src)
    shape = input.array.shape
    at = select_index(shape, negative_dim(dim, len(shape)) + len(shape), index)
    return replace_part(SELECT_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


@composite()
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy of `input` with `src` in a slice of a dimension.

    Parameters
    ----------
    {at_least_1d}
    src : Tensor
        Elements, of the shape of `input[start:end:step]` along `dim`. They are cast to the dtype of `input`.
    {first_dim}
    start, end : int, optional
        Bounds of the slice, as in Python.
    step : int, default: 1
        Step of the slice; must be positive.

    Returns
    -------
    Tensor
        A copy. Gradients flow to `src` and to the elements of `input` that are not replaced.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If the shape of `src` does not match, or the step is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.slice_scatter(gl.zeros(4), gl.tensor([1., 2.]), start=1, end=3)
    tensor([0., 1., 2., 0.])
    """
    check_tensors("slice_scatter", input=input, src=src)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    ndim = input.array.ndim
    at = (*(FULL,) * (negative_dim(dim, ndim) + ndim), slice(start, end, step), Ellipsis)
    return replace_part(SLICE_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


@composite(top=False)
def fill_diagonal_(self: Tensor, fill_value: float | Tensor, wrap: bool = False) -> Tensor:
    """Fill the diagonal with a number, in place.

    Parameters
    ----------
    fill_value : number or 0-d Tensor
        Number.
    wrap : bool, default: False
        Whether the diagonal of a tall matrix starts again below each square block.

    Returns
    -------
    Tensor
        This tensor. With more than two dimensions, the diagonal consists of the elements whose indices are all equal.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions, or more than two of different sizes, or this tensor is a leaf that requires
        a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2, 3).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
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
