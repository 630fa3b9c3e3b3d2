"""Adding rows where indices repeat: the transpose of every pick, and what is slow if done naively.

`np.add.at` is quick on one axis (2 ns an element) and slow on rows. So rows are added as single elements; from `MANY` elements
on by a product with a sparse matrix of ones, which costs a tenth of that. (SciPy's sparse module loads then, which takes
0.1 s once, and not before.) On a GPU `add.at` is the library's own atomic addition, which knows few dtypes of integers.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

MANY = 20_000


def add_rows(xp: Any, rows: Any, at: Any, count: int) -> Any:
    """(…, count, width) zeros, with each of `rows` (…, *at.shape, width) added at its index in `at`; axes in front are a batch.

    Indices lie in 0 … count - 1 and may repeat. Rows of one index are added in their order."""
    lead, width = rows.shape[: rows.ndim - at.ndim - 1], rows.shape[-1]
    at = at.reshape(-1)
    if lead:
        at = (at + count * xp.arange(prod(lead)).reshape(-1, 1)).reshape(-1)
    flat, n = rows.reshape(at.shape[0], width), count * prod(lead)
    if type(rows) is np.ndarray and rows.size >= MANY and width > 1 and rows.dtype.char in "fd":
        total = sparse_sum(flat, at, n)
    else:
        total = xp.zeros((n, width), dtype=rows.dtype)
        add_at(xp, total.reshape(-1), (at.reshape(-1, 1) * width + xp.arange(width)).reshape(-1), flat.reshape(-1))
    return total.reshape(*lead, count, width)


ATOMIC = "efdiIL"  # dtypes that CuPy adds at places: CUDA's atomicAdd has no int64 and no smaller integers


def add_at(xp: Any, total: Any, index: Any, values: Any) -> None:
    """total[index] += values, in place, each repetition of a place counting."""
    if xp is np or total.dtype.char in ATOMIC:
        xp.add.at(total, index, values)
    elif total.dtype.itemsize == 8:  # the bits of a sum are the same with and without a sign
        xp.add.at(total.view(np.uint64), index, unsigned(values))
    else:
        wide = total.astype(np.int32)
        xp.add.at(wide, index, values if isinstance(values, int) else values.astype(np.int32))
        total[...] = wide.astype(total.dtype)


def unsigned(values: Any) -> Any:
    return values if isinstance(values, int) else values.astype(np.int64).view(np.uint64)


def counts(xp: Any, at: Any, n: int) -> Any:
    """How often each of 0 … n - 1 comes up in `at`. (CuPy's `bincount` would wait for the greatest.)"""
    if xp is np:
        return np.bincount(at.reshape(-1), minlength=n)
    total = xp.zeros(n, dtype=np.int64)
    add_at(xp, total, at.reshape(-1), 1)
    return total


def sparse_sum(rows: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """The same for a matrix: its product with the matrix that has one 1 in each column, at the column's index."""
    from scipy.sparse import csc_array

    m = at.shape[0]
    ones = csc_array((np.ones(m, rows.dtype), at, np.arange(m + 1)), shape=(n, m))
    return np.asarray(ones @ rows)
