"""`gradlab course`: what it copies, and that it overwrites nothing; a class summed up."""

from __future__ import annotations

import ast
import json
import re
import shutil

import pytest
from homework.submissions import INTENDED, NAME, SOURCE, write_notebook

from gradlab import cli
from gradlab.homework import student_version


def test_students_get_no_solutions_and_keep_their_work(tmp_path, capsys):
    assert cli.main(["course", str(tmp_path)]) == 0
    path = tmp_path / "homework" / NAME / f"{NAME}.ipynb"
    text = path.read_text()
    assert "SOLUTION" not in text
    assert "HIDDEN" not in text
    assert "seed=" not in text
    assert text.count("raise NotImplementedError()") == 8  # seven functions, and the sentence that says to take it out
    assert (tmp_path / "homework" / NAME / "checks.py").is_file()
    assert (tmp_path / "lessons" / "05_jacobian.ipynb").is_file()
    path.write_text("mine")
    capsys.readouterr()
    assert cli.main(["course", str(tmp_path)]) == 0
    assert path.read_text() == "mine"
    assert f"skipped {path} (already exists)" in capsys.readouterr().out


def test_a_teacher_gets_the_source(tmp_path):
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    assert (tmp_path / "source" / NAME / f"{NAME}.ipynb").read_bytes() == (SOURCE / f"{NAME}.ipynb").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"nbgrader_config.py", "README.md", "source"}


def test_each_course_has_a_seed_of_its_own(tmp_path):
    seeds = set()
    for name in ("a", "b"):
        assert cli.main(["course", str(tmp_path / name), "--teacher"]) == 0
        seeds.add((tmp_path / name / "nbgrader_config.py").read_text())
    assert len(seeds) == 2
    compile(seeds.pop(), "nbgrader_config.py", "exec")


def test_collected_files_belong_to_whom_they_name(tmp_path):
    """Names may have underscores."""
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    (line,) = [line for line in (tmp_path / "nbgrader_config.py").read_text().splitlines() if "named_regexp" in line]
    pattern = re.compile(ast.literal_eval(line.partition(" = ")[2]))
    for name, student in (("ada", "ada"), ("jan_de_vries", "jan_de_vries"), ("archive/piet_vries", "piet_vries")):
        found = pattern.match(f"downloaded/{NAME}/{name}_{NAME}.ipynb")
        assert (found["student_id"], found["file_id"]) == (student, NAME)


def test_what_python_leaves_behind_is_no_file_of_the_course(tmp_path, monkeypatch):
    """An installed package has a `__pycache__` beside checks.py."""
    package = tmp_path / "notebooks"
    shutil.copytree(cli.notebooks(), package)
    (package / "homework" / NAME / "__pycache__").mkdir(exist_ok=True)
    (package / "homework" / NAME / "__pycache__" / "checks.cpython-311.pyc").write_bytes(b"")
    (package / "homework" / NAME / "notes.ipynb").mkdir()
    monkeypatch.setattr(cli, "notebooks", lambda: package)
    assert cli.main(["course", str(tmp_path / "c")]) == 0
    assert {path.name for path in (tmp_path / "c" / "homework" / NAME).iterdir()} == {"checks.py", f"{NAME}.ipynb"}


def test_solutions_that_are_not_there_are_not_handed_out_as_a_teacher_s(tmp_path, monkeypatch, capsys):
    package = tmp_path / "notebooks"
    shutil.copytree(cli.notebooks(), package)
    made = student_version(json.loads((SOURCE / f"{NAME}.ipynb").read_text()))
    (package / "homework" / NAME / f"{NAME}.ipynb").write_text(json.dumps(made))
    monkeypatch.setattr(cli, "notebooks", lambda: package)
    assert cli.main(["course", str(tmp_path / "c"), "--teacher"]) == 1
    assert "the solutions are not in the installed package" in capsys.readouterr().err
    assert cli.main(["course", str(tmp_path / "c")]) == 0  # a student's version stays unchanged
    assert json.loads((tmp_path / "c" / "homework" / NAME / f"{NAME}.ipynb").read_text()) == made


