"""Findings as data: all have one class, a known kind and the line of the program, whatever reports them."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest

import gradlab as gl
from gradlab.explore.doctor import examine  # noqa: F401  (registers all kinds)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.report import plain_data
from gradlab.explore.script import read_script, run_script


def findings_of_doctor(tmp_path):
    x = gl.tensor([4.0, 0.0], requires_grad=True)
    found = gl.doctor((x.sqrt() * x.detach()).sum())
    return found, None


def findings_of_watch(tmp_path):
    w = gl.tensor([1.0], requires_grad=True)
    optimizer = gl.optim.SGD([w], lr=1e4)
    with gl.watch([w], optimizer) as run:
        for _ in range(60):
            optimizer.zero_grad()
            loss = (w**2).sum()
            loss.backward()
            optimizer.step()
            run.log(loss)
    return run.findings, None


SCRIPT = "import gradlab as gl\nx = gl.tensor([4.0, 0.0], requires_grad=True)\ny = x.sqrt() * x.detach()\ny.sum().backward()\n"


def findings_of_script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return run_script(read_script(str(path))).diagnosis, 3


@pytest.mark.parametrize("made", [findings_of_doctor, findings_of_watch, findings_of_script])
def test_findings_have_one_class_and_known_kinds(made, tmp_path):
    diagnosis, line = made(tmp_path)
    found = (*diagnosis.findings, *diagnosis.remarks)
    assert found
    for one in found:
        assert type(one) is Finding and one.kind in KINDS
        assert one.line is None or type(one.line) is int
    assert line is None or found[0].line == line


def with_types(data, kind):
    """Check plain data against a TypedDict: its keys, and those of the dictionaries in it."""
    hints = typing.get_type_hints(kind)
    assert data.keys() == hints.keys(), kind
    for key, hint in hints.items():
        inner = [one for one in (*typing.get_args(hint), hint) if typing.is_typeddict(one)]
        values = data[key] if isinstance(data[key], list) else [data[key]]
        for value in values if inner else ():
            if value is not None:
                with_types(value, inner[0])


def test_the_keys_of_a_report_match_its_type():
    x = gl.tensor([4.0, 0.0], requires_grad=True)
    with gl.tracing():
        loss = (x.sqrt() * x).sum()
    data = replace(gl.explain(loss), findings=(Finding("nan-born", "m"),)).to_dict()
    assert all(data[key] for key in ("leaves", "nodes", "edges", "rows", "findings"))
    with_types(data, plain_data.ReportData)
