"""Gradients by hand beside those of backward: right ones, wrong ones, open ones; the answer is not said."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework import compare
from gradlab.homework.replies import lesson_3

RIGHT = {"s": gl.tensor(0.0625), "d": gl.tensor([-0.25, 0.0, 0.25])}


def words(yours, right=RIGHT, replies=None):
    return {name: said for name, _, said in compare(yours, right, replies=replies).rows}


@pytest.mark.parametrize(
    ("said", "good", "words"),
    [
        ([-0.25, 0, 0.25], True, "exact"),
        (gl.tensor([-0.25, 0.0, 0.25], requires_grad=True), True, "exact"),
        (np.array([-0.25, 0.0, 0.25]), True, "exact"),
        ([-0.2501, 0, 0.25], True, "close (largest difference 0.0001)"),
        ([-0.25, 0, -0.25], False, "1 of 3 entries are off; largest difference 0.5, at [2]"),
        ([0.25, 0], False, "shape (2,), expected (3,)"),
        (0.25, False, "shape (), expected (3,)"),
        ([float("nan")] * 3, False, "3 of 3 entries are not finite"),
        ("a quarter", False, "a tensor of real numbers was expected, got a str"),
        (True, False, "a tensor of real numbers was expected, got a bool"),
        ([[1, 2], [3]], False, "a tensor was expected, got a list of 2"),
        (..., None, "still open"),
        (None, None, "still open"),
        ([..., 0, 0.25], None, "still open"),
    ],
)
def test_of_each_it_is_said_how_right_it_is(said, good, words):
    shown = compare({"d": said}, {"d": RIGHT["d"]})
    assert shown.rows == (("d", good, words),)
    assert shown.right is (good is True)
    assert "0.25, 0" not in str(shown).replace("0.25, at", "")


def test_a_single_number_is_off_by_something():
    assert words({"s": 0.25, "d": ...})["s"] == "off by 0.19"
    assert words({"s": float("inf"), "d": ...})["s"] == "1 of 1 entries are not finite"


def test_it_is_counted_in_text_and_on_the_page():
    shown = compare({"s": 0.0625, "d": "<b>"}, {"s": 0.0625, "d": 1.0})
    assert str(shown).splitlines() == [
        "1 of 2 are right:",
        "  ok  s  exact",
        "  NO  d  a tensor of real numbers was expected, got a str",
    ]
    page = compare({"<i>": ...}, {"<i>": 1.0})._repr_html_()
    assert "<i>" not in page and "&lt;i&gt;" in page and "0 of 1 are right" in page


def test_a_known_mistake_is_replied_to():
    replies = {"d": {(-0.125, 0, 0.125): "the 2 is missing"}}
    assert words({"s": ..., "d": [-0.125, 0, 0.125]}, replies=replies)["d"].endswith(": the 2 is missing")
    assert "the 2" not in words({"s": ..., "d": [-0.125, 0.5, 0.125]}, replies=replies)["d"]


@pytest.mark.parametrize(("yours", "right"), [({"a": 1}, {"b": 1}), ({}, {}), ({"a": 1}, {"a": "text"})])
def test_what_cannot_be_compared_is_said(yours, right):
    with pytest.raises(ValueError, match=r"must have the same names|must be numeric"):
        compare(yours, right)


def test_what_lesson_3_replies_to_is_what_the_mistakes_give():
    x = np.array([1.0, 1.0, 3.0, 5.0, 5.0])
    d = x - x.mean()
    s_bar, d_bar = 1 / 16, 2 * d / 16
    mistakes = {
        "s": {"the 4 is missing": 1 / 4, "divided by 4 instead of multiplied": 4 / 4},
        "q": {"not a fifth": np.full(5, s_bar / 5), "five times too much": np.full(5, s_bar * 5)},
        "d": {
            "the 2 of the square": d * s_bar,
            "has a sign": abs(2 * d * s_bar),
            "the square alone": 2 * d,
            "uses the result `q`": 2 * d**2 * s_bar,
            "uses `x`": 2 * x * s_bar,
        },
        "m": {"have signs": abs(d_bar).sum()},
        "x": {"through the mean": np.full(5, -d_bar.sum() / 5)},
    }
    right = {"s": s_bar, "q": np.full(5, s_bar), "d": d_bar, "m": 0.0, "x": d_bar}
    seen = 0
    for name, ways in mistakes.items():
        for said, value in ways.items():
            shown = compare({name: value}, {name: right[name]}, replies=lesson_3.by_hand)
            assert not shown.right and said in str(shown), (name, said)
            seen += 1
    assert seen + 1 == sum(map(len, lesson_3.by_hand.values()))  # the sum of signs, both ways
