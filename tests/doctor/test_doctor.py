"""`gl.doctor`, `%doctor` and the findings of a report: where they are printed, their numbers, and that no tensor is kept."""

from __future__ import annotations

import gc
import pickle
import re
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.doctor import examine as examining
from gradlab.explore.doctor.registry import Check
from gradlab.explore.doctor.session import NOTEBOOK


def kinds(found):
    return [finding.kind for finding in found]


# --------------------------------------------------------------------------------------------- where findings are printed
def test_a_report_has_its_findings(shell):
    shell.ok("w = gl.ones(2, requires_grad=True); b = gl.zeros(2, requires_grad=True)")
    shell.ok("%%grad -o rep\nh = (w * 3.5).detach()\nloss = ((h + b) ** 2).sum()")
    report = shell.ns["rep"]
    assert kinds(report.findings) == ["detached"]
    assert report.findings[0].line == 2
    assert gl.doctor().findings == report.findings


def test_after_a_failed_cell(shell):
    shell.ok("net = gl.nn.Linear(2, 1)")
    ran = shell.run("%%grad\nloss = net(gl.ones(3, 2)).mean().detach()\nloss.backward()")
    assert not ran.success
    found = gl.doctor()
    assert kinds(found.findings) == ["detached"]
    assert found.findings[0].line == 2
    assert "requires_grad_" not in found.findings[0].fix


def test_the_line_magic_gives_the_same_findings(shell):
    shell.ok("w = gl.ones(2)")
    shell.run("%%grad\nloss = (w * 2).sum()\nloss.backward()")
    ran = shell.run("%doctor")
    assert ran.result is gl.doctor()
    assert "requires_grad=True" in ran.outputs[-1]["text/plain"] if ran.outputs else str(ran.result)


def test_a_cell_with_nothing_to_differentiate_says_why(shell):
    shell.ok("net = gl.nn.Linear(2, 1).requires_grad_(False)")
    ran = shell.ok("%%grad\nloss = net(gl.ones(3, 2)).mean()")
    assert kinds(gl.doctor().findings) == ["frozen"]
    assert "requires_grad=False" in ran.text


def test_before_any_cell(shell):
    NOTEBOOK.forget()
    found = gl.doctor()
    assert not found.findings
    assert "%%doctor" in str(found)


def test_of_a_tensor():
    w, v = gl.ones(3, requires_grad=True), gl.ones(3, requires_grad=True)
    with gl.record_sites():
        loss = ((w * 2).detach() * v).sum()
    found = gl.doctor(loss, params=[w, v])
    assert w.grad is v.grad is None
    assert not found.unseen
    assert kinds(found.findings) == ["unused-leaf"]
    assert found.findings[0].message.startswith("No path leads from the result back to `w`, so backward() gives it no gradient")
    with gl.tracing():
        found = gl.doctor(((w * 2).detach() * v).sum(), params=[w, v])
    assert kinds(found.findings) == ["detached"]  # a trace shows the detached tensor
    assert gl.doctor(((w * 2).detach() * v).sum()).findings == ()  # without `params`, w is not expected to have a gradient
    assert gl.doctor((v * 2).sum()).findings == ()


