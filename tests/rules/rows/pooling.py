"""Samples of max pooling: separate, overlapping, padded and dilated windows, and windows of uneven length."""

from __future__ import annotations

from rules.sample import case

from gradlab.nn import functional as F  # noqa: N812

CASES = [
    case("max_pool", lambda x: F.max_pool2d(x, 2), (2, 4, 5), coincidence=True),
    case("max_pool", lambda x: F.max_pool2d(x, 3, 1, 1), (1, 1, 3, 4), coincidence=True),
    case("max_pool", lambda x: F.max_pool2d(x, (2, 3), (2, 1), (1, 1), ceil_mode=True), (2, 1, 4, 3), coincidence=True),
    case("max_pool", lambda x: F.max_pool2d(x, 2, 1, 0, (1, 2)), (1, 3, 4), coincidence=True),
    case("max_pool", lambda x: F.max_pool1d(x, 2, 1), (2, 5), coincidence=True),
    case("max_pool", lambda x: F.max_pool3d(x, 2), (1, 2, 2, 4), coincidence=True),
    case("max_pool", lambda x: F.adaptive_max_pool2d(x, (2, 3)), (1, 3, 4), coincidence=True),
    case("max_pool", lambda x: F.adaptive_max_pool1d(x, 5), (2, 3), coincidence=True),
]
