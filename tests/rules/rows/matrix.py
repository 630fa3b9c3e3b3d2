"""Samples of matrix products."""

from __future__ import annotations

from rules.sample import case

import gradlab as gl
from gradlab.rules import matrix

CASES = [
    case("matmul", lambda a, b: a @ b, (3, 4), (4, 2)),
    case("matmul", lambda a, b: a @ b, (3, 3), (3, 3)),
    case("matmul", lambda a, b: a @ b, (3, 4), (2, 4, 4)),
    case("matmul", matrix.matmul.record, (3, 4), (2, 4, 4)),
    case("matmul", lambda a, b: a @ b, (2, 3, 4), (4, 2)),
    case("matmul", lambda a, b: a @ b, (2, 1, 2, 3), (3, 3, 2)),
    case("matvec", lambda a, b: a @ b, (3, 4), (4,)),
    case("matvec", lambda a, b: a @ b, (3, 3), (3,)),
    case("matvec", lambda a, b: a @ b, (3,), (2, 3, 4)),
    case("matmul", lambda a, b: a @ b, (3,), (3, 4)),
    case("dot", lambda a, b: a @ b, (4,), (4,)),
    case("addmm", matrix.addmm.record, (2,), (3, 4), (4, 2)),
    case("addmm", gl.addmm, (3, 3), (3, 3), (3, 3)),
    case("addmm", gl.addmm, (), (3, 2), (2, 3)),
    case("addmm", gl.addmm, (3, 1), (3, 2), (2, 3)),
    case("baddbmm", lambda b, x, w: gl.addmm(b, x, w, beta=0.5, alpha=-2), (2,), (3, 4), (4, 2)),
    case("baddbmm", lambda b, x, w: gl.baddbmm(b, x, w, alpha=2), (2, 3, 3), (2, 3, 3), (2, 3, 3)),
    case("baddbmm", lambda b, x, w: gl.baddbmm(b, x, w, beta=1.5), (1, 2), (2, 3, 3), (2, 3, 2)),
    case("matmul", lambda b, x, w: gl.addbmm(b, x, w, beta=1.5, alpha=2), (2,), (2, 3, 3), (2, 3, 2)),
    case("matvec", lambda b, x, w: gl.addmv(b, x, w, beta=1.5), (1,), (2, 3), (3,)),
    case("mul", lambda b, x, w: gl.addr(b, x, w, alpha=2), (2, 1), (2,), (3,)),
    case("cross", lambda a, b: gl.cross(a, b, dim=1), (2, 3), (2, 3), coincidence=True),
    case("cross", lambda a, b: gl.cross(a, b, dim=0), (3, 3), (3, 1), coincidence=True),
    case("matrix_exp", gl.matrix_exp, (3, 3)),
    case("matrix_exp", lambda x: gl.matrix_exp(x * 4), (2, 2, 2)),
    case("matmul", lambda a, b: gl.einsum("ijj,kj->ik", a, b), (2, 3, 3), (3, 3)),
    case("matmul", lambda a, b: gl.einsum("b...i,b...j->bij", a, b), (2, 3, 2), (2, 1, 3)),
]
