"""Every notebook in the repository is valid for nbformat."""

from __future__ import annotations

import pytest
from e2e.kernels.running import read

from gradlab import cli

NAMES = sorted(
    str(path.relative_to(cli.notebooks())) for path in cli.notebooks().rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_valid(name):
    assert read(name).nbformat == 4
