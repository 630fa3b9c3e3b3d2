"""Homework 1: what each answer is worth and told. The answers stand in `answers_hw1.py`."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
from homework.answers_hw1 import ANSWERS, PAPER, RIGHT_TOO, TABLE, WRONG
from homework.notebook_of import cells
from homework.typed_in import told

import gradlab as gl
from gradlab.homework import case, central_differences, load, run, student_version
from gradlab.homework.ways.repair import edited

EVERY = {answer.name: answer for answer in ANSWERS}
SECONDS_OF = {"an endless walk": 1.5}  # of an exercise
STUBS = 9  # eight, and the sentence of task 4
GONE = ("h.retain_grad()", "PowBackward0", "seen.add(node)", "1 - a * a")
ELSEWHERE = (
    "counts paths, not nodes",
    "frozen leaves are listed",
    "retain_grad where the leaf was rebound",
    "a mean without 1/n",
)


@pytest.mark.parametrize("seed", range(20))
def test_the_solutions_earn_everything(seed):
    homework, space = load(PAPER.folder), cells("import numpy as np", *PAPER.solutions().values())
    for number in homework.exercises:
        found = homework.check(number, space, seed)
        assert found.passed, str(found)


def test_it_is_100_points_and_the_answers_are_many():
    assert load(PAPER.folder).points == 100
    assert len(EVERY) == len(ANSWERS)
    assert len(TABLE) + len(WRONG) >= 12 and len(RIGHT_TOO) >= 3


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_answer_is_worth_its_points_and_told_why(name):
    answer = EVERY[name]
    found = PAPER.verdict(answer.exercise, answer.cells, seconds=SECONDS_OF.get(name, 10))
    assert found.points == answer.points, str(found)
    assert answer.says in told(found), str(found)
    assert "the check itself failed" not in str(found)
    assert found.passed == (not answer.says)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "an endless walk"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_seeds_give_the_same_points(name):
    answer = EVERY[name]
    found = PAPER.verdict(answer.exercise, answer.cells, 20531)
    assert found.points == answer.points, str(found)


@pytest.mark.parametrize("name", [answer.name for answer in (*TABLE, *WRONG)])
@pytest.mark.filterwarnings("ignore")
def test_the_answer_is_not_given_away(name):
    answer = EVERY[name]
    text = told(PAPER.verdict(answer.exercise, answer.cells, seconds=SECONDS_OF.get(name, 10)))
    for solution in PAPER.solutions().values():
        body = [line.strip() for line in solution.splitlines() if "def " not in line and len(line.strip()) > 24]
        assert not [line for line in body if line in text and not any(line in cell for cell in answer.cells)]


def test_students_get_no_solution():
    text = json.dumps(student_version(PAPER.source))
    assert "SOLUTION" not in text and "HIDDEN" not in text
    solutions = PAPER.solutions()
    assert text.count("raise NotImplementedError()") == STUBS + 1  # and the sentence that says to take it out
    for line in GONE:
        assert any(line in solution for solution in solutions.values()) and line not in text


def test_the_parts_of_the_notebook_are_there():
    notebook = PAPER.source
    ids = [cell["id"] for cell in notebook["cells"]]
    homework = load(PAPER.folder)
    for number, (_, points, _) in homework.exercises.items():
        task = "".join(notebook["cells"][ids.index(f"task{number}")]["source"])
        assert f"({points:g} points, about " in task and "difficulty" in task
        if "difficulty 1" not in task:
            assert task.count("<details>") == 2
        graded = notebook["cells"][ids.index(f"check{number}")]["metadata"]["nbgrader"]
        assert (graded["grade"], graded["points"], graded["locked"]) == (True, points, True)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("who", [None, *ELSEWHERE])
def test_in_a_process_of_its_own(tmp_path, who):
    """The same verdicts as here, but for what an error quotes."""
    texts = list(PAPER.solutions().values()) if who is None else EVERY[who].cells
    verdicts = run(PAPER.written(tmp_path, texts), seed=4)
    if who is None:
        assert [one.points for one in verdicts] == [one.worth for one in verdicts], verdicts
    else:
        found = verdicts[EVERY[who].exercise - 1]
        assert found.points == EVERY[who].points, str(found)


# ------------------------------------------------------------------------------------------------------- what is expected
def test_the_lines_print_what_the_check_expects(capsys):
    """The text of the task, run as it stands there."""
    notebook = PAPER.source
    task = "".join(next(cell["source"] for cell in notebook["cells"] if cell["id"] == "task1"))
    setting = "\n".join(line[4:] for line in task.splitlines() if line.startswith("    "))
    printed = dict(re.findall(r"^\| (\w) \| `(.*)` \|$", task, re.MULTILINE))
    space = cells(setting)
    text = {}
    for key, line in printed.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, space)
        text[key] = capsys.readouterr().out.strip()
    assert len(text) == 10
    assert PAPER.verdict(1, PAPER.instead(answer1=f"answers = {text!r}")).passed


def test_a_graph_has_as_many_operations_as_its_recipe():
    """Counted by the solution, on what `case` gives; and the one that can be pasted is the one that was tried."""
    space = cells(*PAPER.solutions().values())
    space["case"] = lambda *which: case(*which, folder=PAPER.folder)
    exec("y = case(2, 2)\nn = count_nodes(y)\nz, a, b, c = case(3, 3)\nfound = leaves(z)\nnumbers = case(4, 1)", space)
    assert space["n"] == 4 and isinstance(space["y"], gl.Tensor)
    assert {id(one) for one in space["found"]} == {id(space["a"]), id(space["c"])} and not space["b"].requires_grad
    assert isinstance(space["numbers"], list)
    exec("x, w, b, t = case(5, 1)\nmade = backward_by_hand(x, w, b, t)", space)
    assert space["made"]["w"].shape == (2, 3)


def test_the_gradients_by_hand_are_difference_quotients():
    """What exercise 5 expects comes from gradlab's own sweep: here it does not."""
    x, w, b, t = case(5, 1, folder=PAPER.folder)

    def loss(w):
        d = (x @ w + b).tanh() - t
        return (d * d).sum(1).mean().reshape(1)

    space = cells(*PAPER.solutions().values())
    made = space["backward_by_hand"](x, w, b, t)
    np.testing.assert_allclose(np.asarray(made["w"]).reshape(1, -1), central_differences(loss, w), atol=1e-8)


def test_the_broken_functions_are_the_ones_that_lines_are_counted_against():
    """A comment and a blank line more count for nothing; one repaired line counts as one."""
    for cell in student_version(PAPER.source)["cells"]:
        if cell["id"].startswith("answer4"):
            text = "".join(cell["source"]).partition("# YOUR CODE HERE")[0]
            name = re.search(r"def (\w+)", text)[1]
            original = load(PAPER.folder).exercises[4][2].__globals__["BROKEN"][name]
            function = cells(text.replace("\n    return", "\n\n    # here\n    return"))[name]
            assert edited(original, function) == 0
            assert edited(original, cells(text.replace("return", "return 3,"))[name]) == 1
