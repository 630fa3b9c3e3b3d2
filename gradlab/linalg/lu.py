"""LU decomposition with partial pivoting."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, to_host
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.matrices import (
    LinAlgError,
    integer_tensor,
    lapack_getrf,
    pick_and_reshape,
    require_matrices,
)
from gradlab.ops.arguments import check_tensors
from gradlab.ops.products import last_axes_swapped
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import factorizations as rules
from gradlab.rules import linalg as systems
from gradlab.rules import matrix as products
from gradlab.rules import shapes

LU = result_type("linalg_lu", "P", "L", "U")
LUFactor = result_type("linalg_lu_factor", "LU", "pivots")
LUFactorEx = result_type("linalg_lu_factor_ex", "LU", "pivots", "info")


def lu_factors(name: str, A: Tensor, pivot: bool) -> tuple[Tensor, np.ndarray, np.ndarray, np.ndarray]:
    """Compute the LU decomposition in host memory.

    Return L and U in one tensor, the row exchanges with LAPACK's numbering, the numbers of the first zero pivots, and the
    permutation matrices P with P A = L U.
    """
    if type(A) is not Tensor:
        check_tensors(name.replace(".", "_"), A=A)
    if A.array.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.array.shape)} instead")
    A = require_matrices(name, A, square=False)
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    array = to_host(A.array)
    batch, (m, n) = array.shape[:-2], array.shape[-2:]
    flat = array.reshape(prod(batch), m, n)
    factors, pivots = np.empty_like(flat), np.empty((len(flat), min(m, n)), np.int32)
    info = np.empty(len(flat), np.int32)
    for i, matrix in enumerate(flat):
        factors[i], swaps, info[i] = lapack_getrf(matrix)
        pivots[i] = swaps + 1
    asarray = namespace_of[type(A.array)].asarray
    exchanges = pivots.reshape(*batch, min(m, n))
    order = permutation_matrices(exchanges, m, array.dtype)
    packed = rules.lu.record(A, factors=asarray(factors.reshape(array.shape)), order=asarray(order))
    return packed, exchanges, info.reshape(batch), order


@takes_out
def lu_factor(A: Tensor, *, pivot: bool = True) -> Result:
    """Compute a compact LU decomposition for `lu_solve`.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default: True
        Exchange rows. False is not supported.

    Returns
    -------
    named tuple
        `LU` (…, m, n), with U on and above the diagonal and L below it (the diagonal of L is 1), and `pivots` (…, k), int32: row
        i was exchanged with row pivots[i] - 1.

    Raises
    ------
    RuntimeError
        If a matrix is singular, `A` has fewer than two axes or is not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.lu_factor(gl.tensor([[4.0, 2.0], [2.0, 3.0]])).LU
    tensor([[4.0000, 2.0000],
            [0.5000, 2.0000]])
    """
    packed, pivots, info, _ = lu_factors("linalg.lu_factor", A, pivot)
    if info.any():
        at = int(info.ravel()[np.flatnonzero(info)[0]])
        raise RuntimeError(
            f"gradlab.linalg.lu_factor: U[{at},{at}] is zero and using it on lu_solve would result in a division "
            "by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )
    return LUFactor((packed, integer_tensor(pivots, A)))


@takes_out
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Result:
    """Compute a compact LU decomposition without raising an error for singular matrices.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default: True
        Exchange rows. False is not supported.
    check_errors : bool, default: False
        Raise an error if a matrix is singular.

    Returns
    -------
    named tuple
        `LU` and `pivots` as in `lu_factor`, and `info` (…), int32: 0, or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If `A` has fewer than two axes or is not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.lu_factor_ex(gl.ones(2, 2)).info
    tensor(2, dtype=gradlab.int32)
    """
    packed, pivots, info, _ = lu_factors("linalg.lu_factor_ex", A, pivot)
    if check_errors and info.any():
        raise LinAlgError(f"linalg.lu_factor_ex: The diagonal element {int(info.max())} is zero.")
    return LUFactorEx((packed, integer_tensor(pivots, A), integer_tensor(info, A)))


LU_WHERE = el.where.with_node("LinalgLuBackward0")


@takes_out
def lu(A: Tensor, *, pivot: bool = True) -> Result:
    """Compute the LU decomposition with partial pivoting.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default: True
        Exchange rows. False is not supported.

    Returns
    -------
    named tuple
        `P` (…, m, m), `L` (…, m, k) with 1 on the diagonal, and `U` (…, k, n), k = min(m, n), with P L U = A.

    Raises
    ------
    RuntimeError
        If `A` has fewer than two axes or is not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.lu(gl.tensor([[2.0, 1.0], [1.0, 1.0]])).U
    tensor([[2.0000, 1.0000],
            [0.0000, 0.5000]])
    """
    packed, _, _, order = lu_factors("linalg.lu", A, pivot)
    m, n = A.array.shape[-2:]
    k, xp = min(m, n), namespace_of[type(A.array)]
    below = constant(xp.tri(m, k, -1, dtype=bool))
    pick, _ = pick_and_reshape("LinalgLuBackward0")
    low = LU_WHERE.record(below, pick(packed, index=(Ellipsis, slice(0, k)), skip=0), constant(xp.eye(m, k, dtype=A.array.dtype)))
    above = constant(~xp.tri(k, n, -1, dtype=bool))
    up = LU_WHERE.record(above, pick(packed, index=(Ellipsis, slice(0, k), slice(None)), skip=0), 0)
    return LU((integer_tensor(np.ascontiguousarray(order.mT), A), low, up))


LU_SOLVE_TRIANGULAR = systems.triangular.with_node("LinalgLuSolveBackward0")
LU_SOLVE_MATMUL = products.matmul.with_node("LinalgLuSolveBackward0")
LU_SOLVE_TRANSPOSE = shapes.permute.with_node("LinalgLuSolveBackward0", view=False)


def permutation_matrices(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    """Return the matrices P with P A = L U for LAPACK's row exchanges."""
    swaps = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.empty((len(swaps), m, m), dtype)
    for i, exchanges in enumerate(swaps):
        rows = np.arange(m)
        for row, other in enumerate(exchanges - 1):
            rows[[row, other]] = rows[[other, row]]
        order[i] = np.eye(m, dtype=dtype)[rows]
    return order.reshape(*pivots.shape[:-1], m, m)


