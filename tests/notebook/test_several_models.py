"""`%%grad` and `%%doctor` cells that train several models, or differentiate several losses: each has its report and findings."""

from __future__ import annotations

import json
import re

import pytest

from gradlab.diagnose.faults import FaultWarning
from gradlab.explore.doctor.session import NOTEBOOK

GRADLAB = "import gradlab as lib"
TORCH = "import torch as lib"
SETUP = """{library}
lib.manual_seed(0)
nn = lib.nn
X, Y = lib.randn(32, 8), lib.randint(0, 3, (32,))
def make(act):
    return nn.Sequential(nn.Linear(8, 16), act(), nn.Linear(16, 16), act(), nn.Linear(16, 3))
def look(net):
    net.zero_grad()
    loss = nn.functional.cross_entropy(net(X), Y)
    loss.backward()
def train(net, steps=5, lr=0.1):
    opt = lib.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(X), Y)
        loss.backward()
        opt.step()
"""
THREE = "for act in [nn.Sigmoid, nn.Tanh, nn.ReLU]:\n    net = make(act)\n    look(net)"


@pytest.fixture(params=[GRADLAB, pytest.param(TORCH, marks=pytest.mark.torch)], ids=["gradlab", "torch"])
def ready(shell, request, clock):
    if request.param is TORCH:
        pytest.importorskip("torch")
    shell.ok(SETUP.format(library=request.param))
    return shell


def card_of(ran):
    (card,) = [bundle["text/html"] for bundle in ran.outputs if "gradlab-tabs" in bundle.get("text/html", "")]
    return card


def test_each_model_has_a_row_and_a_report(ready):
    ran = ready.ok(f"%%grad -o r\n{THREE}")
    report = ready.ns["r"]
    assert list(report.models) == ["act=Sigmoid", "act=Tanh", "act=ReLU"] and report.models["act=ReLU"] is report
    assert "backward() was called for 3 models. The report of act=ReLU is below." in ran.text
    assert "itself, 3 times, once for act=ReLU." in ran.text
    kinds = [one.trace.nodes for one in report.models.values()]
    for act, nodes in zip(("Sigmoid", "Tanh", "Relu"), kinds, strict=True):
        assert sum(act in node.operation for node in nodes) == 2
    assert [len(one.rows) for one in report.models.values()] == [6, 6, 6], "no table has two models"
    grads = [p.grad for p in ready.ns["net"].parameters()]
    assert report["net[0].weight"].gradient.norm == pytest.approx(float((grads[0] ** 2).sum()) ** 0.5, rel=1e-4)
    tabs = re.findall(
        r'<details name="(gradlab-\w+)" style="display:contents"( open)?><summary [^>]*><span>([^<]*)', card_of(ran)
    )
    assert [(label, bool(opened)) for _, opened, label in tabs] == [
        ("act=Sigmoid", False),
        ("act=Tanh", False),
        ("act=ReLU", True),
    ]
    assert len({name for name, *_ in tabs}) == 1, "opening one tab closes the others"


def test_a_row_has_the_figures_of_its_model(ready):
    ready.ok(f"%%grad -o r\nseen = []\n{THREE}\n    seen.append([p.grad.norm().item() for p in net.parameters() if p.ndim > 1])")
    report = ready.ns["r"]
    for row, norms in zip(report.other_models.rows(report), ready.ns["seen"], strict=True):
        assert float(row.first.replace("−", "-")) == pytest.approx(norms[0], rel=1e-3)
        assert float(row.last.replace("−", "-")) == pytest.approx(norms[-1], rel=1e-3)
        assert float(row.ratio.replace("−", "-")) == pytest.approx(norms[0] / norms[-1], rel=0.06)
        assert row.calls == "1"


def test_one_after_the_other_under_one_name(ready):
    """The second has other parameters, some with ids of the first model's."""
    cell = "net = make(nn.Tanh)\ntrain(net)\nnet = make(nn.ReLU)\ntrain(net, steps=7)"
    ran = ready.ok(f"%%grad -o r\n{cell}")
    report = ready.ns["r"]
    assert [(label, one.trace.sweep, one.trace.sweeps) for label, one in report.models.items()] == [
        ("steps=5", 5, 5),
        ("steps=7", 7, 7),
    ]
    assert all(len(one.rows) == 6 for one in report.models.values())
    assert "12 times, 7 times for steps=7; this is the last call." in ran.text


