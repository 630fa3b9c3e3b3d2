"""`ask` and `reveal`: nothing is shown before there is a guess."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework import ask, guess, predictions, reveal
from gradlab.homework.questions import question


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
        (0, 1e-4, False),
        (1e-4, 1.004e-4, True),
        (0.033, 1 / 30, True),
        (0.03, 1 / 30, False),
        (0.33, 1 / 3, False),
        (0, -3e-8, True),
        (3.14, np.pi, True),
        ([0, 1000], [0.5, 1000], True),
        (100.5, 100, False),
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
        ([1, 2, 3], "You wrote three numbers. The answer is two numbers"),
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
    assert "write, for example, `[5, 6]`" in str(shown)


def test_a_wrong_guess_is_answered():
    replies = {(2, 3): "that is row 0", (0, 1, 0): "those are the weights"}
    assert str(reveal([2, 3], [1, 2], replies=replies)) == "You said `[2, 3]`: that is row 0; it is `[1, 2]`."
    assert str(reveal("2, 3", [1, 2], replies=replies)) == "You said `[2, 3]`: that is row 0; it is `[1, 2]`."
    assert str(reveal([5, 3], [1, 2], replies=replies)) == "You said `[5, 3]`; it is `[1, 2]`."
    assert str(reveal("Mul", "Pow", replies={"mul": "that is output 0"})) == "You said `Mul`: that is output 0; it is `Pow`."
    assert str(reveal((0, 1, 0), [1, 2], replies=replies)).startswith("You wrote three numbers: those are the weights.")


def test_numbers_are_repeated_without_blanks_that_align_them():
    assert str(reveal("1.2 2.3004", gl.tensor([1.2, 2.3004]))) == "As you said: `[1.2, 2.3004]`."
    assert str(reveal([-1, 20], [[-1, 20]])) == "As you said: `[[-1, 20]]`."
    assert str(reveal([1, 2, 3, 4], [[1.5, -2.25], [3.0, 4.0]])) == "You said `[1, 2, 3, 4]`; it is `[[1.5, -2.25], [3., 4.]]`."


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
    shown = reveal(["<b>"], ["<i>"], rows=("<u>",), replies={"<u>": "<s>"})._repr_html_()
    assert not any(tag in shown for tag in ("<b>", "<i>", "<u>", "<s>"))
    asked = question("k", None, ("<b>", "<i>"), ("<u>",))
    assert not any(tag in asked.as_folded_text("<s>")["text/html"] for tag in ("<b>", "<i>", "<u>", "<s>"))


ROWS = ("x", "x * 2", "x > 0")
FACTS = [True, "true", False]


@pytest.mark.parametrize(
    "guess",
    [
        ["True", "True", "False"],
        (True, True, False),
        "true, TRUE, false",
        {"x": True, "x > 0": False, "x * 2": "True"},
        np.array([True, True, False]),
        gl.tensor([1.0, 1.0, -1.0]) > 0,
    ],
)
def test_a_table_is_right_in_all_rows(guess):
    assert reveal(guess, FACTS, rows=ROWS).right is True


def test_a_table_is_answered_row_by_row():
    shown = reveal(
        ["True", "False", "True"],
        FACTS,
        rows=ROWS,
        replies={"x * 2": "it is made of x", "x > 0": {"True": "truth has no slope", "None": "?"}, "x": "never"},
    )
    assert shown.right is False
    assert str(shown).splitlines() == [
        "1 of 3 rows are as you said.",
        "  - `x * 2`: you said `False`: it is made of x; it is `true`.",
        "  - `x > 0`: you said `True`: truth has no slope; it is `False`.",
    ]
    assert str(reveal(["False", "False", "True"], FACTS, rows=ROWS)).startswith("0 of 3 rows")
    all_alike = {("False", "False", "False"): "only the leaves were looked at"}
    assert "1 of 3 rows are as you said: only the leaves were looked at." in str(
        reveal([False] * 3, FACTS, rows=ROWS, replies=all_alike)
    )
    assert reveal(["1", 2.0], [1.0, 2], rows=("a", "b")).right
    assert not reveal(["1", True], [1.0, 1], rows=("a", "b")).right


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (..., "Say first what you expect, in the cell above"),
        ([...] * 3, "Say first what you expect, in the cell above"),
        (["True", ..., None], "Enter your guess for `x * 2`, `x > 0`"),
        ({"x": "True"}, "Enter your guess for `x * 2`, `x > 0`"),
        (["True", "False"], "You wrote `['True', 'False']`. The answer is a word for each of 3 rows"),
        ({"y": "True"}, "a word for each of 3 rows"),
        ("True", "a word for each of 3 rows"),
        (7, "a word for each of 3 rows"),
    ],
)
def test_a_table_without_a_whole_guess_gives_nothing_away(guess, words):
    shown = reveal(guess, ["12.5", "12.5", "12.5"], rows=ROWS)
    assert shown.right is None and words in str(shown) and "12.5" not in shown._repr_html_()


def test_a_table_of_another_length_is_the_lessons_mistake():
    with pytest.raises(ValueError, match="a word for each of 3 rows"):
        reveal(["True", "False", "True"], [True], rows=ROWS)


@pytest.fixture
def mine(monkeypatch):
    """Guesses of its own, for `ask` and `reveal`."""
    guesses = type(guess)()
    monkeypatch.setattr(predictions, "guess", guesses)
    return guesses


def test_a_question_says_what_to_type_where_there_is_no_notebook(mine, capsys):
    ask("two_rows", numbers=2)
    assert "replace the dots in `guess.two_rows = ...`" in capsys.readouterr().out
    mine.two_rows = [3, 5]
    ask("two_rows", numbers=2)
    assert "Noted: [3, 5]. Now run the next cell." in capsys.readouterr().out
    ask("who", choices=("True", "False"), rows=("x", "x * 2"))
    out = capsys.readouterr().out
    assert "guess.who = [..., ...]" in out and "`True` or `False` for each of 2 rows" in out and "\n    x * 2" in out


@pytest.mark.parametrize("given", [{"numbers": 2}, {}, {"choices": ("a", "b")}, {"choices": ("a", "b"), "rows": ("x", "y")}])
def test_what_it_says_to_type_can_be_typed(mine, capsys, given):
    ask("k", **given)
    code = capsys.readouterr().out.split("`")[1]
    exec(code, {"guess": mine})
    assert mine.k in (..., [..., ...]) and reveal(mine.k, ["a", "b"], rows=given.get("rows")).right is None
    exec(code.replace("...", "'a'"), {"guess": mine})
    assert mine.k in ("a", ["a", "a"])


def test_choices_are_read_regardless_of_case_and_others_are_named(mine):
    ask("path", choices=("Mul", "Add", "Pow"))
    for said in ("pow", " POW ", "'Pow'"):
        mine.path = said
        assert mine.path == "Pow"
    mine.path = "Sub"
    shown = reveal(mine.path, "Pow")
    assert shown.right is None
    assert str(shown) == "You wrote `Sub`. Answer `Mul`, `Add` or `Pow`."
    ask("order", choices=(1, 2, 3))
    for said in (2, "2", 2.0, gl.tensor(2)):
        mine.order = said
        assert mine.order == "2" and reveal(mine.order, 2).right
    ask("who", choices=("True", "False"), rows=("x", "y"))
    mine.who = [True, "maybe"]
    assert str(reveal(mine.who, ["True", "False"], rows=("x", "y"))).startswith("You wrote `maybe` for `y`. Answer `")
    mine.who = "true, FALSE"
    assert mine.who == ["True", "False"]


def test_a_guess_belongs_to_the_question_that_was_asked(mine):
    ask("k", numbers=2)
    mine.k = [1, 2]
    ask("k", numbers=2)
    assert mine.k == [1, 2], "asked again, it is kept"
    ask("k", numbers=3)
    assert mine.k is ..., "another question of the same name"
    mine.k = [1, 2, 3]
    ask("k", choices=("a", "b"))
    assert mine.k is ...
    mine.k = "B"
    ask("k", choices=("a", "b", "c"))
    assert mine.k is ...
    mine.early = "B"
    ask("early", choices=("a", "b"))
    assert mine.early == "b", "typed before it was asked"
    del mine.early
    assert mine.early is ... and "k" in dir(mine)


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("two rows", {}, "the name of a question must be an identifier"),
        ("_x", {}, "got '_x'"),
        (3, {}, "got 3"),
        ("k", {"numbers": 0}, "1 or more, got 0"),
        ("k", {"numbers": True}, "1 or more, got True"),
        ("k", {"numbers": "2"}, "1 or more, got '2'"),
        ("k", {"choices": "Mul"}, "choices must be several words"),
        ("k", {"choices": ("Mul",)}, "two or more different words"),
        ("k", {"choices": ("Mul", "mul ")}, "two or more different words"),
        ("k", {"choices": ("a", "b"), "numbers": 2}, "not both"),
        ("k", {"rows": ("a", "b")}, "need choices="),
        ("k", {"choices": ("a", "b"), "rows": ("a", "a")}, "must be different labels"),
        ("k", {"choices": ("a", "b"), "rows": "ab"}, "rows must be several words"),
    ],
)
def test_a_question_that_is_none_is_refused(mine, key, given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ask(key, **given)


def test_what_follows_waits_for_the_guess(mine):
    made = []

    def look():
        made.append(1)
        return "a picture"

    for said in (..., [1, 2, 3], "word"):
        shown = reveal(said, [1, 2], then=look)
        assert shown.right is None and not hasattr(shown, "then")
    assert made == []
    assert reveal([1, 2], [1, 2], then=look).then == "a picture"
    assert reveal([1, 3], [1, 2], then=look).then == "a picture"
    model = gl.nn.Linear(1, 1)  # an object that can be called is an object
    assert reveal(1, 1, then=model).then is model
    assert made == [1, 1]


def test_a_notebook_that_is_run_to_be_read_has_the_answer_folded(mine, monkeypatch):
    monkeypatch.setattr(predictions.settings, "reading", True)
    shown = reveal(..., [1, 2], then="a picture", replies={(2, 1): "that is the column"})
    assert shown.folded and shown.then == "a picture" and str(shown) == "It is `[1, 2]`."
    assert str(reveal(..., FACTS, rows=ROWS)).splitlines()[1:] == [
        "  - `x`: `True`",
        "  - `x * 2`: `true`",
        "  - `x > 0`: `False`",
    ]
    assert str(reveal(..., [3, 7], of=lambda v: v)) == "The target is `[3, 7]`."
    assert reveal([1, 2], [1, 2]).right, "a guess is answered all the same"


def test_a_question_that_was_answered_says_so_when_it_is_asked_again(mine, capsys):
    for key, given, wrong, right, words in (
        ("two", {"numbers": 2}, [5, 3], [3, 5], "[3, 5]"),
        ("op", {"choices": ("Mul", "Add")}, "mul", "add", "Add"),
        ("rows", {"choices": ("True", "False"), "rows": ("x", "y")}, ["true", "true"], [True, False], "all 2 rows"),
    ):
        labels = {"rows": given["rows"]} if "rows" in given else {}

        def question_of(key=key, given=given):
            ask(key, **given)
            return capsys.readouterr().out

        assert "Your guess: replace the dots in" in question_of()
        setattr(mine, key, wrong)
        assert reveal(getattr(mine, key), right, **labels).right is False
        assert "Your guess: replace the dots in" in question_of() and "Noted: " in question_of()
        setattr(mine, key, right)
        assert f"Noted: {words}. Now run the next cell." in question_of()
        assert reveal(getattr(mine, key), right, **labels).right
        assert question_of() == question_of() == f"Answered: {words}. That is right.\n"
        setattr(mine, key, right)
        assert question_of() == f"Answered: {words}. That is right.\n"  # the same answer, typed again
        setattr(mine, key, wrong)
        assert "Noted: " in question_of() and "Answered" not in question_of()
        setattr(mine, key, right)
        reveal(getattr(mine, key), wrong, **labels)  # of other numbers, say, it is not right any more
        assert "Noted: " in question_of()


def test_a_guess_at_another_question_of_that_name_is_not_answered(mine, capsys):
    ask("path", choices=("Mul", "Add"))
    mine.path = "Mul"
    reveal(mine.path, "Mul")
    ask("path", choices=("Mul", "Add", "Pow"))
    mine.path = "Mul"
    capsys.readouterr()
    ask("path", choices=("Mul", "Add", "Pow"))
    assert "Noted: Mul" in capsys.readouterr().out


def test_guesses_are_written_down_where_the_teacher_says(mine, monkeypatch, tmp_path):
    reveal(mine.a, 3)
    mine.a = 4
    reveal(mine.a, 3)
    assert list(tmp_path.iterdir()) == [], "off by default"
    monkeypatch.setattr(predictions.settings, "file", tmp_path / "guesses.jsonl")
    monkeypatch.setenv("JPY_SESSION_NAME", "lessons/05_jacobian.ipynb")
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    for said in (..., [1, 2], 5, 5, 3):
        mine.a = said
        reveal(mine.a, 3)
        reveal(mine.a, 3)
    mine.b = "Mül"
    reveal(mine.b, "Mul")
    reveal("not asked", "Mul")
    lines = [json.loads(line) for line in (tmp_path / "guesses.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["question"], line["guess"], line["right"]) for line in lines] == [
        ("a", "5", False),
        ("a", "3", True),
        ("b", "Mül", False),
    ]
    assert {(line["student"], line["notebook"]) for line in lines} == {("ada", "05_jacobian")}


def said_by(code, environment):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.e2e
def test_the_environment_has_the_settings():
    code = "from gradlab.homework.predictions import settings; print(settings.reading, settings.file)"
    for environment, said in (
        ({}, "False None"),
        ({"GRADLAB_READING": "0"}, "False None"),
        ({"GRADLAB_READING": "1", "GRADLAB_GUESSES": "g.jsonl"}, "True g.jsonl"),
    ):
        assert said_by(code, environment) == said


@pytest.mark.e2e
def test_homework_does_not_load_the_notebook():
    code = "import sys, gradlab.homework; print({'IPython', 'ipywidgets', 'anywidget', 'traitlets'} & set(sys.modules))"
    assert said_by(code, {}) == "set()"


@pytest.mark.parametrize(
    ("said", "right"), [(["1e-8"], True), ([1e-8], True), (["0.00000001"], True), (["1e-4"], False), (["0"], None)]
)
def test_small_numbers_among_choices_are_told_apart(said, right):
    asked = question("eps", None, ("1e-4", "1e-8"), ("float64",))
    assert reveal(asked.normalize(said), ["1e-8"], rows=asked.rows).right is right


def test_a_rounded_nothing_has_no_sign():
    assert "`[0., 0.]`" in str(reveal([1, 1], [-1e-9, 0.0]))
    assert "`[-10., 0.]`" in str(reveal([1, 1], [-10.0, -1e-9]))
    assert "`-0.5`" in str(reveal(3, -0.5))
    assert "it is `-0.000123`" in str(reveal(3, -0.00012345)), "a small number is not zero"
