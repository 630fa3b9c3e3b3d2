"""Products of matrices and vectors, and linear toplevel."""

from __future__ import annotations

from gradlab.linalg import toplevel
from gradlab.methods.writing import twin
from gradlab.ops import contraction
from gradlab.ops import products as functions


class Products:
    """Matrix products, factorizations, inverses."""

    matmul, mm, mv, dot, bmm, vdot = (functions.matmul, functions.mm, functions.mv, functions.dot, functions.bmm, functions.vdot)
    outer, ger, inner, kron, cross = (
        functions.outer,
        functions.ger,
        contraction.inner,
        contraction.kron,
        functions.cross,
    )
    addmm, addmm_ = functions.addmm, twin(functions.addmm)
    addmv, addmv_ = functions.addmv, twin(functions.addmv)
    addr, addr_ = functions.addr, twin(functions.addr)
    addbmm, addbmm_ = functions.addbmm, twin(functions.addbmm)
    baddbmm, baddbmm_ = functions.baddbmm, twin(functions.baddbmm)

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
