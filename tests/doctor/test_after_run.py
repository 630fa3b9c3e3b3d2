"""`%doctor` after a run that was not recorded: errors and their lines, faults in the remaining state, and healthy states."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
from applying_fixes import apply_change, changes_in, form_of, misquoted_code, other_code
from failing_rows import FAILING_ROWS, WORDS
from states_after_runs import FAULTY, HEALTHY, NET

import gradlab as gl
from gradlab.explore.doctor.session import NOTEBOOK

TORCH = (pytest.mark.torch,)


def each(table, live=()):
    """Return every row with every library it runs with; `live` has further marks for PyTorch if gradlab runs the row, too."""
    return [
        pytest.param(
            name,
            library,
            id=f"{name}-{library}",
            marks=() if library == "gradlab" else (*TORCH, *(live if "gradlab" in row.libraries else ())),
        )
        for name, row in table.items()
        for library in row.libraries
    ]


def diagnosis(shell):
    return shell.ok("%doctor").result


@pytest.mark.parametrize(("name", "library"), each(FAILING_ROWS))
def test_an_error_is_reported_with_its_line(run, shell, name, library):
    row = FAILING_ROWS[name]
    ran = run(library, row.texts)
    assert ran.error is not None, "the row raises no error"
    found = diagnosis(shell)
    assert [one.kind for one in found.findings][:1] == [row.kind], found
    first = found.findings[0]
    assert first.line == row.line, found
    for word in row.says:
        assert word in with_torch_prefix(str(first)), found
    assert "%%doctor" in found.unseen[-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(FAILING_ROWS))
def test_a_cure_removes_the_error(run, shell, name, library):
    row = FAILING_ROWS[name]
    for cured in row.cured:
        ran = run(library, cured)
        assert ran.error is None, ran.said
        assert not [one for one in diagnosis(shell).findings if one.kind == row.kind], "it is still reported"
        ran.leave()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAILING_ROWS, live=(pytest.mark.exhaustive,)))
def test_the_advice_cures(run, shell, record_property, name, library):
    """The cells run without an error and without a finding after each change that the fix asks for."""
    row = FAILING_ROWS[name]
    ran = run(library, row.texts)
    first = diagnosis(shell).findings[0]
    ran.leave()
    assert bool(changes_in(first.fix)) != (name in WORDS), first.fix
    for change in changes_in(first.fix):
        texts = apply_change(row.texts, first.line, change)
        assert texts is not None, f"{change} is not in the cells"
        ran = run(library, texts)
        assert ran.error is None, (change, ran.said)
        found = diagnosis(shell)
        assert not found.findings, (change, found)
        ran.leave()
    assert not other_code(first.fix, row.texts) + misquoted_code(first.fix, row.texts), first.fix
    record_property("fix", form_of(first.fix))


def test_rows_with_advice_in_words_exist():
    assert set(WORDS) <= set(FAILING_ROWS)


def run_row(run, shell, library, row):
    """Run the cells of a row, of which all but the last may fail."""
    run(library, (NET,))
    for text in row.texts[:-1]:
        shell.run(text)
    last = shell.run(row.texts[-1])
    assert last.success, last.stdout + last.stderr


@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_a_healthy_state_has_no_finding(run, shell, name, library):
    run_row(run, shell, library, HEALTHY[name])
    found = diagnosis(shell)
    assert not found.findings, found
    assert "could not be checked" not in str(found)
    assert "%%doctor" in found.unseen[-1]


@pytest.mark.parametrize(("name", "library"), each(FAULTY))
def test_a_fault_is_found_in_the_remaining_state(run, shell, name, library):
    row = FAULTY[name]
    run_row(run, shell, library, row)
    found = diagnosis(shell)
    assert [one.kind for one in found.findings] == [row.kind], found
    for word in row.says:
        assert word in str(found.findings[0]), found


def test_tables_are_broad():
    assert len(HEALTHY) >= 30
    assert len(FAILING_ROWS) >= 45


def with_torch_prefix(text):
    """Replace the prefix `gl.`, since both names are the same library in the cells."""
    return text.replace("gl.", "torch.")


# ------------------------------------------------------------------------------------------------------- what %doctor reports
def test_an_error_is_reported_until_something_else_runs(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True)", "(w * 2).backward()"))
    shell.ok("import math\nprint(w.shape)")
    shell.ok("def f(x):\n    return x * 2")
    assert [one.kind for one in diagnosis(shell).findings] == ["not-scalar"]
    shell.ok("loss = f(w).sum()\nloss.backward()")
    found = diagnosis(shell)
    assert not found.findings
    assert "ended with RuntimeError" in str(found)
    shell.run("(w * 3).backward()")
    assert "`(w * 3).backward()`" in str(diagnosis(shell).findings[0])


def test_a_diagnosis_is_repeated_until_something_is_computed(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True); b = torch.zeros(3, requires_grad=True)",))
    shell.ok("%%doctor -q\nloss = ((w * 2).detach() + b).sum()\nloss.backward()")
    seen = diagnosis(shell)
    assert [one.kind for one in seen.findings] == ["detached"]
    shell.ok("print(loss, w.grad, b.grad)")
    assert diagnosis(shell) is seen
    shell.ok("w.grad = None; b.grad = None\nloss = (w * 2 + b).sum()\nloss.backward()")
    assert diagnosis(shell) is not seen
    assert not diagnosis(shell).findings


def test_an_error_unrelated_to_gradients_is_only_named(run, shell):
    run("gradlab", ("net = nn.Linear(2, 1)\nopt = optim.SGD(net.parameters(), lr=0.1)", "x = 1\nnames[x]"))
    found = diagnosis(shell)
    assert not found.findings
    assert "`names[x]` on line 2 with NameError" in str(found)


def test_an_error_in_a_file_of_the_user(run, shell, tmp_path, monkeypatch):
    (tmp_path / "their_model.py").write_text("def act(h):\n    return h.reshape(2, 3) @ h.reshape(2, 3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    run("gradlab", ("import their_model\nh = torch.ones(6, requires_grad=True)", "y = h * 2\nz = their_model.act(y)"))
    found = diagnosis(shell).findings[0]
    assert (found.kind, found.line) == ("shape", 2)
    assert "their_model.py line 2" in found.message


# --------------------------------------------------------------------------------------------------------------- %%doctor
def test_a_doctor_cell_prints_only_findings_and_calls_no_backward(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True); b = torch.zeros(3, requires_grad=True)",))
    ran = shell.ok("%%doctor -o d\nloss = ((w * 2).detach() + b).sum()")
    assert [one.kind for one in shell.ns["d"].findings] == ["detached"]
    assert ran.text.startswith("Problem: `(w * 2).detach()` on line 2") and len(ran.outputs) == 1
    assert shell.ns["w"].grad is shell.ns["b"].grad is None
    assert "d" in shell.ns and shell.ns["d"] is diagnosis(shell)


def test_a_healthy_doctor_cell(run, shell):
    run("gradlab", (NET + "net = Net()\nopt = optim.SGD(net.parameters(), lr=0.1)",))
    ran = shell.ok("%%doctor\nopt.zero_grad()\nloss = F.mse_loss(net(X), Y)\nloss.backward()\nopt.step()")
    assert ran.text == "Nothing was found."
    assert "%%doctor takes only options" in shell.run("%%doctor loss\nloss = 1").stderr


# -------------------------------------------------------------------------------------------------- gl.doctor(model, …)
@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=TORCH)])
def test_a_model_from_code(library):
    lib = pytest.importorskip(library)
    nn, F = lib.nn, lib.nn.functional
    lib.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    X, Y = lib.randn(16, 4), lib.randn(16, 1)
    loss = F.mse_loss(net(X), Y)
    assert not gl.doctor(net, optimizer=opt, loss=loss).findings
    assert all(p.grad is None for p in net.parameters()), "no gradient is written"
    loss.backward()
    assert not gl.doctor(net, optimizer=opt, loss=loss).findings
    found = gl.doctor(net, optimizer=opt)
    assert not found.findings and "%%doctor" in str(found)
    other = lib.optim.SGD(net[2].parameters(), lr=0.1)
    assert not gl.doctor(net, optimizer=other).findings  # only the head is trained, which is a Note
    with lib.no_grad():
        net[0].weight[0, 0] = float("nan")
    assert [one.kind for one in gl.doctor(net, optimizer=[opt]).findings] == ["nan-weights"]


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=TORCH)])
def test_a_model_with_a_part_without_gradients(library):
    lib = pytest.importorskip(library)
    nn = lib.nn
    net = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
    opt = lib.optim.Adam(net.parameters())
    loss = net[0](lib.ones(3, 4)).pow(2).mean()
    loss.backward()
    found = gl.doctor(net, optimizer=opt)
    assert [one.kind for one in found.findings] == ["no-gradient"]
    assert "`net[1].weight` and `net[1].bias`" in found.findings[0].message
    assert "frozen" in [one.kind for one in gl.doctor(net, optimizer=opt, loss=loss.detach()).findings]


def test_an_error_that_is_being_handled():
    net = gl.nn.Linear(4, 1)
    opt = gl.optim.SGD(net.parameters(), lr=0.1)
    try:
        net(gl.ones(3, 5))
    except RuntimeError:
        found = gl.doctor(net, optimizer=opt).findings[0]
    assert found.kind == "shape" and "`net` (Linear) takes 4 features" in found.message


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda net, opt, loss: gl.doctor(net, optimizer=gl.optim.SGD), "Give the optimizer, not its class"),
        (lambda net, opt, loss: gl.doctor(net, optimizer=net), "takes an optimizer, or a list of them, and got Linear"),
        (lambda net, opt, loss: gl.doctor(net, optimizer=opt, loss=3.0), "loss=.* takes a tensor, and got float"),
        (lambda net, opt, loss: gl.doctor(loss, loss=loss), "Give one of them"),
        (lambda net, opt, loss: gl.doctor("net"), "a model, and got str"),
        (lambda net, opt, loss: gl.doctor(type(net)), "a model, and got type"),
        (lambda net, opt, loss: gl.doctor(params=net), "takes a tensor"),
    ],
)
def test_wrong_arguments_are_errors(call, says):
    net = gl.nn.Linear(4, 1)
    with pytest.raises(TypeError, match=says):
        call(net, gl.optim.SGD(net.parameters(), lr=0.1), net(gl.ones(2, 4)).mean())


def test_tensors_of_the_user_are_released(run, shell):
    run("gradlab", ("w = torch.ones(50, requires_grad=True)\nnet = nn.Linear(3, 1)", "loss = (w * 2).sum()\nloss.backward()"))
    diagnosis(shell)
    alive = [weakref.ref(shell.ns[name]) for name in ("w", "loss")]
    shell.ok("del w, loss")
    gc.collect()
    assert [one() for one in alive] == [None, None]


# Rows for which a recorded cell gives more than its error, in other words: the exact operation, or an earlier line.
OTHERWISE = {
    "a frozen model",
    "asked for too early",
    "an optimizer of a result",
    "a decorator that was left",
    "a decorator of a method that a forward calls",
    "a block in a function",
    "a training function under no_grad",
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAILING_ROWS, live=(pytest.mark.exhaustive,)))
def test_an_error_under_doctor_has_its_line(run, name, library):
    """Under `%%doctor`, the first finding names the same line, one further down because of the magic, with the same words."""
    row = FAILING_ROWS[name]
    ran = run(library, (*row.texts[:-1], f"%%doctor\n{row.texts[-1]}"))
    assert ran.error is not None
    found = NOTEBOOK.last
    assert "could not be checked" not in str(found), found
    first = found.findings[0]
    if name in OTHERWISE:
        return
    assert first.kind == row.kind, found
    lines = (first.line, *first.lines)
    assert row.line is None or row.line + 1 in lines, found
    for word in row.says:
        assert re.sub(r"line (\d+)", "line", word) in re.sub(r"line (\d+)", "line", with_torch_prefix(str(first))), found
