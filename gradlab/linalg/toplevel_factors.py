"""Factorizations under the names that torch has at the top level; the rest is in `gradlab.linalg`."""

from __future__ import annotations

from typing import Any

from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.linalg.factors import INVERTED, SOLVED, orthogonal, positive_root, singular, through_cholesky
from gradlab.linalg.lu import lu_factor_ex
from gradlab.linalg.lu import lu_solve as solve_from_factors
from gradlab.linalg.matrices import matrices
from gradlab.linalg.toplevel import superseded
from gradlab.ops.arguments import check_tensors
from gradlab.ops.products import exchanged, identity_like, warn_once
from gradlab.ops.results import Result, result_type
from gradlab.rules import factorizations as rules
from gradlab.rules import shapes

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "lu",
    "lu_solve",
    "qr",
    "svd",
]

QR, SVD = result_type("qr", "Q", "R"), result_type("svd", "U", "S", "V")
CHOLESKY = rules.cholesky.named("CholeskyBackward0")
TRANSPOSED = shapes.permute.named("TransposeBackward0")


@composed()
@takes_out
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of symmetric positive-definite matrices: `gradlab.linalg.cholesky`.

    Parameters
    ----------
    input : Tensor
        Symmetric positive-definite matrices, (…, n, n), floating point, of which one triangle is read.
    upper : bool, default False
        Whether the upper triangle is read and returned.

    Returns
    -------
    Tensor
        L, lower triangular with L Lᵀ = input; with `upper` its transpose.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor([[2.0000, 0.0000],
            [1.0000, 1.4142]])
    """
    warn_once(superseded("cholesky"))
    return positive_root("cholesky", matrices("cholesky", input), upper, CHOLESKY)


@composed()
@takes_out
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, from the Cholesky factor of A.

    Parameters
    ----------
    input : Tensor
        The right sides, (…, n, k).
    L : Tensor
        The factor, (…, n, n).
    upper : bool, default False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky_solve(gl.tensor([[8.0], [7.0]]), gl.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]])))
    tensor([[1.2500],
            [1.5000]])
    """
    check_tensors("cholesky_solve", input=input, L=L)
    for which, x in (("b", input), ("u", L)):
        if x.array.ndim < 2:
            raise RuntimeError(f"{which} should have at least 2 dimensions, but has {x.array.ndim} dimensions instead")
    n, have = L.array.shape[-2:], input.array.shape[-2:]
    if n[0] != have[0]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {n[0]} by {n[1]} but each b matrix "
            f"is {have[0]} by {have[1]}"
        )
    return through_cholesky(input, matrices("cholesky_solve", L), upper, SOLVED)


@composed()
@takes_out
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor.

    Parameters
    ----------
    L : Tensor
        The factor, (…, n, n).
    upper : bool, default False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky_inverse(gl.cholesky(gl.tensor([[4.0, 0.0], [0.0, 1.0]])))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    L = matrices("cholesky_inverse", L)
    return through_cholesky(identity_like(L, L.array.shape[-1]), L, upper, INVERTED)


@composed()
@takes_out
def qr(input: Tensor, some: bool = True) -> Result:
    """The factors of a matrix: orthonormal columns and an upper triangle.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default True
        Whether as `gradlab.linalg.qr` with "reduced", else "complete".

    Returns
    -------
    named tuple
        `Q` and `R`, with Q R = input.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.qr(gl.tensor([[3.0, 1.0], [4.0, 1.0]])).R.abs()
    tensor([[5.0000, 1.4000],
            [0.0000, 0.2000]])
    """
    warn_once(superseded("qr"))
    return QR(orthogonal(input, "reduced" if some else "complete"))


@composed()
@takes_out
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Result:
    """The singular value decomposition: U diag(S) Vᵀ = input.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default True
        Whether U and V have min(m, n) columns; else they are square.
    compute_uv : bool, default True
        Whether U and V are computed; else they are zeros, square ones.

    Returns
    -------
    named tuple
        `U`, `S`, descending, and `V`, not its transpose.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.svd(gl.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if not compute_uv:
        s = singular(input, False)[1]
        m, n = input.array.shape[-2:]
        batch = input.array.shape[:-2]
        return SVD((input.new_zeros((*batch, m, m)).detach(), s, input.new_zeros((*batch, n, n)).detach()))
    u, s, vh = singular(input, not some)
    return SVD((u, s, TRANSPOSED.record(vh, axes=exchanged(vh.array.ndim))))


@composed()
@takes_out
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors of a matrix in one tensor, with the row exchanges: `gradlab.linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default True
        Whether rows are exchanged; False is refused.
    get_infos : bool, default False
        Whether a third result says where a pivot is 0.

    Returns
    -------
    tuple
        (LU, pivots), and with `get_infos` a third, (…), int32: 0, or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If it is no matrix, not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))[0]
    tensor([[4.0000, 2.0000],
            [0.5000, 2.0000]])
    """
    warn_once(superseded("lu", "lu_factor / gradlab.linalg.lu_factor_ex"))
    factors = tuple(lu_factor_ex(A, pivot=pivot, check_errors=not get_infos))
    return factors if get_infos else factors[:2]


@composed()
@takes_out
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, from the factors that `lu` gave.

    Parameters
    ----------
    b : Tensor
        The right sides, (…, n, k).
    LU_data : Tensor
        (…, n, n).
    LU_pivots : Tensor
        (…, n), int32.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu_solve(gl.tensor([[8.0], [7.0]]), *gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]])))
    tensor([[1.2500],
            [1.5000]])
    """
    warn_once(superseded("lu_solve"))
    return solve_from_factors(LU_data, LU_pivots, b)
