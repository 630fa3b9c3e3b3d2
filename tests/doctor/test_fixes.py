"""Fixes run as printed: after their code is written into the row, the finding is gone, nothing else is reported, and the loss has
its previous value, unless the fix says that it changes.

A fix without code is a sentence. For each kind with such fixes, `SENTENCES` says why there is nothing to type.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import cache
from typing import Any

import pytest
from applying_fixes import apply_change, changes_in, form_of, misquoted_code, other_code
from reading_programs import NAMES, read
from test_findings import BLIND
from test_planted import FAULTS, each

from gradlab.explore.doctor import session
from gradlab.explore.doctor.session import NOTEBOOK

# Kinds whose fix may be a sentence, and why there is nothing to type.
SENTENCES = {
    "no_grad": "the lines of a `with` block or a decorator move, and the author has to choose which",
    "checkpoint-without-grad": "if a function of a package, or one with another name, calls checkpoint()",
    "item": "the replacement depends on how the numbers are used",
    "numpy": "as for item; NumPy's functions have other names than the library's",
    "integer": "an index is replaced by another model: an interpolation, a mixture",
    "non-differentiable": "a smooth replacement of a comparison or a position is another loss",
    "re-wrapped": "as for item, if the new tensor was made from numbers",
    "rebound-leaf": "in a loop with an optimizer the result needs a name of its own, in several places",
    "unused-leaf": "only the author knows where it belongs",
    "unused-module": "only the author knows where it belongs",
    "stale-optimizer": "a layer that forward makes moves to `__init__`",
    "step-before-backward": "a line moves, and nothing is typed",
    "nothing-learns": "only the author knows the right condition or loss",
    "zero-learning-rate": "a learning rate or its decay has to be found by trial",
    "clipped-to-nothing": "the limit is a name that is assigned elsewhere, or a line is removed",
    "idle-clipping": "a line moves, and nothing is typed",
    "ascent": "an argument of an optimizer that is created elsewhere is removed",
    "update-ratio": "a learning rate has to be found by trial",
    "vanishing": "another initialisation or another architecture",
    "exploding": "another initialisation or another architecture",
    "recurrent": "another architecture",
    "dead": "another initialisation, learning rate or activation",
    "saturated": "another scale of weights or scores",
    "inf-born": "if the operation is inside a module or a library function",
    "nan-born": "if the operation is inside a module or a library function",
    "nan-input": "if the tensor has no name where it is used",
    "in-place": "a statement moves, usually before the step of an optimizer",
    "underflow": "the loss is scaled at one place and the gradients at another",
    "cancelled": "another loss",
    "zero-factor": "only the author knows whether the factor should be 0",
    "broadcast": "if an earlier line gave the tensor its shape",
    "double-softmax": "if the probabilities are computed by hand in several lines",
    "dropped-output": "if the dropout is a layer of a model, which may move",
    "limited-output": "if the activation is a layer of a model; scaling the targets is an alternative",
    "sum-for-mean": "if the sum is a loop of additions",
    "unstable": "if the formula is spread over functions or modules",
    "near-limit": "there are several ways to keep an exponential or a float16 sum small",
    "falling-scale": "the operation that overflows is computed in another dtype, at a place that only the author knows",
    "rounded-update": "the dtype is given where the model is made and where data are loaded",
    "moving-statistics": "if many parts are frozen, or the model is put into training mode in another function",
    "frozen-moves": "if the parameters are frozen and the gradients are cleared in several places",
    "equal-units": "if one loop or function fills several weights",
    "held-twice": "if the parameters are in several groups",
    "two-optimizers": "only the author knows which of the two should step it",
    "idle-group": "only the author knows the learning rate, or that there is none",
}
# Kinds whose fixes are all code.
ALWAYS_CODE = {
    *("detached", "frozen", "accumulated", "nll-of-probabilities"),
    *("scaled-step", "uncalled-method", "undetached-advantage", "batch-softmax", "evaluation-mode"),
    "broken-tie",
}
CHANGES = "changes the loss"


class RowDiagnosis:
    """The cells of a row, run and examined."""

    def __init__(self, run: Any, cases: list[Any], library: str, texts: tuple[str, ...]) -> None:
        NOTEBOOK.forget()
        cases.clear()
        ran = run(library, texts)
        self.error, self.said = ran.error, ran.said
        self.findings, self.remarks = NOTEBOOK.last.findings, NOTEBOOK.last.remarks
        self.kinds = Counter((one.kind, one.remark) for one in (*self.findings, *self.remarks))
        self.loss = first_loss(cases[-1].trace) if cases else None
        cases.clear()
        ran.leave()


def first_loss(trace: Any) -> float | None:
    """Return the first loss that was differentiated, or None if it is not finite."""
    if trace is None:
        return None
    losses = [swept.loss for swept in trace.journal[:1]]
    losses += [value.numbers[0] for i in trace.outputs if (value := trace.nodes[i].value) is not None and value.size == 1]
    return next((float(loss) for loss in losses if loss is not None and math.isfinite(loss)), None)


@pytest.fixture
def examine_row(run, monkeypatch):
    """Function that runs and examines the cells of a row."""
    cases: list[Any] = []
    examine = session.examine

    def keep_case(case: Any, *checks: Any) -> Any:
        found = examine(case, *checks)
        if not checks:  # otherwise the case is of another loss
            cases.append(copy.copy(case))  # a copy, since the case is emptied afterwards
        return found

    monkeypatch.setattr(session, "examine", keep_case)
    return lambda library, texts: RowDiagnosis(run, cases, library, texts)


def are_weaker(after, finding, new) -> bool:
    """Return whether the new findings are Notes on tensors of the finding, such as one of two layers that start at 0."""
    notes = [one for one in after.remarks if (one.kind, True) in new]
    named = [set(one.evidence.get("leaves", ("",))) for one in notes]
    return sum(new.values()) == len(notes) and all(f"`{name}`" in finding.message for names in named for name in names)


def problems_of_fix(examine_row, library, texts, before, finding, cured) -> list[str]:
    """Return what is wrong with the fix of a finding. Findings that the cells of `cured` have, too, are not new."""
    wrong = [f"`{code}` is neither a name nor in the cells" for code in other_code(finding.fix, texts)]
    wrong += [f"`{code}` is written differently in the cells" for code in misquoted_code(finding.fix, texts)]
    for pieces in changes_in(finding.fix):
        changed = apply_change(texts, finding.line, pieces)
        if changed is None:
            wrong.append(f"{pieces}: not in the cells")
            continue
        after = examine_row(library, changed)
        said = f"{pieces}: "
        if after.error is not None:
            wrong.append(said + after.said[-300:])
        elif after.kinds[same := (finding.kind, finding.remark)] >= before.kinds[same]:
            wrong.append(said + f"it is found again: {[*after.findings, *after.remarks]}")
        elif (new := after.kinds - before.kinds) and (new := new - cured().kinds) and not are_weaker(after, finding, new):
            wrong.append(said + f"{dict(new)} is new: {[*after.findings, *after.remarks]}")
        elif before.loss is not None:
            kept = after.loss is not None and math.isclose(after.loss, before.loss, rel_tol=1e-4, abs_tol=1e-6)
            if kept == (CHANGES in finding.fix):
                wrong.append(said + f"the loss was {before.loss} and is {after.loss}; the fix says: {finding.fix}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS, live=(pytest.mark.exhaustive,)))
def test_code_that_a_fix_prints_cures(examine_row, record_property, name, library):
    row = FAULTS[name]
    before = examine_row(library, row.texts)
    reported = before.remarks if row.is_note else before.findings
    assert reported or (name, library) in BLIND
    if not reported:
        pytest.skip("the cause cannot be found here")
    cure = cache(lambda: examine_row(library, row.cured))
    for finding in (*before.findings, *before.remarks):
        assert not (wrong := problems_of_fix(examine_row, library, row.texts, before, finding, cure)), "\n".join(wrong)
        assert changes_in(finding.fix) or finding.remark or finding.kind in SENTENCES, finding.fix
        record_property("fix", form_of(finding.fix))


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_code_that_a_fix_prints_cures_a_program(examine_row, record_property, name):
    pytest.importorskip("torch")
    texts = (f"%%grad\n{read(name, faulty=True).text}",)
    before = examine_row("torch", texts)
    healthy = cache(lambda: examine_row("torch", (f"%%grad\n{read(name, faulty=False).text}",)))
    for finding in (*before.findings, *before.remarks):
        assert not (wrong := problems_of_fix(examine_row, "torch", texts, before, finding, healthy)), "\n".join(wrong)
        record_property("fix", form_of(finding.fix))


def test_every_kind_has_code_or_a_reason():
    assert not ALWAYS_CODE & set(SENTENCES)
    of_errors = {"in-place"}  # reported for errors, which no row is about
    assert {kind for row in FAULTS.values() for kind in row.kinds} | of_errors == ALWAYS_CODE | set(SENTENCES)