@pytest.mark.parametrize("lib", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def test_of_an_unrecorded_loss_that_is_not_finite(lib):
    """The tensors that the graph saved show that the forward pass made the NaN, so backward is not blamed."""
    lib = pytest.importorskip(lib)
    x = lib.tensor([1.0, -2.0], requires_grad=True)
    h = lib.log(x)
    for loss in ((h**2).mean(), (lib.log(x) * 3).sum()):  # the second graph saves the input of the logarithm, not its result
        (found,) = gl.doctor(loss).findings
        assert found.kind == "nan-born" and "logarithm of 1 number below 0 among 2 (the least is -2)" in found.message
    y = lib.tensor([1.0, 2.0], requires_grad=True)
    (found,) = gl.doctor((y * float("inf") + 1).sum() - float("inf")).findings
    assert found.message.startswith("The result is NaN before backward begins.") and not found.fix
    zero = lib.zeros(2, requires_grad=True)
    (found,) = gl.doctor((lib.sqrt(zero) * 2).sum()).findings  # the loss is finite, so backward made the infinity
    assert found.kind == "inf-born" and found.message.endswith("the derivative of sqrt there, 1 / (2 · sqrt(0)), is inf.")


@pytest.mark.parametrize("call", [lambda: gl.doctor(3), lambda: gl.doctor(gl.ones(2, requires_grad=True).sum(), params=[1])])
def test_wrong_arguments(call):
    with pytest.raises(TypeError, match="tensor"):
        call()


# ---------------------------------------------------------------------------------------------------------- no side effects
def test_a_check_that_raises_breaks_no_cell(shell, monkeypatch):
    def broken_check(case):
        raise ZeroDivisionError("by us")

    monkeypatch.setattr(examining, "CHECKS_OF_RUNS", (Check(broken_check, ()), *examining.CHECKS_OF_RUNS))
    shell.ok("w = gl.ones(2, requires_grad=True); b = gl.zeros(2, requires_grad=True)")
    shell.ok("%%grad\nloss = ((w * 3.5).detach() + b).sum()")
    found = gl.doctor()
    assert "by us" in found.unseen[0]
    assert kinds(found.findings) == ["detached"]


def test_tensors_are_released(shell):
    shell.ok("w = gl.ones(50, requires_grad=True)")
    shell.ok("%%grad\nloss = (w * 2).sum()\nloss.backward()\nw.data -= 0.1 * w.grad")
    alive = weakref.ref(shell.ns["w"]), weakref.ref(shell.ns["loss"])
    shell.ok("del w, loss")
    gc.collect()
    assert [one() for one in alive] == [None, None]


@pytest.mark.slow
def test_the_past_is_plain_and_small(shell):
    shell.ok("ws = [gl.ones(2, requires_grad=True) for _ in range(3000)]")
    shell.ok("%%grad\nloss = sum(w.sum() for w in ws)\nloss.backward()")
    assert len(pickle.dumps(NOTEBOOK.past)) < 2**20


# ---------------------------------------------------------------------------------------------------- findings are right
@pytest.mark.parametrize("imported", ["import gradlab as th", pytest.param("import torch as th", marks=pytest.mark.torch)])
@pytest.mark.parametrize("formula", ["th.sqrt(p * 1)", "th.log(p * 1).abs()", "(p * 1).sqrt()"])
def test_a_fix_names_the_operand_whatever_the_library_is_called(shell, imported, formula):
    shell.ok(f"{imported}\np = th.zeros(2, requires_grad=True)")
    cell = f"%%grad -o rep\nloss = {formula}.sum()"
    shell.ok(cell)
    fix = next(one.fix for one in shell.ns["rep"].findings if one.kind in ("nan-born", "inf-born"))
    new, old = re.search("`([^`]*)` in place of `([^`]*)`", fix).groups()
    assert "th +" not in new and "(th" not in new
    assert old in cell
    shell.ok(cell.replace(old, new).replace("rep", "cured"))
    assert not [one for one in shell.ns["cured"].findings if one.kind in ("nan-born", "inf-born")]


def test_numbers_of_accumulation(shell):
    shell.ok("X = gl.randn(20, 3); w = gl.zeros(3, requires_grad=True); sums = []")
    shell.ok(
        "%%grad\nfor i in range(5):\n    loss = ((X @ w - 1) ** 2).mean()\n"
        "    sums.append(None if w.grad is None else w.grad.clone())\n"
        "    (own,) = gl.autograd.grad(loss, w, retain_graph=True)\n    loss.backward()\n    total = w.grad.clone()\n"
        "    with gl.no_grad():\n        w -= 0.01 * w.grad"
    )
    found = gl.doctor().findings[0]
    assert found.kind == "accumulated"
    norm = {name: float(np.linalg.norm(shell.ns[name].numpy())) for name in ("own", "total")}
    before = float(np.linalg.norm(shell.ns["sums"][-1].numpy()))
    assert found.evidence["before"] == pytest.approx(before, rel=1e-5)
    assert found.evidence["after"] == pytest.approx(norm["total"], rel=1e-5)
    assert found.evidence["arrived"] == pytest.approx(norm["own"], rel=1e-5)
    assert found.evidence["calls"] == 4


def test_numbers_of_a_large_step(shell):
    shell.ok("net = gl.nn.Linear(4, 1); opt = gl.optim.SGD(net.parameters(), lr=80.); X = gl.randn(30, 4)")
    shell.ok("old = net.weight.detach().clone()")
    shell.ok("%%grad\nloss = (net(X) - 3).pow(2).mean()\nopt.zero_grad()\nloss.backward()\nopt.step()")
    found = gl.doctor().findings[0]
    old, new = shell.ns["old"].numpy(), shell.ns["net"].weight.detach().numpy()
    assert found.kind == "update-ratio"
    assert found.evidence["ratio"] == pytest.approx(np.linalg.norm(new - old) / np.linalg.norm(old), rel=1e-4)
    assert found.evidence["weight"] == pytest.approx(np.linalg.norm(old), rel=1e-6)


def test_numbers_of_a_stale_optimizer(shell):
    shell.ok("a, b = gl.nn.Linear(3, 3), gl.nn.Linear(3, 1); opt = gl.optim.SGD(b.parameters(), lr=0.1); X = gl.randn(9, 3)")
    shell.ok("%%grad\nopt.zero_grad()\nloss = b(a(X)).pow(2).mean()\nloss.backward()\nopt.step()")
    found = gl.doctor().findings[0]
    norm = np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in shell.ns["a"].parameters()))
    assert found.kind == "stale-optimizer"
    assert found.evidence["gradient norm"] == pytest.approx(norm, rel=1e-5)
    assert set(found.evidence["leaves"]) == {"a.weight", "a.bias"}


