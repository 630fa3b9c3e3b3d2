"""The table: for each primitive, samples that exercise it. Everything else about it is checked by test_table.py.

A test takes all samples of a primitive: see `grouped`.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from grouped import grouped
from rules.sample import Case

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).with_name("rows").glob("[a-z]*.py"))
    for case in importlib.import_module(f"rules.rows.{path.stem}").CASES
]
GROUPS = grouped(CASES, lambda case: case.primitive)
