"""Ctrl-C at many places of a run: the next request continues it and returns the right matrix.

Every twelfth place is tested, and every third with `-m ""`.
"""

from __future__ import annotations

import gc
import os
import sys

import numpy as np
import pytest
from interrupting import GRADLAB_FILES, run_interrupted
from leftovers import find_leftovers

import gradlab as gl
from gradlab.explore.jacobian.view_model import JacobianViewModel

EXPLORE = os.path.join(GRADLAB_FILES[0], "explore")
W = gl.tensor(np.random.default_rng(0).normal(size=(9, 7)))
AT = np.linspace(-1, 1, 7)
WANTED = (1 - np.tanh(W.numpy() @ AT) ** 2)[:, None] * W.numpy()
STRIDE = [31, pytest.param(3, marks=pytest.mark.exhaustive)]


def f(x):
    return (W @ x).tanh()


def find_failures(work, again, stride):
    """Interrupt `work()` at every `stride`-th place, then call `again()`. Return the places with leftovers or a wrong result."""
    work()
    places, wrong = run_interrupted(work, 0, EXPLORE).seen, []
    for at in range(1, places + 1, stride):
        struck = run_interrupted(work, at, EXPLORE)
        if find_leftovers():
            gc.collect()  # objects in a cycle with a traceback are not leftovers
        left = find_leftovers()
        if left or not np.allclose(again(), WANTED, rtol=1e-12):
            wrong.append((struck.where, left))
    assert places > 50
    return wrong


@pytest.fixture(autouse=True)
def ignore_interrupts_in_destructors(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)  # Python reports them and does not raise


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDE)
@pytest.mark.parametrize("method", ["rows", "batched", "columns", "sparse"])
def test_a_second_request_continues(method, stride):
    state = {}

    def work():
        state["J"] = gl.jacobian(f, gl.tensor(AT), method=method, chunk_size=None if method == "rows" else 2, progress=False)
        np.asarray(state["J"])

    assert find_failures(work, lambda: np.asarray(state["J"]), stride) == []


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDE)
def test_a_file_is_resumed(stride, tmp_path):
    runs = iter(range(10_000))
    state = {}

    def compute(path):
        out = np.memmap(path, np.float64, "r+" if path.exists() else "w+", shape=WANTED.shape)
        np.asarray(gl.jacobian(f, gl.tensor(AT), method="batched", chunk_size=2, out=out, resume=True, progress=False))
        return np.array(out)

    def work():
        state["path"] = tmp_path / f"{next(runs)}.dat"
        compute(state["path"])

    assert find_failures(work, lambda: compute(state["path"]), stride) == []


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDE)
@pytest.mark.parametrize("columns", [False, True])
def test_the_live_view_continues(columns, stride):
    state = {}

    def work():
        x = gl.tensor(AT, requires_grad=True)
        state["J"] = gl.jacobian(f(x), x, method="columns" if columns else "rows")
        lab = state["lab"] = JacobianViewModel(state["J"])
        lab.answer("hello", {}, [])
        lab.answer("axis", {"by": "columns" if columns else "rows"}, [])
        for _ in range(3):
            lab.answer("step", {}, [])

    def again():
        for _ in range(9):
            state["lab"].answer("step", {}, [])
        return np.asarray(state["J"])

    assert find_failures(work, again, stride) == []
