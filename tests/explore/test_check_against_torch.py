"""Planted differences are found at their lines, and equal results are reported as equal."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from random_programs import SHAPES, program

import gradlab as gl

SMALL = np.array([[0.3, -1.2, 0.7], [1.5, 0.1, -0.4]])


def agreeing(x, w):
    import torch

    h = torch.tanh(x @ w)
    return torch.softmax(h, -1) * (h - h.mean(0)), {"sum": h.sum()}


@pytest.mark.torch
def test_equal_results():
    result = gl.check_against_torch(agreeing, SMALL, np.eye(3) + 0.1)
    assert result.agrees and bool(result) and result.first is None and not result.errors
    assert result.values >= 6 and result.gradients >= 8 and result.alone == ([], [])
    text = str(result)
    assert "agree" in text and "float64 1e−9" in text and "the gradient of w" in text
    import torch

    x = torch.tensor(SMALL, requires_grad=True)
    w = torch.tensor(np.eye(3) + 0.1, requires_grad=True)
    np.testing.assert_array_equal(result._theirs.outputs[0][1], agreeing(x, w)[0].detach().numpy())


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_dtypes_have_their_own_tolerance(dtype):
    off = {"float64": 1e-7, "float32": 1e-3, "float16": 5e-2}[dtype]

    def f(x):
        import torch

        return (x * (1 + off if torch.__name__ == "gradlab" else 1)).sum()

    x = SMALL.astype(dtype)
    assert gl.check_against_torch(lambda x: (x * x).exp().sum(), x).agrees
    result = gl.check_against_torch(f, x)
    assert not result.agrees and result.first.operation == "MulBackward0"


@pytest.mark.torch
def test_a_value_that_differs_is_named_with_its_line():
    def f(x):
        import torch

        y = x.sin()
        z = y * (1.5 if torch.__name__ == "gradlab" else 1.25)
        return z.exp().sum()

    result = gl.check_against_torch(f, [0.5, 1.0])
    first = result.first
    assert first.what == "the value of MulBackward0" and first.line.source.startswith("y * (1.5")
    assert first.gradlab == pytest.approx(1.5 * np.sin(1.0), rel=1e-6)
    assert first.torch == pytest.approx(1.25 * np.sin(1.0), rel=1e-6) and first.index == (1,)
    assert "MulBackward0" in str(result) and "differ" in repr(result) and len(result.differences) > 1


@pytest.mark.torch
def test_a_gradient_that_differs_is_named_with_its_operation(monkeypatch):
    op = type(gl.ones(2).requires_grad_().sin().grad_fn).op
    right = op.vjp
    monkeypatch.setattr(op, "vjp", lambda *args: tuple(c if c is None else 1.001 * c for c in right(*args)))

    def f(x):
        a = x.exp()
        b = a.sin()
        return (b * b).sum()

    result = gl.check_against_torch(f, [0.5, 1.0])
    first = result.first
    assert first.what == "the gradient that SinBackward0 passes to its argument 1" and first.line.source == "a.sin()"
    x = np.array([0.5, 1.0])[first.index]
    assert first.torch == pytest.approx(2 * np.sin(np.exp(x)) * np.cos(np.exp(x)), rel=1e-5)
    assert first.gradlab == pytest.approx(1.001 * first.torch, rel=1e-5)
    assert {one.operation for one in result.differences} == {"SinBackward0", "ExpBackward0", ""}


@pytest.mark.torch
def test_rounding_is_not_a_difference():
    """The gradient of a subtracted mean is rounding error; so is the variance of equal numbers."""

    def f(x):
        z = (x - x.mean(0)) / x.std(0)
        return (z.T @ z).sum() + (x + 1000).var() * 1e-3 + ((x * 1e4 + 1) - x * 1e4).sum()

    x = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert gl.check_against_torch(f, x).agrees


@pytest.mark.torch
def test_names_of_either_library():
    import torch
    from torch import nn, sin
    from torch.nn import functional

    weights = torch.tensor([1.0, 2.0], requires_grad=True)

    def inner(x, dtype=torch.float32):
        return functional.relu(sin(x)).to(dtype) * weights

    def outer(x):
        return nn.functional.softplus(inner(x)) + gl.cos(x)

    assert gl.check_against_torch(outer, [0.5, 1.0]).agrees
    assert gl.check_against_torch(partial(outer), [0.5, 1.0]).agrees
    assert gl.check_against_torch(torch.sin, [0.5, 1.0]).agrees
    assert gl.check_against_torch(gl.sin, [0.5, 1.0]).agrees
    assert weights.grad is None

    def itself(x, n=3):
        return x if not n else itself(x, n - 1).sin()

    assert gl.check_against_torch(itself, 0.7).values == 4


@pytest.mark.torch
def test_the_state_of_the_program_is_unchanged():
    import torch

    x, y = torch.tensor([1.0, 2.0], requires_grad=True), gl.tensor([3.0, 4.0])
    a = np.array([1.0, 2.0])
    modules = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    finders, states = list(sys.meta_path), (torch.get_rng_state(), gl.get_rng_state())

    def f(x, y, a, n):
        import torch

        torch.manual_seed(7)
        x.mul_(2) if not x.requires_grad else None
        a.data.add_(1)
        return (torch.rand(2) * x * y * a)[:n].sum()

    result = gl.check_against_torch(f, x, y, a, 1)
    assert result.agrees
    assert x.tolist() == [1, 2] and y.tolist() == [3, 4] and a.tolist() == [1, 2] and x.grad is None
    assert {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "torch"} == modules and sys.meta_path == finders
    assert torch.equal(torch.get_rng_state(), states[0]) and bool((gl.get_rng_state() == states[1]).all())

    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gl.check_against_torch(interrupt, 1.0)
    assert sys.modules["torch"] is torch and sys.meta_path == finders
    assert not torch.overrides._get_current_function_mode_stack()


@pytest.mark.torch
def test_random_numbers_are_the_same():
    def f(x):
        import torch

        return torch.nn.functional.dropout(x * torch.randn(50), 0.5)

    assert gl.check_against_torch(f, np.ones(50, np.float32)).agrees


@pytest.mark.torch
def test_exceptions_are_reported():
    def f(x):
        import torch

        if torch.__name__ == "gradlab":
            raise KeyError("no <b>such</b> thing")
        return x.sin()

    result = gl.check_against_torch(f, [1.0])
    assert not result.agrees and isinstance(result.errors["gradlab"], KeyError) and list(result.errors) == ["gradlab"]
    text = str(result)
    assert (
        "In gradlab the function raised KeyError" in text
        and 'raise KeyError("no' in text
        and "In torch it raised no error" in text
    )
    assert "<b>such" not in result._repr_mimebundle_()["text/html"]
    both = gl.check_against_torch(lambda x: x @ x.reshape(3, 1), [1.0, 2.0])
    assert both.agrees and set(both.errors) == {"gradlab", "torch"}
    assert "fft" in str(gl.check_against_torch(lambda x: __import__("torch").fft.fft(x).real, [1.0]))


@pytest.mark.torch
def test_inputs_that_cannot_be_copied():
    import torch

    with pytest.raises(TypeError, match="must be callable, got int"):
        gl.check_against_torch(3)
    with pytest.raises(TypeError, match="f is a module"):
        gl.check_against_torch(torch.nn.Linear(2, 2), [1.0, 2.0])
    with pytest.raises(TypeError, match="input 2 of check_against_torch is dict"):
        gl.check_against_torch(lambda x, y: x, 1.0, {})
    with pytest.raises(TypeError, match="bfloat16"):
        gl.check_against_torch(lambda x: x, torch.ones(2, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match="is list"):
        gl.check_against_torch(lambda x: x, [1.0, [2.0]])


@pytest.mark.torch
def test_integers_stay_data():
    def f(x, index, n):
        assert isinstance(n, int) and not index.requires_grad and index.dtype.is_floating_point is False
        return x[index].sum(n)

    result = gl.check_against_torch(f, SMALL, [0, 1, 1], 0)
    assert result.agrees and "the gradient of x" in str(result) and "the gradient of index" not in str(result)


@pytest.mark.torch
def test_shapes_and_dtypes_that_differ():
    def f(x):
        import torch

        return x.sum() if torch.__name__ == "gradlab" else x.sum(0, keepdim=True)

    result = gl.check_against_torch(f, SMALL)
    assert not result.agrees and "shape" in str(result)
    other = gl.check_against_torch(lambda x: [x] if __import__("torch").__name__ == "gradlab" else x, SMALL)
    assert other.first.what == "what the function returns"


@pytest.mark.e2e
@pytest.mark.torch
def test_after_as_torch():
    """After `gradlab.as_torch()`, in a separate process."""
    program = """
