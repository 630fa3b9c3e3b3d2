"""Lazy layers of PyTorch, whose parameters have no shape before the first call, are skipped, but nothing else is."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Lazy modules are a new feature"),
]

SPACE = """import torch, torch.nn as nn
torch.manual_seed(0)
lazy = nn.LazyLinear(3)
unused = nn.Sequential(nn.Linear(2, 4), nn.LazyBatchNorm1d(), nn.LazyLinear(1))
held = {"layers": [nn.LazyConv2d(2, 3)], "weight": nn.UninitializedParameter()}
other = torch.optim.SGD(unused.parameters(), lr=0.1)
w = torch.tensor([1.0, -2.0], requires_grad=True)
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
X, t = torch.randn(8, 2), torch.randn(8, 1)"""

TRAINING = """for _ in range(3):
    opt.zero_grad()
    loss = (model(X) - t).pow(2).mean() + w.sum()
    loss.backward()
    opt.step()"""


@pytest.fixture
def cell(shell):
    shell.ok(SPACE.replace("nn.UninitializedParameter", "nn.parameter.UninitializedParameter"))
    return shell


def test_the_doctor_examines_all_other_objects(cell):
    cell.ok("loss = w.sqrt().sum()\nloss.backward()")
    beside = str(cell.ok("%doctor").result)
    assert "could not be checked" not in beside and "`loss` is NaN or infinite" in beside
    cell.ok("del lazy, unused, held, other")
    assert str(cell.ok("%doctor").result) == beside


@pytest.mark.parametrize(
    "expression",
    [
        "gl.doctor((w * 0.0).sum())",
        "gl.doctor((w * w).sum(), params=unused)",
        "gl.doctor((w * w).sum(), optimizer=other)",
        "gl.explain((w * w).sum())",
        "gl.graph((w * w).sum())",
        "gl.step_through((w * w).sum())",
    ],
)
def test_explorers_read_the_rest_of_the_namespace(cell, expression):
    shown = str(cell.ok(expression).result)
    assert "could not be checked" not in shown and "w" in shown


@pytest.mark.parametrize("magic", ["%%grad", "%%doctor", "%%grad w", "%%watch"])
def test_cells_with_lazy_layers_are_recorded(cell, magic):
    ran = cell.ok(f"{magic}\n{TRAINING}")
    assert "could not be checked" not in ran.text and "Error" not in ran.text + ran.stderr


def test_a_cell_in_which_a_lazy_layer_gets_its_parameters(cell):
    ran = cell.ok("%%grad -o r\nlate = nn.LazyLinear(1)\nloss = (late(X) - t).pow(2).mean()")
    assert [row.name for row in cell.ns["r"].rows] == ["late.weight", "late.bias"]
    assert "could not be checked" not in ran.text
    cell.ok("%%grad -o r\nlate = unused\nloss = (late(X) - t).pow(2).mean()")
    names = [row.name for row in cell.ns["r"].rows]
    assert len(names) == 6 and names[-1].endswith("[2].bias")


def test_a_lazy_model_cannot_be_watched_before_its_first_call(cell):
    for model in ("lazy", "unused"):
        error = cell.run(f"gl.watch({model})").error
        assert isinstance(error, ValueError) and "does not exist before the first call of the model" in str(error)
    cell.ok("unused(X)\nwith gl.watch(unused, other) as watched:\n    unused(X).sum().backward()\n    other.step()")
    assert cell.ns["watched"].target.names[-1] == "unused[2].bias"


def test_an_error_is_explained_if_there_are_lazy_layers(cell):
    ran = cell.run("loss = model(X).sum().detach()\nloss.backward()")
    assert not ran.success
    said = str(cell.ok("%doctor").result)
    assert "could not be checked" not in said and "detach()" in said
