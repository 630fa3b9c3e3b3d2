"""Large arrays cut into pieces, which several threads compute at once (see `backend.threads`).

Where an array is cut does not depend on the number of threads, and each element is computed by the loop that computes it in
the whole array: so results are equal to the bit whatever the number. What cannot be cut so is computed whole: among others
arrays whose elements do not lie in the order of their indices, since the layout of a result follows that of its arguments.

Shared are functions that cost more than the way to memory, and from where the typical call gains, not the luckiest alone.
Measured on two cores (float32, time with two threads over time with one, medians of alternating turns): exp and tanh of two
million elements 0.64 to 0.84, a chain of products, sums, exp and tanh with its backward 0.98; of a million exp and tanh between
0.73 and 1.27, since a sleeping core has to wake. A product gains nothing, memory is its bound: those stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.threads import number_of_threads, shared

SHARED = 2_000_000  # elements from which work is shared
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
    out = np.empty(shape, ufunc.resolve_dtypes((*[a.dtype for a in flat], None))[-1])
    places = out.reshape(-1)

    def work(number: int) -> None:
        piece = slice(number * PIECE, (number + 1) * PIECE)
        ufunc(*[a[piece] if a.ndim else a for a in flat], out=places[piece])

    shared(work, -(-out.size // PIECE))
    return out
