"""Homework 4: points and words of each repair. The answers are in `answers_hw4.py`."""

from __future__ import annotations

import importlib.util
import json
from time import perf_counter

import numpy as np
import pytest
from homework.answers_hw4 import ANSWERS, DATA, FOLDER, HANDED_OUT, NAME, RIGHT_TOO, SOLUTIONS, TABLE, WRONG, parts, source
from homework.notebook_of import cells
from homework.typed_in import SEEDS

from gradlab import clock
from gradlab.homework import case, load, run, student_version
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.ways.training import edits

EVERY = {answer.name: answer for answer in ANSWERS}
ENDLESS = "an endless loop"
quiet = pytest.mark.filterwarnings("ignore")


def verdict(name, seed=0):
    answer = EVERY[name]
    space = cells("import numpy as np", SOLUTIONS[DATA], answer.text)
    if name != ENDLESS:
        return load(FOLDER).check(answer.exercise, space, seed)
    with clock.use_source(perf_counter):
        return load(FOLDER).check(answer.exercise, space, seed, TimeBudget(1.0, 1.0, 0.1))


def verdict_text(found):
    return " ".join(str(found).split())


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location("checks_of_hw4", FOLDER / "checks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ------------------------------------------------------------------------------------------------------------- the answers
@pytest.mark.parametrize("seed", SEEDS)
def test_the_solutions_earn_everything(seed):
    homework, space = load(FOLDER), cells("import numpy as np", *SOLUTIONS.values())
    for number in homework.exercises:
        found = homework.check(number, space, seed)
        assert found.has_passed, str(found)


def test_it_is_100_points_and_the_answers_are_many():
    assert load(FOLDER).points == 100
    assert len(EVERY) == len(ANSWERS)
    assert {one.exercise for one in HANDED_OUT} == {one.exercise for one in TABLE} == set(range(1, 9))
    assert len(TABLE) + len(WRONG) >= 12 and len(RIGHT_TOO) >= 3


@quiet
@pytest.mark.parametrize("name", EVERY)
def test_an_answer_is_worth_its_points_and_told_why(name):
    answer, found = EVERY[name], verdict(name)
    assert found.points == answer.points, str(found)
    assert answer.says in verdict_text(found), str(found)
    assert "the check itself failed" not in str(found)
    assert found.has_passed == (answer.points == found.worth)


@pytest.mark.exhaustive
@quiet
@pytest.mark.parametrize("name", [name for name in EVERY if name != ENDLESS])
def test_other_seeds_give_the_same_points(name):
    for seed in (9, 20531):
        found = verdict(name, seed)
        assert found.points == EVERY[name].points, str(found)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("name", [answer.name for answer in (*HANDED_OUT, *TABLE, *WRONG) if answer.name != ENDLESS])
def test_no_verdict_contains_a_diagnosis(name, checks):
    assert not [word for word in checks.DIAGNOSES if word in verdict_text(verdict(name))]


# ------------------------------------------------------------------------------------------------------- what is expected
def test_the_handed_out_functions_are_the_ones_that_lines_are_counted_against(checks):
    for number, patient in checks.TRAININGS.items():
        ill, well = parts(number)
        assert ill == patient.text.strip("\n")
        name = f"train_{number}"
        assert edits(patient.text, cells(ill)[name], patient.fixed_lines) == (0, [])
        assert edits(patient.text, cells(ill.replace("\n    return", "\n\n    # here\n    return"))[name], []) == (0, [])
        lines, gone = edits(patient.text, cells(well)[name], patient.fixed_lines)
        assert 1 <= lines <= 2 and not gone
        assert len(patient.fixed_lines) == 4  # the head, the data, the rate, the steps
        assert edits(patient.text, cells(ill.replace("lr = 0.1", "lr = 0.2"))[name], patient.fixed_lines) == (1, ["lr = 0.1"])
        assert f"steps={patient.steps}" in ill and f"lr = {patient.rate}" in ill


def test_the_checks_have_the_data_of_the_notebook(checks):
    space = cells("import numpy as np", SOLUTIONS[DATA])
    for name in ("points", "waves", "series"):
        for ours, theirs in zip(getattr(checks, name)(7), space[name](7), strict=True):
            np.testing.assert_array_equal(ours, np.asarray(theirs))
    drawn = [np.asarray(one.detach()).reshape(-1) for one in space["layers"](7)]
    np.testing.assert_array_equal(checks.layers(7), np.concatenate(drawn))


def test_the_diagnosis_offers_twelve_words_and_four_are_decoys(checks):
    assert len(set(checks.DIAGNOSES)) == 12 and len(checks.WRONG_DIAGNOSES) == 4
    task = next("".join(cell["source"]) for cell in source()["cells"] if cell["id"] == "task9")
    assert [line[4:-2] for line in task.splitlines() if line.startswith('- `"')] == checks.DIAGNOSES


def test_what_the_tasks_say_of_a_loss_is_so():
    """The first training ends at 1e-5 or less; ill, the loss of the fourth stays near that of w = 0."""
    space = cells("import numpy as np", *SOLUTIONS.values())
    assert all(space["train_1"](seed)[0].item() <= 1e-5 for seed in range(3))
    sick = cells("import numpy as np", SOLUTIONS[DATA], parts(4)[0])
    with pytest.warns(UserWarning, match="broadcast"):
        loss, _ = sick["train_4"]()
    assert 0.9 < loss.item() / float((sick["points"](0)[1] ** 2).mean()) < 1


def test_a_case_can_be_pasted():
    space = cells("import numpy as np", *SOLUTIONS.values())
    space["case"] = lambda *which: case(*which, folder=FOLDER)
    exec("seed, steps = case(3, 1)\nloss, weights = train_3(seed, steps)", space)
    assert space["steps"] == 1 and len(space["weights"]) == 4
    assert "Try it: seed, steps = case(3, 1)" in verdict_text(verdict("3 as it is"))


# ----------------------------------------------------------------------------------------------------------- the notebook
def test_students_get_no_solution():
    text = json.dumps(student_version(source()))
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert text.count("raise NotImplementedError()") == 10  # nine answers, and the sentence that says to take it out
    for line in ("h = h + 1", "state.detach()", "squeeze(1)", "diagnosis = {\\n"):
        assert line in json.dumps(source()) and line not in text


def test_the_parts_of_the_notebook_are_there():
    notebook = source()
    ids = [cell["id"] for cell in notebook["cells"]]
    for number, (title, points, _) in load(FOLDER).exercises.items():
        task = "".join(notebook["cells"][ids.index(f"task{number}")]["source"])
        assert task.startswith(f"## {number}. {title} ({points:g} points, about ") and "difficulty" in task
        assert task.count("<details>") == (0 if "difficulty 1" in task else 2)
        graded = notebook["cells"][ids.index(f"check{number}")]["metadata"]["nbgrader"]
        assert (graded["grade"], graded["points"], graded["locked"]) == (True, points, True)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def write_notebook(folder, answers):
    """A student's notebook with these answers, beside its checks."""
    notebook = student_version(source())
    for cell in notebook["cells"]:
        if cell["id"] in answers:
            cell["source"] = answers[cell["id"]]
    (folder / "checks.py").write_bytes((FOLDER / "checks.py").read_bytes())
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps(notebook))
    return path


