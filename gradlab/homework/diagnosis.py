"""Recognize common mistakes from the numbers of a wrong Jacobian.

A mistake is a function from the right Jacobian to the wrong one, with NaN where any value is possible, and a sentence: what the
numbers show ("row i is the sum of the rows 0 to i") and what to check. It is reported only if it holds to rounding and does not
hold for the right answer as well. Mistakes of rows are looked for in columns, too. The order: shapes, mixed rows or columns,
factors, then which rows are right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradlab.diagnose.history_loss import GRADIENTS_ADD_UP
from gradlab.homework.verdicts import as_array

Mistake = Callable[[np.ndarray], np.ndarray]
ROUNDING, DIFFERENT = 1e-5, 1e-3  # of the largest entry: equal below the first, different above the second

ROW_MISTAKES: list[tuple[Mistake, str, str]] = [  # mistake, words for rows, words for columns
    (
        lambda J: np.cumsum(J, axis=0),
        f"your row i is the sum of the rows 0 to i: either `x.grad` or v still holds the previous rows ({GRADIENTS_ADD_UP}).",
        "your column j is the sum of the columns 0 to j: u still holds the previous directions.",
    ),
    (
        lambda J: np.cumsum(np.cumsum(J, axis=0), axis=0),
        "your row i is a sum of sums of the rows 0 to i: both `x.grad` and v still hold the previous rows.",
        "your column j is a sum of sums of the columns 0 to j: two variables still hold the previous columns.",
    ),
    (
        lambda J: np.cumsum(J[::-1], axis=0)[::-1],
        "your row i is the sum of the rows from i to the last. When is `x.grad` cleared, and which weights are still set?",
        "your column j is the sum of the columns from j to the last. When is u set back to zeros?",
    ),
    (
        lambda J: np.broadcast_to(J[-1:], J.shape),
        "all your rows are the last one. Was `x.grad` copied before it was used again?",
        "all your columns are the last one. Is the same tensor stored each time, and overwritten?",
    ),
    (
        lambda J: np.broadcast_to(J[:1], J.shape),
        "all your rows are row 0. Does v change from row to row?",
        "all your columns are column 0. Does u change from one to the next?",
    ),
    (
        lambda J: np.broadcast_to(J.sum(0, keepdims=True), J.shape),
        "all your rows are the sum of all rows. Which weights were passed to `backward`, and is the row a copy of `x.grad`?",
        "all your columns are the sum of all columns. Which direction u picks one?",
    ),
    (
        lambda J: _shift_rows(J, 1),
        "your row i is row i - 1. Is the row read before its `backward` has run, or does the loop start at 1?",
        "your column j is column j - 1. Does the loop start at 1?",
    ),
    (
        lambda J: _shift_rows(J, -1),
        "your row i is row i + 1. Does the loop start at 1?",
        "your column j is column j + 1. Does the loop start at 1?",
    ),
    (lambda J: J[::-1], "your rows are in reverse order.", "your columns are in reverse order."),
    (
        lambda J: np.broadcast_to(J.mean(0, keepdims=True), J.shape),
        "all your rows are the mean of all rows.",
        "all your columns are the mean of all columns.",
    ),
]


def _shift_rows(J: np.ndarray, by: int) -> np.ndarray:
    """Shift the rows. Any value is possible in the gap."""
    shifted = np.roll(J, by, axis=0).astype(np.float64)
    shifted[0 if by > 0 else -1] = np.nan
    return shifted


def diagnosis(got: object, expected: np.ndarray, value: np.ndarray | None = None) -> str:
    """Return a sentence about the mistake, or "". `value` is f(x)."""
    array = as_array(got)
    if array is None or expected.ndim not in (1, 2) or not array.size:
        return ""
    return (
        _of_shape(array, expected)
        if array.shape != expected.shape
        else _of_value(array, expected, value)
        or (_of_rows(array, expected) if expected.ndim == 2 else "")
        or _of_factor(array, expected)
        or (_of_correct_lines(array, expected) if expected.ndim == 2 else "")
    )


def _of_shape(array: np.ndarray, expected: np.ndarray) -> str:
    if array.shape == expected.T.shape and _same(array, expected.T):
        return "it is the transpose: row i belongs to output i, column j to input j."
    if array.size != expected.size:
        sums = [(axis, expected.sum(axis)) for axis in range(expected.ndim)]
        where = next((axis for axis, one in sums if array.shape == one.shape and _same(array, one)), None)
        if where is not None:
            return f"these are the sums of the {('rows', 'columns')[where]}, one number for each {('input', 'output')[where]}."
        return ""
    wanted = f"{expected.shape}"
    long = array.reshape(-1)
    if _same(long, expected.reshape(-1)):
        if array.ndim == 1:
            return f"the numbers are right, but in one long row: reshape them to {wanted}."
        extra = [i for i, n in enumerate(array.shape) if n == 1]
        if tuple(n for n in array.shape if n != 1) == tuple(n for n in expected.shape if n != 1) and extra:
            return f"the numbers are right, but with an extra axis of length 1: reshape them to {wanted}."
        return f"the numbers are right: reshape them to {wanted}."
    if expected.ndim == 2 and _same(long, expected.T.reshape(-1)):
        return f"the numbers are right, but column after column: row i belongs to output i, and the shape is {wanted}."
    return ""


def _of_value(array: np.ndarray, expected: np.ndarray, value: np.ndarray | None) -> str:
    if value is None or expected.ndim != 2 or value.shape != expected.shape[:1]:
        return ""
    if _matches_mistake(array, np.broadcast_to(value[:, None], expected.shape), expected):
        return "each of your columns is f(x) itself: `jvp` returns the pair f(x), J u."
    return ""


def _of_rows(array: np.ndarray, expected: np.ndarray) -> str:
    if _matches_mistake(array, np.zeros_like(expected), expected):
        return "all entries are zero. Was the row read before `x.grad` was zeroed, and is it a copy?"
    if expected.shape[0] == expected.shape[1] and _matches_mistake(array, expected.T, expected):
        return "it is the transpose: row i belongs to output i, column j to input j."
    if expected.shape[0] == expected.shape[1] and _matches_mistake(array, np.diag(np.diag(expected)), expected):
        return "only the diagonal is right. An output may depend on every input: what is the weight vector of one row?"
    for wrong, of_rows, of_columns in ROW_MISTAKES:
        if _matches_mistake(array, wrong(expected), expected):
            return of_rows
        if _matches_mistake(array, wrong(expected.T).T, expected):
            return of_columns
    return ""


def _of_factor(array: np.ndarray, expected: np.ndarray) -> str:
    factor = float((array * expected).sum() / max((expected * expected).sum(), 1e-300))
    if _matches_mistake(array, factor * expected, expected):
        if abs(factor + 1) < ROUNDING:
            return "every sign is wrong."
        n = round(1 / factor) if factor else 0
        if n > 1 and abs(factor * n - 1) < ROUNDING:
            return f"every entry is 1/{n} of the right one: is it a mean instead of a sum?"
        return f"every entry is {factor:.3g} times the right one: were calls added up, or is the 1 in v or u another number?"
    if expected.ndim != 2:
        return ""
    each = (array * expected).sum(1) / np.maximum((expected * expected).sum(1), 1e-300)
    if np.abs(each).min() > ROUNDING and _matches_mistake(array, each[:, None] * expected, expected):
        return "each row is right up to a factor of its own: is the weight in v 1?"
    return ""


def _of_correct_lines(array: np.ndarray, expected: np.ndarray) -> str:
    for axis, word in ((1, "row"), (0, "column")):
        good = [
            i
            for i, (a, b) in enumerate(zip(np.moveaxis(array, axis, -1), np.moveaxis(expected, axis, -1), strict=True))
            if _same(a, b, float(np.abs(expected).max()))
        ]
        bad = [i for i in range(expected.shape[1 - axis]) if i not in good]
        if good and bad:
            return f"{_list_indices(word, good)} right, {_list_indices(word, bad)} not."
    return ""


def _list_indices(word: str, which: list[int]) -> str:
    return f"{word} {which[0]} is" if len(which) == 1 else f"{word}s {', '.join(map(str, which[:-1]))} and {which[-1]} are"


def _same(a: np.ndarray, b: np.ndarray, scale: float = 0) -> bool:
    """Return whether the arrays are equal to rounding, where `b` is finite."""
    known = np.isfinite(b)
    return a.shape == b.shape and bool(
        np.all(np.abs(a[known] - b[known]) <= ROUNDING * max(1.0, scale, float(np.abs(b[known]).max(initial=0))))
    )


def _matches_mistake(array: np.ndarray, looks: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether the array matches a mistake's result, and the right answer does not."""
    known = np.isfinite(looks)
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    return bool(known.any()) and _same(array, looks) and bool(np.abs((looks - expected)[known]).max() > DIFFERENT * scale)
