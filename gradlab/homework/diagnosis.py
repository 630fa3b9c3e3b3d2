"""What a wrong Jacobian looks like, and what that says: the mistakes that a picture of the numbers gives away.

Each diagnosis is a fact about the numbers ("each row is the sum of the rows up to it") with what to look at; it is said only if
it holds to rounding and does not hold for the right answer as well.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradlab.homework.verdicts import as_array

Wrong = Callable[[np.ndarray], np.ndarray]

MISTAKES: list[tuple[Wrong, str]] = [
    (lambda J: np.cumsum(J, axis=0),
     "your row i is the sum of the rows 0 to i. What was in `x.grad` when row i was added to it?"),
    (lambda J: np.broadcast_to(J[-1:], J.shape),
     "all your rows are the last one. Was `x.grad` copied before it was used again?"),
    (lambda J: np.broadcast_to(J.sum(0, keepdims=True), J.shape),
     "all your rows are the sum of all rows. Which weights went into `backward`, and is the row a copy of `x.grad`?"),
    (np.zeros_like, "everything is zero. Was the row read before `x.grad` was zeroed, and is it a copy?"),
    (lambda J: -J, "every sign is the other way round."),
    (lambda J: np.diag(np.diag(J)) if J.shape[0] == J.shape[1] else J,
     "only the diagonal is right. An output may depend on every input: what is the weight vector of one row?"),
    (lambda J: np.cumsum(J[::-1], axis=0)[::-1],
     "your row i is the sum of the rows from i to the last. When is `x.grad` zeroed?"),
]


def diagnosis(got: object, expected: np.ndarray) -> str:
    """What the numbers say about the mistake, or nothing."""
    array = as_array(got)
    if array is None or expected.ndim != 2:
        return ""
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    if array.shape == expected.T.shape and np.allclose(array, expected.T, atol=1e-5 * scale) and not _alike(
            expected, expected.T, scale):
        return "it is the transpose: row i belongs to output i, column j to input j."
    if array.shape == (expected.size,) and np.allclose(array, expected.reshape(-1), atol=1e-5 * scale):
        return "the numbers are right, in one long row: give them the shape (outputs, inputs)."
    if array.shape != expected.shape:
        return ""
    for wrong, words in MISTAKES:
        looks = wrong(expected)
        if np.allclose(array, looks, atol=1e-5 * scale) and not _alike(expected, looks, scale):
            return words
    return ""


def _alike(a: np.ndarray, b: np.ndarray, scale: float) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, atol=1e-4 * scale))
