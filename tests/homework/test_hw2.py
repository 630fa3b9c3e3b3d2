"""Homework 2: what each answer is worth and told. The answers stand in `answers_hw2.py`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from homework.answers_hw2 import ANSWERS, IN_TORCH, PAPER, RIGHT_TOO, TABLE, WRONG
from homework.notebook_of import cells
from homework.typed_in import told

import gradlab as gl
from gradlab.homework import case, load, run, student_version
from gradlab.homework.programs import Program

EVERY = {answer.name: answer for answer in ANSWERS}
SECONDS_OF = {"log without an end": 1.5}  # of an exercise
STUBS, GONE = 14, ("a.T @ g", "users[id(parent)] -= 1", "shares.pop", "np.diag(g)", "4: 4.0")
ELSEWHERE = ("= for +=", "recursion in order", "gradlab inside a rule", "std by n")


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


@pytest.mark.parametrize("name", [name for name in EVERY if name != "log without an end"])
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
def test_torch_inside_a_rule_is_refused():
    pytest.importorskip("torch")
    found = PAPER.verdict(1, IN_TORCH)
    assert "it uses `torch." in told(found) and found.points == 10, str(found)


def test_a_case_can_be_pasted():
    space = cells("import numpy as np", *PAPER.solutions().values())
    space["case"] = lambda *which: case(*which, folder=PAPER.folder)
    exec("f, a, b, g = case(1, 2)\nshares = f(Value(a), Value(b)).rule(g)", space)
    assert [share.shape for share in space["shares"]] == [space["a"].shape, space["b"].shape]
    exec("f, a = case(4, 1)\nA, t = Value(a), gl.tensor(a, requires_grad=True)\nf(A).backward()\nf(t).backward()", space)
    assert float(space["A"].grad) == float(space["t"].grad) == 4
    assert repr(space["f"]) == "<a: b = a + a; c = b + b>"
    exec("out = case(3, 2)\nnames = [value.name for value in order(out)]", space)
    assert space["names"] in (["d", "b", "c", "a"], ["d", "c", "b", "a"])
    exec("g, shape = case(2, 1)\nback = unbroadcast(g, shape)", space)
    assert space["back"].shape == space["shape"]
    exec("f, x1, x2 = case(5, 7)\nv = f(Value(x1), Value(x2))", space)
    assert space["v"].data.shape == ()


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_the_broken_engine_gives_what_the_check_expects(number):
    """Exercise 6 has a little engine of its own; here the solution is broken in the line that the task speaks of."""
    texts = PAPER.changed("answer4", "shares[id(parent)] + share if id(parent) in shares else share", "share")
    space = cells("import numpy as np", *texts)
    task = "".join(next(cell["source"] for cell in PAPER.source["cells"] if cell["id"] == "task6"))
    row = next(line for line in task.splitlines() if line.startswith(f"| {number} |"))
    lines = row.split("|")[2].replace("`", "").replace(", ", "\n")
    program = Program(lines)
    homework = load(PAPER.folder)
    assert homework.exercises[6][2].__globals__["BROKEN"][number] == program.text.replace(" \n", "\n")
    a = space["Value"](3.0)
    program(a).backward()
    answers = {number: float(a.grad)}
    found = PAPER.verdict(6, PAPER.instead(answer6=f"broken = {answers}"))
    assert found.findings[number - 1].good, str(found)


def test_the_loss_agrees_with_gradlab():
    space = cells("import numpy as np", *PAPER.solutions().values())
    draw = np.random.default_rng(0).normal
    x1, x2 = space["Value"](draw(size=(40, 3))), space["Value"](draw(size=(40, 3)))
    loss = space["loss_of"](x1, x2)
    loss.backward()
    t1, t2 = gl.tensor(x1.data, requires_grad=True), gl.tensor(x2.data, requires_grad=True)
    space["loss_of"](t1, t2).backward()
    np.testing.assert_allclose(x1.grad, t1.grad, atol=1e-15)
    np.testing.assert_allclose(x2.grad, t2.grad, atol=1e-15)
