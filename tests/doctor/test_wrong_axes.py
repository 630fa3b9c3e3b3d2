"""Notes on code that may be intended: axes of one element, one prediction for several targets, a forgotten train()."""

from __future__ import annotations

import pytest
from applying_fixes import apply_change, changes_in
from test_planted import HEALTHY

from gradlab.explore.doctor.session import NOTEBOOK

NOTES = {
    "an attention over one token": (
        "cancelled",
        "weights = torch.softmax",
        ("axis 2 of a tensor of shape (8, 1, 1)", "`k.weight` and `q.weight` get exactly 0", "if this axis is longer"),
    ),
    "one prediction for three measurements": (
        "broadcast",
        "loss = F.mse_loss",
        ("`net(x)` has shape (20, 1)", "`measured` has shape (20, 3)", "all 3 targets of its example", "3 outputs"),
    ),
    "train that is forgotten after the validation": (
        "evaluation-mode",
        "model.eval()",
        ("after steps in training mode", "`model.eval()` on line", "`model[1]` no longer updates its running statistics"),
    ),
}
LIBRARIES = ["gradlab", pytest.param("torch", marks=[pytest.mark.torch, pytest.mark.slow])]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", NOTES)
def test_a_note_says_what_may_be_wrong(run, name, library):
    kind, code, words = NOTES[name]
    row = HEALTHY[name]
    run(library, row.texts)
    (note,) = [one for one in NOTEBOOK.last.remarks if one.kind == kind]
    assert note.line is not None
    assert row.texts[-1].splitlines()[note.line - 1].strip().startswith(code)
    for one in words:
        assert one in str(note)


@pytest.mark.parametrize("library", LIBRARIES)
def test_train_as_advised_updates_the_statistics(run, library):
    texts = HEALTHY["train that is forgotten after the validation"].texts
    run(library, texts).leave()
    (note,) = NOTEBOOK.last.remarks
    (change,) = changes_in(note.fix)
    changed = apply_change(texts, note.line, change)
    assert changed is not None
    ran = run(library, changed)
    assert ran.error is None
    assert not [one for one in NOTEBOOK.last.remarks if one.kind == "evaluation-mode"]
    assert ran.holds("int(model[1].num_batches_tracked) == 6")
