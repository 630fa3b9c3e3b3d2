"""Rows of the reductions."""
from __future__ import annotations

from rules.sample import case

from gradlab.rules import reductions

CASES = [
    case("sum", lambda x: x.sum((0, 2)), (3, 4, 2)),
    case("sum", lambda x: x.sum(-1, True), (3, 3)),
    case("sum", lambda x: x.sum(), (3, 4)),
    case("mean", lambda x: x.mean(1), (3, 4)),
    case("mean", lambda x: x.mean(), (2, 3)),
    case("var", lambda x: x.var(0), (4, 3)),
    case("var", lambda x: x.var(1, keepdim=True, correction=0), (3, 3)),
    case("std", lambda x: x.std(0), (4, 3)),
    case("std", lambda x: x.std(), (3, 4)),
    case("vector_norm", lambda x: x.norm(), (3, 4)),
    case("vector_norm", lambda x: x.norm(dim=0, keepdim=True), (2, 3)),
    case("amax", lambda x: x.max(), (3, 4), coincidence=True),
    case("amax", lambda x: reductions.amax.record(x, axis=(-1,), keepdims=True), (3, 4), coincidence=True),
    case("amin", lambda x: x.min(), (3, 4), coincidence=True),
]
