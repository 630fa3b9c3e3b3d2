"""Compute ufuncs of large arrays in pieces, with several threads (see `backend.threads`).

The pieces do not depend on the number of threads, and each element is computed by the same loop as in the whole array, so results
are bitwise equal for any number of threads. Other arrays are computed whole, in particular those that are not C-contiguous, since
the layout of a result follows that of its arguments.

Threads are used only for functions that cost more than memory access, which primitives declare as `costly`, and from a size at
which the typical call gains. Measured on two cores (float32, time with two threads over time with one, medians of alternating
turns): exp and tanh of two million elements 0.64 to 0.84; a chain of products, sums, exp and tanh with its backward 0.98; exp and
tanh of a million elements 0.73 to 1.27, since a sleeping core must wake. A product gains nothing, because it is bound by memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.threads import number_of_threads, run_pieces

MIN_SIZE_SHARED = 2_000_000  # elements from which several threads are used
PIECE_SIZE = 1 << 16  # elements per piece; smaller pieces cost more calls, larger ones leave threads idle at the end


def run_in_pieces(ufunc: np.ufunc, *arrays: Any) -> Any:
    """Return ufunc(*arrays), computed by all threads if the arguments are contiguous arrays of one shape and numbers."""
    shape = arrays[0].shape
    if number_of_threads() < 2 or not all(
        type(a) is np.ndarray and a.flags.c_contiguous and (a.shape == shape or (a.size == 1 and a.ndim <= len(shape)))
        for a in arrays
    ):
        return ufunc(*arrays)
    flat = [a.reshape(-1) if a.size > 1 else a.reshape(()) for a in arrays]
    out = np.empty(shape, ufunc.resolve_dtypes((*[a.dtype for a in flat], None))[-1])
    places = out.reshape(-1)

    def work(number: int) -> None:
        piece = slice(number * PIECE_SIZE, (number + 1) * PIECE_SIZE)
        ufunc(*[a[piece] if a.ndim else a for a in flat], out=places[piece])

    run_pieces(work, -(-out.size // PIECE_SIZE))
    return out
