"""`%doctor` after a run that nobody watched: the error and its line, what is left, and silence where nothing is wrong."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
from leavings import HEALTHY, NET, SICK
from typing_in import advised, beside, followed, form_of, spelled_otherwise
from wrecks import WORDS, WRECKS

import gradlab as gl
from gradlab.explore.doctor.session import NOTEBOOK

TORCH = (pytest.mark.torch,)


def each(table, live=()):
    """Every row with every library that it runs on; `live` are further marks of a row on PyTorch that gradlab runs, too."""
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


def asked(shell):
    return shell.ok("%doctor").result


@pytest.mark.parametrize(("name", "library"), each(WRECKS))
def test_an_error_is_told_with_its_line(run, shell, name, library):
    row = WRECKS[name]
    ran = run(library, row.texts)
    assert ran.error is not None, "the row does not fail"
    found = asked(shell)
    assert [one.kind for one in found.findings][:1] == [row.kind], found
    first = found.findings[0]
    assert first.line == row.line, found
    for word in row.says:
        assert word in spelled(str(first)), found
    assert "%%doctor" in found.unseen[-1]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(WRECKS))
def test_a_cure_cures(run, shell, name, library):
    row = WRECKS[name]
    for cured in row.cured:
        ran = run(library, cured)
        assert ran.error is None, ran.said
        assert not [one for one in asked(shell).findings if one.kind == row.kind], "it is still reported"
        ran.leave()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(WRECKS, live=(pytest.mark.exhaustive,)))
def test_the_advice_cures(run, shell, record_property, name, library):
    """Each change that a fix says to make is made in the cells: they end well, and nothing is reported."""
    row = WRECKS[name]
    ran = run(library, row.texts)
    first = asked(shell).findings[0]
    ran.leave()
    assert bool(advised(first.fix)) != (name in WORDS), first.fix
    for change in advised(first.fix):
        texts = followed(row.texts, first.line, change)
        assert texts is not None, f"{change} is not in the cells"
        ran = run(library, texts)
        assert ran.error is None, (change, ran.said)
        found = asked(shell)
        assert not found.findings, (change, found)
        ran.leave()
    assert not beside(first.fix, row.texts) + spelled_otherwise(first.fix, row.texts), first.fix
    record_property("fix", form_of(first.fix))


def test_what_is_words_is_a_row():
    assert set(WORDS) <= set(WRECKS)


def ran_through(run, shell, library, row):
    """The cells of a row, of which all but the last may fail."""
    run(library, (NET,))
    for text in row.texts[:-1]:
        shell.run(text)
    last = shell.run(row.texts[-1])
    assert last.success, last.stdout + last.stderr


@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_the_healthy_are_left_alone(run, shell, name, library):
    ran_through(run, shell, library, HEALTHY[name])
    found = asked(shell)
    assert not found.findings, found
    assert "could not be checked" not in str(found)
    assert "%%doctor" in found.unseen[-1]


@pytest.mark.parametrize(("name", "library"), each(SICK))
def test_what_is_left_tells(run, shell, name, library):
    row = SICK[name]
    ran_through(run, shell, library, row)
    found = asked(shell)
    assert [one.kind for one in found.findings] == [row.kind], found
    for word in row.says:
        assert word in str(found.findings[0]), found


def test_tables_are_broad():
    assert len(HEALTHY) >= 30
    assert len(WRECKS) >= 45


def spelled(text):
    """Both names are the library's there."""
    return text.replace("gl.", "torch.")


def squeezed(text):
    return "".join(text.split()).replace('"', "'")


# ----------------------------------------------------------------------------------------------------- what %doctor speaks of
def test_the_error_stands_until_something_else_runs(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True)", "(w * 2).backward()"))
    shell.ok("import math\nprint(w.shape)")
    shell.ok("def f(x):\n    return x * 2")
    assert [one.kind for one in asked(shell).findings] == ["not-scalar"]
    shell.ok("loss = f(w).sum()\nloss.backward()")
    found = asked(shell)
    assert not found.findings
    assert "ended with RuntimeError" in str(found)
    shell.run("(w * 3).backward()")
    assert "`(w * 3).backward()`" in str(asked(shell).findings[0])


