"""Rows of views, indexing, joins and writes."""
from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab.rules import shapes

ROWS = np.array([2, 0, 2])
MASK = np.arange(12).reshape(3, 4) % 3 > 0


def written(x, y):
    """In place through a view of a view, and by an advanced index."""
    z = x * 1
    z.T[1:].add_(y)
    z[like(x, np.array([0, 2]))] = y[:1] * 2
    return z * z



CASES = [
    case("gather", lambda x: x.max(1).values, (3, 4)),
    case("gather", lambda x: x.min(0, keepdim=True).values, (3, 3)),
    case("put_along", lambda x: shapes.put_along.record(
        x, shape=(3, 4), axis=-1, indices=like(x, np.array([[1, 1], [0, 3], [2, 2]])).array, keepdims=True), (3, 2)),
    case("put_along", lambda x: shapes.put_along.record(
        x, shape=(3, 4), axis=-2, indices=like(x, np.array([[2, 0, 0, 1]])).array, keepdims=False), (4,)),
    case("reshape", lambda x: x.reshape(2, -1), (3, 4)),
    case("permute", lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    case("permute", lambda x: x.mT, (2, 3, 3)),
    case("expand", lambda x: x.expand(3, 2, 4), (2, 1)),
    case("diagonal", lambda x: x.diagonal(), (3, 4)),
    case("diagonal", lambda x: x.diagonal(1, 0, 2), (3, 2, 3)),
    case("fill_diagonal", lambda x: x.diag(-1), (3,)),
    case("getitem", lambda x: x[1:, None, ..., ::2], (3, 4)),
    case("getitem", lambda x: x[like(x, ROWS)], (3, 3)),
    case("getitem", lambda x: x[0, :, like(x, ROWS)], (3, 3, 3)),
    case("getitem", lambda x: x[like(x, MASK)], (3, 4)),
    case("scatter", lambda x: shapes.scatter.record(x, shape=(4, 2), index=(like(x, ROWS).array,), skip=0), (3, 2)),
    case("cat", lambda a, b: gl.cat([a, b], 1), (3, 2), (3, 1)),
    case("cat", lambda a, b: gl.cat([a, b, a]), (2, 3), (1, 3)),
    case("stack", lambda a, b: gl.stack([a, b], 1), (3, 2), (3, 2)),
    case("astype", lambda x: x.float().double(), (3,)),
    case("transfer", lambda x: shapes.transfer.record(x, where=x.device), (3,)),
    case("overwrite", written, (3, 3), (2, 3), coincidence=True),
]
