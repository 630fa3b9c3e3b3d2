"""Solve triangular systems for the arrays of each backend: BLAS's trsm from SciPy, imported on first use, or CuPy's solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of


def solve_by_blas(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """Solve a x = b for two matrices. A zero on the diagonal gives inf or nan.

    BLAS stores matrices by columns, so it solves the transposed system xᵀ aᵀ = bᵀ.
    """
    from scipy.linalg.blas import dtrsm, strsm

    solve = dtrsm if a.dtype == np.float64 else strsm
    if a.flags.f_contiguous:
        return solve(1.0, a, b.T, side=1, trans_a=1, lower=not upper, diag=unit).T
    return solve(1.0, a.T, b.T, side=1, lower=upper, diag=unit).T


def solver_for(xp: Any) -> Any:
    if xp is np:
        return solve_by_blas
    if xp.__name__ == "cupy":
        from cupyx.scipy.linalg import solve_triangular
    else:
        solve_triangular = xp.scipy_linalg.solve_triangular
    return lambda a, b, upper, unit: solve_triangular(a, b, lower=not upper, unit_diagonal=unit)


def solve_triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Solve a x = b for triangular a, one matrix of a batch at a time.

    The other triangle is not read, and neither is the diagonal if `unit` is True.
    """
    xp = namespace_of[type(a)]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not (a.size and b.size):
        return xp.zeros(batch + b.shape[-2:], dtype=b.dtype)
    one = solver_for(xp)
    if not batch:
        return one(a, b, upper, unit)
    a, b = xp.broadcast_to(a, batch + a.shape[-2:]), xp.broadcast_to(b, batch + b.shape[-2:])
    out = xp.empty(b.shape, dtype=b.dtype)
    for at in np.ndindex(*batch):
        out[at] = one(a[at], b[at], upper, unit)
    return out
