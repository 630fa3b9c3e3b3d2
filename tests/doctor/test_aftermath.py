"""`%doctor` after a run that nobody watched: the error and its line, what is left, and silence where nothing is wrong."""

from __future__ import annotations

import re

import pytest
from leavings import HEALTHY, NET, SICK
from row_runs import Run
from wrecks import WRECKS

from gradlab.explore.doctor.clinic import HOUSE

ORACLE = (pytest.mark.oracle,)


def each(table):
    return [
        pytest.param(name, library, id=f"{name}-{library}", marks=() if library == "gradlab" else ORACLE)
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


@pytest.mark.parametrize(("name", "library"), each(WRECKS))
def test_the_advice_cures(run, shell, name, library):
    row = WRECKS[name]
    run(library, row.texts)
    first = asked(shell).findings[0]
    for cured in row.cured:
        ran = Run(shell, library, cured)
        assert ran.error is None, ran.said
        assert not [one for one in asked(shell).findings if one.kind == row.kind], "it is still told of"
    cells = [squeezed("\n".join(one)) for one in (*row.cured, row.texts)]
    for code in re.findall(r"`([^`]+)`", spelled(first.fix)):
        if "(" in code or " = " in code:
            assert any(squeezed(code) in one for one in cells), (code, first.fix)


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
    assert "could not be looked at" not in str(found)
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
