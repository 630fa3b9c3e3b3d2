"""Check what a verdict says about numbers, and how it is shown."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework.diagnosis import diagnosis
from gradlab.homework.verdicts import CheckItem, Verdict, compare_arrays

RIGHT = np.array([[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]])


@pytest.mark.parametrize(
    ("got", "good", "words"),
    [
        (gl.tensor(RIGHT), True, "exact"),
        (RIGHT, True, "exact"),
        (RIGHT.tolist(), False, "a tensor was expected, got a list of 2: convert it with `gl.tensor`"),
        (
            [gl.tensor(row) for row in RIGHT],
            False,
            ("a tensor was expected, got a list of 2 tensors: combine them with `gl.stack`"),
        ),
        ((gl.tensor(RIGHT),), False, "a tensor was expected, got a tuple of 1 tensor: use its first element, `[0]`"),
        ((gl.ones(2), gl.ones(3)), False, "a tensor was expected, got a tuple of 2 tensors of shapes (2,), (3,)"),
        (gl.ones(2) > 0, False, "a tensor of real numbers was expected, got a tensor of bool"),
        (RIGHT + 1e-8, True, "close (largest difference 1e-08)"),
        (RIGHT + np.array([[0, 0, 0], [0, 0.25, 0]]), False, "1 of 6 entries are off; largest difference 0.25, at [1, 1]"),
        (RIGHT.T, False, "shape (3, 2), expected (2, 3)"),
        (np.full((2, 3), np.nan), False, "6 of 6 entries are not finite"),
        (None, False, "the function returned None. Does it end with `return`?"),
        ("text", False, "a tensor of real numbers was expected, got a str"),
        ((1, [2, 3]), False, "a tensor was expected, got a tuple of 2"),
    ],
)
def test_words(got, good, words):
    assert compare_arrays(got, RIGHT, 1e-5) == (good, words)


# -------------------------------------------------------------------------------------------------------------- diagnoses
J = np.array([[1.0, 2.0, 4.0], [3.0, -1.5, 0.5], [0.7, 5.0, -2.2]])
WIDE = np.array([[1.0, 2.0, 4.0, 0.3], [3.0, -1.5, 0.5, 7.0], [0.7, 5.0, -2.2, 1.9]])


def roll(A, by):
    made = np.roll(A, by, 0)
    made[0 if by > 0 else -1] = 0
    return made


MADE = {  # each mistake, and what only its own sentence says
    "the rows before": (lambda A: np.cumsum(A, 0), "sum of the rows 0 to i: either `x.grad` or v"),
    "the rows before, twice": (lambda A: np.cumsum(np.cumsum(A, 0), 0), "a sum of sums of the rows"),
    "the rows after": (lambda A: np.cumsum(A[::-1], 0)[::-1], "sum of the rows from i to the last"),
    "the columns before": (lambda A: np.cumsum(A, 1), "sum of the columns 0 to j: u still holds"),
    "the columns before, twice": (lambda A: np.cumsum(np.cumsum(A, 1), 1), "a sum of sums of the columns"),
    "the columns after": (lambda A: np.cumsum(A[:, ::-1], 1)[:, ::-1], "sum of the columns from j to the last"),
    "the last row": (lambda A: np.broadcast_to(A[-1:], A.shape), "all your rows are the last one"),
    "the last column": (lambda A: np.broadcast_to(A[:, -1:], A.shape), "all your columns are the last one"),
    "the first row": (lambda A: np.broadcast_to(A[:1], A.shape), "all your rows are row 0"),
    "the first column": (lambda A: np.broadcast_to(A[:, :1], A.shape), "all your columns are column 0"),
    "all rows": (lambda A: np.broadcast_to(A.sum(0), A.shape), "all your rows are the sum of all rows"),
    "all columns": (lambda A: np.broadcast_to(A.sum(1, keepdims=True), A.shape), "all your columns are the sum of all columns"),
    "the mean of rows": (lambda A: np.broadcast_to(A.mean(0), A.shape), "all your rows are the mean"),
    "the mean of columns": (lambda A: np.broadcast_to(A.mean(1, keepdims=True), A.shape), "all your columns are the mean"),
    "a row late": (lambda A: roll(A, 1), "your row i is row i - 1"),
    "a row early": (lambda A: roll(A, -1), "your row i is row i + 1"),
    "a column late": (lambda A: roll(A.T, 1).T, "your column j is column j - 1"),
    "a column early": (lambda A: roll(A.T, -1).T, "your column j is column j + 1"),
    "rows backwards": (lambda A: A[::-1], "your rows are in reverse order"),
    "columns backwards": (lambda A: A[:, ::-1], "your columns are in reverse order"),
    "nothing": (np.zeros_like, "all entries are zero"),
    "the other sign": (lambda A: -A, "every sign is wrong"),
    "twice": (lambda A: 2 * A, "every entry is 2 times the right one"),
    "a mean": (lambda A: A / 3, "every entry is 1/3 of the right one"),
    "a factor for each row": (lambda A: A * np.array([[1.0], [2.0], [-3.0]]), "each row is right up to a factor"),
    "transposed": (lambda A: A.T, "it is the transpose"),
    "long": (lambda A: A.reshape(-1), "in one long row"),
    "an axis too many": (lambda A: A[:, :, None], "with an extra axis of length 1"),
    "the columns, long": (lambda A: A.T.reshape(-1), "column after column"),
    "rows added up": (lambda A: A.sum(0), "these are the sums of the rows"),
    "one row wrong": (
        lambda A: np.where(np.arange(3)[:, None] == 1, A + np.arange(A.shape[1]) ** 2 + 1, A),
        "rows 0 and 2 are right, row 1 is not",
    ),
    "one column wrong": (
        lambda A: np.where(np.arange(A.shape[1]) == 1, A + np.array([[1.0], [5], [2]]), A),
        "right, column 1 is not",
    ),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("right", [J, WIDE], ids=["3 by 3", "3 by 4"])
def test_a_mistake_is_named_and_no_other_looks_alike(name, right):
    make, words = MADE[name]
    found = diagnosis(make(right), right)
    assert words in found
    assert [other for other, (_, says) in MADE.items() if says in found] == [name]


def test_only_the_diagonal():
    assert "only the diagonal is right" in diagnosis(np.diag(np.diag(J)), J)


def test_columns_that_are_the_value_itself():
    y = np.array([4.0, 5, 6])
    assert "each of your columns is f(x) itself" in diagnosis(np.stack([y, y, y, y], 1), WIDE, y)


@pytest.mark.parametrize("right", [J, WIDE, J[0]])
def test_no_diagnosis_fits_the_right_answer_or_noise(right):
    assert diagnosis(right, right) == ""
    assert diagnosis(right + np.random.default_rng(0).normal(size=right.shape), right) == ""


def test_a_diagnosis_is_not_given_where_the_right_answer_looks_the_same():
    one_row = RIGHT[:1]  # its running sum is itself
    assert "sum of the rows 0 to i" not in diagnosis(one_row + 1, one_row)
    symmetric = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert "transpose" not in diagnosis(symmetric.T, symmetric)


# --------------------------------------------------------------------------------------------------------------- verdicts
def test_a_verdict_is_text_and_escaped_html():
    verdict = Verdict(
        2, "A <b>", 10, [CheckItem("`x < 1`", True, "exact", points=4), CheckItem("<script>", False, "off & out", "see `a<b`", 6)]
    )
    assert (verdict.points, verdict.has_passed) == (4, False)
    text, html = str(verdict), verdict._repr_html_()
    assert text.splitlines()[0] == "Exercise 2, A <b>: 4 of 10 points"
    assert "Look next at: see `a<b`" in text
    assert "<script>" not in html
    assert "<code>x &lt; 1</code>" in html
    assert "off &amp; out" in html


def test_a_lone_backtick_stays():
    assert "`" in Verdict(1, "t", 1, [CheckItem("a ` b", True, "exact")])._repr_html_()
