"""Rows of the products."""
from __future__ import annotations

from rules.sample import case

from gradlab.rules import matrix

CASES = [
    case("matmul", lambda a, b: a @ b, (3, 4), (4, 2)),
    case("matmul", lambda a, b: a @ b, (3, 3), (3, 3)),
    case("matmul", lambda a, b: a @ b, (3, 4), (2, 4, 4)),
    case("matmul", lambda a, b: a @ b, (2, 3, 4), (4, 2)),
    case("matvec", lambda a, b: a @ b, (3, 4), (4,)),
    case("matvec", lambda a, b: a @ b, (3, 3), (3,)),
    case("matmul", lambda a, b: a @ b, (3,), (3, 4)),
    case("dot", lambda a, b: a @ b, (4,), (4,)),
    case("addmm", matrix.addmm.record, (2,), (3, 4), (4, 2)),
]
