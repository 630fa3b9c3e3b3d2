"""Whether a matrix that was computed by a pattern has all of the Jacobian: compared with sweeps in random directions.

Each line (each column where rows are swept, each row where columns are) is compared by itself, relative to what it adds up to
in this direction: a large or infinite entry elsewhere hides nothing. A sweep that cancels large numbers is inexact, and the
matrix does not show how much. So a line that differs by more than rounding of its own sum is looked at again: sweeps are
linear, and by how much those of v, a and v − a fail to be is what rounding does to this line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDING = 16  # eps, of the sum of a line's absolute values: what is rounding for sure
NOISE = 32  # times the inexactness of its sweeps, which a line that is wrong differs by
AGAIN = 8  # directions in which a line that differs is looked at again


def compare(sweep: Callable[[np.ndarray], np.ndarray], whole: Any, dtype: np.dtype, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """(which lines are wrong, which cannot be told because they are not finite), two boolean arrays.

    Parameters
    ----------
    sweep : callable
        The Jacobian's lines times each of k vectors: (k, whole.shape[1]) to (k, whole.shape[0]).
    whole : ndarray or scipy.sparse array
        What was computed, a row for each line.
    dtype : dtype
        Of the sweeps.
    chunk : int
        How many vectors may be swept at once.
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
        """How far the sweeps are from the matrix, NaN where nobody can tell, and how far rounding of the sums brings them."""
        block = block.astype(np.float64).T
        product, sums = (made_of @ block).T, (sizes @ abs(block)).T
        finite = np.isfinite(sums)
        distance = np.where(np.isfinite(expected) == finite, np.abs(expected - product), np.inf)
        distance[~np.isfinite(expected) & ~(sums <= 0.1 * limits.max)] = np.nan  # both are infinite, or the sum overflows
        return distance, ROUNDING * (float(limits.eps) * (sums + np.abs(expected)) + float(limits.tiny))

    with np.errstate(all="ignore"):
        first = vectors(1 if limits.eps < 1e-10 else 2)  # of few digits, two weights may be as good as alike
        distance, rounding = apart(first, swept(first))
        unknown: Any = np.isnan(distance).any(0)
        wrong: Any = (distance > rounding).any(0)
        if wrong.any():
            v = vectors(AGAIN)
            a = (v * draw.uniform(0.5, 0.9, v.shape).astype(dtype)).astype(dtype)  # so v − a is exact
            whole_v, some, rest = np.split(swept(np.concatenate([v, a, v - a])), 3)
            distance, rounding = (part.mean(0) for part in apart(v, whole_v))
            wrong = wrong & ~(distance <= NOISE * np.abs(whole_v - some - rest).mean(0) + rounding)
    return wrong, unknown & ~wrong
