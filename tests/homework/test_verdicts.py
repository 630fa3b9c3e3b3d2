"""What a verdict says of numbers, and how it is shown."""
from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework.diagnosis import diagnosis
from gradlab.homework.verdicts import Finding, Verdict, compared

RIGHT = np.array([[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]])


@pytest.mark.parametrize(("got", "good", "words"), [
    (gl.tensor(RIGHT), True, "exact"),
    (RIGHT.tolist(), True, "exact"),
    ([gl.tensor(row) for row in RIGHT], True, "exact"),
    (RIGHT + 1e-8, True, "close (largest difference 1e-08)"),
    (RIGHT + np.array([[0, 0, 0], [0, 0.25, 0]]), False, "1 of 6 entries are off; largest difference 0.25, at [1, 1]"),
    (RIGHT.T, False, "shape (3, 2), expected (2, 3)"),
    (np.full((2, 3), np.nan), False, "6 of 6 entries are not finite"),
    (None, False, "the function returned None. Does it end with `return`?"),
    ("text", False, "a tensor was expected; what came is a str"),
    ((1, [2, 3]), False, "a tensor was expected; what came is a tuple of 2"),
])
def test_words(got, good, words):
    assert compared(got, RIGHT, 1e-5) == (good, words)


def test_no_diagnosis_fits_the_right_answer():
    assert diagnosis(RIGHT, RIGHT) == ""


def test_a_diagnosis_is_not_given_where_the_right_answer_looks_the_same():
    one_row = RIGHT[:1]                                              # its running sum is itself
    assert "sum of the rows 0 to i" not in diagnosis(one_row + 1, one_row)
    symmetric = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert "transpose" not in diagnosis(symmetric.T, symmetric)


def test_a_verdict_is_text_and_escaped_html():
    verdict = Verdict(2, "A <b>", 10, [Finding("`x < 1`", True, "exact", points=4),
                                       Finding("<script>", False, "off & out", "see `a<b`", 6)])
    assert (verdict.points, verdict.passed) == (4, False)
    text, html = str(verdict), verdict._repr_html_()
    assert text.splitlines()[0] == "Exercise 2, A <b>: 4 of 10 points"
    assert "Look next at: see `a<b`" in text
    assert "<script>" not in html
    assert "<code>x &lt; 1</code>" in html
    assert "off &amp; out" in html


def test_a_lone_backtick_stays():
    assert "`" in Verdict(1, "t", 1, [Finding("a ` b", True, "exact")])._repr_html_()
