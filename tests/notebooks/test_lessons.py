"""The lessons: run twice, top to bottom, in one kernel, without a network or an error; what they teach comes out."""
from __future__ import annotations

import re

import pytest
from notebooks.running import cell, is_stripped, read, run_twice

LESSON = "lessons/05_jacobian.ipynb"
SECONDS = 60
WORDS_A_MINUTE = 130                                       # read with thought


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
    assert "grad can be implicitly created only for scalar outputs" in text(cell(run, "refused"))
    assert "backward through the graph a second time" in text(cell(run, "forget_graph"))
    assert text(cell(run, "rows")) == "tensor([[2., 3.],\n        [1., 2.],\n        [0., 4.]])"
    assert text(cell(run, "mixed")).splitlines()[0] == text(cell(run, "mixed")).splitlines()[1] == "tensor([1.2000, 2.3004])"
    assert text(cell(run, "doubled")).splitlines() == [
        "tensor([[2., 0., 0., 0.]])", "tensor([[0., 2., 0., 0.]])", "tensor([[2., 2., 2., 2.]])", "tensor([[2., 2., 2., 2.]])"]
    assert {"image/png", "text/plain"} <= set(cell(run, "picture_code").outputs[0].data)


@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_revealed_before_it_is_predicted(runs, again):
    for name in ("reveal1", "reveal2", "reveal3", "reveal4", "answer1", "answer2", "answer3"):
        assert "Say first what you expect" in text(cell(runs[0][again], name))


RIGHT = {"guess1": "[1, 2]", "guess2": "[3, 5]", "guess3": "[1, 1, 1]", "guess4": "[1.2, 2.3]", "question1": "3, 3, 5",
         "question2": "1, 1, 0.5", "question3": "[3, 9]"}


def test_the_right_answers_are_right(runs):
    import nbclient

    notebook = read(LESSON)
    for one in notebook.cells:
        if one.id in RIGHT:
            one.source = f"guess = {RIGHT[one.id]}"
    nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False, coalesce_streams=True).execute()
    code = [one for one in notebook.cells if one.cell_type == "code"]
    for name in ("reveal1", "reveal2", "reveal3", "reveal4", "answer1", "answer3"):
        assert "As you said" in text(cell(code, name))
    assert "It gives `[3, 7]`" in text(cell(code, "answer2"))
