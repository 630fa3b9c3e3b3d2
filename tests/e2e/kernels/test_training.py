"""training.ipynb: a module, an optimizer, a data loader and `%%grad` on one step; run twice in one kernel."""

from __future__ import annotations

import re

import pytest
from e2e.kernels.running import PICTURE, TABLE, cell, run_twice, types


@pytest.fixture(scope="module")
def runs():
    return run_twice("training.ipynb")


@pytest.mark.parametrize("again", [False, True])
def test_the_notebook_runs_and_the_loss_falls(runs, again):
    run = runs[again]
    outputs = [output for one in run for output in one.outputs]
    assert not [o for o in outputs if o.output_type == "error" or (o.output_type == "stream" and o.name == "stderr")]
    for name in ("step", "end"):
        assert types(cell(run, name))[-2:] == [TABLE, PICTURE]
    table = cell(run, "step").outputs[-2].data["text/plain"]
    places = [re.search(rf"\n +{layer}  Linear", table).start() for layer in ("fc1", "fc2", "out")]  # the tree is in call order
    assert places == sorted(places)
    first, last = cell(run, "train").outputs[0].text.split(" right")[0].split(", ")
    assert float(first.split(" -> ")[1]) < 0.1
    assert float(last.rstrip("%")) > 98
    assert {"image/png", "text/plain"} <= types(cell(run, "plot"))[-1]
