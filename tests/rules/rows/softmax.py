"""Rows of softmax and the losses fused with it."""
from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab.nn import functional as F  # noqa: N812
from gradlab.rules.softmax import nll_entries

TARGET = np.array([1, 0, 3])
PIXELS = np.array([[0, 1, 2, 1], [2, 2, 0, 1]])


def entries(total):
    def run(x):
        weights = like(x, np.array([1.0, 2.0, 0.5], x.array.dtype)).array
        index = like(x, np.arange(3)).array, like(x, TARGET).array
        return nll_entries.record(x, shape=(3, 4), index=index, weights=weights, total=total)
    return run



CASES = [
    case("softmax", lambda x: gl.softmax(x, 1), (3, 3)),
    case("log_softmax", lambda x: gl.log_softmax(x, 0), (3, 2)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET)), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, TARGET), reduction="none"), (3, 4)),
    case("nll_loss", lambda x: F.nll_loss(x, like(x, PIXELS), ignore_index=2), (2, 3, 4)),
    case("nll_loss", lambda x: F.cross_entropy(x, like(x, TARGET), label_smoothing=0.25), (3, 4)),
    case("nll_entries", entries(3.5), ()),
    case("nll_entries", entries(None), (3,)),
]
