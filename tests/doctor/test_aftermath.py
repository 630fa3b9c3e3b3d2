"""`%doctor` after a run that nobody watched: the error and its line, what is left, and silence where nothing is wrong."""

from __future__ import annotations

import re

import pytest
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


def spelled(text):
    """Both names are the library's there."""
    return text.replace("gl.", "torch.")


def squeezed(text):
    return "".join(text.split()).replace('"', "'")
