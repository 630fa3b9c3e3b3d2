"""Add rows at repeated indices: the transpose of indexing, which is slow if done naively.

`np.add.at` is fast on one axis (2 ns per element) and slow on rows, so rows are added element by element. From
`MIN_SIZE_SPARSE` elements on, a product with a sparse matrix of ones takes a tenth of that time. (SciPy's sparse module is only
then imported, which takes 0.1 s once.) On a GPU `add.at` is CuPy's atomic addition, which supports few integer dtypes.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

MIN_SIZE_SPARSE = 20_000


def add_rows(xp: Any, rows: Any, at: Any, count: int) -> Any:
    """Add each of `rows` (…, *at.shape, width) at its index in `at` to zeros of shape (…, count, width).

    Leading axes are a batch. Indices are from 0 to count - 1 and may repeat. Rows with the same index are added in their order.
    """
    lead, width = rows.shape[: rows.ndim - at.ndim - 1], rows.shape[-1]
    at = at.reshape(-1)
    if lead:
        at = (at + count * xp.arange(prod(lead)).reshape(-1, 1)).reshape(-1)
    flat, n = rows.reshape(at.shape[0], width), count * prod(lead)
    if type(rows) is np.ndarray and rows.size >= MIN_SIZE_SPARSE and width > 1 and rows.dtype.char in "fd":
        total = sparse_sum(flat, at, n)
    else:
        total = xp.zeros((n, width), dtype=rows.dtype)
        add_at(xp, total.reshape(-1), (at.reshape(-1, 1) * width + xp.arange(width)).reshape(-1), flat.reshape(-1))
    return total.reshape(*lead, count, width)


ATOMIC_DTYPES = "efdiIL"  # dtypes that CuPy's `add.at` supports: CUDA's atomicAdd has no int64 and no smaller integers


def add_at(xp: Any, total: Any, index: Any, values: Any) -> None:
    """Compute total[index] += values in place, adding once for each repetition of an index."""
    if xp is np or total.dtype.char in ATOMIC_DTYPES:
        xp.add.at(total, index, values)
    elif total.dtype.itemsize == 8:  # signed and unsigned sums have the same bits
        xp.add.at(total.view(np.uint64), index, as_unsigned(values))
    else:
        wide = total.astype(np.int32)
        xp.add.at(wide, index, values if isinstance(values, int) else values.astype(np.int32))
        total[...] = wide.astype(total.dtype)


def as_unsigned(values: Any) -> Any:
    return values if isinstance(values, int) else values.astype(np.int64).view(np.uint64)


def counts(xp: Any, at: Any, n: int) -> Any:
    """Return how often each of 0 … n - 1 occurs in `at`. (CuPy's `bincount` would wait for the maximum.)"""
    if xp is np:
        return np.bincount(at.reshape(-1), minlength=n)
    total = xp.zeros(n, dtype=np.int64)
    add_at(xp, total, at.reshape(-1), 1)
    return total


def sparse_sum(rows: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """Add the rows of a matrix by a product with a sparse matrix that has a single 1 per column, at the column's index."""
    from scipy.sparse import csc_array

    m = at.shape[0]
    ones = csc_array((np.ones(m, rows.dtype), at, np.arange(m + 1)), shape=(n, m))
    return np.asarray(ones @ rows)
