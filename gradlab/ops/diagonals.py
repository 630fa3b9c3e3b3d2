"""Diagonals and triangles of matrices, and copies of a tensor with one slice or diagonal replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import OF_NUMPY, as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is an argument)
from gradlab.core.errors import view_of_leaf_in_place
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.operator import Operator, composed, documented
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import cast as cast_to
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, not_a_tensor, one_dim
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


@composed()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of the plane of two dimensions, as the last dimension.

    Parameters
    ----------
    input : Tensor
        A tensor of at least two dimensions.
    {offset}
    dim1, dim2 : int, default 0 and 1
        The dimensions of the rows and of the columns.

    Returns
    -------
    Tensor
        A view without these two dimensions, but with one more, the last.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the two are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diagonal(gl.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("diagonal", input)
    return rules.diagonal.record(input, offset=offset, axes=two_dims(dim1, dim2, input.array.ndim))


DIAGONAL_COPY = rules.contiguous.named("DiagonalBackward0_copy")
_diagonal = diagonal


@composed()
@takes_out
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    Parameters
    ----------
    input : Tensor
        A matrix or a vector.
    diagonal : int, default 0
        Which diagonal: above the main one if it is positive, below if negative.
    {out}

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    RuntimeError
        If `input` has neither one nor two dimensions.

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


@composed()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices of zeros with the last dimension on a diagonal.

    Parameters
    ----------
    {at_least_1d}
    {offset}
    dim1, dim2 : int, default -2 and -1
        Where the rows and the columns stand among the dimensions of the result.

    Returns
    -------
    Tensor
        A copy with one more dimension.

    Raises
    ------
    IndexError
        If the result has no such dimension, or `input` is 0-d.
    RuntimeError
        If the two are the same.

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
        one_dim(dim1, 0)
    axes = two_dims(dim1, dim2, ndim)
    sizes = list(shape[:-1])
    for axis in sorted(axis + ndim for axis in axes):
        sizes.insert(axis, shape[-1] + abs(offset))
    return rules.fill_diagonal.record(input, shape=tuple(sizes), offset=offset, axes=axes)


@composed()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all the elements on its diagonal.

    Parameters
    ----------
    {input}
    {offset}

    Returns
    -------
    Tensor
        A matrix; its other elements are 0.

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


def _triangle(name: str, op: Any, side: str, result: str) -> Callable[..., Tensor]:
    @takes_out
    def triangle(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, input)
        if input.array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return op.record(input, diagonal=diagonal)

    triangle.__name__ = triangle.__qualname__ = name
    triangle.__doc__ = documented(
        f"The elements on and {side} a diagonal of the last two dimensions; the others are 0.",
        "matrices diagonal out",
        "A copy.",
        ["RuntimeError\n    If there are fewer than two dimensions."],
        f"{name}(gl.tensor([[1, 2], [3, 4]])) -> tensor({result})",
    )
    Operator(name, triangle, inplace="method")
    return triangle


tril = _triangle("tril", rules.tril, "below", "[[1, 0],\n        [3, 4]]")
triu = _triangle("triu", rules.triu, "above", "[[1, 2],\n        [0, 4]]")


def _triangle_indices(name: str, find: Callable[..., Any], side: str, result: str) -> Callable[..., Tensor]:
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
            raise NotImplementedError(f"\"{name}\" not implemented for '{OF_NUMPY[wanted].word}'. Ask for an integer dtype.")
        pairs = constant(np.stack(find(row, offset, col)).astype(wanted))
        return pairs if device is None else pairs.to(device)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = documented(
        f"The indices of the elements on and {side} a diagonal of a matrix.",
        "row_col offset result_dtype device ignored",
        "Integers (int64 unless asked otherwise) of shape [2, n]: the rows, and the columns.",
        ["RuntimeError\n    If a size is negative.", "NotImplementedError\n    If the dtype is none of signed integers."],
        f"{name}(2, 2) -> tensor({result})",
    )
    Operator(name, indices, method=False)
    return indices


tril_indices = _triangle_indices("tril_indices", np.tril_indices, "below", "[[0, 1, 1],\n        [0, 0, 1]]")
triu_indices = _triangle_indices("triu_indices", np.triu_indices, "above", "[[0, 0, 1],\n        [0, 1, 1]]")

TRACE = reductions.sum_.named("TraceBackward0")


@composed()
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    Parameters
    ----------
    input : Tensor
        A matrix.

    Returns
    -------
    Tensor
        A 0-d tensor. Its gradient is the identity.

    Raises
    ------
    RuntimeError
        If `input` is no matrix.
    NotImplementedError
        If it holds bools.

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


@composed()
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy with other elements on a diagonal.

    Parameters
    ----------
    input : Tensor
        A tensor of at least two dimensions.
    src : Tensor
        The elements, of the shape of `diagonal` with the same arguments. They are cast to the dtype of `input`.
    {offset}
    dim1, dim2 : int, default 0 and 1
        The dimensions of the rows and of the columns.

    Returns
    -------
    Tensor
        A copy. Gradients go to `src`, and to what of `input` is left.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If `src` has another shape, or the two dimensions are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.diagonal_scatter(gl.zeros(2, 2), gl.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    check_tensors("diagonal_scatter", input=input, src=src)
    axes = two_dims(dim1, dim2, input.array.ndim)
    return replaced(DIAGONAL_SCATTER, input, src, (rules.diagonal, {"offset": offset, "axes": axes}))


@composed()
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with another slice at one index of a dimension.

    Parameters
    ----------
    {at_least_1d}
    src : Tensor
        The slice, of the shape of `select` with the same arguments. It is cast to the dtype of `input`.
    {dimension}
    index : int
        The index, counted from the end if it is negative.

    Returns
    -------
    Tensor
        A copy. Gradients go to `src`, and to what of `input` is left.

    Raises
    ------
    IndexError
        If there is no such dimension or index.
    RuntimeError
        If `src` has another shape.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.select_scatter(gl.zeros(2, 2), gl.tensor([1., 2.]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    check_tensors("select_scatter", input=input, src=src)
    shape = input.array.shape
    at = selected(shape, one_dim(dim, len(shape)) + len(shape), index)
    return replaced(SELECT_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


@composed()
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy with other elements in a slice of a dimension.

    Parameters
    ----------
    {at_least_1d}
    src : Tensor
        The elements, of the shape of `input[start:end:step]` along `dim`. They are cast to the dtype of `input`.
    {first_dim}
    start, end : int, optional
        Where the slice begins and ends, as in Python.
    step : int, default 1
        From one index to the next; positive.

    Returns
    -------
    Tensor
        A copy. Gradients go to `src`, and to what of `input` is left.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If `src` has another shape, or the step is not positive.

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
    at = (*(FULL,) * (one_dim(dim, ndim) + ndim), slice(start, end, step), Ellipsis)
    return replaced(SLICE_SCATTER, input, src, (getitem, {"index": at, "skip": 0}))


@composed(top=False)
def fill_diagonal_(self: Tensor, fill_value: float | Tensor, wrap: bool = False) -> Tensor:
    """One number on the diagonal, in place.

    Parameters
    ----------
    fill_value : number or 0-d Tensor
        The number.
    wrap : bool, default False
        Whether the diagonal of a tall matrix begins again below each square.

    Returns
    -------
    Tensor
        This tensor. Of more than two dimensions, the elements whose indices are equal are the diagonal.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions, more than two of different lengths, or this tensor is a leaf that requires a
        gradient.

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
