"""Factorizations: Cholesky, QR, SVD, symmetric eigenvalues."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gradlab.backend.namespaces import host, namespace_of
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.matrices import (
    bad_minor,
    handed_out,
    integers,
    matrices,
    not_converged,
    not_positive,
    wants_gradient,
)
from gradlab.ops.products import exchanged, identity_like
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import factorizations as rules
from gradlab.rules import linalg as systems
from gradlab.rules import shapes
from gradlab.rules.linalg import heard, raising

CholeskyEx = result_type("linalg_cholesky_ex", "L", "info")
QR, SVD = result_type("linalg_qr", "Q", "R"), result_type("linalg_svd", "U", "S", "Vh")
Eigh = result_type("linalg_eigh", "eigenvalues", "eigenvectors")


# ------------------------------------------------------------------------------------------------------------ Cholesky
@takes_out
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The triangular factor of symmetric positive-definite matrices.

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
    >>> gl.linalg.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor([[2.0000, 0.0000],
            [1.0000, 1.4142]])
    """
    return positive_root("linalg.cholesky", matrices("linalg.cholesky", input), upper, rules.cholesky)


def positive_root(name: str, A: Tensor, upper: bool, op: Any) -> Tensor:
    try:
        return op.record(A, upper=upper)
    except np.linalg.LinAlgError:
        raise not_positive(name, A.array) from None


@takes_out
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Result:
    """The triangular factor of symmetric matrices, without an error where there is none.

    Parameters
    ----------
    input : Tensor
        Symmetric positive-definite matrices, (…, n, n), floating point, of which one triangle is read.
    upper : bool, default False
        Whether the upper triangle is read and returned.
    check_errors : bool, default False
        Whether a matrix that cannot be treated is an error all the same.

    Returns
    -------
    named tuple
        `L`, NaN where a matrix is not positive-definite, and `info` (…), int32: 0, or the order of the leading minor that is not
        positive.

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.cholesky_ex(gl.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=gradlab.int32)
    """
    input = matrices("linalg.cholesky_ex", input)
    try:
        whole = rules.cholesky.record(input, upper=upper)
        return CholeskyEx((whole, integers(np.zeros(input.array.shape[:-2], np.int32), input)))
    except np.linalg.LinAlgError:
        if check_errors:
            raise not_positive("linalg.cholesky_ex", input.array) from None
        flat = host(input.array).reshape(-1, *input.array.shape[-2:])
        info = np.array([bad_minor(m.T if upper else m) for m in flat], np.int32).reshape(input.array.shape[:-2])
        fails = integers(info[..., None, None] > 0, input)
        whole = rules.cholesky.record(el.where.record(fails, identity_like(input, input.array.shape[-1]), input), upper=upper)
        return CholeskyEx((el.where.record(fails, float("nan"), whole), integers(info, input)))


SOLVED, INVERTED = (systems.triangular.named(f"Cholesky{what}Backward0") for what in ("Solve", "Inverse"))


def through_cholesky(B: Tensor, L: Tensor, upper: bool, op: Any) -> Tensor:
    """X with L Lᵀ X = B."""
    turned = shapes.permute.record(L, axes=exchanged(L.array.ndim))
    low, up = (turned, L) if upper else (L, turned)
    return op.record(up, systems.triangular.record(low, B, upper=False, unit=False), upper=True, unit=False)


