"""Fixes run as they are printed: code is written into its row; then the finding is gone, nothing else is reported, and the loss
has the value that it had, unless the fix says that it changes.

A fix that has no code is a sentence: of each kind for which there are some, `SENTENCES` says why there is nothing to type.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import cache
from typing import Any

import pytest
from reading_programs import NAMES, read
from test_findings import BLIND
from test_planted import FAULTS, each
from typing_in import advised, beside, followed, form_of, spelled_otherwise

from gradlab.explore.doctor import session
from gradlab.explore.doctor.session import NOTEBOOK

# Kinds of which a fix may be a sentence, and why there is nothing to type.
SENTENCES = {
    "no_grad": "the lines of a `with` block or a decorator move, and which of them is a choice",
    "item": "what stands for the numbers depends on what was made of them",
    "numpy": "as of item: NumPy's functions have other names than the library's",
    "integer": "an index is replaced by another model: an interpolation, a mixture",
    "non-differentiable": "what is smooth in place of a comparison or a position is another loss",
    "re-wrapped": "as of item, where the new tensor was made of numbers",
    "rebound-leaf": "in a loop with an optimizer the result needs a name of its own, in several places",
    "unused-leaf": "where it belongs is what nobody knows but the author",
    "unused-module": "where it belongs is what nobody knows but the author",
    "stale-optimizer": "a layer that forward makes moves to `__init__`",
    "step-before-backward": "a line moves, and nothing is to be typed",
    "nothing-learns": "a condition, or a loss, which nobody knows but the author",
    "zero-learning-rate": "a learning rate, or how fast it falls, which is found by trying",
    "clipped-to-nothing": "the limit has a name and its value elsewhere, or a line is left out",
    "idle-clipping": "a line moves, and nothing is to be typed",
    "ascent": "an argument of an optimizer that is made elsewhere is left out",
    "update-ratio": "a learning rate, which is found by trying",
    "vanishing": "another initialisation or another architecture",
    "exploding": "another initialisation or another architecture",
    "recurrent": "another architecture",
    "dead": "another initialisation, learning rate or activation",
    "saturated": "another scale of weights or scores",
    "inf-born": "where the operation stands inside of a module or of a library's function",
    "nan-born": "where the operation stands inside of a module or of a library's function",
    "nan-input": "where the tensor has no name at the place of its use",
    "in-place": "a statement moves, as a rule before the step of an optimizer",
    "underflow": "the loss is scaled at one place and the gradients at another",
    "cancelled": "another loss",
    "zero-factor": "whether the factor is meant to be 0 is what nobody knows but the author",
    "broadcast": "where it began before the operation that shows it",
    "double-softmax": "where the probabilities were made by hand, in several lines",
    "limited-output": "where the activation is a layer of a model, and scaling the targets instead is a choice",
    "sum-for-mean": "where the sum is a loop of additions",
    "unstable": "where the formula is spread over functions or modules",
    "near-limit": "how an exponential, or a sum of float16, is kept small is a choice",
    "equal-units": "where one loop or function fills several weights",
}
# Of these kinds all fixes are code.
TYPED = {
    *("detached", "frozen", "accumulated", "nll-of-probabilities"),
    *("uncalled-method", "undetached-advantage", "batch-softmax", "evaluation-mode"),
}
CHANGES = "changes the loss"


class Examined:
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
    """Return the value of what was differentiated first; None if it is not a finite number."""
    if trace is None:
        return None
    losses = [swept.loss for swept in trace.journal[:1]]
    losses += [value.numbers[0] for i in trace.outputs if (value := trace.nodes[i].value) is not None and value.size == 1]
    return next((float(loss) for loss in losses if loss is not None and math.isfinite(loss)), None)


@pytest.fixture
def examined(run, monkeypatch):
    """Runs the cells of a row and examines them."""
    cases: list[Any] = []
    examine = session.examine

    def keep_case(case: Any, *checks: Any) -> Any:
        found = examine(case, *checks)
        if not checks:  # else it is of another loss
            cases.append(copy.copy(case))  # which is emptied afterwards
        return found

    monkeypatch.setattr(session, "examine", keep_case)
    return lambda library, texts: Examined(run, cases, library, texts)


def weaker(after, finding, new) -> bool:
    """Whether what is new are Notes on what the finding spoke of: that a last layer starts at 0, of two that did."""
    notes = [one for one in after.remarks if (one.kind, True) in new]
    named = [set(one.evidence.get("leaves", ("",))) for one in notes]
    return sum(new.values()) == len(notes) and all(f"`{name}`" in finding.message for names in named for name in names)


def wrong_in(examined, library, texts, before, finding, cured) -> list[str]:
    """What is wrong with the fix of a finding. What is also reported of the cells that `cured` gives is not new."""
    wrong = [f"`{code}` is neither a name nor in the cells" for code in beside(finding.fix, texts)]
    wrong += [f"`{code}` is written otherwise in the cells" for code in spelled_otherwise(finding.fix, texts)]
    for pieces in advised(finding.fix):
        changed = followed(texts, finding.line, pieces)
        if changed is None:
            wrong.append(f"{pieces}: not in the cells")
            continue
        after = examined(library, changed)
        said = f"{pieces}: "
        if after.error is not None:
            wrong.append(said + after.said[-300:])
        elif after.kinds[same := (finding.kind, finding.remark)] >= before.kinds[same]:
            wrong.append(said + f"it is found again: {[*after.findings, *after.remarks]}")
        elif (new := after.kinds - before.kinds) and (new := new - cured().kinds) and not weaker(after, finding, new):
            wrong.append(said + f"{dict(new)} is new: {[*after.findings, *after.remarks]}")
        elif before.loss is not None:
            kept = after.loss is not None and math.isclose(after.loss, before.loss, rel_tol=1e-4, abs_tol=1e-6)
            if kept == (CHANGES in finding.fix):
                wrong.append(said + f"the loss was {before.loss}, and is {after.loss}; the fix says: {finding.fix}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS, live=(pytest.mark.exhaustive,)))
def test_code_that_a_fix_prints_cures(examined, record_property, name, library):
    row = FAULTS[name]
    before = examined(library, row.texts)
    reported = before.remarks if row.noted else before.findings
    assert reported or (name, library) in BLIND
    if not reported:
        pytest.skip("the cause cannot be seen here")
    cure = cache(lambda: examined(library, row.cured))
    for finding in (*before.findings, *before.remarks):
        assert not (wrong := wrong_in(examined, library, row.texts, before, finding, cure)), "\n".join(wrong)
        assert advised(finding.fix) or finding.remark or finding.kind in SENTENCES, finding.fix
        record_property("fix", form_of(finding.fix))


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_code_that_a_fix_prints_cures_a_program(examined, record_property, name):
    pytest.importorskip("torch")
    texts = (f"%%grad\n{read(name, faulty=True).text}",)
    before = examined("torch", texts)
    healthy = cache(lambda: examined("torch", (f"%%grad\n{read(name, faulty=False).text}",)))
    for finding in (*before.findings, *before.remarks):
        assert not (wrong := wrong_in(examined, "torch", texts, before, finding, healthy)), "\n".join(wrong)
        record_property("fix", form_of(finding.fix))


def test_every_kind_is_typed_or_has_a_reason():
    assert not TYPED & set(SENTENCES)
    beside = {"in-place"}  # an error, beside what a row is about
    assert {kind for row in FAULTS.values() for kind in row.kinds} | beside == TYPED | set(SENTENCES)
