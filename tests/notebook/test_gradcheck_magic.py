"""`%gradcheck` in a real IPython shell: the verdict in words, and the errors for a line that is not a call."""

import pytest

SETUP = """import gradlab as gl
x = gl.tensor([0.5, -1.25, 2.0], dtype=gl.float64, requires_grad=True)
w = gl.tensor([1.0, 2.0, -0.5], dtype=gl.float64, requires_grad=True)
s = gl.tensor([0.5, 1.5], requires_grad=True)
def f(x, w, power=2): return (x * w) ** power
def cut(x, w): return x * w.detach()
"""


@pytest.fixture
def cell(shell):
    shell.ok(SETUP)
    return shell


def test_right_gradients(cell):
    ran = cell.ok("%gradcheck f(x, w)")
    assert ran.stdout.startswith("f(x, w): the gradients are right; 2 Jacobians agree with differences.\nThe worst entry: output")
    assert ran.result is None and cell.ns["x"].grad is None


@pytest.mark.parametrize("line", ["f(x, w=w, power=3)", "x.tanh()", "x.softmax(0)", "(lambda a: a.exp())(x * 1)", "gl.sin(x);"])
def test_different_forms_of_calls(cell, line):
    assert f"{line.rstrip(';')}: the gradients are right; " in cell.ok(f"%gradcheck {line}").stdout


def test_wrong_gradients(cell):
    said = cell.ok("%gradcheck cut(x, w)").stdout
    assert said.startswith(
        "cut(x, w): the gradients are NOT what differences give.\n"
        "The worst entry: output 0[2] with respect to w[2]: analytical 0, numerical 2,"
    )
    assert "a step that is not in the graph: detach()" in said


def test_a_graph_that_is_cut(cell):
    said = cell.ok("%gradcheck cut(x.detach(), w)").stdout
    assert "Numerical gradient for function expected to be zero, because no output requires grad" in said


def test_single_precision(cell):
    said = cell.ok("%gradcheck f(s * 100, s)").stdout
    assert "This may be rounding: s * 100 and s are of single precision" in said
    assert said.rstrip().endswith("%gradcheck f((s * 100).double(), s.double())")
    assert "are right" in cell.ok("%gradcheck f((s * 100).double(), s.double())").stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "takes a call of the function"),
        ("f(x", "is not a Python expression"),
        ("x", "'x' calls nothing"),
        ("f(*[x, w])", "write the arguments one by one"),
        ("f(x.detach(), 2)", "none of the arguments of f(x.detach(), 2) requires grad"),
    ],
)
def test_a_wrong_line_is_an_error_of_one_sentence(cell, line, words):
    ran = cell.run(f"%gradcheck {line}")
    assert words in str(ran.error)
    assert "Traceback" not in ran.stderr


def test_errors_of_the_function_are_raised(cell):
    assert isinstance(cell.run("%gradcheck f(x, gl.ones(2, dtype=gl.float64))").error, RuntimeError)


@pytest.mark.torch
def test_tensors_of_torch_are_referred_to_torch(cell):
    pytest.importorskip("torch")
    cell.ok("import torch\nt = torch.ones(2, requires_grad=True)")
    assert "use torch.autograd.gradcheck" in str(cell.run("%gradcheck torch.sin(t)").error)