@pytest.mark.e2e
def test_a_folder_of_submissions_is_summed_up(tmp_path, capsys):
    for who in ("right", "half", "empty"):
        write_notebook(tmp_path / who, who)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / f"{NAME}.ipynb").write_text("{")
    (tmp_path / "torn" / "else.ipynb").write_text("{}")
    assert cli.main(["course", str(tmp_path), "--summary"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    for who in ("right", "half", "empty"):
        points = INTENDED[who][2]
        *scored, seconds = map(float, rows[who])
        assert scored == [*points, sum(points)] and seconds >= 0
    assert rows["of"] == ["30", "20", "20", "15", "15", "0", "100"]
    assert rows["mean"][0] == "20" and rows["mean"][-1] == f"{(100 + 52.5) / 3:.3g}"
    assert "2. The Jacobian by columns\n    2 × `jacobian_by_columns`: not written yet" in text
    assert "torn: hw3_jacobian.ipynb is not a notebook" in text
    assert "else" not in text


@pytest.mark.e2e
def test_checks_beside_submissions_do_not_count_and_named_ones_do(tmp_path, capsys):
    folder, own = tmp_path / "handed_in", tmp_path / "own" / NAME
    for who in ("right", "half"):
        write_notebook(folder / who, who)
    theirs = (SOURCE / "checks.py").read_text()
    changed = theirs.replace('"The Jacobian by rows", points=30', '"The Jacobian by rows", points=34')
    assert changed != theirs
    (folder / "right" / "checks.py").write_text(changed)
    (folder / "half" / "checks.py").write_text(theirs)
    own.mkdir(parents=True)
    (own / "checks.py").write_text(changed)

    def summary(*more):
        assert cli.main(["course", str(folder), "--summary", *more]) == 0
        text = capsys.readouterr().out
        return text, next(line.split()[1:] for line in text.splitlines() if line.startswith("of "))

    text, worth = summary()
    assert worth[0] == "30"
    assert "Graded with the checks that came with gradlab. The checks.py beside the work of right differs" in text
    assert "--checks FOLDER" in text
    for place in (own.parent, own):
        text, worth = summary("--checks", str(place))
        assert worth[0] == "34" and f"Graded with the checks in {place}" in text and "beside the work of half" in text
    assert cli.main(["course", str(folder), "--summary", "--checks", str(tmp_path / "none")]) == 1
    assert "there is no checks.py in" in capsys.readouterr().err
    assert cli.main(["course", str(folder), "--checks", str(own)]) == 1
    assert "--checks requires --summary" in capsys.readouterr().err


def test_guesses_are_summed_up_by_what_was_said_first(tmp_path, capsys):
    lines = [
        ("ada", "two_rows", "[1, 2]", False),
        ("ada", "two_rows", "[3, 5]", True),  # after the answer
        ("bob", "two_rows", "[3, 5]", True),
        ("eve", "two_rows", "[1, 2]", False),
        ("eve", "path", "Mül", False),
    ]
    keys = ("student", "question", "guess", "right")
    told = [json.dumps({**dict(zip(keys, line, strict=True)), "notebook": "05_jacobian"}) for line in lines]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "guesses.jsonl").write_text("\n".join([*told[:3], '{"torn', "[]", "3"]), encoding="utf-8")
    (tmp_path / "more.jsonl").write_text("\n".join(told[3:]), encoding="utf-8")
    assert cli.main(["course", str(tmp_path), "--summary"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "05_jacobian: guesses"
    assert [line.split() for line in text.splitlines()[3:]] == [
        ["two_rows", "3", "1", "2", "×", "[1,", "2]"],
        ["path", "1", "0", "1", "×", "Mül"],
    ]


def test_nothing_to_sum_up_is_said(tmp_path, capsys):
    assert cli.main(["course", str(tmp_path), "--summary"]) == 1
    assert "there is nothing to summarize" in capsys.readouterr().err
    assert cli.main(["course", str(tmp_path / "none"), "--summary"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_a_file_in_the_way_is_said(tmp_path, capsys):
    (tmp_path / "x").write_text("")
    assert cli.main(["course", str(tmp_path / "x")]) == 1
    assert "is a file. Give a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["### BEGIN SOLUTION", "x = 1"], "is not closed"),
        (["### END SOLUTION"], "has no ### BEGIN SOLUTION before it"),
        (["### BEGIN SOLUTION", "### BEGIN SOLUTION", "### END SOLUTION"], "inside another one"),
    ],
)
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
