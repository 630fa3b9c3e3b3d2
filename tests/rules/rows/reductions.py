"""Samples of the reductions."""

from __future__ import annotations

from math import inf

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab.rules import reductions

ZEROS = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
NANS = np.array([[1.0, np.nan, 1.0], [1.0, 1.0, 1.0]])

CASES = [
    case("sum", lambda x: x.sum((0, 2)), (3, 4, 2)),
    case("sum", lambda x: x.sum(-1, True), (3, 3)),
    case("sum", lambda x: x.sum(), (3, 4)),
    case("mean", lambda x: x.mean(1), (3, 4)),
    case("mean", lambda x: x.mean(), (2, 3)),
    case("nansum", lambda x: x.nansum(0), (3, 4)),
    case(
        "nansum",
        lambda x: gl.where(like(x, np.isnan(NANS)), like(x, NANS.astype(x.array.dtype)), x).nansum(1, True),
        (2, 3),
        coincidence=True,
    ),
    case("prod", lambda x: x.prod(1), (3, 3)),
    case("prod", lambda x: x.prod(), (2, 3)),
    case("prod", lambda x: (x * like(x, ZEROS.astype(x.array.dtype))).prod(0, keepdim=True), (3, 3), coincidence=True),
    case("prod", lambda x: (x * like(x, ZEROS[:1].astype(x.array.dtype))).prod(), (1, 3), coincidence=True),
    case("prod", lambda x: x.prod(), ()),
    case("var", lambda x: x.var(0), (4, 3)),
    case("var", lambda x: x.var(1, keepdim=True, correction=0), (3, 3)),
    case("std", lambda x: x.std(0), (4, 3)),
    case("std", lambda x: x.std(), (3, 4)),
    case("vector_norm", lambda x: x.norm(), (3, 4)),
    case("vector_norm", lambda x: x.norm(dim=0, keepdim=True), (2, 3)),
    *(
        case("vector_norm", lambda x, p=p: (x - 1).norm(p, dim=1), (3, 3), coincidence=True)
        for p in (0, 0.5, 1, 1.5, 2.5, 3, -1, inf, -inf)
    ),
    case("amax", lambda x: x.amax(1), (3, 4), coincidence=True),
    case("amax", lambda x: reductions.amax.record(x, axis=(-1,), keepdims=True), (3, 4), coincidence=True),
    case("amin", lambda x: x.amin((0, 2)), (3, 2, 2), coincidence=True),
    case("max", lambda x: x.max(), (3, 4), coincidence=True),
    case("min", lambda x: x.min(), (3, 4), coincidence=True),
    case("median", lambda x: x.median(), (3, 3), coincidence=True),
    case("nanmedian", lambda x: x.nanmedian(), (3, 4), coincidence=True),
    case("gather", lambda x: x.median(1).values, (3, 4)),
    case("gather", lambda x: x.sort(0).values, (3, 3)),
    case("gather", lambda x: x.kthvalue(2, 0).values, (3, 3)),
]
