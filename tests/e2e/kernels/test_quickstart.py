"""The tour, quickstart.ipynb: run twice, top to bottom, in one kernel."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import unquote

import pytest
from e2e.kernels.running import PICTURE, TABLE, cell, run_twice, types

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def runs():
    """The code cells of two runs in one kernel."""
    return run_twice("quickstart.ipynb")


def texts(cell):
    return [output.get("text", output.get("data", {}).get("text/plain")) for output in cell.outputs]


@pytest.mark.parametrize("again", [False, True])
def test_no_cell_fails_or_complains(runs, again):
    outputs = [output for cell in runs[again] for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", ["loss", "cube", "weights", "network"])
def test_a_grad_cell_shows_table_picture_and_code(runs, again, name):
    shown = types(cell(runs[again], name))
    assert shown[-2:] == [TABLE, PICTURE]
    card, below = cell(runs[again], name).outputs[-2:]
    assert "with respect to" in card.data["text/plain"]
    assert "<table" in card.data["text/html"] or "<details" in card.data["text/html"]
    assert "<img " in card.data["text/html"]
    assert "Equivalent code" in below.data["text/plain"]


def test_the_first_report_shows_the_surprise_that_the_text_tells(runs):
    """Every column of `a.grad` adds up to 0, and the edges to the means carry nothing."""
    card = cell(runs[0], "loss").outputs[-2].data
    pictures = [unquote(unescape(data)) for data in re.findall(r"svg\+xml,([^']+)'", card["text/html"])]
    maps = {name: svg for svg in pictures for name in ("a.grad", "b.grad") if f">{name}<" in svg}
    for svg in maps.values():
        texts = re.findall(r'<text x="[.\d]+" y="[.\d]+" fill="#[0-9a-f]{6}">([−.\d]+)<', svg)  # their size is their group's
        numbers = [float(text.replace("−", "-")) for text in texts]
        assert len(numbers) == 24
        assert all(abs(sum(numbers[column::4])) < 0.003 for column in range(4)), "rounded to three decimals"
    assert len(maps) == 2
    graph = next(svg for svg in pictures if "mean(0)" in svg and "SubBackward0" in svg)
    assert graph.count("≈ 0 %") >= 2


@pytest.mark.parametrize("again", [False, True])
def test_a_jacobian_is_a_picture_and_a_widget_beside_one(runs, again):
    assert types(cell(runs[again], "jacobian")) == [PICTURE]
    assert types(cell(runs[again], "widget")) == [PICTURE, {WIDGET, "text/plain"}]


@pytest.mark.parametrize("again", [False, True])
def test_the_picture_of_the_widget_is_complete_as_that_of_the_matrix_is(runs, again):
    twin, live = (output.data["text/plain"] for output in cell(runs[again], "widget").outputs)
    assert live == "live view of the Jacobian of p (4) with respect to s (4)"
    whole = cell(runs[again], "jacobian").outputs[0].data["text/plain"]
    for text in (twin, whole):
        assert "computed" not in text and "p[3]  −0.0101  −0.0275  −0.0749    0.113" in text


@pytest.mark.parametrize("again", [False, True])
def test_what_is_printed(runs, again):
    run = runs[again]
    assert cell(run, "chain").outputs[0].text.split() == [
        "NegBackward0",
        "SumBackward0",
        "DiagonalBackward0",
        "DivBackward0",
        "MmBackward0",
        "PermuteBackward0",
        "DivBackward0",
        "SubBackward0",
        "torch::autograd::AccumulateGrad",
    ]
    assert cell(run, "cube-check").outputs[0].text == 2 * "tensor([ 0.,  3., 12., 27., 48.])\n"
    assert cell(run, "product").outputs[0].text.startswith("grad can be implicitly created only for scalar outputs")
    assert cell(run, "rows").outputs[0].text.splitlines() == [
        "tensor([[2., 0., 0., 0.]])",
        "tensor([[0., 2., 0., 0.]])",
        "tensor([[0., 0., 2., 0.]])",
        "tensor([[0., 0., 0., 2.]])",
    ]
    first, *_, last = cell(run, "train").outputs[0].text.splitlines()
    loss = [float(line.split()[3]) for line in (first, last)]
    assert loss[1] < loss[0] / 4


def test_the_second_run_shows_the_same(runs):
    """Names are bound afresh, gradients replaced and not doubled."""
    for one, other in zip(*runs, strict=True):
        if one.id in ("loss", "cube", "weights", "network", "rows", "train"):
            assert texts(one) == texts(other)
