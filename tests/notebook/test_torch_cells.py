"""`%%grad` on cells with PyTorch, which call `backward` or not, works as with gradlab."""

from __future__ import annotations

import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TRAINING = """%%grad -o r
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
X, t = torch.randn(16, 4), torch.randint(0, 3, (16,))
for step in range(4):
    opt.zero_grad()
    loss = F.cross_entropy(model(X), t)
    loss.backward()
    opt.step()
print(loss.item())"""


def test_a_training_cell_has_a_report(shell):
    ran = shell.ok(TRAINING)
    report, model = shell.ns["r"], shell.ns["model"]
    assert report.backward_calls == 4 and (report.trace.sweep, report.trace.sweeps) == (4, 4)
    assert [row.name for row in report.rows] == ["model[0].weight", "model[0].bias", "model[2].weight", "model[2].bias"]
    for row, parameter in zip(report.rows, model.parameters(), strict=True):
        assert row.gradient.norm == pytest.approx(float(parameter.grad.norm()), rel=1e-5)
        before = parameter.detach() + 0.1 * parameter.grad  # the value during backward
        assert row.value.norm == pytest.approx(float(before.norm()), rel=1e-5)
    assert report.trace.nodes[-1].value.numbers[0] == pytest.approx(shell.ns["loss"].item())
    assert float(ran.stdout.split()[-1]) == pytest.approx(shell.ns["loss"].item())
    lines = {node.operation: node.cell.line for node in report.trace.nodes if node.cell is not None}
    assert lines["NllLossBackward0"] == lines["AddmmBackward0"] == lines["ReluBackward0"] == 9


def test_torch_may_be_imported_in_a_with_block_of_the_cell(shell):
    shell.ok(
        "%%grad -o r\ntry:\n    import torch\nfinally:\n    pass\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()"
    )
    assert shell.ns["r"].rows[0].name == "x" and shell.ns["r"].backward_calls == 1


def test_a_function_of_the_cells_has_its_own_names(shell):
    shell.ok(
        "%%grad -o r\nimport torch\ndef train():\n    p = torch.ones(3, requires_grad=True)\n"
        "    loss = (p * 3).sum()\n    loss.backward()\n    return p.grad\ntrain()"
    )
    report = shell.ns["r"]
    assert report.rows[0].name == "p" and report.sentence.startswith("loss = 9")


def test_a_cell_without_backward_is_differentiated(shell):
    ran = shell.ok(
        "%%grad -o r\nimport torch\nx = torch.arange(5., requires_grad=True)\n"
        "d = (x ** 3)[1:] - (x ** 3)[:-1]\n(d ** 2).sum() / 4"
    )
    x = shell.ns["x"]
    np.testing.assert_allclose(x.grad.numpy(), [0, -9, -72, -243, 888])
    assert "[1:]" in ran.text and shell.ns["r"].trace.nodes[0].gradient.numbers == (0, -9, -72, -243, 888)


@pytest.mark.parametrize("body", ["1 / 0", "raise KeyboardInterrupt", "x.sum().backward(); x.nothing", "x.sum()"])
def test_changes_to_torch_are_removed(shell, body):
    shell.run(f"%%grad\nimport torch\nx = torch.ones(2, requires_grad=True)\n{body}")
    from torch.nn.modules import module
    from torch.optim import optimizer
    from torch.overrides import _len_torch_function_stack

    assert _len_torch_function_stack() == 0
    assert (
        not module._global_forward_pre_hooks and not module._global_forward_hooks and not optimizer._global_optimizer_post_hooks
    )
    assert sys.gettrace() is None


def test_gradients_through_custom_functions_checkpoints_and_views(shell):
    shell.ok(
        "%%grad -o r\nimport torch\nfrom torch.utils.checkpoint import checkpoint\n"
        "class Twice(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return g * 2\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "y = checkpoint(lambda t: t.sin() * t, Twice.apply(x), use_reentrant=False)\n"
        "y.view(-1, 1)[0].sum().backward()"
    )
    report, x = shell.ns["r"], shell.ns["x"]
    assert report.rows[0].gradient.norm == pytest.approx(float(x.grad.norm())) and "TwiceBackward" in {
        node.operation for node in report.trace.nodes
    }
