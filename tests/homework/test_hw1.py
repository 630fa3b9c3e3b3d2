"""Homework 1: the checks' expected values, computed in another way. For points and words see `test_typed_in.py`."""

from __future__ import annotations

import re
import warnings

import numpy as np
from homework.answers_hw1 import PAPER
from homework.notebook_of import cells

import gradlab as gl
from gradlab.homework import case, central_differences, load, student_version
from gradlab.homework.ways.repair import count_edits


# ------------------------------------------------------------------------------------------------------- what is expected
def test_the_lines_print_what_the_check_expects(capsys):
    """The text of the task, run unchanged."""
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
    assert PAPER.verdict(1, PAPER.instead(answer1=f"answers = {text!r}")).has_passed


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
    """Compare the expected values of exercise 5, which come from gradlab's sweep, with differences."""
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
            assert count_edits(original, function) == 0
            assert count_edits(original, cells(text.replace("return", "return 3,"))[name]) == 1