import gradlab as gl
handle = gl.as_torch()
import torch
def f(x):
    import torch
    return torch.sin(x) * x
for _ in range(2):
    result = gl.check_against_torch(f, [1.0, 2.0])
    assert result.agrees and result.values == 3, str(result)
    assert gl.check_against_torch(lambda x: torch.sin(x) * x, 1.0).agrees
import torch, sys
assert torch is gl and sys.modules["torch"] is gl
handle.undo()
import torch
assert torch.__name__ == "torch"
assert gl.check_against_torch(f, 1.0).agrees
print("done")
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert made.stdout.strip() == "done", made.stderr


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match="pip install torch"):
        gl.check_against_torch(lambda x: x, 1.0)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(80))
def test_random_programs(seed):
    """Programs of views, writes and indexing agree; a result that is changed by a thousandth is found."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    leaves = [np.asarray(numbers.normal(size=rng.choice(SHAPES))) for _ in "xyz"]
    texts = list(program(rng))

    def run(x, y, z, factor):
        import torch

        names = {"lib": torch, "x": x, "y": y, "z": z}
        for text, _ in texts:
            with contextlib.suppress(Exception):
                exec(text, names)
        made = [names[name] for _, name in texts if name in names and names[name].requires_grad]
        total = sum((one.square().sum() for one in made), start=x.sum() * 0)
        return total * (factor if torch.__name__ == "gradlab" else 1.0)

    result = gl.check_against_torch(lambda x, y, z: run(x, y, z, 1.0), *leaves)
    if "modified by an inplace operation" in str(result.errors.get("torch", "")):  # gradlab saved a copy
        assert not result.agrees or "gradlab" in result.errors
        return
    assert result.agrees, str(result)
    if result.errors or not np.isfinite(result._theirs.outputs[0][1]) or abs(result._theirs.outputs[0][1]) < 1e-6:
        return
    wrong = gl.check_against_torch(lambda x, y, z: run(x, y, z, 1.001), *leaves)
    assert not wrong.agrees and wrong.first.operation == "MulBackward0"
