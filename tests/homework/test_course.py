"""`gradlab course`: what it copies, and that it overwrites nothing; a whole notebook run and checked."""
from __future__ import annotations

import json

import pytest
from homework.submissions import INTENDED, NAME, SOURCE, written

from gradlab import cli
from gradlab.homework import run, student_version


def test_students_get_no_solutions_and_keep_their_work(tmp_path, capsys):
    assert cli.main(["course", str(tmp_path)]) == 0
    path = tmp_path / "homework" / NAME / f"{NAME}.ipynb"
    text = path.read_text()
    assert "SOLUTION" not in text
    assert "HIDDEN" not in text
    assert "seed=" not in text
    assert text.count("raise NotImplementedError()") == 7             # six functions, and the sentence that says to take it out
    assert (tmp_path / "homework" / NAME / "checks.py").is_file()
    assert (tmp_path / "lessons" / "05_jacobian.ipynb").is_file()
    path.write_text("mine")
    capsys.readouterr()
    assert cli.main(["course", str(tmp_path)]) == 0
    assert path.read_text() == "mine"
    assert f"kept yours: {path}" in capsys.readouterr().out


def test_a_teacher_gets_the_source(tmp_path):
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    assert (tmp_path / "source" / NAME / f"{NAME}.ipynb").read_bytes() == (SOURCE / f"{NAME}.ipynb").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"nbgrader_config.py", "README.md", "source"}


def test_a_file_in_the_way_is_said(tmp_path, capsys):
    (tmp_path / "x").write_text("")
    assert cli.main(["course", str(tmp_path / "x")]) == 1
    assert "is a file. Name a folder" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "words"), [
    (["### BEGIN SOLUTION", "x = 1"], "is not closed"),
    (["### END SOLUTION"], "has no ### BEGIN SOLUTION before it"),
    (["### BEGIN SOLUTION", "### BEGIN SOLUTION", "### END SOLUTION"], "stands inside another one"),
])
def test_marks_that_do_not_match_are_refused(lines, words):
    cell = {"cell_type": "code", "metadata": {}, "source": "\n".join(lines), "outputs": []}
    with pytest.raises(ValueError, match=words):
        student_version({"cells": [cell]})


def test_the_source_is_stripped_and_has_every_point():
    notebook = json.loads((SOURCE / f"{NAME}.ipynb").read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    graded = [cell["metadata"]["nbgrader"] for cell in code if cell["metadata"].get("nbgrader", {}).get("grade")]
    assert sum(cell["points"] for cell in graded) == 100


@pytest.mark.slow
@pytest.mark.parametrize("who", INTENDED)
def test_a_submission_is_run_and_checked(tmp_path, who):
    pytest.importorskip("nbclient", reason="needs the extra lab")
    verdicts = run(written(tmp_path, who), seed=4, checks=SOURCE)
    expected = INTENDED[who][2] if who != "cheating" else (0, 0, 0, 0, 0)
    assert tuple(verdict.points for verdict in verdicts) == expected
