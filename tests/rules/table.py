"""The table of samples for each primitive. test_table.py checks the primitives with them.

A test takes all samples of a primitive: see `tests/grouped.py`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from grouped import group_by
from rules.sample import Case

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).with_name("rows").glob("[a-z]*.py"))
    for case in importlib.import_module(f"rules.rows.{path.stem}").CASES
]
GROUPS = group_by(CASES, lambda case: case.primitive)
