"""`%jacobian` in a real IPython shell: its outputs, the names it uses, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from explore.timed_sweeps import set_sweep_time

from gradlab.explore.jacobian import Jacobian
from gradlab.notebook.extension import load_ipython_extension, unload_ipython_extension

SETUP = """
x = gl.tensor([1., 2., 3.], requires_grad=True)
w = gl.tensor([4., 5.], requires_grad=True)
z = gl.cat([x ** 2, w * x[0]])
def f(x): return x ** 3
"""


@pytest.fixture
def cell(shell):
    shell.ok(SETUP)
    return shell


def test_a_tensor_by_a_tensor(cell):
    (bundle,) = cell.ok("%jacobian z x").outputs
    assert sorted(bundle) == ["image/png", "text/html", "text/plain"]
    assert bundle["text/plain"].startswith("Jacobian of z (5) with respect to x (3)\n")
    assert "z[4]" in bundle["text/plain"] and "x[2]" in bundle["text/plain"]
    assert cell.ns["x"].grad is None, "no gradient is written"


def test_several_inputs_and_a_name(cell):
    ran = cell.ok("%jacobian z x w -o J --method columns --chunk 2")
    J = cell.ns["J"]
    assert isinstance(J, Jacobian) and J.plan.method == "columns" and J.plan.chunk == 2 and J.input_names == ("x", "w")
    np.testing.assert_array_equal(J, [[2, 0, 0, 0, 0], [0, 4, 0, 0, 0], [0, 0, 6, 0, 0], [4, 0, 0, 1, 0], [5, 0, 0, 0, 1]])
    assert "Jacobian of z (5) with respect to x (3), w (2)" in ran.text


def test_a_function(cell):
    cell.ok("%jacobian f x -o J;")
    np.testing.assert_array_equal(cell.ns["J"], np.diag([3.0, 12.0, 27.0]))
    assert "y = f(x)" in cell.ns["J"].by_hand(0), "the call of the user"


def test_expressions_and_the_name_as_written(cell):
    cell.ok("a = [x]\nother = z")
    assert "Jacobian of other (5) with respect to x (3)" in cell.ok("%jacobian other a[0]").text
    assert "Jacobian of y (scalar) with respect to x (3)" in cell.ok("%jacobian (x * 2).sum() x").text


def test_in_a_function_of_the_user(cell):
    cell.ok("def show():\n    inner = x * 2\n    get_ipython().run_line_magic('jacobian', 'inner x')\nshow()")


def test_quiet(cell):
    assert cell.ok("%jacobian z x -q -o J").outputs == [] == cell.ok("%jacobian z x -o J;").outputs
    assert not cell.ns["J"].complete, "nothing is computed if nothing is shown"


def test_a_terminal_has_no_live_view_and_shows_the_picture(cell):
    (bundle,) = cell.ok("%jacobian z x -i").outputs
    assert bundle["text/plain"].startswith("Jacobian of z (5) with respect to x (3)\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "z",
            "there is no input to differentiate z by. Write %jacobian OUT INPUT [INPUT …] [options]; OUT is a",
        ),
        ("z q", "z, q: NameError: name 'q' is not defined"),
        ("x.nothing x", "x.nothing, x: AttributeError: "),
        ("z 'x'", "jacobian(func_or_output, inputs) differentiates by a tensor or a tuple of tensors; inputs is a str"),
        ("3 x", "jacobian(func_or_output, inputs) takes a tensor that requires grad, or a function that returns one; got an int"),
        ("z x.detach()", "One of the differentiated Tensors does not require grad: the input"),
        ("z x --method sparse --chunk x", "--chunk needs an integer of at least 1, got 'x'."),
    ],
)
def test_errors_are_one_sentence(cell, line, said):
    ran = cell.run(f"%jacobian {line}")
    assert not ran.success and ran.outputs == []
    assert type(ran.error).__name__ == "UsageError" and str(ran.error).startswith(said)
    assert ran.stderr.startswith(f"UsageError: {said}") and ran.stderr.count("\n") == 1 and ran.stdout == ""


def test_the_traceback_of_an_error_begins_in_the_users_function(cell):
    cell.ok("def g(x):\n    return x / nothing")
    ran = cell.run("%jacobian g x")
    assert isinstance(ran.error, NameError) and "return x / nothing" in ran.stdout
    assert "asking.py" not in ran.stdout and "jacobian_magic.py" not in ran.stdout


def test_help(cell):
    text = cell.ns["get_ipython"]().find_line_magic("jacobian").__doc__
    assert "%jacobian OUT INPUT [INPUT …] [options]" in text and max(map(len, text.splitlines())) <= 130
    assert all(flag in text for flag in ("--method", "--chunk", "-i, --interactive", "-o, --out"))
    assert "--method METHOD" in cell.ok("%jacobian?").stdout + str(text)


def test_completion(cell):
    ip = cell.ns["get_ipython"]()
    _, found = ip.complete("--me", "%jacobian z x --me", 18)
    assert "--method" in found
    _, found = ip.complete("co", "%jacobian z x --method co", 25)
    assert "columns" in found


def test_unloading_removes_the_magic(interactive, cell):
    unload_ipython_extension(interactive)
    try:
        assert "jacobian" not in interactive.magics_manager.magics["line"]
        assert not cell.run("%jacobian z x").success
    finally:
        load_ipython_extension(interactive)


class Kernel:
    """A kernel, which distinguishes a notebook from a terminal."""


@pytest.fixture
def notebook(cell, monkeypatch):
    monkeypatch.setattr(cell.ip, "kernel", Kernel(), raising=False)
    return cell


def test_the_live_view_is_shown_and_closed_when_its_cell_runs_again(notebook, monkeypatch):
    closed, made = [], []

    class Widget:
        def _repr_mimebundle_(self, **_):
            return {"text/plain": "live"}

        def close(self):
            closed.append(self)

    monkeypatch.setattr(Jacobian, "widget", lambda matrix: made.append(matrix) or Widget())
    source = "%jacobian z x -i -o J\n%jacobian f x -i"
    ran = notebook.ok(source)
    assert ran.text == "live\nlive" and len(made) == 2 and closed == [] and made[0] is notebook.ns["J"]
    assert not made[0].complete, "it opens empty and is then filled"
    notebook.ok("1 + 1")
    assert closed == []
    notebook.ok(source)
    assert len(made) == 4 and len(closed) == 2


# ----------------------------------------------------------------------------------------------------- display
def test_a_display_computes_a_jacobian_that_takes_less_than_a_second(cell):
    cell.ok("J = gl.jacobian(f, x, method='rows')")
    text = cell.ok("J").text
    assert cell.ns["J"].complete
    assert "27" in (text or cell.ok("display(J)").text)


def test_a_display_of_a_long_run_shows_the_plan_and_how_to_start(cell, clock):
    cell.ok("J = gl.jacobian(f, gl.rand(50), method='rows')")
    set_sweep_time(cell.ns["J"], 0.05, clock)
    text = cell.ok("display(J)").text
    assert not cell.ns["J"].complete and cell.ns["J"].sweeps <= 2, "one row is enough for an estimate"
    assert "50×50 by method 'rows'" in text and "np.asarray(J) computes" in text
