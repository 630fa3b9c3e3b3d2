"""Lesson 8's cell for a GPU, where there is none: on strict arrays in place of CuPy's, and skipped in a sentence."""

from __future__ import annotations

import strict
from notebooks.reading import read

import gradlab as gl

LESSON = "lessons/08_own_rule.ipynb"


def run_cells(capsys):
    """Return the output of the cell, after the one that defines the operation."""
    space = {"gl": gl}
    for name in ("clipped_code", "gpu"):
        source = next(one.source for one in read(LESSON).cells if one.id == name)
        exec(compile(source, name, "exec"), space)
    return capsys.readouterr().out


def test_the_rule_runs_where_its_tensors_are(monkeypatch, capsys):
    strict.install_as_gpus(monkeypatch)
    assert run_cells(capsys) == "The same on the GPU: True\n"


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(gl.cuda, "is_available", lambda: False)
    assert run_cells(capsys).startswith("There is no GPU here")
