"""Samples of running sums, products and log-sum-exps."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

ZEROS = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])

CASES = [
    case("cumsum", lambda x: x.cumsum(1), (3, 3), coincidence=True),
    case("cumsum", lambda x: x.cumsum(0), (3, 2), coincidence=True),
    case("cumsum", lambda x: x.cumsum(0), ()),
    case("cumprod", lambda x: x.cumprod(0), (5, 2), coincidence=True),
    case("cumprod", lambda x: x.cumprod(-1), (3, 3), coincidence=True),
    case("cumprod", lambda x: (x * like(x, ZEROS.astype(x.array.dtype))).cumprod(1), (3, 4), coincidence=True),
    case("logcumsumexp", lambda x: (3 * x).logcumsumexp(1), (3, 3), coincidence=True),
    case("logcumsumexp", lambda x: (3 * x).logcumsumexp(0), (6, 2), coincidence=True),
    case("gather", lambda x: (x - 1).cummax(1).values, (3, 4)),
    case("gather", lambda x: (x - 1).cummin(0).values, (3, 3)),
]
