"""Samples of indexing, of its transposes, and of writes."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab.core.registry import PRIMITIVES
from gradlab.rules import indexing

ROWS = np.array([2, 0, 2])
MASK = np.arange(12).reshape(3, 4) % 3 > 0
ALONG = np.array([[1, 1], [0, 3], [2, 2]])


def write_twice(x, y):
    """Write in place through a view of a view, and by an advanced index."""
    z = x * 1
    z.T[1:].add_(y)
    z[like(x, np.array([0, 2]))] = y[:1] * 2
    return z * z


CASES = [
    case("getitem", lambda x: x[1:, None, ..., ::2], (3, 4)),
    case("getitem", lambda x: x[like(x, ROWS)], (3, 3)),
    case("getitem", lambda x: x[0, :, like(x, ROWS)], (3, 3, 3)),
    case("getitem", lambda x: x[like(x, ROWS), :, like(x, ROWS)], (3, 2, 3)),
    case("getitem", lambda x: x[like(x, MASK)], (3, 4)),
    case("getitem", lambda x: x.split([1, 2], 1)[1], (2, 3)),
    case("getitem", lambda x: x.unbind(1)[2], (2, 3)),
    case("getitem", lambda x: x.take(like(x, np.array([[5, 0], [-1, 2]], np.int64))), (2, 3)),
    case("scatter", lambda x: indexing.scatter.record(x, shape=(4, 2), index=(like(x, ROWS).array,), skip=0), (3, 2)),
    case(
        "scatter",
        lambda x: indexing.scatter.record(x, shape=(2, 5), index=(like(x, np.arange(24) % 2 - 1).array,), skip=0),
        (24, 5),
    ),
    case("gather", lambda x: x.gather(1, like(x, ALONG)), (3, 4)),
    case("gather", lambda x: x.gather(0, like(x, ALONG[:1])), (3, 4)),
    case("gather", lambda x: indexing.gather.record(x, axis=-1, indices=like(x, ALONG[:, :1]).array, keepdims=False), (3, 4)),
    case(
        "put_along",
        lambda x: indexing.put_along.record(x, shape=(3, 4), axis=-1, indices=like(x, ALONG).array, keepdims=True),
        (3, 2),
    ),
    case(
        "put_along",
        lambda x: indexing.put_along.record(
            x, shape=(3, 4), axis=-2, indices=like(x, np.array([[2, 0, 0, 1]])).array, keepdims=False
        ),
        (4,),
    ),
    case("index_add", lambda x, y: x.index_add(0, like(x, ROWS), y), (3, 2), (3, 2)),
    case("index_add", lambda x, y: x.index_add(1, like(x, np.arange(24) % 2), y), (5, 2), (5, 24)),
    case("index_add", lambda x, y: x.index_add(0, like(x, np.arange(24) % 2), y), (2, 5), (24, 5)),
    case("index_add", lambda x, y: x.index_add(0, like(x, np.arange(24) % 2), y), (40, 5), (24, 5)),
    case("index_add", lambda x, y: x.scatter_add(1, like(x, ALONG), y), (3, 4), (3, 3)),
    case("index_add", lambda x, y: x.index_put((like(x, ROWS), like(x, ROWS)), y, True), (3, 3), (3,)),
    case("masked_fill", lambda x: x.masked_fill(like(x, MASK), 2.0) * x, (3, 4)),
    case("masked_fill", lambda x: x.masked_fill(like(x, MASK), -1.0).exp(), (4,), coincidence=True),
    case("overwrite", write_twice, (3, 3), (2, 3), coincidence=True),
    case("overwrite", lambda x, y: x.scatter(1, like(x, ALONG[:, 1:]), y), (3, 4), (3, 1)),
    case("overwrite", lambda x, y: x.masked_scatter(like(x, MASK), y), (3, 4), (9,)),
    case("overwrite", lambda x, y: x.diagonal_scatter(y), (3, 3), (3,)),
    case("copy", PRIMITIVES["copy"].record, (3, 4), (3, 4)),
    case("overwrite", lambda x, y: x.scatter_reduce(1, like(x, ALONG), y, "prod"), (3, 4), (3, 2)),
    case(
        "overwrite",
        lambda x, y: x.scatter_reduce(1, like(x, ALONG), y, "amax", include_self=False),
        (3, 4),
        (3, 2),
        coincidence=True,
    ),
    case("stack", gl.combinations, (4,)),
]
