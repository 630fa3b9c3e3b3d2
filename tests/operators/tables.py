"""The tables of operators: a module of `rows` each."""

from __future__ import annotations

import importlib
from pathlib import Path

from operators.spelling import Row

FILES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("[a-z]*.py"))


def rows_of(name: str) -> list[Row]:
    """The rows of a table."""
    rows = list(importlib.import_module(f"operators.rows.{name}").ROWS)
    titles = [str(row) for row in rows]
    if doubled := {title for title in titles if titles.count(title) > 1}:
        raise ValueError(f"{name}: these rows are there twice: {sorted(doubled)}")
    return rows
