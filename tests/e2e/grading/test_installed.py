"""The course from an installed wheel in a separate environment: the files of students, and grading."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from e2e.grading.test_nbgrader import SCORES
from homework.submissions import INTENDED, NAME, SOURCE, source, write_notebook

from gradlab import cli
from gradlab.homework import student_version

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache"))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(copy)],
        check=True,
        timeout=300,
        env=environment(folder),
    )
    return next(folder.glob("gradlab-*.whl"))


def environment(folder: Path, python: Path | None = None) -> dict[str, str]:
    """Return environment variables that hide this checkout's gradlab and this machine's Jupyter folders."""
    private = {f"JUPYTER_{kind}_DIR": str(folder / ".jupyter" / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    path = os.pathsep.join([*([str(python.parent)] if python else []), str(Path(sys.executable).parent), os.environ["PATH"]])
    return (
        {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        | private
        | {"IPYTHONDIR": str(folder / ".ipython"), "PATH": path}
    )


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Create an environment with the wheel. It uses the other packages of this one, but not its gradlab."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "v")], check=True, timeout=120)
    python = folder / "v" / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "v"), "platbase": str(folder / "v")}))
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--python", str(python), "install", "--no-deps", str(wheel)],
        check=True,
        timeout=120,
    )
    (packages / "shared.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    (folder / "v" / "share").mkdir(exist_ok=True)
    (folder / "v" / "share" / "jupyter").symlink_to(Path(sys.prefix) / "share" / "jupyter")  # nbconvert's templates
    where = run(folder, python, "-c", "import gradlab; print(gradlab.__file__)").stdout
    assert where.startswith(str(packages))
    return python


def run(folder, python, *arguments, fails=False):
    done = subprocess.run(
        [str(python), *arguments],
        cwd=folder,
        env=environment(folder, python),
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode != 0) == fails, done.stdout[-1000:] + done.stderr[-3000:]
    return done


def test_there_is_no_solution_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith((".ipynb", ".py", ".md"))}
    notebooks = {name: text for name, text in texts.items() if name.startswith("gradlab/notebooks/homework/")}
    names = [path.parent.name for path in SOURCE.parent.glob("*/checks.py")]
    assert NAME in names
    assert {name.removeprefix("gradlab/notebooks/homework/") for name in notebooks} == {
        f"{name}/{file}" for name in names for file in (f"{name}.ipynb", "checks.py")
    }
    for name in names:
        made = notebooks[f"gradlab/notebooks/homework/{name}/{name}.ipynb"]
        assert json.loads(made) == json.loads(json.dumps(student_version(source(name))))
    lessons = {path.name for path in (SOURCE.parents[1] / "lessons").glob("*.ipynb")}
    assert {name.rpartition("/")[2] for name in texts if name.startswith("gradlab/notebooks/lessons/")} == lessons
    for name, text in texts.items():
        if name.endswith(".ipynb"):
            assert "BEGIN SOLUTION" not in text and "HIDDEN" not in text
    assert not any("hatch_build" in name for name in texts)


def test_the_course_is_copied_and_checked(python, tmp_path):
    said = run(tmp_path, python, "-m", "gradlab", "course", "mine").stdout
    assert f"{NAME}.ipynb" in said and "05_jacobian.ipynb" in said
    folder = tmp_path / "mine" / "homework" / NAME
    assert json.loads((folder / f"{NAME}.ipynb").read_text()) == json.loads(json.dumps(student_version(source())))
    code = (
        "import sys; from pathlib import Path; from gradlab.homework import run\n"
        f"print([one.points for one in run(Path({str(folder)!r}) / '{NAME}.ipynb')])"
    )
    assert run(tmp_path, python, "-c", code).stdout == "[0, 0, 0, 0, 0, 0]\n"
    assert run(tmp_path, python, "-m", "gradlab", "course", "mine").stdout.count("already exists") == len(
        [*SOURCE.parents[1].glob("lessons/*.ipynb"), *SOURCE.parent.glob("*/*.ipynb"), *SOURCE.parent.glob("*/checks.py")]
    )


def test_a_teacher_gets_the_address_of_the_solutions(python, tmp_path):
    said = run(tmp_path, python, "-m", "gradlab", "course", "theirs", "--teacher", fails=True).stderr
    assert "the solutions are not in the installed package" in said and "pip install -e" in said
    assert not (tmp_path / "theirs").exists()


@pytest.mark.exhaustive
def test_a_submission_is_graded(python, tmp_path):
    pytest.importorskip("nbgrader", reason="needs the extra course")
    assert cli.main(["course", str(tmp_path), "--teacher"]) == 0
    run(tmp_path, python, "-m", "nbgrader", "generate_assignment", NAME)
    for who in ("right", "cheating", "broken"):
        write_notebook(tmp_path / "submitted" / who / NAME, who)
    run(tmp_path, python, "-m", "nbgrader", "autograde", NAME)
    run(tmp_path, python, "-m", "nbgrader", "generate_feedback", NAME)
    scores = json.loads(run(tmp_path, python, "-c", SCORES.format(name=NAME)).stdout)
    assert {who: total for who, (total, _) in scores.items()} == {
        who: sum(INTENDED[who][2]) for who in ("right", "cheating", "broken")
    }
    page = (tmp_path / "feedback" / "right" / NAME / f"{NAME}.html").read_text()
    assert "100 of 100 points" in page and "<script" not in page
    assert "right" in run(tmp_path, python, "-m", "gradlab", "course", ".", "--summary").stdout