def test_findings_belong_to_their_models(ready):
    cell = "for act in [nn.Tanh, nn.Sigmoid]:\n    net = make(act)\n    if act is nn.Tanh:\n        net.append(nn.Softmax(1))\n"
    cell += "    look(net)"
    ready.ok(f"%%grad -o r\n{cell}")
    report = ready.ns["r"]
    twice = [one for one in report.findings if "softmax" in one.message]
    assert [one.model for one in twice] == ["act=Tanh"] and NOTEBOOK.last.findings == report.findings
    assert [row.found for row in report.other_models.rows(report)] == ["1 Problem", "nothing"]
    assert [one.kind for one in report.models["act=Tanh"].findings] == [twice[0].kind]
    assert "takes logits" not in report.why("net[0].weight").sentence, "findings of other models are not listed"


def test_the_finding_is_marked_on_its_tab(ready):
    cell = "for act in [nn.Tanh, nn.Sigmoid]:\n    net = make(act)\n    if act is nn.Tanh:\n        net.append(nn.Softmax(1))\n"
    card = card_of(ready.ok(f"%%grad\n{cell}    look(net)"))
    assert "<span>act=Tanh ■ 1 Problem</span>" in card and "<span>act=Sigmoid</span>" in card


ADVERSARIES = """fake, real = generator(X), lib.randn(32, 2)
critic_loss = critic(fake.detach()).mean() - critic(real).mean()
critic_loss.backward()
critic.zero_grad()
generator_loss = -critic(fake).mean()
generator_loss.backward()
"""


def test_each_loss_of_a_cell_has_a_report(ready):
    """The generator's loss reaches the critic's weights, too, so both are one training."""
    ready.ok(
        "lib.manual_seed(0)\ngenerator, critic = nn.Linear(8, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))"
    )
    ran = ready.ok(f"%%grad -o r\n{ADVERSARIES}")
    report = ready.ns["r"]
    assert list(report.models) == ["critic_loss", "generator_loss"] and report.models["generator_loss"] is report
    assert "backward() was called for 2 losses. The report of generator_loss is below." in ran.text
    names = [{row.name.split("[")[0].split(".")[0] for row in one.rows} for one in report.models.values()]
    assert names == [{"critic"}, {"generator", "critic"}]
    ready.ok("expected = lib.autograd.grad(critic(fake.detach()).mean() - critic(real).mean(), list(critic.parameters()))")
    expected = [float((g**2).sum()) ** 0.5 for g in ready.ns["expected"]]
    critic = report.models["critic_loss"]
    assert [row.gradient.norm for row in critic.rows] == pytest.approx(expected, rel=1e-4, abs=1e-9)
    card = card_of(ran)
    assert card.index("<span>critic_loss") < card.index("<span>generator_loss") and card.count('" open><summary') >= 1


def test_a_loop_of_one_loss_has_no_tabs(ready):
    ran = ready.ok("%%grad\nnet = make(nn.Tanh)\ntrain(net)")
    assert not [bundle for bundle in ran.outputs if 'gradlab-tabs"' in bundle.get("text/html", "")]


def test_a_finding_of_all_models_is_merged(ready):
    cell = "for act in [nn.Tanh, nn.Sigmoid]:\n    net = make(act)\n    net.append(nn.Softmax(1))\n    look(net)"
    ran = ready.ok(f"%%doctor\n{cell}")
    (finding,) = [one for one in NOTEBOOK.last.findings if "softmax" in one.message]
    assert finding.model == "act=Tanh and act=Sigmoid" and "Problem (act=Tanh and act=Sigmoid)" in ran.text