def test_a_seen_cell_is_the_last_word_until_something_is_computed(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True); b = torch.zeros(3, requires_grad=True)",))
    shell.ok("%%doctor -q\nloss = ((w * 2).detach() + b).sum()\nloss.backward()")
    seen = asked(shell)
    assert [one.kind for one in seen.findings] == ["detached"]
    shell.ok("print(loss, w.grad, b.grad)")
    assert asked(shell) is seen
    shell.ok("w.grad = None; b.grad = None\nloss = (w * 2 + b).sum()\nloss.backward()")
    assert asked(shell) is not seen
    assert not asked(shell).findings


def test_an_error_that_is_no_gradients_is_named_and_no_more(run, shell):
    run("gradlab", ("net = nn.Linear(2, 1)\nopt = optim.SGD(net.parameters(), lr=0.1)", "x = 1\nnames[x]"))
    found = asked(shell)
    assert not found.findings
    assert "`names[x]` on line 2 with NameError" in str(found)


def test_an_error_in_a_file_of_the_users(run, shell, tmp_path, monkeypatch):
    (tmp_path / "their_model.py").write_text("def act(h):\n    return h.reshape(2, 3) @ h.reshape(2, 3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    run("gradlab", ("import their_model\nh = torch.ones(6, requires_grad=True)", "y = h * 2\nz = their_model.act(y)"))
    found = asked(shell).findings[0]
    assert (found.kind, found.line) == ("shape", 2)
    assert "their_model.py line 2" in found.message


# --------------------------------------------------------------------------------------------------------------- %%doctor
def test_a_doctor_cell_says_findings_only_and_calls_no_backward(run, shell):
    run("gradlab", ("w = torch.ones(3, requires_grad=True); b = torch.zeros(3, requires_grad=True)",))
    ran = shell.ok("%%doctor -o d\nloss = ((w * 2).detach() + b).sum()")
    assert [one.kind for one in shell.ns["d"].findings] == ["detached"]
    assert ran.text.startswith("Problem: `(w * 2).detach()` on line 2") and len(ran.outputs) == 1
    assert shell.ns["w"].grad is shell.ns["b"].grad is None
    assert "d" in shell.ns and shell.ns["d"] is asked(shell)


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
    assert all(p.grad is None for p in net.parameters()), "nothing is written"
    loss.backward()
    assert not gl.doctor(net, optimizer=opt, loss=loss).findings
    found = gl.doctor(net, optimizer=opt)
    assert not found.findings and "%%doctor" in str(found)
    other = lib.optim.SGD(net[2].parameters(), lr=0.1)
    assert not gl.doctor(net, optimizer=other).findings  # the head alone: a Note
    with lib.no_grad():
        net[0].weight[0, 0] = float("nan")
    assert [one.kind for one in gl.doctor(net, optimizer=[opt]).findings] == ["nan-weights"]


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=TORCH)])
def test_a_model_of_which_a_part_gets_nothing(library):
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
def test_wrong_arguments_are_refused(call, says):
    net = gl.nn.Linear(4, 1)
    with pytest.raises(TypeError, match=says):
        call(net, gl.optim.SGD(net.parameters(), lr=0.1), net(gl.ones(2, 4)).mean())


def test_nothing_of_the_users_is_held(run, shell):
    run("gradlab", ("w = torch.ones(50, requires_grad=True)\nnet = nn.Linear(3, 1)", "loss = (w * 2).sum()\nloss.backward()"))
    asked(shell)
    alive = [weakref.ref(shell.ns[name]) for name in ("w", "loss")]
    shell.ok("del w, loss")
    gc.collect()
    assert [one() for one in alive] == [None, None]


# Rows of which a seen cell tells more than its error, in other words: the very operation, or an earlier line.
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
@pytest.mark.parametrize(("name", "library"), each(WRECKS, live=(pytest.mark.exhaustive,)))
def test_an_error_of_a_seen_cell_has_its_line(run, name, library):
    """Under `%%doctor` the first finding names the same line, one further down for the magic, and the same words."""
    row = WRECKS[name]
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
        assert re.sub(r"line (\d+)", "line", word) in re.sub(r"line (\d+)", "line", spelled(str(first))), found
