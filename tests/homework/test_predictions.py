"""`reveal`: nothing is shown before there is a guess."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework import guess, reveal


@pytest.mark.parametrize("guess", [..., None, (..., ..., ...), [1, ...]])
def test_without_a_guess_nothing_is_given_away(guess):
    shown = reveal(guess, [12.5, 7])
    assert shown.right is None
    for text in (str(shown), shown._repr_html_()):
        assert "12.5" not in text
        assert "Say first what you expect" in text


@pytest.mark.parametrize(
    ("guess", "actual", "right"),
    [
        ([1, 2], gl.tensor([1.0, 2.0]), True),
        ((1, 2.0005), gl.tensor([[1.0, 2.0]]), True),
        ([1, 2.1], [1, 2], False),
        (3, 3, True),
        ("Rows", "rows", True),
        ("columns", "rows", False),
        (True, True, True),
        (False, True, False),
        ("1, 2", [1, 2], True),
        ("(1.0, 2e0)", [1, 2], True),
        ("[1 2]", [1, 2], True),
        (["1", 2], [1, 2], True),
        ("3", 3, True),
        (np.array([1, 2]), [1, 2], True),
        (gl.tensor([1, 2]), [1.0, 2.0], True),
        ("1; 3", [1, 2], False),
        ([[1, 2]], [1, 2], True),
        (-1, -1, True),
        ("-1", 1, False),
    ],
)
def test_a_guess_is_compared(guess, actual, right):
    shown = reveal(guess, actual)
    assert shown.right is right
    assert ("As you said" in str(shown)) is right
    assert "<code>" in shown._repr_html_()


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        ([1, 2, 3], "You wrote three numbers. The question is for two numbers"),
        (7, "You wrote one number."),
        ("7", "You wrote one"),
        ("row 1", "You wrote `row 1`"),
        ([[1, 2], [3]], "You wrote `[[1, 2], [3]]`"),
        ({"a": 1}, "You wrote"),
        ([], "You wrote"),
        (float("nan"), "You wrote"),
        ([1, float("inf")], "two numbers"),
        (True, "You wrote `True`"),
        ("", "You wrote"),
        (print, "You wrote"),
    ],
)
def test_a_guess_that_cannot_be_compared_gives_nothing_away(guess, words):
    shown = reveal(guess, [12.5, 7])
    assert shown.right is None
    assert words in str(shown)
    assert "12.5" not in str(shown)
    assert "write `[5, 6]`" in str(shown)


def test_a_wrong_guess_is_answered():
    replies = {(2, 3): "that is row 0", (0, 1, 0): "those are the weights"}
    assert str(reveal([2, 3], [1, 2], replies=replies)) == "You said `[2., 3.]`: that is row 0; it is `[1, 2]`."
    assert str(reveal("2, 3", [1, 2], replies=replies)) == "You said `[2., 3.]`: that is row 0; it is `[1, 2]`."
    assert str(reveal([5, 3], [1, 2], replies=replies)) == "You said `[5., 3.]`; it is `[1, 2]`."
    assert str(reveal("Mul", "Pow", replies={"mul": "that is output 0"})) == "You said `Mul`: that is output 0; it is `Pow`."
    assert str(reveal((0, 1, 0), [1, 2], replies=replies)).startswith("You wrote three numbers: those are the weights.")


def test_many_answers_may_be_right():
    J = gl.tensor([[2.0, 3.0], [1.0, 2.0], [0.0, 4.0]])
    for weights in ((1, 1, 0.5), (0, 3, 0.25), "1, 1, .5", gl.tensor([1.0, 1.0, 0.5])):
        assert reveal(weights, [3, 7], of=lambda v: gl.tensor(v, dtype=J.dtype) @ J, count=3).right
    shown = reveal((1, 0, 0), [3, 7], of=lambda v: gl.tensor(v, dtype=J.dtype) @ J, count=3)
    assert str(shown) == "Yours gives `[2., 3.]`; it is `[3, 7]`."
    assert "three numbers" in str(reveal((1, 0), [3, 7], of=lambda v: gl.tensor(v, dtype=J.dtype) @ J, count=3))


def test_each_question_has_a_guess_of_its_own():
    guesses = type(guess)()
    assert guesses.row is ...
    guesses.row = [1, 2]
    assert guesses.sum is ...
    assert reveal(guesses.row, [1, 2]).right
    assert reveal(guesses.sum, [1, 2]).right is None
    assert repr(guesses) == "row: [1, 2]"
    assert not hasattr(guesses, "_repr_html_")


def test_what_is_shown_is_escaped():
    assert "<b>" not in reveal("<b>", "<i>")._repr_html_()


def test_a_rounded_nothing_has_no_sign():
    assert "`[0., 0.]`" in str(reveal([1, 1], [-1e-9, 0.0]))
    assert "`[-10.,   0.]`" in str(reveal([1, 1], [-10.0, -1e-9]))
    assert "`-0.5`" in str(reveal(3, -0.5))
