"""Samples of normalisation, embeddings and the softmax of attention."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

from gradlab.nn import functional as F  # noqa: N812
from gradlab.rules import attention, embedding

INDICES = np.array([[0, 2, 2], [3, 0, 2]])
MASK = np.where(np.arange(12).reshape(3, 4) % 4 > 0, 0.0, -np.inf)


def heads(x):
    """Return a view of (N, L, heads, width) with the heads in front of the rows."""
    return x.transpose(1, 2)


CASES = [
    case("normalized", lambda x: F.layer_norm(x, (4,)), (3, 4)),
    case("normalized", lambda x: F.batch_norm(x, None, None, training=True), (5, 3)),
    case("normalized", lambda x: F.batch_norm(x, None, None, training=True), (3, 2, 4)),
    case("normalized", lambda x: F.group_norm(x, 2), (2, 4, 3)),
    case("affine_normalized", lambda x, w, b: F.layer_norm(x, (4,), w, b), (3, 4), (4,), (4,)),
    case("affine_normalized", lambda x, w, b: F.layer_norm(x, (2, 3), w, b), (2, 4, 2, 3), (2, 3), (2, 3)),
    case("affine_normalized", lambda x, w, b: F.layer_norm(x, (3,), w, b), (3, 3), (3,), (3,)),
    case("affine_normalized", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 3), (3,), (3,)),
    case("affine_normalized", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (3, 3, 2, 2), (3,), (3,)),
    case("affine_normalized", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 1, 2), (1,), (1,)),
    case("affine_normalized", lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    case("affine_normalized", lambda x, w, b: F.instance_norm(x, None, None, w, b), (2, 3, 4), (3,), (3,)),
    case("embedding", lambda w: F.embedding(like(w, INDICES), w), (4, 2)),
    case("embedding", lambda w: F.embedding(like(w, np.array(1)), w), (4, 4)),
    case("embedding_dense", lambda x: embedding.embedding_dense.record(x, indices=like(x, INDICES).array, count=4), (2, 3, 2)),
    case("embedding_dense", lambda x: embedding.embedding_dense.record(x, indices=like(x, INDICES[0]).array, count=3), (3, 1)),
    case("scores", lambda q, k: attention.scores.record(q, k, scale=0.5), (3, 4), (2, 4)),
    case("scores", lambda q, k: attention.scores.record(q, k, scale=2.0), (2, 3, 3), (2, 3, 3)),
    case("scores", lambda q, k: attention.scores.record(heads(q), heads(k), scale=0.5), (2, 3, 2, 2), (2, 2, 2, 2)),
    case("scores", lambda q, k: attention.scores.record(q, k, scale=0.5), (2, 3, 2), (4, 2)),
    case("mixture", attention.mixture.record, (3, 4), (4, 2)),
    case("mixture", lambda w, v: attention.mixture.record(w, heads(v)), (2, 2, 3, 3), (2, 3, 2, 3)),
    case("mixture", attention.mixture.record, (2, 3, 3), (3, 3)),
    case("safe_softmax", lambda x: attention.safe_softmax.record(x, mask=None, axis=(-1,)), (3, 4)),
    case("safe_softmax", lambda x: attention.safe_softmax.record(100 * x, mask=None, axis=(-1,)), (3, 3), coincidence=True),
    case(
        "safe_softmax",
        lambda x: attention.safe_softmax.record(x, mask=like(x, MASK.astype(x.array.dtype)).array, axis=(-1,)),
        (2, 3, 4),
        coincidence=True,
    ),
]
