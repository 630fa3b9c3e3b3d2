"""`%graph model(x)`, and the picture below a `%%grad` cell that raises, in a real IPython shell."""

from __future__ import annotations

import pytest

from gradlab.explore.forward.forward_graph import ForwardGraph
from gradlab.explore.graph import Graph

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
START = """
import {library} as torch
from {library} import nn
F = nn.functional
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
wrong = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(10, 4))
x, w = torch.ones(2, 8), torch.ones(2, 3, requires_grad=True)
labels = torch.tensor([0, 1, 2])
ids = torch.tensor([1, 7])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.table, self.norm = nn.Conv2d(1, 4, 3), nn.Embedding(5, 8), nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)
    def forward(self, image):
        h = self.conv(image).mean((2, 3))
        return self.head(h.view(3, 3))
deep = Net()
"""


@pytest.fixture(params=LIBRARIES)
def shell_with_models(request, shell):
    shell.ok(START.format(library=request.param))
    return shell


def test_a_call_of_a_model_is_drawn_as_a_run(shell_with_models):
    shell = shell_with_models
    (bundle,) = shell.ok("%graph net(x) -o run").outputs
    run = shell.ns["run"]
    assert isinstance(run, ForwardGraph) and run.error is None
    assert {"text/html", "text/plain", "image/png"} <= set(bundle)
    assert "net(x): Sequential, 212 parameters" in bundle["text/plain"] and "2×4" in bundle["text/plain"]
    assert [node.label for node in run.visible_graph[0]] == ["x", "net[0]", "net[1]", "net[2]", "output"]
    assert run.table().parameters == 8 * 16 + 16 + 16 * 4 + 4
    assert run.table().mult_adds == 2 * (8 * 16 + 16 * 4)
    assert shell.ns["net"][0].weight.grad is None


def test_a_value_is_drawn_as_before(shell_with_models):
    shell = shell_with_models
    shell.ok("loss = net(x).sum()")
    for line in ("%graph loss -o g -q", "%graph (w * w).sum() -o g -q", "%graph net(x).sum() --level operations -o g -q"):
        shell.ok(line)
        assert type(shell.ns["g"]) is Graph, line


def test_options_of_a_run(shell_with_models):
    shell = shell_with_models
    shell.ok("%graph net(x) --time --values -o run -q")
    run = shell.ns["run"]
    assert run.table().seconds is not None and "Time" in run.table().text()
    made = [node for node in run.nodes if node.kind == "operation"]
    assert all(node.value is not None for node in made)
    ran = shell.run("%graph w*2 --time")
    assert "--values and --time are for the run of a model" in ran.stdout + ran.stderr + str(ran.error)
    ran = shell.run("%graph net(x) -i")
    assert "the run of a model is only a picture" in ran.stdout + ran.stderr + str(ran.error)


def test_a_failing_run_is_drawn_with_the_doctors_explanation(shell_with_models):
    shell = shell_with_models
    (bundle,) = shell.ok("%graph wrong(x) -o run").outputs
    run = shell.ns["run"]
    assert run.error.kind == "RuntimeError" and "cannot be multiplied" in run.error.message
    assert run.nodes[-1].detail.startswith("given 2×16") and run.run.failed == len(run.nodes) - 1
    for word in ("RuntimeError", "wrong[2]", "takes 10 features", "nn.Linear(16, 4)"):
        assert word in bundle["text/html"] and word in bundle["text/plain"], word
    assert "failed here" in bundle["text/html"]


def test_an_error_of_the_expression_is_raised(shell_with_models):
    ran = shell_with_models.run("%graph missing(x)")
    assert isinstance(ran.error, NameError) and ran.outputs == []
    ran = shell_with_models.run("%graph len(labels)/0")
    assert isinstance(ran.error, ZeroDivisionError)


FAILURES = {  # a cell that raises, the last text in its picture, and a node before it
    "loss = wrong(x).sum()": ("wrong[2]: Linear", "given 2×16", "relu"),
    "h = (w * 2).tanh()\nh @ torch.ones(4, 2)": ("@", "given 2×3 and 4×2", "tanh"),
    "h = (w * 2).exp()\ntorch.cat([h, torch.ones(3, 3)], 1)": ("cat", "given 2×3 and 3×3", "exp"),
    "h = (w * 2).exp()\nh.view(4, 4)": ("view", "given 2×3", "exp"),
    "h = (w * 2).exp()\nF.nll_loss(h, labels)": ("nll_loss", "given 2×3 float32 and 3 int64", "exp"),
    "h = deep(torch.ones(3, 1, 6, 6))": ("view", "given 3×4", "mean"),
    "h = (w * 2).exp()\nassert h.shape == (3, 3), 'three'": ("assert h.shape", "given 2×3", "exp"),
}


@pytest.mark.parametrize("cell", FAILURES)
def test_a_failing_cell_is_drawn_up_to_its_error(shell_with_models, cell):
    label, given, before = FAILURES[cell]
    ran = shell_with_models.run(f"%%grad\n{cell}")
    assert ran.error is not None
    page, text = ran.outputs[-1]["text/html"], ran.outputs[-1]["text/plain"]
    failed = next(line for line in text.splitlines() if given in line)
    assert label in failed, text
    assert before in text and "failed here" in page and "image/png" in ran.outputs[-1]


def test_tensors_without_history_are_inputs_of_the_failed_call(shell_with_models):
    ran = shell_with_models.run("%%grad\nwrong[2](x)")
    text = ran.outputs[-1]["text/plain"]
    assert "given 2×8" in text and "x  2×8" in text


@pytest.mark.parametrize(
    "cell",
    [
        "y = (w * 2).sum()\ny * (1 / 0)",
        "y = (w * 2).sum()\nundefined(y)",
        "y = (w * 2).sum()\nraise KeyboardInterrupt",
        "y = w * 2\ny.backward()",  # it is not the forward pass that fails
        "y = (w * 2).sum()\ny.backward()\ny.backward()",
        "try:\n    w @ w\nexcept RuntimeError:\n    pass\n{}['a']",
    ],
)
def test_no_picture_if_no_operation_failed(shell_with_models, cell):
    ran = shell_with_models.run(f"%%grad\n{cell}")
    assert ran.error is not None
    assert not any("failed here" in bundle.get("text/html", "") for bundle in ran.outputs)


def test_a_picture_of_a_failure_is_escaped(shell):
    shell.ok(START.format(library="gradlab"))
    shell.ok("heads = {'<b>x</b>': wrong}")
    ran = shell.run("%%grad\nassert heads['<b>x</b>'](x[:, :8]).sum() == '<b>y</b>'")
    assert all("<b>x" not in bundle.get("text/html", "") for bundle in ran.outputs)
    ran = shell.ok("%graph heads['<b>x</b>'](x)")
    assert "<b>x" not in ran.outputs[-1]["text/html"]
