"""What a wrong Jacobian looks like, and what that says: the mistakes that a picture of the numbers gives away.

Each mistake is a fact about the numbers ("row i is the sum of the rows 0 to i") with what to look at. It is named only if it
holds to rounding and does not hold for the right answer as well. A mistake is written as what it makes of the right answer,
with NaN where anything may stand; those of rows are said of columns too. What is only a matter of shape comes first, then what
mixes rows or columns, then factors, then the rows that are right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradlab.diagnose.history_loss import GRADIENTS_ADD_UP
from gradlab.homework.verdicts import as_array

Wrong = Callable[[np.ndarray], np.ndarray]
ROUNDING, DIFFERENT = 1e-5, 1e-3  # of the largest entry: the same; surely not the same

OF_ROWS: list[tuple[Wrong, str, str]] = [  # how, of rows, of columns
    (
        lambda J: np.cumsum(J, axis=0),
        f"your row i is the sum of the rows 0 to i: either `x.grad` or v still holds the rows before ({GRADIENTS_ADD_UP}).",
        "your column j is the sum of the columns 0 to j: u still holds the directions before.",
    ),
    (
        lambda J: np.cumsum(np.cumsum(J, axis=0), axis=0),
        "your row i is a sum of sums of the rows 0 to i: both `x.grad` and v still hold the rows before.",
        "your column j is a sum of sums of the columns 0 to j: two things still hold the columns before.",
    ),
    (
        lambda J: np.cumsum(J[::-1], axis=0)[::-1],
        "your row i is the sum of the rows from i to the last. When is `x.grad` cleared, and which weights are set before?",
        "your column j is the sum of the columns from j to the last. When is u set back to zeros?",
    ),
    (
        lambda J: np.broadcast_to(J[-1:], J.shape),
        "all your rows are the last one. Was `x.grad` copied before it was used again?",
        "all your columns are the last one. Is one tensor kept, and written to again?",
    ),
    (
        lambda J: np.broadcast_to(J[:1], J.shape),
        "all your rows are row 0. Does v change from row to row?",
        "all your columns are column 0. Does u change from one to the next?",
    ),
    (
        lambda J: np.broadcast_to(J.sum(0, keepdims=True), J.shape),
        "all your rows are the sum of all rows. Which weights went into `backward`, and is the row a copy of `x.grad`?",
        "all your columns are the sum of all columns. Which direction u picks one?",
    ),
    (
        lambda J: _shifted(J, 1),
        "your row i is the row i - 1. Is the row read before `backward` has run for it, or does the count begin at 1?",
        "your column j is the column j - 1. Does the count begin at 1?",
    ),
    (
        lambda J: _shifted(J, -1),
        "your row i is the row i + 1. Does the count begin at 1?",
        "your column j is the column j + 1. Does the count begin at 1?",
    ),
    (lambda J: J[::-1], "your rows are in reverse order.", "your columns are in reverse order."),
    (
        lambda J: np.broadcast_to(J.mean(0, keepdims=True), J.shape),
        "all your rows are the mean of all rows.",
        "all your columns are the mean of all columns.",
    ),
]


def _shifted(J: np.ndarray, by: int) -> np.ndarray:
    """Each row at the next one's place; what comes into the gap may be anything."""
    shifted = np.roll(J, by, axis=0).astype(np.float64)
    shifted[0 if by > 0 else -1] = np.nan
    return shifted


def diagnosis(got: object, expected: np.ndarray, value: np.ndarray | None = None) -> str:
    """What the numbers say about the mistake, or nothing. `value` is f(x)."""
    array = as_array(got)
    if array is None or expected.ndim not in (1, 2) or not array.size:
        return ""
    return (
        _of_shape(array, expected)
        if array.shape != expected.shape
        else _of_value(array, expected, value)
        or (_of_rows(array, expected) if expected.ndim == 2 else "")
        or _of_factor(array, expected)
        or (_of_what_is_right(array, expected) if expected.ndim == 2 else "")
    )


