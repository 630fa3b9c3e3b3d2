"""The doctor finds the planted faults, and nothing in healthy cells."""

from __future__ import annotations

import pytest
from test_planted import FAULTS, HEALTHY, each

from gradlab.explore.doctor.session import NOTEBOOK
from gradlab.explore.trace.data import RAN_UNCOMPILED

# Rows whose cause cannot be found, and why.
BLIND = {
    ("a Parameter made in forward", "torch"): "PyTorch does not report that Parameter(x) takes over the memory of x",
}


def each_row(table):
    """Return the rows with each library. Rows whose cause cannot be found are expected to fail."""
    found = []
    for param in each(table):
        reason = BLIND.get(param.values)
        mark = () if reason is None else (pytest.mark.xfail(strict=True, reason=reason),)
        found.append(pytest.param(*param.values, id=param.id, marks=(*param.marks, *mark)))
    return found


@pytest.mark.parametrize(("name", "library"), each_row(FAULTS))
def test_a_fault_is_found(run, name, library):
    """The first finding has the row's kind, line and words, and its fix has no harmful advice."""
    row = FAULTS[name]
    run(library, row.texts)
    found = NOTEBOOK.last
    assert set(found.unseen) <= {RAN_UNCOMPILED}
    reported = found.remarks if row.is_note else found.findings
    assert reported, found
    assert not (row.is_note and found.findings), found
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
def test_a_cured_cell_does_not_have_the_same_finding(run, name, library):
    row = FAULTS[name]
    run(library, row.cured)
    found = NOTEBOOK.last
    reported = (*found.findings, *(found.remarks if row.is_note else ()))
    assert not [finding for finding in reported if finding.kind in row.kinds], found


@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_a_healthy_cell_has_no_finding(run, name, library):
    row = HEALTHY[name]
    run(library, row.texts)
    found = NOTEBOOK.last
    assert set(found.unseen) <= {RAN_UNCOMPILED}
    assert not found.findings, found
    assert {remark.kind for remark in found.remarks} <= set(row.remarks), found
