"""`report.why(name)` reports the planted cause, and its advice runs as printed."""

from __future__ import annotations

import re

import pytest

import gradlab as gl
from gradlab.explore.report.explanation import code_block, inline_code, versions

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
START = """import {0} as L
w = L.tensor([0.5, 1.0, 2.0]).requires_grad_()
b = L.tensor([1.0, 2.0, 3.0]).requires_grad_()
c = L.tensor([1.0, 1.0, 1.0])
n = (-L.ones(3)).requires_grad_()
z = L.tensor([0.0, 1.0, 2.0]).requires_grad_()
"""


@pytest.fixture(params=LIBRARIES)
def report(request, shell):
    """Run a `%%grad` cell, and return its report."""
    pytest.importorskip(request.param)
    shell.run(START.format(request.param))

    def run(cell, before=""):
        if before:
            assert shell.run(before).success
        ran = shell.run(f"%%grad -o kept\n{cell}")
        assert ran.success, ran.stderr
        return shell.ns["kept"]

    return run


def lines(explained):
    return [line.line for line in explained.lines]


def test_an_ordinary_gradient(report):
    found = report("h = w * b\nloss = (h * h + w).sum()").why("w")
    assert found.kind == "ordinary" and "w" in found.sentence and "came" in found.sentence
    assert lines(found) == [2, 3] and found.fix == "" and found.finding is None
    assert "w → " in found.sentence and found.drawing is not None and "<svg" in found.drawing.svg()


def test_one_path_and_several(report):
    kept = report("h = w * 2\nloss = (h + h * 3).sum()")
    found = kept.why("w")
    assert "w → ×" in found.sentence
    assert "75 %" in found.sentence or "+75 %" in str(kept.paths("w")) or kept.paths("w").why_not
    assert "along one path" in report("loss = (w * 2).sum()").why("w").sentence


def test_a_scalar_has_its_share(report):
    kept = report("loss = s * 3 + s * 5", before="s = L.tensor(2.0).requires_grad_()")
    found = kept.why("s")
    assert found.sentence == "The gradient of s (8) came along 2 paths: +5 of it by s → × → + → loss."
    assert kept.paths("s").why_not == ""


def test_none_because_of_a_cut(report):
    found = report("h = (b * 2).detach()\nloss = (w * h).sum()").why("b")
    assert found.kind == "none" and "detach" in found.sentence and 2 in lines(found)
    fixed = report("h = (b * 2)\nloss = (w * h).sum()").why("b")  # the fix
    assert "b * 2" in found.fix or "Remove" in found.fix
    assert fixed.kind == "ordinary"


def test_none_because_of_requires_grad_and_its_advice(report):
    cell = "loss = (w * c).sum()"
    found = report(cell).why("c")
    assert found.kind == "none" and "its requires_grad is False" in found.sentence
    (advice,) = re.findall("`([^`]*)`", found.fix)
    assert advice == "c.requires_grad_()"
    assert report(cell, before=advice).why("c").kind == "ordinary"


def test_none_because_the_tensor_is_not_used(report):
    kept = report("h = b * 2\nloss = (w * 2).sum()")
    found = kept.why("b") if any(row.name == "b" for row in kept.rows) else None
    if found is not None:
        assert found.kind == "none" and "no value computed from it reaches" in found.sentence


def test_the_operation_where_a_gradient_became_zero(report):
    found = report("h = (n * 2).relu()\nloss = (h * b + w).sum()").why("n")
    assert found.kind == "zero" and "relu" in found.sentence and 2 in lines(found)
    other = report("h = (n * 2).relu()\nloss = (h * b).sum()").why("b")
    assert "blocks the upstream gradient" in other.sentence and "h is 0" in other.sentence and lines(other)[-1] == 3


def test_zero_because_contributions_cancel(report):
    found = report("loss = (w * 3 - w * 3).sum()").why("w")
    assert found.kind == "zero" and "cancel" in found.sentence and lines(found) == [2]


def test_nan(report):
    found = report("h = z * w\nloss = (h.sqrt() * h).sum()").why("z")
    assert found.kind == "nan" and "sqrt" in found.sentence and 3 in lines(found)


def test_tiny_and_large(report):
    found = report("h = w * 1e7\nloss = (h / 1e7 * b + c * w + h).sum()", before="c.requires_grad_()").why("w")
    assert found.kind == "large" and "1e7" in found.sentence and lines(found) == [2]
    found = report("h = w * 1e-7\nloss = (h + b + c).sum()", before="c.requires_grad_()").why("w")
    assert found.kind == "tiny" and "decreases most at h" in found.sentence and lines(found) == [2]


def test_an_intermediate_tensor(report):
    found = report("h = w * b\nloss = (h * 2).sum()").why("h")
    assert found.kind == "ordinary" and lines(found) == [2, 3]


def test_names_can_be_abbreviated_to_their_end(report, shell):
    before = "L.manual_seed(0)\nimport {0}.nn as nn\nmodel = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))"
    kept = report("loss = model(c).sum()", before=before.format(shell.ns["L"].__name__))
    assert kept.why("2.weight").name == kept.why("model[2].weight").name == "model[2].weight"
    with pytest.raises(ValueError, match="several names end with this"):
        kept.why("weight")
    with pytest.raises(ValueError, match=r"no tensor of this name; it has model\[0\].weight"):
        kept.why("fc9")
    with pytest.raises(TypeError, match="got int"):
        kept.why(3)


def test_markdown(report):
    found = report("h = w * 1.2345\nloss = (h * b).sum()").why("w")
    text = found.markdown()
    assert "`w`" in text and "`h = w * 1.2345`" in text and f"gradlab {gl.__version__}" in text and "Python 3" in text
    assert "contains values" in text
    bare = found.markdown(values=False)
    assert "1.2345" not in bare and "came" in bare and "contains no values" in bare and "line 2" in bare
    numbers = re.findall(r"\d+\.\d+(?!\.)", bare.partition("gradlab ")[0])
    assert numbers == []
    for row in ("torch", "gradlab"):
        assert any(one.startswith("numpy") for one in versions(row))


@pytest.mark.parametrize("cell", ["h = (n * 2).relu()\nloss = (h * b + w).sum()", "h = z.log()\nloss = (h * z * n).sum()"])
def test_no_numbers_without_values(report, cell):
    kept = report(cell)
    for name in ("n", "z"):
        if any(row.name == name for row in kept.rows):
            bare = kept.why(name).markdown(values=False).partition("gradlab ")[0]
            assert not re.findall(r"\d+\.\d+|\d+e[−-]?\d|NaN \(\d", bare)


def test_names_are_escaped(report):
    kept = report("loss = d['`<img src=x>`'].sum() * 1", before="d = {'`<img src=x>`': w}\ndel w")
    name = next(row.name for row in kept.rows)
    found = kept.why(name)
    html = found._repr_mimebundle_()["text/html"]
    assert "<img src=x" not in html
    assert inline_code("a`b") == "`` a`b ``" and inline_code("a\nb") == "`a b`" and code_block("```").startswith("````text")


def test_saved_pages_name_their_contents(report, tmp_path):
    kept = report("h = w * 1.2345\nloss = (h * b).sum()")
    page = kept.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "This page contains values and gradients of" in page and "1.2345" in page
    bare = kept.save(tmp_path / "bare.html", values=False).read_text(encoding="utf-8")
    assert "It contains no values, no gradients and no source" in bare and "1.2345" not in bare
