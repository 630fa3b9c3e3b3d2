"""Fixes run as they are printed: each piece of code of a fix is written into its row, and the finding is gone."""

from __future__ import annotations

import pytest
from test_findings import BLIND
from test_planted import FAULTS, each
from typing_in import advised, typed

from gradlab.explore.doctor.clinic import HOUSE

# Kinds of which a fix may be words, and why there is nothing to type.
WORDS = {
    "no_grad": "the lines of a `with` block or a decorator move, and which of them is a choice",
    "item": "what stands for the numbers depends on what was made of them",
    "numpy": "as of item: NumPy's functions have other names than the library's",
    "integer": "an index is replaced by another model: an interpolation, a mixture",
    "non-differentiable": "what is smooth in place of a comparison or a position is another loss",
    "re-wrapped": "as of item, where the new tensor was made of numbers",
    "rebound-leaf": "in a loop with an optimizer the result needs a name of its own, in several places",
    "unused-leaf": "where it belongs is what nobody knows but the author",
    "unused-module": "where it belongs is what nobody knows but the author",
    "step-before-backward": "a line moves, and nothing is to be typed",
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
    "underflow": "the loss is scaled at one place and the gradients at another",
    "cancelled": "another loss",
    "zero-factor": "whether the factor is meant to be 0 is what nobody knows but the author",
    "broadcast": "where it began before the operation that shows it",
    "double-softmax": "where the probabilities were made by hand, in several lines",
    "sum-for-mean": "where the sum is a loop of additions",
}
# Of these kinds all fixes are code.
TYPED = {"detached", "frozen", "accumulated", "stale-optimizer", "nll-of-probabilities"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS))
def test_code_that_a_fix_prints_cures(run, name, library):
    row = FAULTS[name]
    run(library, row.texts).leave()
    finding = HOUSE.last.findings[0] if HOUSE.last.findings else None
    assert finding is not None or (name, library) in BLIND
    if finding is None:
        pytest.skip("the cause cannot be seen here")
    pieces = advised(finding.fix)
    assert pieces or finding.kind in WORDS, finding.fix
    for piece in pieces:
        texts = typed(row.texts, finding.line, piece)
        assert texts is not None, f"{piece[2]!r} stands nowhere in the cells"
        HOUSE.forget()
        ran = run(library, texts)
        assert ran.error is None, (piece, ran.said)
        assert finding.kind not in {one.kind for one in HOUSE.last.findings}, (piece, HOUSE.last)
        ran.leave()


def test_every_kind_is_typed_or_has_a_reason():
    assert not TYPED & set(WORDS)
    assert {kind for row in FAULTS.values() for kind in row.kinds} == TYPED | set(WORDS)
