"""Determinants, and their signs and logarithms."""

from __future__ import annotations

from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.linalg.matrices import (
    handing_out,
    matrices,
)
from gradlab.ops.results import Result, result_type
from gradlab.rules import factorizations

InvEx, SolveEx = result_type("linalg_inv_ex", "inverse", "info"), result_type("linalg_solve_ex", "result", "info")
SlogDet = result_type("linalg_slogdet", "sign", "logabsdet")
LstSq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


@takes_out
def det(A: Tensor) -> Tensor:
    r"""The determinant of square matrices.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Of shape (…).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Notes
    -----
    Its gradient is that of the cofactors, where the determinant is 0 as well:

    .. math:: \bar{A} = \bar{d} \, \operatorname{adj}(A)^\mathsf{T}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.det(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor(8.)
    """
    return determinant(A)


def determinant(A: Tensor) -> Tensor:
    return factorizations.det.record(matrices("linalg.det", A))


def sign_and_logarithm(name: str, A: Tensor) -> list[Tensor]:
    packed = factorizations.slogdet.record(matrices(name, A))
    pick, _ = handing_out("LinalgSlogdetBackward0")
    return [pick(packed, index=(Ellipsis, i), skip=0) for i in (0, 1)]


@takes_out
def slogdet(A: Tensor) -> Result:
    r"""The sign of the determinant, and the logarithm of its magnitude.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    named tuple
        `sign` (…), 0 of a singular matrix, and `logabsdet` (…).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Notes
    -----
    .. math:: \bar{A} = \bar{l} \, A^{-\mathsf{T}}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.slogdet(gl.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return SlogDet(sign_and_logarithm("linalg.slogdet", A))
