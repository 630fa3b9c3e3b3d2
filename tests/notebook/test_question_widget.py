"""The Python part of the live view of a lesson's question without a front end, and the display of answers."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import gradlab as gl
from gradlab.homework import ask, predictions, reveal
from gradlab.homework.questions import question
from gradlab.notebook import question_display

pytest.importorskip("anywidget")

from gradlab.notebook.question_widget import QuestionWidget


@pytest.fixture
def guesses(monkeypatch):
    """Replace the guesses of `ask` and `reveal` by new ones."""
    made = type(predictions.guess)()
    monkeypatch.setattr(predictions, "guess", made)
    return made


@pytest.fixture
def widget(guesses):
    made = []

    def make(key, numbers=None, choices=None, rows=None):
        asked = question(key, numbers, choices, rows)
        guesses.register(asked)
        one = QuestionWidget(asked, guesses)
        guesses.set_view(key, one)
        one.said = []
        one.send = lambda content, buffers=(): one.said.append(content)
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def send(widget, what, **more):
    """Send one message, and return the answer."""
    name = f"t:{len(widget.said)}"
    widget._handle_custom_msg({"ask": what, "id": name, **more}, [])
    answer = widget.said[-1]
    assert answer["answer"] == name and answer["ask"] == what
    json.dumps(answer, allow_nan=False)
    return answer


def test_a_view_shows_that_the_guess_was_right(widget, guesses):
    w = widget("path", choices=("Mul", "Pow"))
    guesses.path = "Mul"
    reveal(guesses.path, "Pow")
    assert w.state["noted"] == "Noted: Mul. Now run the next cell."
    guesses.path = "Pow"
    reveal(guesses.path, "Pow")
    assert w.state["noted"] == "Answered: Pow. That is right." and w.state["chosen"] == ["Pow"]
    assert widget("path", choices=("Mul", "Pow")).state == w.state  # its cell runs again


def test_a_pressed_choice_is_the_guess(widget, guesses):
    w = widget("path", choices=("Mul", "Pow"))
    assert w.state == {"chosen": [""], "text": "", "problem": "", "noted": ""}
    assert "error" not in send(w, "said", chosen=["Pow"])
    assert guesses.path == "Pow" and w.state["chosen"] == ["Pow"]
    assert w.state["noted"] == "Noted: Pow. Now run the next cell."
    send(w, "said", chosen=[""])  # pressing it again removes the guess
    assert guesses.path is ... and w.state["noted"] == ""
    for bad in (["Sub"], ["Mul", "Pow"], "Mul", [["Mul"]], None):
        assert "a choice is not in the list" in send(w, "said", chosen=bad)["error"]
    assert guesses.path is ...


def test_a_table_is_stored_when_it_is_complete(widget, guesses):
    w = widget("who", choices=("True", "False"), rows=("x", "y"))
    send(w, "said", chosen=["", "False"])
    assert w.state["problem"] == "1 of 2 rows are not answered yet."
    assert w.state["chosen"] == ["", "False"] and w.state["noted"] == ""
    assert "Enter your guess for `x`" in str(reveal(guesses.who, ["True", "True"], rows=("x", "y")))
    send(w, "said", chosen=["True", "False"])
    assert guesses.who == ["True", "False"] and w.state["noted"] == "Noted: all 2 rows. Now run the next cell."
    send(w, "said", chosen=["", ""])
    assert guesses.who is ... and w.state["problem"] == ""
    guesses.who = ["true"]
    assert w.state["problem"].startswith("You wrote `['true']`") and w.state["chosen"] == []


@pytest.mark.parametrize(
    ("text", "guess", "problem"),
    [
        ("3, 5", [3, 5], ""),
        ("[3 5.5]", [3, 5.5], ""),
        ("(-3; .5e1)", [-3, 5], ""),
        ("3", 3, "You wrote one number. The answer is two numbers"),
        ("1 2 3", [1, 2, 3], "You wrote three numbers. The answer is two numbers"),
        ("row 1", "row 1", "You wrote `row 1`. The answer is two numbers"),
        ("1e999 1", "1e999 1", "two numbers"),
    ],
)
def test_a_field_reports_a_wrong_count_immediately(widget, guesses, text, guess, problem):
    w = widget("k", numbers=2)
    assert problem in send(w, "look", text=text)["problem"] and guesses.k is ...
    send(w, "said", text=text)
    assert guesses.k == guess
    assert problem in w.state["problem"] and bool(w.state["problem"]) == bool(problem)
    assert w.state["noted"] == ("" if problem else f"Noted: {guess}. Now run the next cell.")
    send(w, "said", text="  ")
    assert guesses.k is ... and w.state["text"] == ""


def test_a_field_without_a_count_takes_a_word_or_a_number(widget, guesses):
    w = widget("name")
    for text, guess in (("PowBackward0", "PowBackward0"), ("3", 3), ("None", "None"), ("1.50", 1.5)):
        send(w, "said", text=text)
        assert guesses.name == guess and w.state["noted"].startswith("Noted: ")


def test_a_typed_guess_is_shown(widget, guesses):
    w = widget("k", numbers=2)
    for said in ((3, 5), [3.0, 5], "3 5", gl.tensor([3.0, 5.0]), np.array([[3, 5]])):
        guesses.k = said
        assert w.state["text"] == "3, 5" and w.state["noted"] == "Noted: [3, 5]. Now run the next cell."
        json.dumps(w.state)
    guesses.k = "what"
    assert w.state["problem"].startswith("You wrote `what`")
    guesses.k = ...
    assert w.state == {"chosen": [], "text": "", "problem": "", "noted": ""}


def test_asking_a_question_again_keeps_its_guess_and_closes_its_previous_view(widget, guesses):
    first = widget("k", numbers=2)
    send(first, "said", text="3, 5")
    second = widget("k", numbers=2)
    assert first.comm is None and second.state["text"] == "3, 5"
    guesses.k = [1, 2]
    assert second.state["text"] == "1, 2" and first.state["text"] == "3, 5"
    third = widget("k", numbers=3)
    assert guesses.k is ... and third.state["text"] == ""


def test_invalid_messages_are_answered(widget):
    w = widget("k", numbers=2)
    assert "unknown question 'else'" in send(w, "else")["error"]
    assert "error" not in send(w, "gone")
    w._handle_custom_msg("nonsense", [])
    assert "unknown question" in w.said[-1]["error"]


@pytest.fixture
def outputs(monkeypatch):
    """Collect the displayed objects in a list."""
    shown = []
    monkeypatch.setattr(question_display, "display", lambda what, **how: shown.append(what))
    return shown


class Kernel:
    """An IPython with a notebook."""

    kernel = object()


def test_without_widgets_a_notebook_says_what_to_type(guesses, outputs, monkeypatch, capsys):
    monkeypatch.setattr(question_display, "get_ipython", Kernel)
    monkeypatch.setitem(sys.modules, "gradlab.notebook.question_widget", None)
    ask("k", numbers=2)
    assert "replace the dots in `guess.k = ...`" in capsys.readouterr().out and outputs == []


def test_a_question_in_a_notebook_is_live(guesses, outputs, monkeypatch):
    monkeypatch.setattr(question_display, "get_ipython", Kernel)
    assert ask("k", numbers=2) is None
    (w,) = outputs
    assert isinstance(w, QuestionWidget)
    w.close()


def test_a_notebook_that_is_run_for_reading_has_folded_text(guesses, outputs, monkeypatch):
    monkeypatch.setattr(question_display, "get_ipython", Kernel)
    monkeypatch.setattr(predictions.settings, "reading", True)
    ask("path", choices=("Mul", "Pow"), rows=("x", "<y>"))
    (bundle,) = outputs
    assert bundle["text/html"].startswith('<details class="gradlab-ask"><summary>Your guess</summary>')
    assert "<code>Mul</code> or <code>Pow</code>" in bundle["text/html"] and "&lt;y&gt;" in bundle["text/html"]


def test_what_follows_is_displayed_below_the_verdict(guesses, outputs):
    x = gl.tensor(2.0, requires_grad=True)
    shown = reveal(4, 4, then=lambda: gl.graph(x * x))
    shown._ipython_display_()
    verdict, picture = outputs
    assert verdict["text/plain"] == "As you said: `4`." and picture is shown.then
    outputs.clear()
    shown._ipython_display_()
    assert len(outputs) == 2, "everything is shown again"