def test_numbers_of_ascent(shell):
    shell.ok("w = gl.tensor([1., -2.], requires_grad=True); losses = []")
    shell.ok(
        "%%grad\nfor _ in range(5):\n    loss = (w ** 2).sum()\n    losses.append(loss.item())\n"
        "    w.grad = None\n    loss.backward()\n"
        "    with gl.no_grad():\n        w += 0.1 * w.grad"
    )
    found = gl.doctor().findings[0]
    assert found.kind == "ascent"
    assert found.evidence["cosine"] == pytest.approx(1, abs=1e-6)
    losses = shell.ns["losses"]
    assert (found.evidence["first"], found.evidence["last"]) == pytest.approx((losses[0], losses[3]))


def test_each_group_with_a_learning_rate_of_0_is_noted(shell):
    shell.ok("x, a, b, c = gl.ones(4, 2), gl.nn.Linear(2, 2), gl.nn.Linear(2, 2), gl.nn.Linear(2, 1)")
    shell.ok("opt = gl.optim.SGD([{'params': m.parameters(), 'lr': r} for m, r in ((a, 0.0), (b, 0.1), (c, 0.0))])")
    shell.ok("%%grad\nfor step in range(3):\n    opt.zero_grad(); (c(b(a(x))) - 2).square().mean().backward(); opt.step()")
    notes = [note.message for note in gl.doctor().remarks if note.kind == "idle-group"]
    assert [note.partition(" has")[0] for note in notes] == ["`opt.param_groups[0]`", "`opt.param_groups[2]`"]


def test_each_pair_of_optimizers_that_share_parameters_is_noted(shell):
    shell.ok("x, a, b, SGD = gl.ones(4, 2), gl.nn.Linear(2, 2), gl.nn.Linear(2, 2), gl.optim.SGD")
    shell.ok("one, two = SGD(a.parameters(), lr=0.01), SGD(b.parameters(), lr=0.01)")
    shell.ok("both = SGD([*a.parameters(), *b.parameters()], lr=0.01)")
    shell.ok(
        "%%grad\n"
        "for step in range(3):\n"
        "    one.zero_grad(); (a(x) - 2).square().mean().backward(); one.step()\n"
        "    two.zero_grad(); (b(x) - 2).square().mean().backward(); two.step()\n"
        "    both.zero_grad(); (b(a(x)) - 2).square().mean().backward(); both.step()"
    )
    notes = [note.message for note in gl.doctor().remarks if note.kind == "two-optimizers"]
    assert [note.partition(" both hold")[0] for note in notes] == ["`one` and `both`", "`two` and `both`"]


