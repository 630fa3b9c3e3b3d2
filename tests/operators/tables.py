"""Read the tables of operators, one per module in `rows`."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

from operators.spelling import Row

FILES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("[a-z]*.py"))


def rows_of(name: str) -> list[Row]:
    """Return the rows of a table."""
    rows = list(importlib.import_module(f"operators.rows.{name}").ROWS)
    if doubled := [title for title, count in Counter(map(str, rows)).items() if count > 1]:
        raise ValueError(f"{name}: duplicate rows: {doubled}")
    return rows


def operator_of(row: Row) -> str:
    """Return the function or method that the last statement of a row calls first, or "symbols" if it calls none."""
    called = re.search(r"\b(?:torch|F)\.([a-z_][\w.]*)\(|\.(\w+)\(", row.line.rpartition(";")[2])
    return (called[1] or called[2]) if called else "symbols"
