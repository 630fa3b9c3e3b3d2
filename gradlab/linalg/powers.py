"""Products and powers of matrices, and products of vectors along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import cast
from gradlab.core.tensor import Tensor
from gradlab.linalg.matrices import matrices, refused
from gradlab.linalg.solving import inverted
from gradlab.ops import at_least, diagonals, products, reductions
from gradlab.ops import shapes as layout
from gradlab.ops.arguments import fits_in_memory, not_a_tensor, one_dim
from gradlab.ops.copies import clone
from gradlab.ops.joins import cat
from gradlab.rules import elementwise as el
from gradlab.rules import matrix, shapes

matmul = products.matmul


@takes_out
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest steps.

    Parameters
    ----------
    tensors : sequence of Tensor
        Matrices whose sizes fit; the first and the last may be vectors.

    Returns
    -------
    Tensor
        The product.

    Raises
    ------
    RuntimeError
        If there are fewer than two, or the sizes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.multi_dot([gl.ones(2, 3), gl.ones(3, 1), gl.ones(1, 2)])
    tensor([[3., 3.],
            [3., 3.]])
    """
    factors = list(tensors)
    if len(factors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(factors)}")
    for i, x in enumerate(factors):
        ndim, last = x.array.ndim, len(factors) - 1
        if i in (0, last) and ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {ndim}D")
        if i not in (0, last) and ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {ndim}D")
        if x.array.dtype != factors[0].array.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {factors[0].dtype.c_name} "
                f"and tensor {i} {x.dtype.c_name}"
            )
    shape: tuple[int, ...] = ()
    if factors[0].array.ndim == 1:
        factors[0] = layout.unsqueeze(factors[0], 0)
    else:
        shape += factors[0].array.shape[:1]
    if factors[-1].array.ndim == 1:
        factors[-1] = layout.unsqueeze(factors[-1], 1)
    else:
        shape += factors[-1].array.shape[1:]
    for i, (a, b) in enumerate(pairwise(factors)):
        if a.array.shape[1] != b.array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].array.shape)} and "
                f"{list(tensors[i + 1].array.shape)} cannot be multiplied"
            )
    return shapes.reshape.record(products.chain_product(factors), shape=shape)


@takes_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n times the same square matrix; of its inverse, for negative n.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.
    n : int
        How many times; 0 gives the identity.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.
    LinAlgError
        If n is negative, and a matrix is singular.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.matrix_power(gl.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return power(input, n)


def power(A: Tensor, n: int) -> Tensor:
    if type(A) is not Tensor:
        products.check_tensors("linalg_matrix_power", A=A)
    if A.array.dtype.kind == "f" or A.array.ndim < 2:
        A = matrices("linalg.matrix_power", A)
    elif A.array.shape[-1] != A.array.shape[-2] or n < 0:
        A = matrices("linalg.matrix_power" if n >= 0 else "linalg.inv", A)
    if n == 0:
        return el.add.record(el.zero.record(A, value=0), products.identity_like(A, A.array.shape[-1]))
    if n == 1:
        return clone(A)
    if n < 0:
        A, n = inverted("linalg.inv", A), -n
        if n == 1:
            return A
    result, square = None, A
    while n:  # by the binary digits of n
        if n & 1:
            result = square if result is None else products.matmul(result, square)
        n >>= 1
        square = products.matmul(square, square) if n else square
    assert result is not None
    return result


def matrix_exp(input: Tensor) -> Tensor:
    r"""The exponential of square matrices.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Notes
    -----
    .. math:: e^A = 1 + A + \frac{A^2}{2} + \ldots

    By scaling and squaring (Higham 2005).

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.matrix_exp(gl.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return exponential(input)


def exponential(A: Tensor) -> Tensor:
    if type(A) is not Tensor:
        products.check_tensors("linalg_matrix_exp", input=A)
    if A.array.ndim < 2 or A.array.shape[-1] != A.array.shape[-2] or A.array.dtype.kind != "f":
        if A.array.ndim >= 2 and A.array.dtype.kind != "f" and A.array.shape[-1] == A.array.shape[-2]:
            raise refused("linalg.matrix_exp", A)
        A = matrices("linalg.matrix_exp", A)
    return matrix.matrix_exp.record(A)


# -------------------------------------------------------------------------------------------------------------- vectors
@takes_out
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    r"""The vector product along an axis of length 3.

    Parameters
    ----------
    input, other : Tensor
        Of shapes that broadcast, of length 3 along `dim`.
    dim : int, default -1
        The axis.

    Returns
    -------
    Tensor
        The shape that they broadcast to.

    Raises
    ------
    RuntimeError
        If the axis has another length, or the shapes do not broadcast.

    Notes
    -----
    .. math:: (a \times b)_0 = a_1 b_2 - a_2 b_1

    and so on in a circle.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.cross(gl.tensor([1.0, 0.0, 0.0]), gl.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    products.check_tensors("linalg_cross", input=input, other=other)
    if input.array.ndim != other.array.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions. The shapes are "
            f"{list(input.array.shape)} and {list(other.array.shape)}."
        )
    return products.vector_product(input, other, one_dim(dim, input.array.ndim), dim)


@takes_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner products of vectors along an axis.

    Parameters
    ----------
    x, y : Tensor
        Of shapes that broadcast, of the same length along `dim`.
    dim : int, default -1
        The axis.

    Returns
    -------
    Tensor
        The other axes.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.vecdot(gl.tensor([[1.0, 2.0], [3.0, 4.0]]), gl.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    products.check_tensors("linalg_vecdot", x=x, y=y)
    if x.array.dtype.kind != "f":
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.word}. Call .float() first."
        )
    if x.array.ndim == y.array.ndim == 1:
        return products.vdot(x, y)
    return reductions.sum(el.mul.record(x, y), dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of two axes, as the last axis; a view.

    Parameters
    ----------
    A : Tensor
        Of at least two axes.
    offset : int, default 0
        Which diagonal: above the main one if it is positive, below if negative.
    dim1, dim2 : int
        The axes, the last two by default.

    Returns
    -------
    Tensor
        The other axes in order, and the diagonal.

    Raises
    ------
    IndexError
        If there is no such axis.
    RuntimeError
        If both axes are the same.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.diagonal(gl.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if not isinstance(A, Tensor):
        raise not_a_tensor("diagonal", A, "A", 1)
    return diagonals.diagonal(A, offset, dim1, dim2)


@takes_out
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last axis.

    Parameters
    ----------
    x : Tensor
        Vectors, (…, n).
    N : int, optional
        How many; by default n.

    Returns
    -------
    Tensor
        (…, n, N).

    Raises
    ------
    RuntimeError
        If N is less than 2, or `x` has no axis.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.vander(gl.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    products.check_tensors("linalg_vander", x=x)
    if N is None:
        N = x.array.shape[-1] if x.array.ndim else 1
    if x.array.dtype.kind == "b":
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got Bool")
    if N <= 1:
        raise RuntimeError("N must be greater than 1.")
    return cat(powers(at_least.with_axes(x, 1), N), -1)


def powers(x: Tensor, count: int) -> list[Any]:
    """The powers 0 to count - 1 of x, each with one more axis; of integers in int64."""
    fits_in_memory(*x.array.shape, count)
    column = layout.unsqueeze(x if x.array.dtype.kind == "f" else cast(x, np.dtype(np.int64)), -1)
    columns = [column.new_ones(column.array.shape)]
    for k in range(1, count):
        columns.append(column if k == 1 else el.mul.record(columns[-1], column))
    return columns
