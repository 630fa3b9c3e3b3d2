"""Check each homework of the course: its notebook, its checks, and the versions for students and teachers."""

from __future__ import annotations

import ast
import json
import re

import pytest

from gradlab import cli
from gradlab.homework import load, run, student_version
from gradlab.homework.versions import BEGIN, END

HOMEWORK = sorted(path.parent for path in (cli.notebooks() / "homework").glob("*/checks.py"))
TASK = re.compile(r"^## (\d+)\. (.+) \((\d+|no) points, about (\d+) minutes, difficulty ([123])\)$", re.MULTILINE)
CHECK = re.compile(r"%check (\d+)\n### BEGIN HIDDEN TESTS\nraise RuntimeError\(.*\n### END HIDDEN TESTS$")
HINTS, HARD = 2, 3


def names_in(folder):
    return folder.name


@pytest.fixture(params=HOMEWORK, ids=names_in)
def folder(request):
    return request.param


@pytest.fixture
def cells(folder):
    return json.loads((folder / f"{folder.name}.ipynb").read_text(encoding="utf-8"))["cells"]


def worth(points):
    return 0 if points == "no" else int(points)


def text(cell):
    return "".join(cell["source"])


def test_there_is_homework():
    assert len(HOMEWORK) >= 1
    for path in (cli.notebooks() / "homework").iterdir():
        names = {one.name for one in path.iterdir() if one.suffix in (".ipynb", ".py")}
        assert names == {"checks.py", f"{path.name}.ipynb"} and re.fullmatch(r"hw\d_\w+", path.name)


def test_the_notebook_is_stripped(cells):
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_tasks_say_what_they_are_worth_how_long_they_take_and_how_hard_they_are(folder, cells):
    homework = load(folder)
    tasks = [found for cell in cells if cell["cell_type"] == "markdown" for found in TASK.findall(text(cell))]
    assert [int(number) for number, *_ in tasks] == sorted(homework.exercises)
    assert homework.points == sum(worth(points) for _, _, points, *_ in tasks) == 100
    for number, _, points, *_ in tasks:
        assert homework.exercises[int(number)][1] == worth(points)
    told = re.search(r"100 points, about (\d+) minutes", text(cells[0]))
    assert told and 60 <= int(told[1]) <= 120
    assert sum(int(minutes) for *_, minutes, _ in tasks) <= int(told[1])


def test_hard_tasks_have_two_folded_hints(cells):
    said = "\n".join(text(cell) for cell in cells if cell["cell_type"] == "markdown")
    tasks = list(TASK.finditer(said))
    for task, after in zip(tasks, [*(one.start() for one in tasks[1:]), len(said)], strict=True):
        hints = len(re.findall(r"<details><summary>Hint \d", said[task.start() : after]))
        assert hints == HINTS or (hints == 0 and int(task[5]) < HARD), task[0]


def test_nbgrader_s_cells_agree_with_the_checks(folder, cells):
    homework, seen = load(folder), []
    for cell in cells:
        told = cell["metadata"].get("nbgrader", {})
        if told.get("grade"):
            found = CHECK.match(text(cell))
            assert found and told["locked"] and not told["solution"], cell["id"]
            assert told["points"] == homework.exercises[int(found[1])][1]
            seen.append(int(found[1]))
        elif BEGIN in text(cell):
            assert told["solution"] and not told["locked"], cell["id"]
            assert text(cell).count(BEGIN) == text(cell).count(END)
    assert seen == sorted(homework.exercises)
    ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell["metadata"]]
    assert len(set(ids)) == len(ids)


def test_students_get_no_solution(folder, cells, tmp_path):
    assert cli.main(["course", str(tmp_path)]) == 0
    made = tmp_path / "homework" / folder.name / f"{folder.name}.ipynb"
    version = json.loads(made.read_text(encoding="utf-8"))
    assert version == json.loads(json.dumps(student_version({**version, "cells": cells})))
    said = made.read_text(encoding="utf-8")
    assert "SOLUTION" not in said and "HIDDEN" not in said and "raise NotImplementedError()" in said
    assert "seed=" not in re.sub(r"def \w+\(seed=0\b", "", said)  # of the checks; a training may have one of its own
    handed = "\n".join(text(cell) for cell in version["cells"])
    for cell in cells:
        for solution in re.findall(rf"{BEGIN}\n(.*?)[ ]*{END}", text(cell), re.DOTALL):
            assert solution not in handed, cell["id"]


@pytest.mark.e2e
def test_the_students_version_earns_nothing_and_says_what_is_missing(folder, tmp_path):
    assert cli.main(["course", str(tmp_path)]) == 0
    verdicts = run(tmp_path / "homework" / folder.name / f"{folder.name}.ipynb")
    assert [one.number for one in verdicts] == sorted(load(folder).exercises)
    for one in verdicts:
        assert one.points == 0, str(one)
        assert "the check itself failed" not in str(one)


def test_a_teacher_gets_all_of_it(folder, tmp_path):
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    for name in ("checks.py", f"{folder.name}.ipynb"):
        assert (tmp_path / "source" / folder.name / name).read_bytes() == (folder / name).read_bytes()
    (line,) = [line for line in (tmp_path / "nbgrader_config.py").read_text().splitlines() if "named_regexp" in line]
    pattern = re.compile(ast.literal_eval(line.partition(" = ")[2]))
    for student in ("ada", "jan_de_vries", "hw1_fan"):
        found = pattern.match(f"downloaded/{folder.name}/archive/{student}_{folder.name}.ipynb")
        assert (found["student_id"], found["file_id"]) == (student, folder.name)
