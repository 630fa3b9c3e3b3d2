"""Matrix factorizations: Cholesky, QR, SVD, and eigenvalues of symmetric matrices."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gradlab.backend.namespaces import namespace_of, to_host
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.matrices import (
    first_bad_minor,
    integer_tensor,
    not_converged_error,
    not_positive_error,
    require_matrices,
    unpack_factors,
    wants_gradient,
)
from gradlab.ops.products import identity_like, last_axes_swapped
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import factorizations as rules
from gradlab.rules import linalg as systems
from gradlab.rules import shapes
from gradlab.rules.linalg import check_result, raise_on_failure

CholeskyEx = result_type("linalg_cholesky_ex", "L", "info")
QR, SVD = result_type("linalg_qr", "Q", "R"), result_type("linalg_svd", "U", "S", "Vh")
Eigh = result_type("linalg_eigh", "eigenvalues", "eigenvectors")


# ------------------------------------------------------------------------------------------------------------ Cholesky
@takes_out
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Compute the Cholesky factor of symmetric positive-definite matrices.

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
    >>> gl.linalg.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor([[2.0000, 0.0000],
            [1.0000, 1.4142]])
    """
    return cholesky_factor("linalg.cholesky", require_matrices("linalg.cholesky", input), upper, rules.cholesky)


def cholesky_factor(name: str, A: Tensor, upper: bool, op: Any) -> Tensor:
    try:
        return op.record(A, upper=upper)
    except np.linalg.LinAlgError:
        raise not_positive_error(name, A.array) from None


@takes_out
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Result:
    """Compute the Cholesky factor without raising an error for matrices that are not positive-definite.

    Parameters
    ----------
    input : Tensor
        Symmetric positive-definite matrices, (…, n, n), floating point. Only one triangle is read.
    upper : bool, default: False
        Read and return the upper triangle instead of the lower one.
    check_errors : bool, default: False
        Raise an error if a matrix is not positive-definite.

    Returns
    -------
    named tuple
        `L`, NaN for a matrix that is not positive-definite, and `info` (…), int32: 0, or the order of the first leading minor
        that is not positive.

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.cholesky_ex(gl.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=gradlab.int32)
    """
    input = require_matrices("linalg.cholesky_ex", input)
    try:
        whole = rules.cholesky.record(input, upper=upper)
        return CholeskyEx((whole, integer_tensor(np.zeros(input.array.shape[:-2], np.int32), input)))
    except np.linalg.LinAlgError:
        if check_errors:
            raise not_positive_error("linalg.cholesky_ex", input.array) from None
        flat = to_host(input.array).reshape(-1, *input.array.shape[-2:])
        info = np.array([first_bad_minor(m.T if upper else m) for m in flat], np.int32).reshape(input.array.shape[:-2])
        fails = integer_tensor(info[..., None, None] > 0, input)
        whole = rules.cholesky.record(el.where.record(fails, identity_like(input, input.array.shape[-1]), input), upper=upper)
        return CholeskyEx((el.where.record(fails, float("nan"), whole), integer_tensor(info, input)))


CHOLESKY_SOLVE, CHOLESKY_INVERSE = (systems.triangular.with_node(f"Cholesky{what}Backward0") for what in ("Solve", "Inverse"))


def solve_by_cholesky(B: Tensor, L: Tensor, upper: bool, op: Any) -> Tensor:
    """Solve L Lᵀ X = B for X."""
    turned = shapes.permute.record(L, axes=last_axes_swapped(L.array.ndim))
    low, up = (turned, L) if upper else (L, turned)
    return op.record(up, systems.triangular.record(low, B, upper=False, unit=False), upper=True, unit=False)


