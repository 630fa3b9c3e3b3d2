"""Determinants, with their signs and logarithms."""

from __future__ import annotations

from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.linalg.matrices import (
    pick_and_reshape,
    require_matrices,
)
from gradlab.ops.results import Result, result_type
from gradlab.rules import factorizations

SlogDet = result_type("linalg_slogdet", "sign", "logabsdet")


@takes_out
def det(A: Tensor) -> Tensor:
    r"""Compute the determinant of square matrices.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Shape (…).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Notes
    -----
    The gradient is computed from the cofactors, so it is correct for singular matrices, too:

    .. math:: \bar{A} = \bar{d} \, \operatorname{adj}(A)^\mathsf{T}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.det(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor(8.)
    """
    return determinant(A)


def determinant(A: Tensor) -> Tensor:
    return factorizations.det.record(require_matrices("linalg.det", A))


def sign_and_logarithm(name: str, A: Tensor) -> list[Tensor]:
    packed = factorizations.slogdet.record(require_matrices(name, A))
    pick, _ = pick_and_reshape("LinalgSlogdetBackward0")
    return [pick(packed, index=(Ellipsis, i), skip=0) for i in (0, 1)]


@takes_out
def slogdet(A: Tensor) -> Result:
    r"""Compute the sign of the determinant and the logarithm of its absolute value.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    named tuple
        `sign` (…), 0 for a singular matrix, and `logabsdet` (…).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

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
