"""Run the Python blocks of the documentation that the build does not run. Cells run in the build, which stops at an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
if not DOCS.is_dir():
    pytest.skip("not a checkout", allow_module_level=True)


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


TRACKERS = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}  # pages, and the packages that they need
FRAMEWORKS = {
    "adapters": "peft",
    "lightning": "lightning",
    "huggingface": "transformers",
    "accelerate": "accelerate",
    "keras": "keras",
}
PAGES = [page for page in sorted(DOCS.glob("*/*.md")) if blocks(page)]


def test_there_are_such_pages():
    assert {page.stem for page in PAGES} >= {"compare-with-torch", "grade-a-class", "report", "doctor", "tensors"}


@pytest.mark.e2e
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.torch if "torch" in page.stem else ())
        for page in PAGES
        if page.stem not in TRACKERS | FRAMEWORKS
    ],
    ids=lambda page: page.stem,
)
def test_the_blocks_of_a_page_run_one_after_the_other(page):
    ran = subprocess.run([sys.executable, "-c", "\n".join(blocks(page))], capture_output=True, text=True, check=False, cwd=DOCS)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.e2e
@pytest.mark.torch
def test_the_comparison_with_torch_prints_agreement():
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks(DOCS / "howto" / "compare-with-torch.md"))],
        capture_output=True,
        text=True,
        check=True,
        cwd=DOCS,
    )
    assert "agree" in ran.stdout and "SumBackward0" in ran.stdout


@pytest.mark.e2e
@pytest.mark.torch
@pytest.mark.frameworks
@pytest.mark.parametrize("page", TRACKERS)
def test_the_blocks_on_a_tracker_run(page, tmp_path):
    pytest.importorskip(TRACKERS[page], exc_type=ImportError)
    code = "\n".join([*blocks(DOCS / "howto" / f"{page}.md"), "assert w.steps and not w.trouble, w.trouble"])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}  # set by other tests' runs
    offline = {**clean, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=offline)
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()), "nothing was written"


@pytest.mark.e2e
@pytest.mark.torch
@pytest.mark.frameworks
@pytest.mark.parametrize("page", FRAMEWORKS)
def test_the_blocks_on_a_framework_run(page, tmp_path):
    pytest.importorskip(FRAMEWORKS[page], exc_type=ImportError)
    check = "assert watch.run.steps and not watch.run.trouble, watch.run.trouble"
    code = "\n".join([*blocks(DOCS / "howto" / f"{page}.md"), check])
    env = {**os.environ, "PYTHONPATH": str(DOCS.parent)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr
    assert "Nothing was found." in ran.stdout and (tmp_path / "run.html").exists()
