"""What the doctor says of the planted faults, and that it is silent on the healthy."""

from __future__ import annotations

import pytest
from test_planted import FAULTS, HEALTHY, each

from gradlab.explore.doctor.session import NOTEBOOK

# Rows of which the cause cannot be seen, and why.
BLIND = {
    ("a Parameter made in forward", "torch"): "PyTorch tells nobody that Parameter(x) takes over the memory of x",
}


def seen(table):
    """The rows on each library; those whose cause cannot be seen are expected to be missed."""
    found = []
    for param in each(table):
        reason = BLIND.get(param.values)
        mark = () if reason is None else (pytest.mark.xfail(strict=True, reason=reason),)
        found.append(pytest.param(*param.values, id=param.id, marks=(*param.marks, *mark)))
    return found


@pytest.mark.parametrize(("name", "library"), seen(FAULTS))
def test_a_fault_is_found(run, name, library):
    """Its kind comes first, on its line, in its words, and nothing that would make it worse is advised."""
    row = FAULTS[name]
    run(library, row.texts)
    found = NOTEBOOK.last
    assert not found.unseen, found.unseen
    reported = found.remarks if row.noted else found.findings
    assert reported, found
    assert not (row.noted and found.findings), found
    first = reported[0]
    assert first.kind in row.kinds, found
    lines = {line for cell, line in row.causes + row.as_good if cell == len(row.texts) - 1}
    assert not lines or first.line in lines, found
    for words in row.says:
        assert words in str(first), found
    for words in row.never:
        assert words not in first.fix, found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS, live=(pytest.mark.exhaustive,)))
def test_a_cured_cell_is_not_accused_of_the_same(run, name, library):
    row = FAULTS[name]
    run(library, row.cured)
    found = NOTEBOOK.last
    reported = (*found.findings, *(found.remarks if row.noted else ()))
    assert not [finding for finding in reported if finding.kind in row.kinds], found


@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_the_healthy_are_left_in_peace(run, name, library):
    row = HEALTHY[name]
    run(library, row.texts)
    found = NOTEBOOK.last
    assert not found.unseen, found.unseen
    assert not found.findings, found
    assert {remark.kind for remark in found.remarks} <= set(row.remarks), found
