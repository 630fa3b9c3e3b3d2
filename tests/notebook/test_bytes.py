"""Measure the size of a notebook's reports: twelve models, each with a table, a picture and the lines of its cell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gradlab.explore.report import Report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gallery"))
from cells import IMPORTS
from models import twelve

MOST = 658_000  # bytes; the cells, the output of a failing one and the notebook's indents take 42 000 more


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_notebook_of_twelve_reports_is_small(shell, library):
    pytest.importorskip("torch" if library == "torch" else "gradlab")
    sizes = {}
    for one in twelve():
        before, cell = one.source(library)
        shell.run(f"{IMPORTS[library]}\n{before}")
        shell.run(cell.replace("%%grad", "%%grad -o report", 1))
        report = shell.ns.pop("report", None)
        if isinstance(report, Report):
            bundles = [part._repr_mimebundle_() for part in report.parts(terminal=False)]
            sizes[one.name] = len(json.dumps(bundles, ensure_ascii=False).encode())
    assert len(sizes) >= 11
    assert sum(sizes.values()) < MOST, sizes
