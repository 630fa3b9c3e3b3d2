"""The rows are real: each planted fault shows its symptom, and no longer when cured; each healthy cell learns."""

from __future__ import annotations

import pytest
from faults import contact_errors, contact_names, contact_numbers, cuts, depth, leaves, losses, numbers, styles, training
from healthy import basics, everyday, generative, language, partial, reinforcement, several_losses, tricks, vision
from healthy import contact_errors as healthy_errors
from healthy import contact_names as healthy_names
from healthy import contact_numbers as healthy_numbers
from planting import LIBRARIES, Cells

FAULTS = {
    name: row
    for family in (cuts, leaves, training, depth, numbers, losses, styles, contact_errors, contact_names, contact_numbers)
    for name, row in family.ROWS.items()
}
HEALTHY = {
    name: row
    for family in (
        *(basics, vision, language, generative, reinforcement, partial, tricks, everyday, several_losses),
        *(healthy_errors, healthy_names, healthy_numbers),
    )
    for name, row in family.ROWS.items()
}


def each(table: dict[str, Cells], live: tuple[pytest.MarkDecorator, ...] = ()) -> list[pytest.param]:
    """Every row with every library that it runs on; gradlab always, the other where it is installed and time is no matter.
    `live` are further marks of a row on the other that gradlab runs, too."""
    other = (pytest.mark.torch, pytest.mark.slow)
    return [
        pytest.param(
            name,
            library,
            id=f"{name}-{library}",
            marks=() if library == "gradlab" else (*other, *(live if "gradlab" in row.libraries else ())),
        )
        for name, row in table.items()
        for library in LIBRARIES
        if library in row.libraries
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "library"), each(FAULTS))
def test_a_fault_shows(run, name, library):
    row = FAULTS[name]
    ran = run(library, row.texts)
    assert ran.error == row.raises, ran.said
    assert ran.holds(row.shows), row.shows


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(FAULTS))
def test_a_cure_cures(run, name, library):
    row = FAULTS[name]
    ran = run(library, row.cured)
    assert ran.error is None, ran.said
    assert row.raises is not None or not ran.holds(row.shows), row.shows


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_the_healthy_learn(run, name, library):
    row = HEALTHY[name]
    ran = run(library, row.texts)
    assert ran.error is None, ran.said
    assert ran.holds(row.learns), row.learns


def test_tables_are_broad():
    assert len(FAULTS) >= 80
    assert len(HEALTHY) >= 80
