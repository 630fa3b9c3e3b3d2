"""End-to-end test with nbgrader: the assignment is generated, submissions are graded to the intended scores and get feedback.

Every step is a command of nbgrader in a folder made by `gradlab course --teacher`, once in this environment and once with gradlab
installed from a wheel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grouped import exhaustive_after_first
from homework.submissions import INTENDED, NAME, SOURCE, source, submission, write_notebook, written_as

from gradlab import cli
from gradlab.homework import student_version

pytest.importorskip("nbgrader", reason="needs the extra course")

SCORES = """
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({{s.student.id: [s.score, [[g.cell.name, g.score, g.max_score] for n in s.notebooks for g in n.grades]]
                      for s in book.find_assignment("{name}").submissions}}))
"""


def nbgrader(folder: Path, *arguments: str, fails: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=folder,
        env=environment(folder),
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stderr[-3000:]
    return done.stderr


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables without this machine's Jupyter folders, in which nbgrader finds `alembic`."""
    private = {f"JUPYTER_{kind}_DIR": str(folder / ".jupyter" / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    return {
        **os.environ,
        **private,
        "IPYTHONDIR": str(folder / ".ipython"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    assert cli.main(["course", str(folder), "--teacher"]) == 0
    nbgrader(folder, "generate_assignment", NAME)
    for who in INTENDED:
        write_notebook(folder / "submitted" / who / NAME, who)
    # A student's checks.py has no effect, because the teacher's replaces it.
    (folder / "submitted" / "cheating" / NAME / "checks.py").write_text("homework = None\n")
    # One file is not a notebook, so nbgrader names the student and grades the others.
    torn = folder / "submitted" / "torn" / NAME
    torn.mkdir(parents=True)
    (torn / f"{NAME}.ipynb").write_text((folder / "submitted" / "right" / NAME / f"{NAME}.ipynb").read_text()[:3000])
    said = nbgrader(folder, "autograde", NAME, fails=True)
    assert "There was an error processing assignment 'hw3_jacobian' for student 'torn'" in said
    nbgrader(folder, "generate_feedback", NAME)
    nbgrader(folder, "export")
    return folder


@pytest.fixture(scope="module")
def scores(course):
    return scores_in(course)


def scores_in(folder, name=NAME):
    done = subprocess.run(
        [sys.executable, "-c", SCORES.format(name=name)],
        cwd=folder,
        env=environment(folder),
        text=True,
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("who", INTENDED)
def test_the_scores_are_the_intended_ones(scores, who):
    total, cells = scores[who]
    points = {name: score for name, score, _ in cells}
    assert tuple(points[f"check{n}"] for n in range(1, 7)) == INTENDED[who][2]
    assert total == sum(INTENDED[who][2])
    assert {name: most for name, _, most in cells} == dict(zip(points, (30, 20, 20, 15, 15, 0), strict=True))


SAID = {
    "right": "largest difference",
    "half": "9 sweeps",
    "empty": "not written yet",
    "cheating": "it uses",
    "endless": "did not end within 9 s",
    "broken": "this name is not defined in the notebook yet",
}


@pytest.mark.parametrize("who", INTENDED)
def test_feedback_has_texts(course, who):
    page = (course / "feedback" / who / NAME / f"{NAME}.html").read_text()
    total = sum(INTENDED[who][2])
    assert f"{NAME}: {total:g} of 100 points" in page
    assert len(re.findall(r"Exercise 1, The Jacobian by rows: [\d.]+ of 30 points", page)) == 1  # the verdict appears once
    assert "The Jacobian by rows" in page.partition("</table>")[0]
    assert SAID[who] in re.sub(r"\d+ (sweeps|s)\b", r"9 \1", page)


@pytest.mark.parametrize("who", INTENDED)
def test_feedback_has_no_hidden_tests_and_fetches_nothing(course, who):
    page = (course / "feedback" / who / NAME / f"{NAME}.html").read_text()
    seed = re.search(r"seed = (\d+)", (course / "nbgrader_config.py").read_text())[1]
    assert seed not in page
    assert "HIDDEN TESTS" not in page
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", page)
    formulas = re.findall(r'<img alt="([^"]*)" class="formula"', page)
    assert len(formulas) >= 8
    assert any("frac" in one for one in formulas)
    assert "$v^T J$" not in page


def test_the_summary_is_read_from_the_database(course, capsys):
    assert cli.main(["course", str(course), "--summary"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    for who, (_, _, points) in INTENDED.items():
        *scored, seconds = map(float, rows[who])
        assert scored == [*points, sum(points)] and (seconds >= 10 or who != "endless")
    assert rows["of"] == ["30", "20", "20", "15", "15", "0", "100"]
    assert "1. The Jacobian by rows" in text
    assert "1 × `jacobian_by_rows`: not written yet" in text
    assert "1 × `jacobian_by_rows`: it uses `gl.autograd.functional.jacobian`, which this exercise does not allow" in text


@pytest.mark.exhaustive
def test_without_the_settings_of_the_course_there_are_no_points(course, tmp_path):
    """Without gradlab's step, autograde would count a cell without an error as right."""
    for name in ("source", "submitted", "release"):
        shutil.copytree(course / name, tmp_path / name)
    for who in ("half", "empty", "cheating", "endless", "broken", "torn"):
        shutil.rmtree(tmp_path / "submitted" / who)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'gradlab'\n")
    nbgrader(tmp_path, "generate_assignment", NAME, "--force")
    nbgrader(tmp_path, "autograde", NAME)
    assert scores_in(tmp_path)["right"][0] == 0


@pytest.mark.exhaustive
def test_feedback_has_the_end_of_a_long_output(course, tmp_path):
    for name in ("source", "release"):
        shutil.copytree(course / name, tmp_path / name)
    shutil.copy(course / "nbgrader_config.py", tmp_path)
    shutil.copy(course / "gradebook.db", tmp_path)
    long = "for i in range(9000):\n    print('line', i)\nraise ValueError('at the ' + 'end ' * 300)"
    written_as(tmp_path / "submitted" / "ada" / NAME, submission({"answer1": long}))
    nbgrader(tmp_path, "autograde", NAME, "--student", "ada")
    nbgrader(tmp_path, "generate_feedback", NAME, "--student", "ada")
    page = (tmp_path / "feedback" / "ada" / NAME / f"{NAME}.html").read_text()
    assert "line 0\nline 1\n" in page and "characters are left out here" in page and "end " * 300 in page
    assert page.index("line 0\n") < page.index("line 8999\n") < page.index("at the end end")


@pytest.mark.exhaustive
def test_different_points_are_reported_to_the_teacher(course, tmp_path):
    shutil.copytree(course / "source", tmp_path / "source")
    shutil.copy(course / "nbgrader_config.py", tmp_path)
    checks = tmp_path / "source" / NAME / "checks.py"
    checks.write_text(checks.read_text().replace('"The Jacobian by columns", points=20', '"The Jacobian by columns", points=25'))
    nbgrader(tmp_path, "generate_assignment", NAME)
    write_notebook(tmp_path / "submitted" / "right" / NAME, "right")
    said = nbgrader(tmp_path, "autograde", NAME, fails=True)
    assert "exercise 2 is worth 25 points in checks.py, and 20 in the cell 'check2'" in said
    assert not (tmp_path / "autograded" / "right" / NAME).exists(), "no submission was graded"


@pytest.mark.exhaustive
def test_earlier_grades_are_kept_if_grading_again_fails(course, tmp_path):
    shutil.copytree(course / "source", tmp_path / "source")
    shutil.copy(course / "nbgrader_config.py", tmp_path)
    nbgrader(tmp_path, "generate_assignment", NAME)
    write_notebook(tmp_path / "submitted" / "right" / NAME, "right")
    nbgrader(tmp_path, "autograde", NAME)
    graded = tmp_path / "autograded" / "right" / NAME
    (graded / "remarks.txt").write_text("by hand")
    before = {path.relative_to(graded): path.read_bytes() for path in graded.rglob("*") if path.is_file()}
    checks = tmp_path / "source" / NAME / "checks.py"
    agreed = checks.read_text()
    checks.write_text(agreed.replace('"The Jacobian by columns", points=20', '"The Jacobian by columns", points=25'))
    said = nbgrader(tmp_path, "autograde", NAME, "--force", fails=True)
    assert "exercise 2 is worth 25 points" in said and "It was not graded again" in said
    assert {path.relative_to(graded): path.read_bytes() for path in graded.rglob("*") if path.is_file()} == before
    assert scores_in(tmp_path)["right"][0] == 100
    checks.write_text(agreed)
    assert "It was not graded again" not in nbgrader(tmp_path, "autograde", NAME, "--force")
    assert not (graded / "remarks.txt").exists() and (graded / f"{NAME}.ipynb").is_file(), (
        "--force replaces the grades of valid submissions"
    )
    nbgrader(tmp_path, "autograde", NAME)


@pytest.mark.exhaustive
def test_zip_collect_finds_the_students(course):
    archive = course / "downloaded" / NAME / "archive"
    archive.mkdir(parents=True)
    shutil.copy(course / "submitted" / "right" / NAME / f"{NAME}.ipynb", archive / f"anna-b_{NAME}.ipynb")
    nbgrader(course, "zip_collect", NAME)
    assert (course / "submitted" / "anna-b" / NAME / f"{NAME}.ipynb").is_file()
    shutil.rmtree(course / "submitted" / "anna-b")


@pytest.mark.parametrize("name", exhaustive_after_first(*sorted(path.parent.name for path in SOURCE.parent.glob("*/checks.py"))))
def test_the_students_version_matches_that_of_nbgrader(course, name):
    if name != NAME:
        nbgrader(course, "generate_assignment", name)
    released = json.loads((course / "release" / name / f"{name}.ipynb").read_text(encoding="utf-8"))
    ours = student_version(source(name))
    assert ["".join(cell["source"]) for cell in released["cells"]] == ["".join(cell["source"]) for cell in ours["cells"]]
    assert [cell["cell_type"] for cell in released["cells"]] == [cell["cell_type"] for cell in ours["cells"]]


OTHERS = sorted(path.name for path in SOURCE.parent.iterdir() if path.name != NAME)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_homework_is_generated_and_graded(name, tmp_path):
    """The solutions get 100 points, the unchanged notebook gets 0, and both get feedback."""
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    nbgrader(tmp_path, "generate_assignment", name)
    released = json.loads((tmp_path / "release" / name / f"{name}.ipynb").read_text())
    solved = {cell["id"]: "".join(cell["source"]) for cell in source(name)["cells"] if "SOLUTION" in "".join(cell["source"])}
    for who in ("right", "untouched"):
        for cell in released["cells"] if who == "right" else ():
            cell["source"] = solved.get(cell["id"], cell["source"])
        folder = tmp_path / "submitted" / who / name
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text(json.dumps(released))
        released = json.loads((tmp_path / "release" / name / f"{name}.ipynb").read_text())
    nbgrader(tmp_path, "autograde", name)
    nbgrader(tmp_path, "generate_feedback", name)
    scores = scores_in(tmp_path, name)
    assert {who: total for who, (total, _) in scores.items()} == {"right": 100, "untouched": 0}
    for who, (total, _) in scores.items():
        page = (tmp_path / "feedback" / who / name / f"{name}.html").read_text()
        assert f"{name}: {total:g} of 100 points" in page
        assert "HIDDEN TESTS" not in page and "the check itself failed" not in page
        assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
