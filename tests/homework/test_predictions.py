"""`reveal`: nothing is shown before there is a guess."""
from __future__ import annotations

import pytest

import gradlab as gl
from gradlab.homework import reveal


@pytest.mark.parametrize("guess", [..., None, (..., ..., ...), [1, ...]])
def test_without_a_guess_nothing_is_given_away(guess):
    shown = reveal(guess, [12.5, 7])
    assert shown.right is None
    for text in (str(shown), shown._repr_html_()):
        assert "12.5" not in text
        assert "Say first what you expect" in text


@pytest.mark.parametrize(("guess", "actual", "right"), [
    ([1, 2], gl.tensor([1.0, 2.0]), True), ((1, 2.0005), gl.tensor([[1.0, 2.0]]), True), ([1, 2.1], [1, 2], False),
    ([1, 2, 3], [1, 2], False), (3, 3, True), ("Rows", "rows", True), ("columns", "rows", False), (True, True, True),
    (False, True, False), ("x", [1.0], False),
])
def test_a_guess_is_compared(guess, actual, right):
    shown = reveal(guess, actual)
    assert shown.right is right
    assert ("As you said" in str(shown)) is right
    assert "<code>" in shown._repr_html_()


def test_many_answers_may_be_right():
    J = gl.tensor([[2.0, 3.0], [1.0, 2.0], [0.0, 4.0]])
    for guess in ((1, 1, 0.5), (0, 3, 0.25)):
        assert reveal(guess, [3, 7], of=lambda v: gl.tensor(v) @ J).right
    shown = reveal((1, 0, 0), [3, 7], of=lambda v: gl.tensor([float(one) for one in v]) @ J)
    assert str(shown) == "Yours gives `[2., 3.]`; it is `[3, 7]`."


def test_what_is_shown_is_escaped():
    assert "<b>" not in reveal("<b>", "<i>")._repr_html_()
