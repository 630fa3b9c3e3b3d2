"""`%%grad` and `%%doctor` cells run functions of `torch.compile` as they are written, or with `--compiled` compiled."""

from __future__ import annotations

import pytest
from leftovers import find_torch_leftovers

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

SETUP = """import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
    def forward(self, x):
        return self.last(self.first(x).relu())
x, y = torch.randn(32, 4), torch.randn(32, 1)
"""
MODEL = "net = torch.compile(Net(), backend='eager')\n"
TRAINING = """opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    CLEAR
    loss = (net(x) - y).square().mean()
    loss.backward()
    opt.step()"""
LOSS = "@torch.compile(backend='eager')\ndef loss_of(x):\n    return (x.cos() - x).square().sum()\n"
STEP = "net.zero_grad()\nloss = (net(x) - y).square().mean()\nloss.backward()"
NAMES = ["net.first.weight", "net.first.bias", "net.last.weight", "net.last.bias"]
SAID = "torch.compile was disabled"


@pytest.fixture
def ready(shell):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    shell.ok(SETUP)
    yield shell
    torch._dynamo.reset()


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def operations(report):
    return [(node.label, node.place and node.place.line) for node in report.trace.nodes if node.kind == "operation"]


@pytest.mark.parametrize("earlier", [True, False])
def test_a_model_runs_as_it_is_written(ready, earlier):
    """Compile the model in an earlier cell, or in the same one."""
    if earlier:
        ready.ok(MODEL)
    ran = ready.ok(f"%%grad -o report\n{'' if earlier else MODEL}{STEP}")
    report = ready.ns["report"]
    assert [label for label, _ in operations(report)] == [".T", "@ +", "relu", ".T", "@ +", "−", "**", "mean"]
    assert [row.name for row in report.rows] == NAMES
    assert ran.text.count(SAID) == 1 and graphs() == 0
    assert find_torch_leftovers() == []
    ready.ok(STEP)
    assert graphs() == 1, "after the cell it is compiled"


@pytest.mark.parametrize("earlier", [True, False])
def test_the_lines_of_a_function_are_shown(ready, earlier):
    if earlier:
        ready.ok(LOSS)
    cell = f"{'' if earlier else LOSS}w = torch.ones(3, requires_grad=True)\nloss_of(w).backward()"
    ran = ready.ok(f"%%grad -o report\n{cell}")
    sources = [node.place.source for node in ready.ns["report"].trace.nodes if node.kind == "operation"]
    assert sources == ["x.cos()", "x.cos() - x", "(x.cos() - x).square()", "(x.cos() - x).square().sum()"]
    assert ran.text.count(SAID) == 1


def test_a_stance_that_the_cell_sets_compiles_nothing(ready):
    ready.ok(f"{MODEL}torch.compiler.set_stance('default')")
    ready.ok(f"%%grad -o report\ntorch.compiler.set_stance('default')\n{STEP}")
    assert graphs() == 0 and "relu" in [label for label, _ in operations(ready.ns["report"])]
    assert find_torch_leftovers() == []


def test_the_option_runs_compiled_code(ready):
    ready.ok(MODEL)
    plain = ready.ok(STEP)
    expected = [p.grad.clone() for p in ready.ns["net"].parameters()]
    ran = ready.ok(f"%%grad --compiled -o report\n{STEP}")
    assert SAID not in ran.text and graphs() == 1 and not plain.stderr
    assert all(torch.equal(p.grad, g) for p, g in zip(ready.ns["net"].parameters(), expected, strict=True))
    assert [row.name for row in ready.ns["report"].rows] == NAMES


def test_a_cell_that_compiles_nothing_does_not_mention_it(ready):
    ready.ok("w = torch.ones(3, requires_grad=True)\ndef f(x): return x.sin()")
    assert SAID not in ready.ok("%%grad\nf(w).sum().backward()").text
    assert SAID not in ready.ok("%%grad\ntorch.compiler.disable(f)(w).sum().backward()").text


def test_the_doctor_says_it_too(ready):
    faulty = TRAINING.replace("CLEAR", "pass")
    ran = ready.ok(f"%%doctor\n{MODEL}{faulty}")
    assert "[accumulated]" in ran.text and ran.text.count(SAID) == 1
    ran = ready.ok(f"%%doctor --compiled\n{faulty}")
    assert "[accumulated]" in ran.text and SAID not in ran.text


def test_an_error_restores_the_compiler(ready):
    ready.ok(MODEL)
    ready.run(f"%%grad\n{STEP}\nraise ValueError")
    assert find_torch_leftovers() == []


def test_watched_cells_run_compiled_code(ready):
    ran = ready.ok(f"%%watch -o w\n{MODEL}{TRAINING.replace('CLEAR', 'opt.zero_grad()')}")
    assert ready.ns["w"].steps == 6 and ready.ns["w"].layers == ("net.first", "net.last") and graphs() == 1
    assert SAID not in ran.text
