"""Factorizations, inverses and the vector product."""

from __future__ import annotations

from gradlab.linalg import toplevel
from gradlab.ops import products as functions


class Products:
    """Factorizations, inverses, the vector product."""

    cross = functions.cross
    cholesky, cholesky_solve, cholesky_inverse = toplevel.cholesky, toplevel.cholesky_solve, toplevel.cholesky_inverse
    det, slogdet, logdet, inverse, pinverse = (
        toplevel.det,
        toplevel.slogdet,
        toplevel.logdet,
        toplevel.inverse,
        toplevel.pinverse,
    )
    lu, lu_solve, qr, svd = toplevel.lu, toplevel.lu_solve, toplevel.qr, toplevel.svd
    matrix_exp, matrix_power = toplevel.matrix_exp, toplevel.matrix_power
    eig, symeig, solve, lstsq = toplevel.eig, toplevel.symeig, toplevel.solve, toplevel.lstsq