# ------------------------------------------------------------------------------------------------------------------ QR
def orthogonal(A: Tensor, mode: str) -> list[Tensor]:
    A = matrices("linalg.qr", A, square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    complete = mode == "complete"
    if wants_gradient(A):
        q, r = handed_out(rules.qr.record(A, complete=complete), "LinalgQrBackward0", *rules.qr_shapes(A.array.shape, complete))
    else:
        q, r = map(constant, rules.orthogonal_triangular(namespace_of[type(A.array)], A.array, complete))
    return [A.new_empty(0), r] if mode == "r" else [q, r]


@takes_out
def qr(A: Tensor, mode: str = "reduced") -> Result:
    """The factors of a matrix: orthonormal columns and an upper triangle.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    mode : {"reduced", "complete", "r"}
        Of (m, n), k = min(m, n): "reduced" gives Q (m, k) and R (k, n), "complete" (m, m) and (m, n), "r" only R.

    Returns
    -------
    named tuple
        `Q` and `R`, with Q R = A.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Notes
    -----
    Differentiable where the first k columns are independent.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.qr(gl.tensor([[3.0, 1.0], [4.0, 1.0]])).R.abs()
    tensor([[5.0000, 1.4000],
            [0.0000, 0.2000]])
    """
    return QR(orthogonal(A, mode))


# ----------------------------------------------------------------------------------------------------------------- SVD
def singular(A: Tensor, full: bool) -> list[Tensor]:
    """U, S and Vᵀ."""
    A = matrices("linalg.svd", A, square=False)
    try:
        if not wants_gradient(A):
            return list(map(constant, rules.singular_values_and_vectors(namespace_of[type(A.array)], A.array, full)))
        packed = rules.svd.record(A, full=full)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.svd", A.array) from None
    return handed_out(packed, "LinalgSvdBackward0", *rules.svd_shapes(A.array.shape, full))


@takes_out
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Result:
    """The singular value decomposition: U diag(S) Vᵀ = A.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    full_matrices : bool, default True
        Of (m, n), k = min(m, n): whether U is (m, m) and Vᵀ (n, n), else (m, k) and (k, n).
    driver : str, optional
        Accepted, for torch's choice on a GPU.

    Returns
    -------
    named tuple
        `U`, `S` (…, k), descending, and `Vh`, which is Vᵀ.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Notes
    -----
    The gradient of U and V is finite where the singular values differ, that of S everywhere.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.svd(gl.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    return SVD(singular(A, full_matrices))


@takes_out
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    driver : str, optional
        Accepted, for torch's choice on a GPU.

    Returns
    -------
    Tensor
        (…, k), k = min(m, n).

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.svdvals(gl.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    A = matrices("linalg.svd", A, square=False)
    if wants_gradient(A):
        return singular(A, False)[1]
    xp = namespace_of[type(A.array)]
    try:
        return constant(heard(xp, "svd", xp.linalg.svd(A.array, compute_uv=False), A.array))
    except np.linalg.LinAlgError:
        raise not_converged("linalg.svd", A.array) from None


# --------------------------------------------------------------------------------------------- symmetric eigenvalues
def eigen(A: Tensor, UPLO: str) -> list[Tensor]:
    A = matrices("linalg.eigh", A)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    lower = UPLO.upper() == "L"
    try:
        if not wants_gradient(A):
            return list(map(constant, rules.eigenvalues_and_vectors(namespace_of[type(A.array)], A.array, lower)))
        packed = rules.eigh.record(A, lower=lower)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", A.array) from None
    return handed_out(packed, "LinalgEighBackward0", *rules.eigh_shapes(A.array.shape))


@takes_out
def eigh(input: Tensor, UPLO: str = "L") -> Result:
    """The eigenvalues and eigenvectors of symmetric matrices.

    Parameters
    ----------
    input : Tensor
        Symmetric matrices, (…, n, n), floating point, of which one triangle is read.
    UPLO : {"L", "U"}
        Which triangle.

    Returns
    -------
    named tuple
        `eigenvalues` (…, n), ascending, and `eigenvectors` (…, n, n), orthonormal columns.

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.
    RuntimeError
        If `UPLO` is something else.

    Notes
    -----
    The gradient of the vectors is finite where the eigenvalues differ, that of the values everywhere.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return Eigh(eigen(input, UPLO))


@takes_out
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    r"""The eigenvalues of symmetric matrices, ascending.

    Parameters
    ----------
    input : Tensor
        Symmetric matrices, (…, n, n), floating point, of which one triangle is read.
    UPLO : {"L", "U"}
        Which triangle.

    Returns
    -------
    Tensor
        Of shape (…, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Notes
    -----
    Of the eigenvector v of unit length the gradient is

    .. math:: \bar{A} = \bar{\lambda} \, v v^\mathsf{T}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigvalsh(gl.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    if type(input) is not Tensor or wants_gradient(input) or UPLO not in ("L", "U"):
        return eigen(input, UPLO)[0]
    input = matrices("linalg.eigh", input)
    xp = namespace_of[type(input.array)]
    try:
        with raising(xp):
            return constant(heard(xp, "eigh", xp.linalg.eigvalsh(input.array, UPLO=UPLO), input.array))
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", input.array) from None


def eig(input: Tensor) -> NoReturn:
    """Not supported: its results are complex, and gradients here are real.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    None
        It always raises.

    Raises
    ------
    NotImplementedError
        Always; it says what there is: `eigh`, of symmetric matrices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[4.0, 2.0], [2.0, 3.0]])).eigenvalues  # of a symmetric matrix
    tensor([1.4384, 5.5616])
    """
    raise NotImplementedError(
        "linalg.eig: eigenvalues of a general matrix are complex, and complex tensors are not supported. "
        "Of a symmetric matrix, eigh() gives them."
    )


def eigvals(input: Tensor) -> NoReturn:
    """Not supported: its results are complex, and gradients here are real.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    None
        It always raises.

    Raises
    ------
    NotImplementedError
        Always; it says what there is: `eigh`, of symmetric matrices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.eigh(gl.tensor([[4.0, 2.0], [2.0, 3.0]])).eigenvalues  # of a symmetric matrix
    tensor([1.4384, 5.5616])
    """
    raise NotImplementedError(
        "linalg.eigvals: eigenvalues of a general matrix are complex, and complex tensors are not "
        "supported. Of a symmetric matrix, eigvalsh() gives them."
    )
