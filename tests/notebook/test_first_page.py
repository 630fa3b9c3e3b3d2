"""The first cells of quickstart.ipynb: the Problem of the faulty cell, and its fix as printed."""

import re
import sys

import pytest
from notebooks.reading import read


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def library(request, shell, monkeypatch):
    """Library that the first cell imports as `torch`."""
    if request.param == "gradlab":
        monkeypatch.setitem(sys.modules, "torch", None)
    shell.ok(cells()["load"].partition("\n")[2])  # the extension is loaded
    assert shell.ns["torch"].__name__ == request.param
    return request.param


def cells():
    return {cell.id: cell.source for cell in read("quickstart.ipynb").cells}


@pytest.mark.slow
def test_the_fix_as_printed_repairs_the_first_cell(shell, library):
    tour = cells()
    ran = shell.ok(tour["broken"])
    assert not ran.stderr, "the fault raises no error"
    (finding,) = shell.ns["broken"].findings
    assert finding.kind == "broadcast"
    expression, line = re.match(r"`(.+?)` on line (\d+):", str(finding.message)).groups()
    fixes = re.findall(r"`([^`]+)` in place of `([^`]+)`", str(finding.fix))
    assert len(fixes) == 2 and "`{}` in place of `{}`".format(*fixes[0]) in tour["fixed-text"]
    for new, old in fixes:
        lines = tour["broken"].splitlines()
        assert lines[int(line) - 1].count(expression) == 1
        repaired = re.sub(rf"\b{re.escape(old)}\b", new, expression)
        lines[int(line) - 1] = lines[int(line) - 1].replace(expression, repaired)
        cell = "\n".join(lines).replace("-o broken", "-o fixed")
        assert (cell == tour["fixed"]) == ((new, old) == fixes[0]), "the tour applies the first of the two fixes"
        shell.ok(cell)
        assert shell.ns["fixed"].findings == () and shell.ns["losses"][-1] < 0.01
    shell.ok(tour["fixed"])
    comparison = shell.run(tour["compare"]).result
    assert comparison.lines == ("- loss = ((out - y) ** 2).mean()", "+ loss = ((out.squeeze(1) - y) ** 2).mean()")
    assert [one.kind for one in comparison.findings_gone] == ["broadcast"] and not comparison.findings_new
    assert all(change.factor > 10 for change in comparison.changes), "the gradients were nearly 0"


@pytest.mark.slow
def test_the_numbers_of_the_text(shell, library):
    tour = cells()
    shell.ok(tour["broken"])
    assert "stays at 0.52" in tour["broken-text"] and f"{shell.ns['losses'][-1]:.2g}" == "0.52"
    zero = sum(float(y) ** 2 for y in shell.ns["y"]) / 96  # the loss of a network with output 0
    assert f"{zero:.2g}" == "0.52"
    shell.ok(tour["fixed"])
    assert "falls to 0.0011" in tour["compare-text"] and f"{shell.ns['losses'][-1]:.2g}" == "0.0011"
