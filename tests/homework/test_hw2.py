"""Homework 2: the checks' expected values, computed in another way. For points and words see `test_typed_in.py`."""

from __future__ import annotations

import numpy as np
import pytest
from homework.answers_hw2 import IN_TORCH, PAPER
from homework.notebook_of import cells
from homework.typed_in import verdict_text

import gradlab as gl
from gradlab.homework import case, load
from gradlab.homework.programs import Program


# ------------------------------------------------------------------------------------------------------- what is expected
@pytest.mark.torch
def test_torch_inside_a_rule_is_refused():
    pytest.importorskip("torch")
    found = PAPER.verdict(1, IN_TORCH)
    assert "it uses `torch." in verdict_text(found) and found.points == 10, str(found)


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
    texts = PAPER.replace_in("answer4", "shares[id(parent)] + share if id(parent) in shares else share", "share")
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
