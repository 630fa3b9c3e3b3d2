"""Each planted fault shows its symptom until it is cured, and each healthy cell trains."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import faults
import healthy
import pytest
from planting import LIBRARIES, Cells


def rows_in(package: ModuleType) -> dict[str, Cells]:
    """Return the rows of all modules of a package, by name."""
    rows: dict[str, Cells] = {}
    for found in pkgutil.iter_modules(package.__path__):
        for name, row in importlib.import_module(f"{package.__name__}.{found.name}").ROWS.items():
            assert name not in rows, f"two rows have the name {name!r}"
            rows[name] = row
    return rows


FAULTS = rows_in(faults)
HEALTHY = rows_in(healthy)


def each(table: dict[str, Cells], live: tuple[pytest.MarkDecorator, ...] = ()) -> list[pytest.param]:
    """Return every row with every library it runs with. PyTorch is marked as slow. `live` has further marks for PyTorch if
    gradlab runs the row, too."""
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
def test_a_fault_shows_its_symptom(run, name, library):
    row = FAULTS[name]
    ran = run(library, row.texts)
    assert ran.error == row.raises, ran.said
    assert ran.holds(row.shows), row.shows


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(FAULTS))
def test_a_cure_removes_the_symptom(run, name, library):
    row = FAULTS[name]
    ran = run(library, row.cured)
    assert ran.error is None, ran.said
    assert row.raises is not None or not ran.holds(row.shows), row.shows


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "library"), each(HEALTHY))
def test_a_healthy_cell_trains(run, name, library):
    row = HEALTHY[name]
    ran = run(library, row.texts)
    assert ran.error is None, ran.said
    assert ran.holds(row.learns), row.learns


def test_tables_are_broad():
    assert len(FAULTS) >= 80
    assert len(HEALTHY) >= 80
