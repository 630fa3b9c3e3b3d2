"""The lessons: run twice, top to bottom, in one kernel, without a network or an error; what they teach comes out."""

from __future__ import annotations

import re

import pytest
from notebooks.running import cell, is_stripped, read, run_twice

LESSON = "lessons/05_jacobian.ipynb"
SECONDS = 60
WORDS_A_MINUTE = 130  # read with thought


@pytest.fixture(scope="module")
def runs():
    return run_twice(LESSON)


def text(one):
    return "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in one.outputs)


def test_the_source_is_stripped():
    is_stripped(LESSON)


def test_it_is_quick_and_read_in_25_minutes(runs):
    assert runs[1] < SECONDS
    words = sum(len(re.findall(r"\w+", one.source)) for one in read(LESSON).cells if one.cell_type == "markdown")
    assert words / WORDS_A_MINUTE < 25


@pytest.mark.parametrize("again", [False, True])
def test_it_runs_and_shows_what_it_says(runs, again):
    run = runs[0][again]
    outputs = [output for one in run for output in one.outputs]
    assert not [o for o in outputs if o.output_type == "error" or (o.output_type == "stream" and o.name == "stderr")]
    assert text(cell(run, "refused")) == "grad can be implicitly created only for scalar outputs\n"
    assert "backward through the graph a second time" in text(cell(run, "forget_graph"))
    assert text(cell(run, "rows")) == "tensor([[2., 3.],\n        [1., 2.],\n        [0., 4.]])"
    assert "The same is in x.grad: True" in text(cell(run, "reveal3"))
    assert text(cell(run, "doubled")).splitlines() == [
        "tensor([[2., 0., 0., 0.]])",
        "tensor([[0., 2., 0., 0.]])",
        "tensor([[2., 2., 2., 2.]])",
        "tensor([[2., 2., 2., 2.]])",
    ]
    assert "in 1 " in text(cell(run, "picture_code"))  # sweeps: what the sentence above it says
    assert {"image/png", "text/plain"} <= set(cell(run, "picture_code").outputs[-1].data)


REVEALS = ("reveal1", "reveal2", "reveal3", "reveal4", "reveal5", "answer1", "answer2", "answer3")
ANSWERS = {
    "reveal1": "[1., 2.]",
    "reveal2": "[3., 5.]",
    "reveal3": "[1., 1., 1.]",
    "reveal4": "[1.2",
    "reveal5": "Pow",
    "answer1": "[3, 3, 5]",
    "answer2": None,
    "answer3": "[3., 9.]",
}


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_revealed_before_it_is_predicted(runs, again):
    for name in REVEALS:
        assert "Say first what you expect" in text(cell(runs[0][again], name))


def test_no_answer_stands_above_its_question(runs):
    """In the outputs of the first run, which has no guesses; and no rule that contains it in the text."""
    run = runs[0][False]
    for name, answer in ANSWERS.items():
        if answer is not None:
            above = "".join(text(one) for one in run[: run.index(cell(run, name))])
            assert answer not in above, name
    notebook = read(LESSON).cells
    said = ""
    for one in notebook:
        said += one.source if one.cell_type == "markdown" else ""
        if one.id == "guess1":
            assert "one-hot" not in said and "adds the rows" not in said and "v_0" not in said
        if one.id == "guess2":
            assert "**adds**" not in said
        if one.id == "guess3":
            assert "derivative of the loss" not in said and "derivative of some loss" not in said
        if one.id in REVEALS:
            assert "{" not in one.source  # the replies stand elsewhere
    assert sum(one.cell_type == "code" for one in notebook) <= 24


RIGHT = {
    "guess1": "one_row = [1, 2]",
    "guess2": "two_rows = '3, 5'",
    "guess3": "weights = [1, 1, 1]",
    "guess4": "mix = [1.2, 2.3]",
    "guess5": "path = 'pow'",
    "question1": "calls = 3, 3, 5",
    "question2": "some_weights = 0, 3, 0.25",
    "question3": "first = [3, 9]",
}
ABSURD = {
    "guess1": "one_row = 'row 1'",
    "guess2": "two_rows = gl.ones(7)",
    "guess3": "weights = 'ones'",
    "guess4": "mix = 3",
    "guess5": "path = 5",
    "question1": "calls = []",
    "question2": "some_weights = 1, 2",
    "question3": "first = float('nan')",
}
WRONG = {
    "guess1": "one_row = 2, 3",
    "guess2": "two_rows = 1, 2",
    "guess3": "weights = 3, 9, 0",
    "guess4": "mix = 1, 2",
    "guess5": "path = 'Mul'",
    "question1": "calls = 5, 3, 5",
    "question2": "some_weights = 1, 1, 1",
    "question3": "first = 2, 3",
}
GUESSES = {
    "right": (RIGHT, {**dict.fromkeys(REVEALS, "As you said"), "answer2": "It gives `[3, 7]`"}),
    "absurd": (ABSURD, {**dict.fromkeys(REVEALS, "You wrote"), "reveal5": "You said `5`"}),
    "wrong": (
        WRONG,
        {
            "reveal1": "that is row 0",
            "reveal2": "what a second `=` would leave",
            "reveal3": "You said",
            "reveal4": "row 0 counts, too",
            "reveal5": "that makes output 0",
            "answer1": "one for each input",
            "answer2": "Yours gives `[3., 9.]`",
            "answer3": "so it was, after the first turn",
        },
    ),
}


@pytest.fixture(scope="module")
def lesson():
    """A kernel in which the lesson has been run once: `lesson(id, text)` runs a cell there, and says what it put out."""
    nbclient = pytest.importorskip("nbclient", reason="needs the extra lab")
    notebook = read(LESSON)
    client = nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False, coalesce_streams=True)
    with client.setup_kernel():

        def run(name, source=None):
            at = next(i for i, one in enumerate(notebook.cells) if one.id == name)
            if source is not None:
                notebook.cells[at].source = source
            client.execute_cell(notebook.cells[at], at)
            return text(notebook.cells[at])

        run.order = [one.id for one in notebook.cells if one.cell_type == "code"]
        for name in run.order:
            run(name)
        yield run


@pytest.mark.parametrize("kind", GUESSES)
def test_guesses_are_answered_whatever_they_are(lesson, kind):
    said, answers = GUESSES[kind]
    for name, source in said.items():
        lesson(name, f"guess.{source}")
    for name, words in answers.items():
        assert words in lesson(name), name


def test_cells_can_be_rerun_in_any_order(lesson):
    for name, source in RIGHT.items():
        lesson(name, f"guess.{source}")
    orders = [list(reversed(lesson.order)), sorted(lesson.order), lesson.order]
    for order in orders:
        shown = {name: lesson(name) for name in order}
        for name in REVEALS:
            assert "As you said" in shown[name] or "It gives `[3, 7]`" in shown[name], name
        assert shown["rows"].startswith("tensor([[2., 3.]")


def test_a_guess_belongs_to_its_question(lesson):
    for name in RIGHT:
        lesson(name, f"guess.{RIGHT[name].partition(' =')[0]} = ...")
    lesson("guess1", "guess.one_row = [3, 5]")
    assert "Say first what you expect" in lesson("reveal2")
