"""The package: commands in README, the contents of the wheel, and the installed wheel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from waiting import jupyter_url

import gradlab

ROOT = Path(__file__).resolve().parents[3]
if not (ROOT / "pyproject.toml").is_file() or not (ROOT / "README.md").is_file():
    pytest.skip("not a checkout", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOUR = "python3 -m venv .venv && .venv/bin/pip install -e '.[lab]' && .venv/bin/gradlab quickstart"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/python -m pytest -n auto --dist loadfile"


def name_of(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def test_the_commands_of_readme():
    """Each is one line, which .ci/run reads from README."""
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("python3 -m venv")] == [TOUR, TESTS]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_pictures_of_readme_exist_and_are_small():
    readme = (ROOT / "README.md").read_text()
    pictures = re.findall(r'src(?:set)?="([^"]+)"', readme)
    assert len(pictures) >= 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 150_000, picture
    assert len(re.findall("<img ", readme)) == len(re.findall('<img alt="[^"]', readme))
    for target in re.findall(r"\]\(([^)]+)\)", readme):
        assert (ROOT / target).exists(), target


def test_torch_and_cupy_are_never_dependencies():
    extras = PROJECT["optional-dependencies"]
    everyday = PROJECT["dependencies"] + extras["lab"] + extras["test"]
    assert not {"torch", "cupy", "cupy-cuda12x"} & {name_of(requirement) for requirement in everyday}
    assert [name.partition(">=")[0] for name in extras["oracle"]] == ["torch==2.13.0", "expecttest"]


def test_every_dependency_has_a_minimum_version():
    assert all(">=" in requirement for requirement in PROJECT["dependencies"])


def test_the_tools_for_javascript_are_pinned_without_a_host():
    folder = ROOT / ".ci" / "js"
    asked = json.loads((folder / "package.json").read_text())
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert not {"dependencies", "bin", "main", "files"} & set(asked) and asked["private"], "they are not part of gradlab"
    assert locked[""]["devDependencies"] == asked["devDependencies"]
    for name, version in asked["devDependencies"].items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version) and locked[f"node_modules/{name}"]["version"] == version
    assert all("integrity" in package and "resolved" not in package for name, package in locked.items() if name)


def test_pre_commit_hooks_fetch_nothing_and_run_the_commands_of_ci():
    yaml = pytest.importorskip("yaml")
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in repos] == ["local"]
    hooks = repos[0]["hooks"]
    assert all(hook["language"] == "system" and {"id", "name", "entry"} <= set(hook) for hook in hooks)
    assert not any({"additional_dependencies", "rev"} & set(hook) for hook in hooks)
    ci = (ROOT / ".ci" / "run").read_text()
    for hook in hooks:
        command = hook["entry"].removesuffix(" --force-exclude")
        assert command in ci, f"CI does not run {command}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build a wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_contents_of_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "gradlab").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts
    }
    notebooks = {
        f"gradlab/{path.relative_to(ROOT)}"
        for path in (ROOT / "notebooks").rglob("*")
        if path.suffix in (".ipynb", ".py", ".md") and ".ipynb_checkpoints" not in path.parts
    }
    assert "gradlab/py.typed" in names
    assert {"gradlab/notebook/static/kit/kit.css", "gradlab/notebook/static/jacobian/view.js"} <= names
    assert {name for name in names if ".dist-info/" not in name} == package | notebooks


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
    """Create an environment with the wheel and its extra `lab`, and a folder outside the checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", f"gradlab[lab] @ {wheel.as_uri()}"], check=True)
    (folder / "work").mkdir()
    return programs, folder / "work"


def clean():
    """Return environment variables without references to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.mark.exhaustive
def test_the_tour_from_the_wheel(elsewhere):
    programs, work = elsewhere
    said = subprocess.run([programs / "gradlab", "--version"], cwd=work, env=clean(), capture_output=True, text=True, check=True)
    assert said.stdout == f"gradlab {gradlab.__version__}\n"
    tour = [programs / "gradlab", "quickstart"]
    ran = subprocess.run(tour, cwd=work, env=clean(), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert str(work / "quickstart.html") in ran.stdout
    assert (work / "quickstart.html").stat().st_size > 100_000
    where = subprocess.run(
        [programs / "python", "-c", "import gradlab; print(gradlab.__file__)"],
        cwd=work,
        env=clean(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert not Path(where).is_relative_to(ROOT)


@pytest.mark.exhaustive
def test_jupyterlab_from_the_wheel(elsewhere, tmp_path):
    """The server starts and serves the copied notebook."""
    programs, work = elsewhere
    settings = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    log = (tmp_path / "log").open("w+")
    server = subprocess.Popen(
        [
            programs / "gradlab",
            "lab",
            "--no-browser",
            "--allow-root",
            "--ip=127.0.0.1",
            "--ServerApp.port=0",
            "--IdentityProvider.token=t",
        ],
        cwd=work,
        env={**clean(), **settings},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        url = jupyter_url(server, tmp_path / "RUNTIME")
        with urllib.request.urlopen(f"{url}/api/contents/quickstart.ipynb?token=t") as reply:
            assert reply.status == 200
    finally:
        server.terminate()
        server.wait(30)
        log.close()
    assert (work / "quickstart.ipynb").is_file()