# ------------------------------------------------------------------------------------------------------------------ QR
def qr_factors(A: Tensor, mode: str) -> list[Tensor]:
    A = require_matrices("linalg.qr", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    complete = mode == "complete"
    if wants_gradient(A):
        q, r = unpack_factors(
            rules.qr.record(A, complete=complete), "LinalgQrBackward0", *rules.qr_shapes(A.array.shape, complete)
        )
    else:
        q, r = map(constant, rules.qr_factors(namespace_of[type(A.array)], A.array, complete))
    return [A.new_empty(0), r] if mode == "r" else [q, r]


@takes_out
def qr(A: Tensor, mode: str = "reduced") -> Result:
    """Compute the QR decomposition.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    mode : {"reduced", "complete", "r"}
        With k = min(m, n), "reduced" returns Q (m, k) and R (k, n), "complete" returns Q (m, m) and R (m, n), and "r" only R.

    Returns
    -------
    named tuple
        `Q` with orthonormal columns and `R`, upper triangular, with Q R = A.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Notes
    -----
    Differentiable if the first k = min(m, n) columns are linearly independent.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.qr(gl.tensor([[3.0, 1.0], [4.0, 1.0]])).R.abs()
    tensor([[5.0000, 1.4000],
            [0.0000, 0.2000]])
    """
    return QR(qr_factors(A, mode))


# ----------------------------------------------------------------------------------------------------------------- SVD
def svd_factors(A: Tensor, full: bool) -> list[Tensor]:
    """Return U, S and Vᵀ."""
    A = require_matrices("linalg.svd", A, square=False)
    try:
        if not wants_gradient(A):
            return list(map(constant, rules.singular_values_and_vectors(namespace_of[type(A.array)], A.array, full)))
        packed = rules.svd.record(A, full=full)
    except np.linalg.LinAlgError:
        raise not_converged_error("linalg.svd", A.array) from None
    return unpack_factors(packed, "LinalgSvdBackward0", *rules.svd_shapes(A.array.shape, full))


@takes_out
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Result:
    """Compute the singular value decomposition U diag(S) Vᵀ = A.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    full_matrices : bool, default: True
        Return U (m, m) and Vᵀ (n, n) if True, U (m, k) and Vᵀ (k, n) with k = min(m, n) otherwise.
    driver : str, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    named tuple
        `U`, `S` (…, k) in descending order, and `Vh`, which is Vᵀ.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Notes
    -----
    The gradient of S is always finite. The gradient of U and V is finite only if the singular values are distinct.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.svd(gl.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return SVD(svd_factors(A, full_matrices))


@takes_out
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Compute the singular values, in descending order.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    driver : str, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        (…, k) with k = min(m, n).

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.svdvals(gl.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    A = require_matrices("linalg.svd", A, square=False)
    if wants_gradient(A):
        return svd_factors(A, False)[1]
    xp = namespace_of[type(A.array)]
    try:
        return constant(check_result(xp, "svd", xp.linalg.svd(A.array, compute_uv=False), A.array))
    except np.linalg.LinAlgError:
        raise not_converged_error("linalg.svd", A.array) from None


# --------------------------------------------------------------------------------------------- symmetric eigenvalues
def eigh_factors(A: Tensor, UPLO: str) -> list[Tensor]:
    A = require_matrices("linalg.eigh", A)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    lower = UPLO.upper() == "L"
    try:
        if not wants_gradient(A):
            return list(map(constant, rules.eigenvalues_and_vectors(namespace_of[type(A.array)], A.array, lower)))
        packed = rules.eigh.record(A, lower=lower)
    except np.linalg.LinAlgError:
        raise not_converged_error("linalg.eigh", A.array) from None
    return unpack_factors(packed, "LinalgEighBackward0", *rules.eigh_shapes(A.array.shape))


@takes_out
def eigh(input: Tensor, UPLO: str = "L") -> Result:
    """Compute the eigenvalues and eigenvectors of symmetric matrices.

    Parameters
    ----------
    input : Tensor
        Symmetric matrices, (…, n, n), floating point. Only one triangle is read.
    UPLO : {"L", "U"}
        The triangle to read: lower or upper.

    Returns
    -------
    named tuple
        `eigenvalues` (…, n) in ascending order, and `eigenvectors` (…, n, n) with orthonormal columns.

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.
    RuntimeError
        If `UPLO` is neither "L" nor "U".

    Notes
    -----
    The gradient of the eigenvalues is always finite. The gradient of the eigenvectors is finite only if the eigenvalues are
    distinct.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return Eigh(eigh_factors(input, UPLO))


@takes_out
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    r"""Compute the eigenvalues of symmetric matrices, in ascending order.

    Parameters
    ----------
    input : Tensor
        Symmetric matrices, (…, n, n), floating point. Only one triangle is read.
    UPLO : {"L", "U"}
        The triangle to read: lower or upper.

    Returns
    -------
    Tensor
        Shape (…, n).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Notes
    -----
    The gradient of an eigenvalue with unit eigenvector v is

    .. math:: \bar{A} = \bar{\lambda} \, v v^\mathsf{T}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigvalsh(gl.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    if type(input) is not Tensor or wants_gradient(input) or UPLO not in ("L", "U"):
        return eigh_factors(input, UPLO)[0]
    input = require_matrices("linalg.eigh", input)
    xp = namespace_of[type(input.array)]
    try:
        with raise_on_failure(xp):
            return constant(check_result(xp, "eigh", xp.linalg.eigvalsh(input.array, UPLO=UPLO), input.array))
    except np.linalg.LinAlgError:
        raise not_converged_error("linalg.eigh", input.array) from None


def eig(input: Tensor) -> NoReturn:
    """Raise an error: complex tensors are not supported, and the eigenvalues of a general matrix are complex.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    None
        Never returned.

    Raises
    ------
    NotImplementedError
        Always. Use `eigh` for symmetric matrices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[4.0, 2.0], [2.0, 3.0]])).eigenvalues  # for a symmetric matrix
    tensor([1.4384, 5.5616])
    """
    raise NotImplementedError(
        "linalg.eig: eigenvalues of a general matrix are complex, and complex tensors are not supported. "
        "For a symmetric matrix use eigh()."
    )


def eigvals(input: Tensor) -> NoReturn:
    """Raise an error: complex tensors are not supported, and the eigenvalues of a general matrix are complex.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    None
        Never returned.

    Raises
    ------
    NotImplementedError
        Always. Use `eigvalsh` for symmetric matrices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[4.0, 2.0], [2.0, 3.0]])).eigenvalues  # for a symmetric matrix
    tensor([1.4384, 5.5616])
    """
    raise NotImplementedError(
        "linalg.eigvals: eigenvalues of a general matrix are complex, and complex tensors are not "
        "supported. For a symmetric matrix use eigvalsh()."
    )
