"""Products and powers of matrices, and products of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import cast
from gradlab.core.tensor import Tensor
from gradlab.linalg.matrices import dtype_error, require_matrices
from gradlab.linalg.solving import invert
from gradlab.ops import at_least, diagonals, products, reductions
from gradlab.ops import shapes as layout
from gradlab.ops.arguments import check_storage_size, negative_dim, not_a_tensor
from gradlab.ops.copies import clone
from gradlab.ops.joins import cat
from gradlab.rules import elementwise as el
from gradlab.rules import matrix, shapes

matmul = products.matmul


@takes_out
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Compute the product of two or more matrices, in the order that needs the fewest operations.

    Parameters
    ----------
    tensors : sequence of Tensor
        Matrices with matching sizes. The first and the last may be vectors.

    Returns
    -------
    Tensor
        The product.

    Raises
    ------
    RuntimeError
        If there are fewer than two tensors or their sizes do not match.

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
    """Compute the n-th power of square matrices. A negative `n` raises the inverse to the power -n.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.
    n : int
        The exponent. 0 gives the identity.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.
    LinAlgError
        If `n` is negative and a matrix is singular.

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
        A = require_matrices("linalg.matrix_power", A)
    elif A.array.shape[-1] != A.array.shape[-2] or n < 0:
        A = require_matrices("linalg.matrix_power" if n >= 0 else "linalg.inv", A)
    if n == 0:
        return el.add.record(el.zero.record(A, value=0), products.identity_like(A, A.array.shape[-1]))
    if n == 1:
        return clone(A)
    if n < 0:
        A, n = invert("linalg.inv", A), -n
        if n == 1:
            return A
    result, square = None, A
    while n:  # binary exponentiation
        if n & 1:
            result = square if result is None else products.matmul(result, square)
        n >>= 1
        square = products.matmul(square, square) if n else square
    assert result is not None
    return result


def matrix_exp(input: Tensor) -> Tensor:
    r"""Compute the exponential of square matrices.

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
        If the matrices are not square or not floating point.

    Notes
    -----
    .. math:: e^A = 1 + A + \frac{A^2}{2} + \ldots

    The algorithm is scaling and squaring (Higham 2005).

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
            raise dtype_error("linalg.matrix_exp", A)
        A = require_matrices("linalg.matrix_exp", A)
    return matrix.matrix_exp.record(A)


# -------------------------------------------------------------------------------------------------------------- vectors
@takes_out
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    r"""Compute the cross product along an axis of length 3.

    Parameters
    ----------
    input, other : Tensor
        Broadcastable tensors, of length 3 along `dim`.
    dim : int, default: -1
        The axis.

    Returns
    -------
    Tensor
        Has the broadcast shape.

    Raises
    ------
    RuntimeError
        If the axis does not have length 3 or the shapes do not broadcast.

    Notes
    -----
    .. math:: (a \times b)_0 = a_1 b_2 - a_2 b_1

    and the other components by cyclic permutation of the indices.

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
    return products.vector_product(input, other, negative_dim(dim, input.array.ndim), dim)


@takes_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Compute the dot product of vectors along an axis.

    Parameters
    ----------
    x, y : Tensor
        Broadcastable tensors, of the same length along `dim`.
    dim : int, default: -1
        The axis.

    Returns
    -------
    Tensor
        The broadcast shape without `dim`.

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
    """Return a view of the diagonal of two axes, as the last axis.

    Parameters
    ----------
    A : Tensor
        A tensor with at least two axes.
    offset : int, default: 0
        The diagonal to return: above the main diagonal if positive, below it if negative.
    dim1, dim2 : int
        The axes. Default to the last two.

    Returns
    -------
    Tensor
        The other axes in order, and the diagonal.

    Raises
    ------
    IndexError
        If `dim` is out of range.
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
    """Compute a Vandermonde matrix: the powers 0 to N - 1 of each element, along a new last axis.

    Parameters
    ----------
    x : Tensor
        Vectors, (…, n).
    N : int, optional
        The number of powers. Defaults to n.

    Returns
    -------
    Tensor
        (…, n, N).

    Raises
    ------
    RuntimeError
        If `N` is less than 2 or `x` is 0-d.

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
    return cat(powers(at_least.add_axes(x, 1), N), -1)


def powers(x: Tensor, count: int) -> list[Any]:
    """Return the powers 0 to count - 1 of x, each with an additional last axis. Integers are converted to int64."""
    check_storage_size(*x.array.shape, count)
    column = layout.unsqueeze(x if x.array.dtype.kind == "f" else cast(x, np.dtype(np.int64)), -1)
    columns = [column.new_ones(column.array.shape)]
    for k in range(1, count):
        columns.append(column if k == 1 else el.mul.record(columns[-1], column))
    return columns
