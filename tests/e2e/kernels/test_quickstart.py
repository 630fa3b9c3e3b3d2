"""Run quickstart.ipynb twice from top to bottom in one kernel, with and without PyTorch."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import unquote

import pytest
from e2e.kernels.running import PICTURE, TABLE, cell, run_twice, types, without_torch

WIDGET = "application/vnd.jupyter.widget-view+json"


LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture(scope="module")
def runs(library, tmp_path_factory):
    """Return the code cells of two runs in one kernel."""
    env = without_torch(tmp_path_factory.mktemp("site")) if library == "gradlab" else None
    return run_twice("quickstart.ipynb", env=env)


def texts(cell):
    return [output.get("text", output.get("data", {}).get("text/plain")) for output in cell.outputs]


@pytest.mark.parametrize("again", [False, True])
def test_no_cell_raises_or_warns(runs, again):
    outputs = [output for cell in runs[again] for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("name", ["broken", "fixed", "loss", "cube", "weights"])
def test_a_grad_cell_shows_table_picture_and_code(runs, again, name):
    shown = types(cell(runs[again], name))
    assert shown[-2:] == [TABLE, PICTURE]
    card, below = cell(runs[again], name).outputs[-2:]
    assert "with respect to" in card.data["text/plain"]
    assert "<table" in card.data["text/html"] or "<details" in card.data["text/html"]
    assert "<img " in card.data["text/html"]
    assert ("Equivalent code" in below.data["text/plain"]) == (name not in ("broken", "fixed"))  # these cells call backward


@pytest.mark.parametrize("again", [False, True])
def test_the_tour_begins_with_a_problem_its_fix_and_the_difference(runs, library, again):
    broken, fixed = cell(runs[again], "broken"), cell(runs[again], "fixed")
    assert broken.outputs[0].text == "loss 0.617, after 500 steps 0.52\n"
    assert fixed.outputs[0].text == "loss 0.784, after 500 steps 0.0011\n"
    problem = "■ Problem  out - y on line 12: out has shape (96, 1) and y has shape (96,)."
    assert problem in texts(broken)[1] and "out.squeeze(1) in place of out" in texts(broken)[1]
    assert "Problem" not in texts(fixed)[1]
    (difference,) = texts(cell(runs[again], "compare"))
    assert "− loss = ((out - y) ** 2).mean()\n+ loss = ((out.squeeze(1) - y) ** 2).mean()\n" in difference
    assert "Gone: out - y on line 12" in difference and "New:" not in difference
    assert types(cell(runs[again], "compare")) == [TABLE | PICTURE]
    assert runs[again][0].id == "load" and runs[again][1].id == "broken"
    assert (cell(runs[again], "product").outputs[0].text.count("\n") == 1) == (library == "torch"), "the library that ran"


def test_the_first_report_matches_the_text(runs):
    """Every column of `a.grad` adds up to 0, and the edges to the means have a gradient of 0."""
    card = cell(runs[0], "loss").outputs[-2].data
    pictures = [unquote(unescape(data)) for data in re.findall(r"svg\+xml,([^']+)'", card["text/html"])]
    maps = {name: svg for svg in pictures for name in ("a.grad", "b.grad") if f">{name}<" in svg}
    for svg in maps.values():
        texts = re.findall(
            r'<text x="[.\d]+" y="[.\d]+" fill="#[0-9a-f]{6}">([−.\d]+)<', svg
        )  # they inherit the size of their group
        numbers = [float(text.replace("−", "-")) for text in texts]
        assert len(numbers) == 24
        assert all(abs(sum(numbers[column::4])) < 0.003 for column in range(4)), "rounded to three decimals"
    assert len(maps) == 2
    graph = next(svg for svg in pictures if "mean(0)" in svg and "SubBackward0" in svg)
    assert graph.count("≈ 0 %") >= 2


@pytest.mark.parametrize("again", [False, True])
def test_a_live_view_is_beside_a_picture(runs, again):
    assert types(cell(runs[again], "widget")) == [PICTURE, {WIDGET, "text/plain"}]


@pytest.mark.parametrize("again", [False, True])
def test_the_picture_of_the_live_view_is_complete(runs, again):
    twin, live = (output.data["text/plain"] for output in cell(runs[again], "widget").outputs)
    assert live == "live view of the Jacobian of p (4) with respect to s (4)"
    assert "computed" not in twin and "p[3]  −0.0101  −0.0275  −0.0749    0.113" in twin


@pytest.mark.parametrize("again", [False, True])
def test_printed_texts(runs, again):
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


def test_the_second_run_shows_the_same(runs):
    """Names are assigned again, and gradients are replaced and not accumulated."""
    for one, other in zip(*runs, strict=True):
        if one.id in ("broken", "fixed", "compare", "loss", "cube", "weights", "rows"):
            assert texts(one) == texts(other)