@pytest.mark.e2e
@quiet
def test_in_a_process_of_its_own(tmp_path):
    """The same verdicts as here: all that is right, and all patches of the table."""
    (tmp_path / "right").mkdir()
    verdicts = run(write_notebook(tmp_path / "right", SOLUTIONS), seed=4)
    assert [one.points for one in verdicts] == [one.worth for one in verdicts], verdicts
    (tmp_path / "wrong").mkdir()
    patched = {f"answer{one.exercise}": one.text for one in TABLE}
    verdicts = run(write_notebook(tmp_path / "wrong", patched), seed=4)
    points = {one.exercise: (one.points, one.says) for one in TABLE}
    for found in verdicts[:8]:
        assert (found.points, True) == (points[found.number][0], points[found.number][1] in verdict_text(found)), str(found)
    assert verdicts[8].points == 0


def test_check_in_the_notebook(shell, monkeypatch):
    """`%check` in IPython: the faulty function, and the repaired one."""
    monkeypatch.chdir(FOLDER)
    shell.ok("import numpy as np")
    shell.ok(SOLUTIONS[DATA])
    for text, points in ((parts(3)[0], 0), (parts(3)[1], 8)):
        shell.ok(text)
        assert f"Exercise 3, Half asleep: {points} of 8 points" in shell.ok("%check 3").text
