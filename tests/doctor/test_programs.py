"""Training programs under `%%grad`, `%%doctor` and `%%watch` and as scripts: no finding if healthy, otherwise the faulty line."""

from __future__ import annotations

import difflib
import re
import warnings

import pytest
from reading_programs import NAMES, read

from gradlab import cli
from gradlab.explore.doctor.session import NOTEBOOK

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# Programs whose fault or line is not found, and why.
BLIND = {
    "gcn": "operations before the first one that requires a gradient are not recorded: the adjacency with the NaN is named",
    "neural_ode": "the growth runs along y = y + …, which counts as a skip connection",
}


@pytest.fixture(
    params=["%%grad", *(pytest.param(magic, marks=pytest.mark.slow) for magic in ("%%doctor", "%%watch"))],
    ids=["grad", "doctor", "watch"],
)
def diagnose(shell, request):
    """Function that runs a program as a cell under a magic, and returns the diagnosis and the error."""
    shell.ip.run_line_magic("config", "GradMagics.graph = False")  # no test looks at the pictures

    def run(text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries warn about some faults
            error = shell.run(f"{request.param}\n{text}").error
        return NOTEBOOK.last, error

    yield run
    shell.ip.InteractiveTB.evalue = shell.ip.InteractiveTB.tb = None  # these hold the frames of an error
    shell.ip.reset(new_session=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_program_has_no_finding(diagnose, name):
    found, error = diagnose(read(name, faulty=False).text)
    assert error is None
    assert not found.unseen, found.unseen
    assert not found.findings, found


@pytest.mark.slow
@pytest.mark.parametrize("diagnose", ["%%watch"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_program_that_is_examined_for_a_few_steps_has_no_finding(diagnose, monkeypatch, name):
    for place in ("examination.FULL", "examination.FIRST", "watching.FULL"):
        monkeypatch.setattr(f"gradlab.explore.watch.{place}", 3)
    test_a_healthy_program_has_no_finding(diagnose, name)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.xfail(strict=True, reason=BLIND[n]) if n in BLIND else ()) for n in NAMES]
)
def test_the_first_finding_of_a_faulty_program_names_the_cause(diagnose, name):
    program = read(name, faulty=True)
    found, _ = diagnose(program.text)
    assert not found.unseen, found.unseen
    lines = {line + 1 for line in program.lines}  # the magic is line 1
    if program.remark:
        assert not found.findings, found
        assert any(remark.kind in program.kinds and remark.line in lines for remark in found.remarks), found
    else:
        assert found.findings, found
        first = found.findings[0]
        assert first.kind in program.kinds and first.line in lines, found


@pytest.mark.slow
@pytest.mark.parametrize("faulty", [False, True], ids=["healthy", "faulty"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in BLIND])
def test_as_a_script(name, faulty, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = read(name, faulty)
    (tmp_path / "train.py").write_text(program.text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status = cli.main(["doctor", "--every", "train.py"])
    said = capsys.readouterr().err
    lines = [int(line) for line in re.findall(r"^train\.py:(\d+):", said, re.MULTILINE)]
    if not faulty or program.remark:
        assert status == 0, said
    else:
        assert status == 1, said
        assert lines[0] in program.lines, said


def test_forms_differ_only_in_the_marked_lines():
    """One to three lines differ, which a diff may count twice. Both forms compile."""
    for name in NAMES:
        forms = [read(name, faulty).text for faulty in (False, True)]
        for form in forms:
            compile(form, name, "exec")
        healthy, faulty = (form.splitlines() for form in forms)
        edits = [line for line in difflib.ndiff(healthy, faulty) if line[:1] in "+-"]
        assert 0 < len(edits) <= 6, name
