"""Large arrays cut into pieces, which several threads compute at once (see `backend.threads`).

Where an array is cut does not depend on the number of threads, and each element is computed by the loop that computes it in the
whole array: so results are equal to the bit whatever the number. What cannot be cut so is computed whole: among others arrays
whose elements do not lie in the order of their indices, since the layout of a result follows that of its arguments.

Shared are functions that cost more than the way to memory. Measured on two cores (float32, minima of turns, one and two
threads, µs): exp of 500 000 elements 233 and 203, of a million 463 and 319, of two million 952 and 583. A product of a million
is no quicker on two (145 and 146): memory is its bound, so products, sums and quotients stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.threads import number_of_threads, shared

SHARED = 1 << 20  # elements from which work is shared
PIECE = 1 << 16  # elements of a piece: smaller ones cost more in calls, larger ones leave a thread waiting at the end
# fmt: off
COSTLY = frozenset((
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.power, np.float_power, np.logaddexp, np.logaddexp2,
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot,
    np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
))
# fmt: on


def spread(ufunc: np.ufunc, *arrays: Any) -> Any:
    """ufunc(*arrays), of contiguous arrays of one shape and numbers by as many threads as there are."""
    shape = arrays[0].shape
    if number_of_threads() < 2 or not all(
        type(a) is np.ndarray and a.flags.c_contiguous and (a.shape == shape or (a.size == 1 and a.ndim <= len(shape)))
        for a in arrays
    ):
        return ufunc(*arrays)
    flat = [a.reshape(-1) if a.size > 1 else a.reshape(()) for a in arrays]
    first = ufunc(*[a[:PIECE] if a.ndim else a for a in flat])
    out = np.empty(shape, first.dtype)
    places = out.reshape(-1)
    places[:PIECE] = first

    def work(number: int) -> None:
        start = (number + 1) * PIECE
        ufunc(*[a[start : start + PIECE] if a.ndim else a for a in flat], out=places[start : start + PIECE])

    shared(work, -(-out.size // PIECE) - 1)
    return out
