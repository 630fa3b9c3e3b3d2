"""Watching the training of a compiled model. The numbers of compilations are read from Dynamo's own counters."""

import contextlib
import subprocess
import sys
import warnings

import pytest

import gradlab as gl
from tests.explore.watched import data
from tests.leftovers import find_torch_leftovers

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.relu, self.last = torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.last(self.relu(self.first(x)))


def reset_compiler():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


@pytest.fixture(autouse=True)
def fresh_compiler():
    reset_compiler()
    yield
    reset_compiler()


def compile(function):
    return torch.compile(function, backend="eager")


def train(way, *, watched, steps=12):
    """Train a model of which a part is compiled. Return the weights, the numbers of graphs and recompilations, and the watch."""
    reset_compiler()
    torch.manual_seed(0)
    x, y = data(torch)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    step, model = opt.step, net
    if way == "compiled before":
        model = compile(net)
        model(x)
    with gl.watch(model, opt) if watched else contextlib.nullcontext() as watch:
        if way == "the model":
            model = compile(net)
        if way == "its own compile()":
            net.compile(backend="eager")
        if way == "the step":
            step = compile(lambda: opt.step())  # noqa: PLW0108  (hooks are called by the method)

        def loss_of():
            return ((model(x) - y) ** 2).mean()

        loss_of = compile(loss_of) if way == "the loss" else loss_of

        def update():
            opt.zero_grad()
            loss_of().backward()
            step()

        update = compile(update) if way == "the whole step" else update
        for _ in range(steps):
            update()
    counters = torch._dynamo.utils.counters
    counts = counters["stats"]["unique_graphs"], sum(counters["recompiles"].values())
    return [p.detach().clone() for p in net.parameters()], counts, watch


@pytest.mark.parametrize("way", ["the model", "compiled before", "its own compile()", "the loss", "the step", "the whole step"])
def test_the_same_graphs_are_compiled_once(way):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of Dynamo
        plain, counts, _ = train(way, watched=False)
        seen, watched_counts, watch = train(way, watched=True)
    assert watched_counts == counts and counts[0] >= 1 and counts[1] == 0
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert watch.steps == 12 and not watch.trouble and watch.findings.findings == ()
    assert find_torch_leftovers() == []


def test_the_numbers_are_those_of_the_model_itself():
    _, _, compiled = train("the model", watched=True)
    _, _, plain = train("", watched=True)
    ours, theirs = compiled.history(), plain.history()
    for name in ("loss", "gradient net.first", "ratio net.first", "weight net.last"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-5, nan_ok=True)


def test_hooks_on_activations_are_compiled_to_nothing():
    """Hooks that are there when the model is compiled are inlined by Dynamo."""
    _, _, watch = train("the model", watched=True)
    assert watch.target.activations and watch.history().get("dead net.relu") is None


FIRST_COMPILED = """
import torch, gradlab as gl, sys
torch.manual_seed(0)
net, x = torch.nn.Linear(4, 1), torch.randn(8, 4)
with gl.watch(net) as watch:
    assert "torch._dynamo.eval_frame" not in sys.modules

    @torch.compile(backend="eager")
    def update():
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
        return loss

    for _ in range(5):
        watch.log(update())
assert watch.steps == 5 and not watch.trouble, watch.trouble
print("all steps were seen")
"""


@pytest.mark.e2e
def test_a_program_that_compiles_first_while_it_is_watched(tmp_path):
    """Wrappers that were there before the compiler was loaded are kept from it, too."""
    (tmp_path / "train.py").write_text(FIRST_COMPILED)
    run = subprocess.run([sys.executable, "train.py"], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0 and "all steps were seen" in run.stdout, run.stderr
    assert "gradlab failed" not in run.stderr
