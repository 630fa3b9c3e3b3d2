"""Matrix factorizations that PyTorch has in its top-level namespace. The others are in `gradlab.linalg`."""

from __future__ import annotations

from typing import Any

from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.linalg.factors import CHOLESKY_INVERSE, CHOLESKY_SOLVE, cholesky_factor, qr_factors, solve_by_cholesky, svd_factors
from gradlab.linalg.lu import lu_factor_ex
from gradlab.linalg.lu import lu_solve as solve_from_factors
from gradlab.linalg.matrices import require_matrices
from gradlab.linalg.toplevel import deprecation_message
from gradlab.ops.arguments import check_tensors
from gradlab.ops.products import identity_like, last_axes_swapped, warn_once
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
CHOLESKY = rules.cholesky.with_node("CholeskyBackward0")
TRANSPOSE = shapes.permute.with_node("TransposeBackward0")


@composite()
@takes_out
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Compute the Cholesky factor of symmetric positive-definite matrices. Deprecated: use `gradlab.linalg.cholesky`.

    Parameters
    ----------
    input : Tensor
        Symmetric positive-definite matrices, (…, n, n), floating point. Only one triangle is read.
    upper : bool, default: False
        Read and return the upper triangle instead of the lower one.

    Returns
    -------
    Tensor
        L, lower triangular with L Lᵀ = input, or its transpose if `upper` is True.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor([[2.0000, 0.0000],
            [1.0000, 1.4142]])
    """
    warn_once(deprecation_message("cholesky"))
    return cholesky_factor("cholesky", require_matrices("cholesky", input), upper, CHOLESKY)


@composite()
@takes_out
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Solve A X = input for X, given the Cholesky factor of A.

    Parameters
    ----------
    input : Tensor
        Right-hand sides, (…, n, k).
    L : Tensor
        The Cholesky factor, (…, n, n).
    upper : bool, default: False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes do not match.

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
    return solve_by_cholesky(input, require_matrices("cholesky_solve", L), upper, CHOLESKY_SOLVE)


@composite()
@takes_out
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Compute the inverse of A, given its Cholesky factor.

    Parameters
    ----------
    L : Tensor
        The Cholesky factor, (…, n, n).
    upper : bool, default: False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky_inverse(gl.cholesky(gl.tensor([[4.0, 0.0], [0.0, 1.0]])))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    L = require_matrices("cholesky_inverse", L)
    return solve_by_cholesky(identity_like(L, L.array.shape[-1]), L, upper, CHOLESKY_INVERSE)


@composite()
@takes_out
def qr(input: Tensor, some: bool = True) -> Result:
    """Compute the QR decomposition. Deprecated: use `gradlab.linalg.qr`.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default: True
        Compute the reduced decomposition if True, the complete one otherwise (see `gradlab.linalg.qr`).

    Returns
    -------
    named tuple
        `Q` and `R`, with Q R = input.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.qr(gl.tensor([[3.0, 1.0], [4.0, 1.0]])).R.abs()
    tensor([[5.0000, 1.4000],
            [0.0000, 0.2000]])
    """
    warn_once(deprecation_message("qr"))
    return QR(qr_factors(input, "reduced" if some else "complete"))


@composite()
@takes_out
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Result:
    """Compute the singular value decomposition U diag(S) Vᵀ = input.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default: True
        Return min(m, n) columns of U and V if True, square matrices otherwise.
    compute_uv : bool, default: True
        Compute U and V. If False, they are square matrices of zeros.

    Returns
    -------
    named tuple
        `U`, `S` in descending order, and `V` (not its transpose).

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.svd(gl.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if not compute_uv:
        s = svd_factors(input, False)[1]
        m, n = input.array.shape[-2:]
        batch = input.array.shape[:-2]
        return SVD((input.new_zeros((*batch, m, m)).detach(), s, input.new_zeros((*batch, n, n)).detach()))
    u, s, vh = svd_factors(input, not some)
    return SVD((u, s, TRANSPOSE.record(vh, axes=last_axes_swapped(vh.array.ndim))))


@composite()
@takes_out
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Compute a compact LU decomposition. Deprecated: use `gradlab.linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default: True
        Exchange rows. False is not supported.
    get_infos : bool, default: False
        Return a third result that reports zero pivots.

    Returns
    -------
    tuple
        (LU, pivots). With `get_infos`, (LU, pivots, info), where info (…), int32, is 0 or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If `A` has fewer than two axes or is not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))[0]
    tensor([[4.0000, 2.0000],
            [0.5000, 2.0000]])
    """
    warn_once(deprecation_message("lu", "lu_factor / gradlab.linalg.lu_factor_ex"))
    factors = tuple(lu_factor_ex(A, pivot=pivot, check_errors=not get_infos))
    return factors if get_infos else factors[:2]


@composite()
@takes_out
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Solve A X = b for X, given the decomposition that `lu` returned. Deprecated: use `gradlab.linalg.lu_solve`.

    Parameters
    ----------
    b : Tensor
        Right-hand sides, (…, n, k).
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
        If the shapes or dtypes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu_solve(gl.tensor([[8.0], [7.0]]), *gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]])))
    tensor([[1.2500],
            [1.5000]])
    """
    warn_once(deprecation_message("lu_solve"))
    return solve_from_factors(LU_data, LU_pivots, b)
