"""The numbers of runs as DataFrames equal those of the arrays, which test_watch tests."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from watched import data, mlp

import gradlab as gl
from gradlab.explore.watch.runs import Runs

LIBRARIES = [pytest.param(name, marks=pytest.mark.e2e) for name in ("pandas", "polars")]


def train_and_watch(*sizes, activation="ReLU", steps=4, lr=0.1):
    net, (x, y) = mlp(gl, *sizes, activation=activation), data(gl)
    optimizer = gl.optim.SGD(net.parameters(), lr=lr)
    with gl.watch(net, optimizer) as w:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            w.log(loss)
    return w


@pytest.fixture(scope="module")
def runs():
    return Runs({"act=ReLU": train_and_watch(6, 8, 1), "act=Tanh": train_and_watch(6, 8, 1, activation="Tanh", steps=7)})


def columns(frame):
    return {str(name): list(frame[name]) for name in frame.columns}


def same(ours, theirs):
    return len(ours) == len(theirs) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_the_columns_of_the_arrays(runs, library):
    made = pytest.importorskip(library, reason="needs the extra e2e")
    frame, arrays = runs[0].history(library), runs[0].history()
    assert isinstance(frame, made.DataFrame)
    found = columns(frame)
    assert list(found) == list(arrays) and all(same(found[name], arrays[name]) for name in arrays)
    kinds = {"float64": "f", "int64": "i"}
    assert {name: kinds[str(frame[name].dtype).lower()] for name in arrays} == {
        name: array.dtype.kind for name, array in arrays.items()
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_several_runs_has_their_labels_and_nan_for_other_columns(runs, library):
    pytest.importorskip(library, reason="needs the extra e2e")
    found, alone = columns(runs.history(library)), runs.history()
    assert list(alone) == list(runs)
    assert found["run"] == ["act=ReLU"] * 4 + ["act=Tanh"] * 7
    assert found["step"] == [1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7]
    assert same(found["loss"], [*alone["act=ReLU"]["loss"], *alone["act=Tanh"]["loss"]])
    assert same(found["dead net[1]"], [*alone["act=ReLU"]["dead net[1]"], *[np.nan] * 7])
    assert same(found["saturated net[1]"], [*[np.nan] * 4, *alone["act=Tanh"]["saturated net[1]"]])


@pytest.mark.parametrize("of", ["one", "several"])
def test_a_library_that_is_not_known_or_not_installed_is_named(runs, of, monkeypatch):
    shown = runs[0] if of == "one" else runs
    with pytest.raises(ValueError, match=r'history\(frame=…\) takes "pandas" or "polars", and got \'arrow\''):
        shown.history("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"needs polars, which is not installed here: pip install polars\. .*history\(\)"):
        shown.history(frame="polars")


def test_the_history_of_several_runs_is_that_of_each(runs):
    for label, found in runs.history().items():
        alone = runs[label].history()
        assert list(found) == list(alone) and all(same(found[name], alone[name]) for name in alone)
