"""Notes on the first backward call of a training: found on their lines, right, and gone when their fix is applied."""

from __future__ import annotations

import gc
import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from applying_fixes import changes_in
from first_step_rows import ROWS
from test_fixes import examine_row, problems_of_fix  # noqa: F401
from test_planted import each
from witness import Witness

import gradlab as gl
from gradlab.explore.doctor.session import NOTEBOOK

OF_FIRST = ("first-loss", "saturated", "dead")


def notes(kind: str) -> list[Any]:
    return [one for one in NOTEBOOK.last.remarks if one.kind == kind]


@pytest.mark.parametrize(("name", "library"), each(ROWS))
def test_a_fault_of_the_first_step_is_noted(run, name, library):
    row = ROWS[name]
    ran = run(library, row.texts)
    assert ran.error is None, ran.said
    assert ran.holds(row.shows), row.shows
    assert not NOTEBOOK.last.unseen, NOTEBOOK.last.unseen
    (note,) = notes(row.kinds[0])
    assert note.line == row.line, note
    for words in row.says:
        assert words in str(note), note


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(ROWS, live=(pytest.mark.exhaustive,)))
def test_a_cured_first_step_has_no_note(run, name, library):
    row = ROWS[name]
    ran = run(library, row.cured)
    assert ran.error is None, ran.said
    assert not ran.holds(row.shows), row.shows
    assert not notes(row.kinds[0]), NOTEBOOK.last


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(ROWS, live=(pytest.mark.exhaustive,)))
def test_the_numbers_are_those_of_the_first_step(run, name, library):
    """The program computes the same numbers without gradlab's explorer."""
    row = ROWS[name]
    run(library, row.texts)
    (note,) = notes(row.kinds[0])
    program = Witness(library, row.texts)
    evidence = note.evidence
    if note.kind == "first-loss":
        assert evidence["loss"] == pytest.approx(program.sweeps[0].loss, rel=2e-3)
        assert evidence["equal"] == pytest.approx(math.log(evidence["classes"]))
        (named,) = re.findall(r"`(logits)` has|The logits `([^`]+)` have|(The logits) have", note.message)
        if logits := "".join(named).removeprefix("The logits"):
            before = [seen.numbers for seen in program.seen[logits] if seen.sweep == 0]
            assert evidence["spread"] == pytest.approx(before[-1].std(), rel=1e-3)
    if note.kind == "saturated":
        sigmoid = "sigmoid" in note.message
        text = re.search(r"`([^`]+)`", note.message)[1]
        first = [seen.numbers for seen in program.seen[text] if seen.sweep == 0]
        sizes = [abs(2 * value - 1 if sigmoid else value) for value in first]
        share = np.mean(np.array(sizes) > 0.97, axis=None) if len(evidence["total"]) == 1 else None
        shares = [share] if share is not None else [np.mean(one > 0.97) for one in sizes]
        assert evidence["share"] == pytest.approx(shares, abs=2e-3)
        assert sum(evidence["total"]) == sum(one.size for one in first)
    if note.kind == "dead":
        (before,) = program.seen["self.body(x)"][:1]
        assert evidence["lost"] == (before.numbers <= 0).all(0).sum()
    if "scale" in evidence and "`layers" not in note.message:
        weight = re.search(r"cause is `([^`]+)`", note.message)[1]
        if "make(" not in row.texts[-1]:
            own = program.sweeps[0].leaves[id(program.resolve(weight))][0]
            assert evidence["scale"] == pytest.approx(own.std(), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(ROWS, live=(pytest.mark.exhaustive,)))
def test_code_that_a_note_prints_cures(examine_row, name, library):  # noqa: F811
    row = ROWS[name]
    before = examine_row(library, row.texts)
    cure = cache(lambda: examine_row(library, row.cured))
    (note,) = [one for one in before.remarks if one.kind == row.kinds[0]]
    assert not (wrong := problems_of_fix(examine_row, library, row.texts, before, note, cure)), "\n".join(wrong)
    assert changes_in(note.fix) or "W2 = torch.randn(200, K)" not in "\n".join(row.texts), note.fix


MODEL = "W1, W2 = gl.randn(30, 100), gl.randn(100, 20)\nfor W in (W1, W2):\n    W.requires_grad = True"
STEP = (
    "%%grad\nx, y = gl.randn(64, 30), gl.randint(0, 20, (64,))\nfor step in range(3):\n"
    "    loss = gl.nn.functional.cross_entropy(gl.tanh(x @ W1) @ W2, y)\n    loss.backward()\n"
    "    for W in (W1, W2):\n        W.data -= 0.01 * W.grad; W.grad = None"
)


def test_only_the_first_cell_of_a_training_has_a_first_step(shell):
    shell.ok(MODEL)
    shell.ok(STEP)
    assert {one.kind for one in gl.doctor().remarks} == {"first-loss", "saturated"}
    shell.ok(STEP)
    assert not gl.doctor().remarks
    shell.ok(MODEL)
    shell.ok(STEP)  # other weights
    assert {one.kind for one in gl.doctor().remarks} == {"first-loss", "saturated"}


def test_weights_trained_in_a_cell_without_magic_have_no_first_step(shell):
    shell.ok(MODEL)
    shell.ok(STEP.removeprefix("%%grad\n"))
    shell.ok(STEP)
    assert not gl.doctor().remarks


def test_loaded_weights_have_no_first_step(shell):
    shell.ok("net = gl.nn.Sequential(gl.nn.Linear(30, 100), gl.nn.Tanh(), gl.nn.Linear(100, 20))")
    shell.ok("state = {name: gl.randn(*p.shape) * 2 for name, p in net.state_dict().items()}\nnet.load_state_dict(state)")
    shell.ok(
        "%%grad\nx, y = gl.randn(64, 30), gl.randint(0, 20, (64,))\n"
        "loss = gl.nn.functional.cross_entropy(net(x), y)\nloss.backward()"
    )
    assert not [one for one in gl.doctor().remarks if one.kind in OF_FIRST]


def test_each_of_two_trainings_has_its_first_step(shell):
    shell.ok(
        "%%grad\nx, y = gl.randn(64, 30), gl.randint(0, 20, (64,))\nlosses = []\nfor std in (0.05, 2.0):\n"
        "    net = gl.nn.Sequential(gl.nn.Linear(30, 100), gl.nn.Tanh(), gl.nn.Linear(100, 20))\n"
        "    gl.nn.init.normal_(net[2].weight, std=std)\n    opt = gl.optim.SGD(net.parameters(), lr=0.01)\n"
        "    for step in range(3):\n        loss = gl.nn.functional.cross_entropy(net(x), y)\n        opt.zero_grad()\n"
        "        loss.backward()\n        opt.step()\n        losses.append(loss.item())"
    )
    (note,) = notes("first-loss")
    assert note.evidence["loss"] == pytest.approx(shell.ns["losses"][3], rel=1e-5)
    assert note.model == "std=2"


def test_tensors_of_the_first_step_are_released(shell):
    """Only numbers of the first graph are kept, not tensors."""
    shell.ok(MODEL)
    shell.ok("import weakref; kept = None")
    shell.ok(STEP.replace("    loss.backward()", "    kept = kept or weakref.ref(loss)\n    loss.backward()"))
    shell.ok("del loss")
    gc.collect()
    assert shell.ns["kept"]() is None
