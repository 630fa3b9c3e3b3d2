"""Run a notebook twice, from top to bottom, in one kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gradlab import cli

nbformat = pytest.importorskip("nbformat", reason="needs the extra lab")
nbclient = pytest.importorskip("nbclient", reason="needs the extra lab")

TABLE = {"text/html", "text/latex", "text/plain"}
PICTURE = {"text/html", "image/png", "text/plain"}


def read(name: str) -> Any:
    notebook = nbformat.read(cli.notebooks() / name, as_version=4)
    nbformat.validate(notebook)
    return notebook


def without_torch(folder: Path) -> dict[str, str]:
    """Return environment variables with which `import torch` fails. They refer to a file in an empty folder."""
    (folder / "sitecustomize.py").write_text("import sys\n\nsys.modules['torch'] = None\n", encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def run_twice(name: str, times: int = 2, env: dict[str, str] | None = None) -> list[list[Any]]:
    """Run a notebook several times in one kernel, and return the code cells of each run."""
    notebook = read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    client = nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False, coalesce_streams=True)
    runs = []
    with client.setup_kernel(**({} if env is None else {"env": env})):
        for _ in range(times):
            for cell in code:
                client.execute_cell(cell, notebook.cells.index(cell))
            runs.append([cell.copy() for cell in code])
            for cell in code:
                cell.outputs = []
    return runs


def cell(run: list[Any], name: str) -> Any:
    return next(cell for cell in run if cell.id == name)


def types(cell: Any) -> list[set[str]]:
    """Return the MIME types of each output of a cell, or the name of a stream."""
    return [{output.name} if output.output_type == "stream" else set(output.data) for output in cell.outputs]
