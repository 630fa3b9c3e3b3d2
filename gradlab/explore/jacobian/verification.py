"""Verification: compare a matrix that was computed by a pattern with sweeps in random directions.

Each line (a column if rows are swept, a row if columns are) is compared separately, relative to its sum in this direction, so a
large or infinite entry elsewhere hides nothing. A sweep that cancels large numbers is inexact, and the matrix does not show how
much. So a line that differs by more than the rounding of its own sum is checked again: sweeps are linear, and the deviation of
those of v, a and v − a from linearity shows how much rounding affects this line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDING = 16  # times eps and the sum of a line's absolute values: surely rounding
NOISE = 32  # a wrong line differs by more than this multiple of the inexactness of its sweeps
AGAIN = 8  # directions in which a differing line is checked again


def compare(sweep: Callable[[np.ndarray], np.ndarray], whole: Any, dtype: np.dtype, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two boolean arrays: which lines are wrong, and which cannot be checked because they are not finite.

    Parameters
    ----------
    sweep : callable
        Product of the Jacobian's lines with each of k vectors: (k, whole.shape[1]) to (k, whole.shape[0]).
    whole : ndarray or scipy.sparse array
        The computed matrix, with a row for each line.
    dtype : dtype
        The dtype of the sweeps.
    chunk : int
        Maximum number of vectors per sweep.
    """
    draw, limits = np.random.default_rng(0), np.finfo(dtype)
    made_of = whole.astype(np.float64)
    sizes = abs(made_of)

    def vectors(count: int) -> np.ndarray:
        shape = count, whole.shape[1]
        return np.asarray(draw.uniform(0.5, 1.0, shape) * draw.choice([-1.0, 1.0], shape), dtype)

    def swept(block: np.ndarray) -> np.ndarray:
        return np.concatenate([sweep(block[k : k + chunk]) for k in range(0, len(block), chunk)]).astype(np.float64)

    def apart(block: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distance of the sweeps from the matrix (NaN if undefined), and the rounding of the sums."""
        block = block.astype(np.float64).T
        product, sums = (made_of @ block).T, (sizes @ abs(block)).T
        finite = np.isfinite(sums)
        distance = np.where(np.isfinite(expected) == finite, np.abs(expected - product), np.inf)
        distance[~np.isfinite(expected) & ~(sums <= 0.1 * limits.max)] = np.nan  # both are infinite, or the sum overflows
        return distance, ROUNDING * (float(limits.eps) * (sums + np.abs(expected)) + float(limits.tiny))

    with np.errstate(all="ignore"):
        first = vectors(1 if limits.eps < 1e-10 else 2)  # with few digits, two weights may almost be equal
        distance, rounding = apart(first, swept(first))
        unknown: Any = np.isnan(distance).any(0)
        wrong: Any = (distance > rounding).any(0)
        if wrong.any():
            v = vectors(AGAIN)
            a = (v * draw.uniform(0.5, 0.9, v.shape).astype(dtype)).astype(dtype)  # so that v − a is exact
            whole_v, some, rest = np.split(swept(np.concatenate([v, a, v - a])), 3)
            distance, rounding = (part.mean(0) for part in apart(v, whole_v))
            wrong = wrong & ~(distance <= NOISE * np.abs(whole_v - some - rest).mean(0) + rounding)
    return wrong, unknown & ~wrong
