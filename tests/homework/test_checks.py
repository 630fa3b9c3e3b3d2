"""The checks of homework 3 on the answers that students give: what each is told, and that it is not told the answer."""
from __future__ import annotations

import itertools
import linecache

import numpy as np
import pytest
from homework.submissions import (
    ALWAYS_ROWS,
    BORROWS,
    FORGETS_TO_ZERO,
    HARD_CODED,
    ONE_AT_A_TIME,
    QUOTED,
    RIGHT,
    SOURCE,
)

import gradlab as gl
from gradlab.homework import load

numbers = itertools.count()


def cells(*texts):
    """The namespace of a notebook that has run these cells; their text can be read, as IPython's can."""
    space = {"gl": gl}
    for text in texts:
        name = f"<cell {next(numbers)}>"
        linecache.cache[name] = len(text), None, text.strip("\n").splitlines(keepends=True), name
        exec(compile(text.strip("\n"), name, "exec"), space)
    return space


def verdict(number, *texts, seed=0):
    return load(SOURCE).check(number, cells(*texts), seed)


def said(found):
    return " ".join(f"{finding.words} {finding.hint}" for finding in found.findings if not finding.good)


@pytest.mark.parametrize("seed", [0, 1, 20531, 77])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_the_solutions_earn_everything(number, seed):
    found = verdict(number, *RIGHT.values(), seed=seed)
    assert found.passed, str(found)
    assert found.points == load(SOURCE).exercises[number][1]


def test_it_is_100_points():
    assert load(SOURCE).points == 100


ROWS = RIGHT["answer1"]
BY_ANOTHER_NAME = """
import gradlab.autograd.functional as F
J = F.jacobian
def jacobian_by_rows(f, x):
    return J(f, x)
"""
THROUGH_A_HELPER = """
def helper(f, x):
    return gl.func.jacrev(f)(x)
def jacobian_by_rows(f, x):
    return helper(f, x)
"""
ALL_IN_ONE = """
def jacobian_by_rows(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    return gl.autograd.grad(y, x, gl.eye(len(y), dtype=y.dtype), is_grads_batched=True)[0]
"""
MISTAKES = {
    "forgets to zero": (1, [FORGETS_TO_ZERO], "the sum of the rows 0 to i"),
    "forgets retain_graph": (1, [ROWS.replace(", retain_graph=True", "")], "backward through the graph a second time"),
    "forgets the weights": (1, [ROWS.replace("y.backward(v, ", "y.backward(")], "grad can be implicitly created only for scalar"),
    "weights of ones": (1, [ROWS.replace("v = gl.zeros_like(y)", "v = gl.ones_like(y)")], "the sum of all rows"),
    "keeps no copy": (1, [ROWS.replace("x.grad = None", "\n        if x.grad is not None: x.grad.zero_()")],
                      "all your rows are the last one"),
    "transposed": (1, [ROWS.replace("return gl.stack(rows)", "return gl.stack(rows).T")], "transpose"),
    "one long row": (1, [ROWS.replace("return gl.stack(rows)", "return gl.cat(rows)")], "in one long row"),
    "no return": (1, [ROWS.replace("return gl.stack(rows)", "gl.stack(rows)")], "Does it end with `return`?"),
    "writes to the caller's tensor": (1, [ROWS.replace("x.detach().clone().requires_grad_()", "x.requires_grad_()")],
                                      "has changed"),
    "keeps the shape of x": (1, [ROWS.replace("x.grad.reshape(-1)", "x.grad")], "shape (2, 2, 3), expected (2, 6)"),
    "forgets requires_grad": (1, [ROWS.replace(".requires_grad_()", "")], "does not require grad"),
    "not written": (1, ["def jacobian_by_rows(f, x):\n    raise NotImplementedError()\n"], "not written yet"),
    "no such name": (1, ["def jacobian_rows(f, x):\n    pass\n"], "there is no such name"),
    "borrows": (1, [BORROWS], "it uses `jacobian`"),
    "borrows by another name": (1, [BY_ANOTHER_NAME], "it uses `jacobian`"),
    "borrows through a helper": (1, [THROUGH_A_HELPER], "it uses `jacrev`"),
    "is the function itself": (1, ["jacobian_by_rows = gl.autograd.functional.jacobian"], "not a function written in this"),
    "all rows in one": (1, [ALL_IN_ONE], "it uses `is_grads_batched`"),
    "rows for columns": (2, [ROWS.replace("by_rows", "by_columns")], "backward sweeps"),
    "hard-coded": (2, [HARD_CODED], "shape (2, 3), expected"),
    "one at a time": (3, [ONE_AT_A_TIME], "sweeps"),
    "always rows": (4, [ROWS, ALWAYS_ROWS], "a row costs one sweep"),
    "quotes too early": (5, [QUOTED], "it uses `vjp`"),
    "says the wrong thing": (5, [RIGHT["answer5"].replace("return str(error)", "return 'an error'")], "not the text of the"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_what_to_look_at_and_earns_less(mistake):
    number, texts, words = MISTAKES[mistake]
    for seed in (0, 9):
        found = verdict(number, *texts, seed=seed)
        assert not found.passed
        if seed == 0:
            assert words in said(found), str(found)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_answer_is_not_given_away(mistake):
    number, texts, _ = MISTAKES[mistake]
    text = str(verdict(number, *texts))
    for solution in RIGHT.values():
        body = [line.strip() for line in solution.splitlines() if "def " not in line and line.strip()]
        quoted = [line for line in body if len(line) > 24 and line in text and not any(line in cell for cell in texts)]
        assert not quoted


def test_the_same_cell_run_twice_says_the_same():
    space = cells(FORGETS_TO_ZERO)
    homework = load(SOURCE)
    gl.manual_seed(3)
    first = str(homework.check(1, space))
    drawn = gl.rand(2)
    gl.manual_seed(3)
    assert str(homework.check(1, space)) == first
    assert gl.equal(gl.rand(2), drawn)                     # a check leaves the random numbers where they were


def test_a_check_leaves_no_mode_behind():
    space = cells("def jacobian_by_rows(f, x):\n    gl.set_grad_enabled(False)\n    raise KeyError('x')\n")
    found = load(SOURCE).check(1, space)
    assert gl.is_grad_enabled()
    assert "raised KeyError" in said(found)
    assert "raise KeyError('x')" in said(found)


def test_what_is_expected_is_right_without_the_library():
    """The checks compare with central differences; those of a function whose Jacobian is known by hand are that Jacobian."""
    def f(x):
        a, b, c = x
        return gl.stack([a * b, b ** 2 + gl.sin(c)])

    from gradlab.homework import central_differences
    J = central_differences(f, gl.tensor([2.0, 3.0, 0.0], dtype=gl.float64))
    np.testing.assert_allclose(J, [[3, 2, 0], [0, 6, 1]], atol=1e-8)


def test_an_unknown_exercise_is_refused():
    with pytest.raises(ValueError, match="has the exercises 1, 2, 3, 4, 5; 6 is none of them"):
        load(SOURCE).check(6, {})


def test_a_folder_without_checks_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no checks\.py in .*beside the notebook"):
        load(tmp_path)
    (tmp_path / "checks.py").write_text("homework = 3\n")
    with pytest.raises(ValueError, match=r"makes no `homework = Homework"):
        load(tmp_path)