def _of_shape(array: np.ndarray, expected: np.ndarray) -> str:
    if array.shape == expected.T.shape and _same(array, expected.T):
        return "it is the transpose: row i belongs to output i, column j to input j."
    if array.size != expected.size:
        sums = [(axis, expected.sum(axis)) for axis in range(expected.ndim)]
        where = next((axis for axis, one in sums if array.shape == one.shape and _same(array, one)), None)
        if where is not None:
            return f"these are the {('rows', 'columns')[where]} added up, one number for each {('input', 'output')[where]}."
        return ""
    wanted = f"the shape {expected.shape}"
    long = array.reshape(-1)
    if _same(long, expected.reshape(-1)):
        if array.ndim == 1:
            return f"the numbers are right, in one long row: give them {wanted}."
        extra = [i for i, n in enumerate(array.shape) if n == 1]
        if tuple(n for n in array.shape if n != 1) == tuple(n for n in expected.shape if n != 1) and extra:
            return f"the numbers are right, with an axis of length 1 too many: give them {wanted}."
        return f"the numbers are right: give them {wanted}."
    if expected.ndim == 2 and _same(long, expected.T.reshape(-1)):
        return f"the numbers are right, column after column: row i belongs to output i. Give them {wanted}."
    return ""


def _of_value(array: np.ndarray, expected: np.ndarray, value: np.ndarray | None) -> str:
    if value is None or expected.ndim != 2 or value.shape != expected.shape[:1]:
        return ""
    if _is(array, np.broadcast_to(value[:, None], expected.shape), expected):
        return "each of your columns is f(x) itself: `jvp` returns the pair f(x), J u."
    return ""


def _of_rows(array: np.ndarray, expected: np.ndarray) -> str:
    if _is(array, np.zeros_like(expected), expected):
        return "everything is zero. Was the row read before `x.grad` was zeroed, and is it a copy?"
    if expected.shape[0] == expected.shape[1] and _is(array, expected.T, expected):
        return "it is the transpose: row i belongs to output i, column j to input j."
    if expected.shape[0] == expected.shape[1] and _is(array, np.diag(np.diag(expected)), expected):
        return "only the diagonal is right. An output may depend on every input: what is the weight vector of one row?"
    for wrong, of_rows, of_columns in OF_ROWS:
        if _is(array, wrong(expected), expected):
            return of_rows
        if _is(array, wrong(expected.T).T, expected):
            return of_columns
    return ""


def _of_factor(array: np.ndarray, expected: np.ndarray) -> str:
    factor = float((array * expected).sum() / max((expected * expected).sum(), 1e-300))
    if _is(array, factor * expected, expected):
        if abs(factor + 1) < ROUNDING:
            return "every sign is the other way round."
        n = round(1 / factor) if factor else 0
        if n > 1 and abs(factor * n - 1) < ROUNDING:
            return f"everything is 1/{n} of what it should be: a mean in place of a sum?"
        return f"everything is {factor:.3g} times what it should be: were calls added up, or is the 1 in v or u another number?"
    if expected.ndim != 2:
        return ""
    each = (array * expected).sum(1) / np.maximum((expected * expected).sum(1), 1e-300)
    if np.abs(each).min() > ROUNDING and _is(array, each[:, None] * expected, expected):
        return "each row is right but for a factor of its own: is the weight in v 1?"
    return ""


def _of_what_is_right(array: np.ndarray, expected: np.ndarray) -> str:
    for axis, word in ((1, "row"), (0, "column")):
        good = [
            i
            for i, (a, b) in enumerate(zip(np.moveaxis(array, axis, -1), np.moveaxis(expected, axis, -1), strict=True))
            if _same(a, b, float(np.abs(expected).max()))
        ]
        bad = [i for i in range(expected.shape[1 - axis]) if i not in good]
        if good and bad:
            return f"{_counted(word, good)} right, {_counted(word, bad)} not."
    return ""


def _counted(word: str, which: list[int]) -> str:
    return f"{word} {which[0]} is" if len(which) == 1 else f"{word}s {', '.join(map(str, which[:-1]))} and {which[-1]} are"


def _same(a: np.ndarray, b: np.ndarray, scale: float = 0) -> bool:
    """Equal to rounding, where `b` says anything."""
    known = np.isfinite(b)
    return a.shape == b.shape and bool(
        np.all(np.abs(a[known] - b[known]) <= ROUNDING * max(1.0, scale, float(np.abs(b[known]).max(initial=0))))
    )


def _is(array: np.ndarray, looks: np.ndarray, expected: np.ndarray) -> bool:
    """Whether this is what a mistake makes, and the right answer is not."""
    known = np.isfinite(looks)
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(known.any()) and _same(array, looks) and bool(np.abs((looks - expected)[known]).max() > DIFFERENT * scale)