def test_models_that_take_turns(ready):
    cell = "a, b = make(nn.Tanh), make(nn.ReLU)\nfor i in range(4):\n    look(a)\n    look(b)"
    ready.ok(f"%%grad -o r\n{cell}")
    assert [(label, one.trace.sweep, one.trace.sweeps) for label, one in ready.ns["r"].models.items()] == [
        ("a", 4, 4),
        ("b", 4, 4),
    ]


def test_a_healthy_search_has_no_finding(ready):
    cell = "".join(f"for lr in {rates}:\n    net = make(nn.Tanh)\n    train(net, 8, lr)\n" for rates in ([0.1, 0.2], [0.3, 0.4]))
    ready.ok(f"%%doctor\n{cell}")
    assert not NOTEBOOK.last.findings and not NOTEBOOK.last.remarks and not NOTEBOOK.last.unseen


def test_labels_are_escaped(ready):
    ran = ready.ok("%%grad -o r\nfor name in ['<img src=x>', '$a_1$ & \\\\b']:\n    net = make(nn.Tanh)\n    look(net)")
    card = card_of(ran)
    assert "<img src=x" not in card and "&lt;img src=x&gt;" in card
    latex = "".join(bundle.get("text/latex", "") for bundle in ran.outputs)
    assert "$a_1$" not in latex and "\\$a\\_1\\$ \\&" in latex


def test_a_report_of_several_models_is_saved_and_printed(ready, tmp_path):
    ready.ok(f"%%grad -q -o r\n{THREE}")
    report = ready.ns["r"]
    page = report.save(tmp_path / "r.html").read_text()
    assert "act=Sigmoid" in page and "of 3 models" in page
    bare = report.save(tmp_path / "bare.html", values=False).read_text()
    assert "act=Sigmoid" not in bare
    json.dumps(report.to_dict())


def test_a_later_call_is_reported_to_be_in_grad(ready, monkeypatch, clock):
    """Check a cell without time to record the last call, so that the last one is unknown."""
    from gradlab.explore.trace.recorder import Recorder

    finish = Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(60.0), finish(self, sweep))[1])
    ran = ready.ok("%%grad\nnet = make(nn.Tanh)\nk = 0\nwhile k < 5:\n    look(net)\n    k += 1")
    assert "5 times; this is call 1, and .grad now holds the gradient of a later call." in ran.text
    ran = ready.ok("%%grad\nnet = make(nn.Tanh)\nfor k in range(5):\n    look(net)")
    assert "5 times; this is the last call." in ran.text


def test_every_loss_of_a_training_is_examined(ready):
    """The last backward is not that of the faulty loss."""
    cell = """%%doctor
body, a, b = nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 3), nn.Softmax(1)), nn.Linear(8, 1)
opt = lib.optim.SGD([*body.parameters(), *a.parameters(), *b.parameters()], lr=0.1)
for step in range(6):
    opt.zero_grad()
    one = nn.functional.cross_entropy(a(body(X)), Y)
    one.backward()
    opt.step()
    opt.zero_grad()
    two = ((b(body(X)) - 1) ** 2).mean()
    two.backward()
    opt.step()"""
    ready.ok(cell)
    (finding,) = NOTEBOOK.last.findings
    assert "takes logits" in finding.message and finding.line == 6 and finding.node is None
    ready.ok(cell.replace(", nn.Softmax(1)", ""))
    assert not NOTEBOOK.last.findings and not NOTEBOOK.last.remarks


def test_attributes_of_the_users_objects_are_not_accessed(ready, recwarn):
    """A training may have objects whose attributes raise or have side effects."""
    ready.ok("""class Loud:
    asked = []
    def __getattr__(self, name):
        Loud.asked.append(name)
        raise RuntimeError(name)
loud = Loud()""")
    cell = "def fit(net, loud):\n    other = loud\n    look(net)\n"
    cell += "for act in [nn.Tanh, nn.ReLU]:\n    net = make(act)\n    fit(net, Loud())"
    ready.ok(f"%%grad -o r\n{cell}")
    assert list(ready.ns["r"].models) == ["act=Tanh", "act=ReLU"] and not ready.ns["Loud"].asked
    assert not [one for one in recwarn if issubclass(one.category, FaultWarning)]
