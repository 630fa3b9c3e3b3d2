"""The tables of operators: a module of `rows` each."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

from operators.spelling import Row

FILES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("[a-z]*.py"))


def rows_of(name: str) -> list[Row]:
    """The rows of a table."""
    rows = list(importlib.import_module(f"operators.rows.{name}").ROWS)
    if doubled := [title for title, count in Counter(map(str, rows)).items() if count > 1]:
        raise ValueError(f"{name}: these rows are there twice: {doubled}")
    return rows


def operator_of(row: Row) -> str:
    """The function or the method that the last statement of a row calls first; "symbols" if it calls none."""
    called = re.search(r"\b(?:torch|F)\.([a-z_][\w.]*)\(|\.(\w+)\(", row.line.rpartition(";")[2])
    return (called[1] or called[2]) if called else "symbols"
