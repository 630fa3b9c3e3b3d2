"""Run each lesson with the cases of its module.

A lesson runs twice from top to bottom in one kernel, without a network or an error, and each cell runs after all others. Results
are shown after their questions, and all guesses get a reply.
"""

from __future__ import annotations

import pytest
from e2e.kernels.running import cell, nbclient, nbformat, read, run_twice
from grouped import exhaustive_after_first
from notebooks.cases import lessons

LESSONS = lessons()
OPEN = "Say first what you expect"

FIRST = "lesson_5"


@pytest.fixture(scope="module", params=exhaustive_after_first(FIRST, *(name for name in LESSONS if name != FIRST)))
def lesson(request):
    return LESSONS[request.param]


@pytest.fixture(scope="module")
def runs(lesson):
    return run_twice(lesson.LESSON)


def text(one):
    return "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") + "\n" for output in one.outputs)


@pytest.mark.parametrize("again", [False, True])
def test_a_lesson_runs_and_shows_the_expected_outputs(lesson, runs, again):
    run = runs[again]
    for one in run:
        for output in one.outputs:
            assert output.output_type != "error" and output.get("name") != "stderr", (one.id, output)
    for name, said in {**lesson.SHOWS, **getattr(lesson, "ONCE", {})}.items():
        assert said in text(cell(run, name)), name


@pytest.mark.parametrize("again", [False, True])
def test_results_are_hidden_before_a_guess(lesson, runs, again):
    for key, case in lesson.QUESTIONS.items():
        assert OPEN in text(cell(runs[again], case.reveals)), key


def test_no_answer_is_above_its_question(lesson, runs):
    """The outputs of the first run, which has no guesses, do not have it except as a choice, and the text has no rule for it."""
    run, notebook = runs[0], read(lesson.LESSON).cells
    for key, case in lesson.QUESTIONS.items():
        above = "".join(text(one) for one in run[: run.index(cell(run, case.reveals))] if "ask(" not in one.source)
        for answer in (case.answer,) if isinstance(case.answer, str) else case.answer or ():
            assert answer not in above, key
        at = next(i for i, one in enumerate(notebook) if one.id == case.asks)
        said = "".join(one.source for one in notebook[:at] if one.cell_type == "markdown")
        for rule in case.rules:
            assert rule not in said, key


@pytest.fixture(scope="module")
def reader(lesson):
    """Run the lesson once in a kernel. `reader(id)` runs a cell there and returns its text, `reader.types(source)` runs code."""
    notebook = read(lesson.LESSON)
    client = nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False, coalesce_streams=True)
    with client.setup_kernel():

        def run(name):
            at = next(i for i, one in enumerate(notebook.cells) if one.id == name)
            client.execute_cell(notebook.cells[at], at)
            assert not [o for o in notebook.cells[at].outputs if o.get("name") == "stderr"], name
            return text(notebook.cells[at])

        def types(source):
            notebook.cells.append(nbformat.v4.new_code_cell(source))
            client.execute_cell(notebook.cells[-1], len(notebook.cells) - 1)
            notebook.cells.pop()

        run.order, run.types = [one.id for one in notebook.cells if one.cell_type == "code"], types
        for name in run.order:
            run(name)
        yield run


@pytest.mark.parametrize(("kind", "words"), [("right", "agreed"), ("absurd", "refused"), ("wrong", "reply")])
def test_every_guess_gets_a_reply(lesson, reader, kind, words):
    for key, case in lesson.QUESTIONS.items():
        reader.types(f"guess.{key} = {getattr(case, kind)}")
        for name in (case.reveals, case.asks, case.reveals):  # the question cell runs again and keeps the guess
            shown = reader(name)
            if name == case.reveals:
                assert getattr(case, words) in shown, key


def test_cells_can_be_rerun_after_all_others(lesson, reader):
    for key, case in lesson.QUESTIONS.items():
        reader.types(f"guess.{key} = {case.right}")
    orders = [list(reversed(reader.order)), sorted(reader.order), reader.order]
    for order in orders:
        shown = {name: reader(name) for name in order}
        for key, case in lesson.QUESTIONS.items():
            assert case.agreed in shown[case.reveals], key
        for name, said in lesson.SHOWS.items():
            assert said in shown[name], name


def test_a_guess_belongs_to_its_question(lesson, reader):
    keys = list(lesson.QUESTIONS)
    for key in keys:
        reader.types(f"guess.{key} = ...")
    reader.types(f"guess.{keys[0]} = {lesson.QUESTIONS[keys[1]].right}")
    assert OPEN in reader(lesson.QUESTIONS[keys[1]].reveals)


def test_a_lesson_can_be_run_for_reading(lesson, monkeypatch):
    """Without guesses, questions and answers are folded text, and no question is a widget."""
    monkeypatch.setenv("GRADLAB_READING", "1")
    run = run_twice(lesson.LESSON, times=1)[0]
    for key, case in lesson.QUESTIONS.items():
        shown = cell(run, case.reveals).outputs
        assert OPEN not in text(cell(run, case.reveals)), key
        folded = [one for one in shown if one.get("data", {}).get("text/html", "").startswith("<details><summary>What comes out")]
        assert len(folded) == 1 and "<details open" not in folded[0].data["text/html"], key
        assert not any("You said" in text(one) or "As you said" in text(one) for one in run), key
        (question,) = cell(run, case.asks).outputs
        assert question.data["text/html"].startswith("<details"), key
