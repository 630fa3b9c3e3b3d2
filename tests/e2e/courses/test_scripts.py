"""Scripts like those of courses run under `gradlab.as_torch()` and print the same as with torch 2.13.

`python tests/e2e/courses/test_scripts.py` records their output, if torch is installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))
AS_TORCH = "import runpy, sys, gradlab; gradlab.as_torch(); runpy.run_path(sys.argv[1], run_name='__main__')"


def output_of(*command: str) -> str:
    ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def plain(text: str) -> str:
    """Remove addresses and the name of the library."""
    import re

    return re.sub(r" object at 0x[0-9a-fA-F]+", "", text).replace("torch.", "gradlab.")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_for_torch_prints_the_same(script):
    assert plain(output_of("-c", AS_TORCH, str(script))) == plain(script.with_suffix(".txt").read_text())


@pytest.mark.oracle
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_recorded_output_is_that_of_torch(script):
    pytest.importorskip("torch")
    assert output_of(str(script)) == script.with_suffix(".txt").read_text() or plain(output_of(str(script))) == plain(
        script.with_suffix(".txt").read_text()
    )


if __name__ == "__main__":
    for path in SCRIPTS:
        path.with_suffix(".txt").write_text(output_of(str(path)))
