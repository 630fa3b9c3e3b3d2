"""Samples of losses and distances."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

from gradlab.nn import functional as F  # noqa: N812
from gradlab.nn.functional.distances import cdist
from gradlab.rules.losses import nll_entries

TARGET = np.array([1, 0, 3])
PIXELS = np.array([[0, 1, 2, 1], [2, 2, 0, 1]])
SIGNS = np.array([[1, -1, 1, 1], [-1, 1, -1, -1], [1, 1, 1, -1]])


def entries(weighted, total):
    def run(x):
        weights = like(x, np.array([1.0, 2.0, 0.5], x.array.dtype)).array if weighted else None
        at = like(x, np.arange(3) * 4 + TARGET).array
        return nll_entries.record(x, shape=(3, 4), at=at, weights=weights, total=total)

    return run


def weights_of(x):
    """Return weights for the last axis, with the dtype of x."""
    return like(x, np.array([0.5, 1, 2, 1.5]).astype(x.array.dtype))


CASES = [
    case("mse_loss", F.mse_loss, (3, 4), (3, 4)),
    case("mse_loss", lambda x, y: F.mse_loss(x, y, reduction="sum"), (4,), (4,)),
    case("mse_loss", lambda x, y: F.mse_loss(x, y, reduction="none"), (3, 4), (3, 4)),
    case("mse_loss", F.mse_loss, (), ()),
    case("smooth_l1_loss", lambda x, y: F.smooth_l1_loss(x, y, beta=0.3), (3, 4), (3, 4)),
    case("smooth_l1_loss", lambda x, y: F.smooth_l1_loss(x, y, beta=0.3, reduction="none"), (3, 4), (3, 4)),
    case("huber_loss", lambda x, y: F.huber_loss(x, y, delta=0.3), (3, 4), (3, 4)),
    case("huber_loss", lambda x, y: F.huber_loss(x, y, "sum", 0.3), (3,), (3,)),
    case("binary_cross_entropy", lambda x, y: F.binary_cross_entropy(x / 2, y / 2), (3, 4), (3, 4)),
    case(
        "binary_cross_entropy", lambda x, y: F.binary_cross_entropy(x / 2, y / 2, weights_of(x), reduction="none"), (3, 4), (3, 4)
    ),
    case("binary_cross_entropy_with_logits", lambda x, y: F.binary_cross_entropy_with_logits(x - 1, y), (3, 4), (3, 4)),
    case(
        "binary_cross_entropy_with_logits",
        lambda x, y: F.binary_cross_entropy_with_logits(x - 1, y, weights_of(x), pos_weight=weights_of(x)),
        (3, 4),
        (3, 4),
    ),
    case(
        "binary_cross_entropy_with_logits",
        lambda x, y: F.binary_cross_entropy_with_logits(x - 1, y, pos_weight=weights_of(x), reduction="none"),
        (3, 4),
        (3, 4),
    ),
    case("soft_margin_loss", lambda x: F.soft_margin_loss(x, like(x, SIGNS)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET), weights_of(x)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET[0])), (4,)),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET), reduction="none"), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, PIXELS), ignore_index=2), (2, 3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, PIXELS), reduction="none", ignore_index=2), (2, 3, 4), coincidence=True),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET), label_smoothing=0.25), (3, 4)),
    case("nll_entries", entries(True, 3.5), ()),
    case("nll_entries", entries(False, 2), ()),
    case("nll_entries", entries(True, None), (3,)),
    case("nll_entries", entries(False, None), (3,)),
    case("cdist", cdist, (3, 2), (4, 2)),
    case("cdist", lambda a, b: cdist(a, b, compute_mode="use_mm_for_euclid_dist"), (2, 3, 2), (2, 4, 2)),
    case("cdist", cdist, (2, 3, 2), (4, 2)),
]
