"""How large a notebook becomes by reports: twelve models, each with a table, a picture and the lines of its cell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradlab.explore.report import Report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gallery"))
from cells import IMPORTS
from models import twelve

MOST = 690_000  # bytes; a notebook of twelve reports takes about 20 000 more for cells and names


@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_notebook_of_twelve_reports_is_small(shell, library):
    pytest.importorskip("torch" if library == "torch" else "gradlab")
    sizes = {}
    for one in twelve():
        before, cell = one.typed(library)
        shell.run(f"{IMPORTS[library]}\n{before}")
        shell.run(cell.replace("%%grad", "%%grad -o report", 1))
        report = shell.ns.pop("report", None)
        if isinstance(report, Report):
            bundles = [part._repr_mimebundle_() for part in report.parts(terminal=False)]
            sizes[one.name] = sum(len(text.encode()) for bundle in bundles for text in bundle.values())
    assert len(sizes) >= 11
    assert sum(sizes.values()) < MOST, sizes