@takes_out
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Solve A X = B for X, given the decomposition that `lu_factor(A)` returned.

    Parameters
    ----------
    LU : Tensor
        (…, n, n).
    pivots : Tensor
        (…, n), int32.
    B : Tensor
        Right-hand sides, (…, n, k).
    left : bool, default: True
        Solve A X = B if True, X A = B otherwise.
    adjoint : bool, default: False
        Use Aᵀ in place of A.

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
    >>> LU, pivots = gl.linalg.lu_factor(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    >>> gl.linalg.lu_solve(LU, pivots, gl.tensor([[8.0], [7.0]]))
    tensor([[1.2500],
            [1.5000]])
    """
    check_tensors("linalg_lu_solve", LU=LU, pivots=pivots, B=B)
    name = "linalg.lu_solve"
    LU = require_matrices(name, LU, argument="LU")
    n = LU.array.shape[-1]
    if pivots.array.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type gradlab.int32, as lu_factor() returns it.")
    if pivots.array.shape[-1:] != (n,):
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    for beyond, bound in (
        ((pivots.array < 1).any(), "greater or equal to 1"),
        ((pivots.array > n).any(), "smaller or equal to LU.size(-2)"),
    ):
        if bool(beyond):
            raise RuntimeError(f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?")
    if B.array.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor B must have at least 2 dimensions. Use B.unsqueeze(-1) for a single vector."
        )
    have = B.array.shape[-2:]
    if have[0 if left else 1] != n:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({n}x{n} "
            f"and {have[0]}x{have[1]})"
        )
    if not left:
        turned = lu_solve(LU, pivots, shapes.permute.record(B, axes=last_axes_swapped(B.array.ndim)), adjoint=not adjoint)
        return LU_SOLVE_TRANSPOSE.record(turned, axes=last_axes_swapped(turned.array.ndim))
    order = integer_tensor(permutation_matrices(to_host(pivots.array), LU.array.shape[-1], LU.array.dtype), LU)
    if not adjoint:
        low = systems.triangular.record(LU, products.matmul.record(order, B), upper=False, unit=True)
        return LU_SOLVE_TRIANGULAR.record(LU, low, upper=True, unit=False)
    turned = shapes.permute.record(LU, axes=last_axes_swapped(LU.array.ndim))
    up = systems.triangular.record(turned, B, upper=False, unit=False)
    return LU_SOLVE_MATMUL.record(order.mT, systems.triangular.record(turned, up, upper=True, unit=True))
