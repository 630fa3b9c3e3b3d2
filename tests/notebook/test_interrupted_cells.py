"""After an interrupt at any place, all observers of a `%%grad` cell are removed before the next cell runs."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from interrupting import GRADLAB_FILES, run_interrupted
from leftovers import find_leftovers, reset_state

FILES = tuple(
    os.path.join(GRADLAB_FILES[0], *path.split("/"))
    for path in ("notebook/magics.py", "core/engine.py", "core/watching.py", "diagnose/sites.py")
)


@pytest.mark.slow
def test_an_interrupted_cell_does_not_affect_the_next(shell, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)  # Python reports errors in destructors and does not raise

    def cell():
        shell.ip.run_cell("%%grad\nx = gl.tensor([1., 2.], requires_grad=True)\n(x * x).sum().backward()")

    shell.ip.run_cell("import gradlab as gl")
    cell()
    places, found = run_interrupted(cell, 0, FILES).seen, []
    assert places > 50
    for at in range(1, places + 1):
        struck = run_interrupted(cell, at, FILES)
        if find_leftovers():
            gc.collect()
            shell.ip.run_cell("pass")
        if left := find_leftovers():
            found.append((*struck.where, left))
            reset_state()
    assert found == []
