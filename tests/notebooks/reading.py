"""Read the notebooks in the repository as JSON."""

from __future__ import annotations

import json
from typing import Any

from gradlab import cli


class Part(dict[str, Any]):
    """A part of a notebook, whose keys are attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def part(found: dict[str, Any]) -> Part:
    if isinstance(found.get("source"), list):
        found["source"] = "".join(found["source"])
    return Part(found)


def read(name: str) -> Any:
    """A notebook, by its name in the folder of notebooks. A source is one string."""
    return json.loads((cli.notebooks() / name).read_text(encoding="utf-8"), object_hook=part)


def is_stripped(name: str) -> None:
    """Assert that the notebook is source: no outputs, no counts, no metadata."""
    notebook = read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert all(cell.metadata == {} for cell in notebook.cells)
    assert "widgets" not in notebook.metadata
