"""nbgrader from end to end: the assignment is generated, submissions come back, are graded to the scores intended, and get
feedback. Every step is nbgrader's own command in a folder that `gradlab course --teacher` made."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from homework.submissions import INTENDED, NAME, source, written

from gradlab import cli
from gradlab.homework import student_version

pytest.importorskip("nbgrader", reason="needs the extra course")
pytestmark = pytest.mark.slow

SCORES = """
import json
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    print(json.dumps({s.student.id: [s.score, [[g.cell.name, g.score, g.max_score] for n in s.notebooks for g in n.grades]]
                      for s in book.find_assignment("hw3_jacobian").submissions}))
"""


def nbgrader(folder: Path, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=folder, env=environment(folder), text=True,
                          capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def environment(folder: Path) -> dict[str, str]:
    """Nothing of this machine's own Jupyter; and nbgrader calls `alembic` by name."""
    private = {f"JUPYTER_{kind}_DIR": str(folder / ".jupyter" / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    return {**os.environ, **private, "IPYTHONDIR": str(folder / ".ipython"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    assert cli.main(["course", str(folder), "--teacher"]) == 0
    nbgrader(folder, "generate_assignment", NAME)
    for who in INTENDED:
        written(folder / "submitted" / who / NAME, who)
    # A student's own checks.py is worth nothing: the teacher's takes its place.
    (folder / "submitted" / "cheating" / NAME / "checks.py").write_text("homework = None\n")
    nbgrader(folder, "autograde", NAME)
    nbgrader(folder, "generate_feedback", NAME)
    return folder


@pytest.fixture(scope="module")
def scores(course):
    done = subprocess.run([sys.executable, "-c", SCORES], cwd=course, env=environment(course), text=True, capture_output=True,
                          check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("who", INTENDED)
def test_the_scores_are_those_intended(scores, who):
    total, cells = scores[who]
    points = {name: score for name, score, _ in cells}
    assert tuple(points[f"check{n}"] for n in range(1, 6)) == INTENDED[who][2]
    assert total == sum(INTENDED[who][2])
    assert {name: most for name, _, most in cells} == {"check1": 30, "check2": 20, "check3": 20, "check4": 15, "check5": 15}


@pytest.mark.parametrize("who", INTENDED)
def test_there_is_feedback_in_words(course, who):
    page = (course / "feedback" / who / NAME / f"{NAME}.html").read_text()
    assert page.count("of 30 points") >= 1
    said = {"right": "largest difference", "half": "sweeps", "empty": "not written yet", "cheating": "it uses"}[who]
    assert said in page


def test_the_students_version_is_the_one_nbgrader_makes(course):
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text())
    ours = student_version(source())
    assert ["".join(cell["source"]) for cell in released["cells"]] == ["".join(cell["source"]) for cell in ours["cells"]]
    assert [cell["cell_type"] for cell in released["cells"]] == [cell["cell_type"] for cell in ours["cells"]]