@pytest.mark.parametrize("lib", ["gl", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_finding_in_a_cell_with_two_losses_is_found_again_after_it(shell, lib):
    """Reading the other loss for its tab does not change the data that the doctor examines."""
    pytest.importorskip("torch" if lib == "torch" else "gradlab")
    shell.ok("import torch" if lib == "torch" else "")
    shell.ok(f"X = {lib}.randn(20, 3); w = {lib}.randn(3).requires_grad_(); o = {lib}.optim.SGD([w], lr=0.1)")
    cell = "%%grad -o report\nfor i in range(3):\n    other = ((X @ w - 2) ** 2).mean()\n    o.zero_grad()\n"
    cell += "    other.backward()\n    o.step()\n    loss = ((X @ w - 1) ** 2).mean() + 0.1 * w.pow(2).sum().detach()\n"
    cell += "    o.zero_grad()\n"
    cell += "    loss.backward()\n    o.step()"
    shell.ok(cell)
    report = shell.ns["report"]
    assert len(report.other_models.reports) == 1
    assert [one.kind for one in gl.doctor().remarks] == [one.kind for one in report.remarks] == ["detached"]


@pytest.mark.parametrize("lib", ["gl", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("term", "way"),
    [
        ("0.1 * w.pow(2).sum().detach()", "`w.pow(2).sum().detach()` on line 4"),
        ("0.1 * w.pow(2).sum().item()", "`w.pow(2).sum().item()` on line 4"),
    ],
)
def test_a_term_of_the_loss_that_is_cut_off_is_noted_once(shell, lib, term, way):
    """The weights have another path to the loss, but the term has none. The same expression as a factor is intended."""
    pytest.importorskip("torch" if lib == "torch" else "gradlab")
    shell.ok("import torch" if lib == "torch" else "")
    shell.ok(f"X = {lib}.randn(20, 3); w = {lib}.randn(3).requires_grad_(); o = {lib}.optim.SGD([w], lr=0.1)")
    cell = "%%grad\nfor i in range(3):\n    fit = ((X @ w - 1) ** 2).mean()\n    loss = fit {}\n    o.zero_grad()\n"
    cell += "    loss.backward()\n    o.step()"
    shell.ok(cell.format(f"+ {term}"))
    found = gl.doctor()
    assert not found.findings
    (note,) = found.remarks
    assert note.line == 4 and way in note.message and "this term does not move `w`" in note.message
    shell.ok(cell.format(f"* ({term})"))
    assert not gl.doctor().findings and not gl.doctor().remarks


def test_a_print_after_the_last_step_is_not_a_cause(shell):
    shell.ok("X = gl.randn(20, 3); w = gl.randn(3).requires_grad_(); o = gl.optim.SGD([w], lr=0.1)")
    shell.ok(
        "%%grad\nfor i in range(3):\n    loss = ((X @ w - 1) ** 2).mean()\n    print(loss.item())\n"
        "    loss = gl.tensor(loss.item(), requires_grad=True)\n    o.zero_grad()\n    loss.backward()\n    o.step()\n"
        "print(((X @ w - 1) ** 2).mean().item())"
    )
    found = gl.doctor()
    assert [(one.kind, one.line) for one in found.findings] == [("item", 5)]
    assert not found.remarks


def test_only_parameters_of_the_optimizer_are_serious_without_a_gradient(shell):
    """A target network is used without a gradient on purpose; the parameters of the optimizer need one."""
    shell.ok("net, target = (gl.nn.Sequential(gl.nn.Linear(2, 1), gl.nn.Linear(2, 1)) for _ in range(2))")
    shell.ok("o = gl.optim.SGD(net.parameters(), lr=0.1); x = gl.ones(3, 2)")
    shell.ok(
        "%%grad -o r\nwith gl.no_grad():\n    y = target[0](x)\nloss = ((net[0](x) - y) ** 2).mean()\nloss.backward()\no.step()"
    )
    rows = {row.name: row for row in shell.ns["r"].rows}
    assert rows["target[0].weight"].notes and not rows["target[0].weight"].serious
    assert rows["net[1].weight"].serious


# ------------------------------------------------------------------------------------------------ faults besides the rows
@pytest.mark.parametrize(
    ("before", "cell", "kind", "line"),
    [
        ("e = gl.nn.Embedding(5, 2); q = gl.nn.Linear(3, 5)",
         "i = q(gl.ones(4, 3)).argmax(1)\nloss = e(i).sum()", "non-differentiable", 2),
        ("p = gl.nn.Linear(2, 2)",
         "z = [float(v) for v in p(gl.randn(1, 2))[0]]\nloss = gl.tensor(z, requires_grad=True).sum()", "item", 2),
        ("c = gl.rand(3, requires_grad=True)", "loss = (c > 0.5).float().sum()\nloss.backward()", "non-differentiable", 2),
        ("s = gl.rand(3, requires_grad=True)", "loss = (s.floor() * gl.ones(3)).sum()\nloss.backward()", "non-differentiable", 2),
        ("m = gl.nn.Linear(2, 2); o = gl.optim.LBFGS(m.parameters())",
         "def closure():\n    o.zero_grad()\n    return m(gl.ones(1, 2)).sum()\nfor _ in range(2):\n    loss = o.step(closure)",
         "step-before-backward", 6),
        ("m = gl.nn.Sequential(gl.nn.Linear(2, 2)); o = gl.optim.Adam(m.parameters())",
         "for _ in range(3):\n    o.step()\n    o.zero_grad()\nm(gl.ones(1, 2)).sum().backward()", "step-before-backward", 3),
    ],
)  # fmt: skip
def test_faults_in_other_forms(shell, before, cell, kind, line):
    shell.ok(before)
    shell.run(f"%%grad\n{cell}")
    found = gl.doctor().findings
    assert kinds(found)[:1] == [kind], gl.doctor()
    assert found[0].line == line


def test_a_report_on_an_intermediate_tensor_has_no_finding_about_leaves(shell):
    shell.ok("%%grad h -o r\nimport gradlab as gl\nx = gl.ones(3, requires_grad=True)\nh = x * 2\nloss = h.exp().sum()")
    assert shell.ns["r"].findings == () and NOTEBOOK.last.findings == ()
