"""Bounds of values, the numbers in Notes on hazards, and the omission of a Note on a Problem that has already occurred."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tracing import case_of

import gradlab as gl
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.doctor.context.flow import flow_of
from gradlab.explore.doctor.context.number_limits import LARGEST_NUMBERS, largest_exponent, largest_sigmoid_input
from gradlab.explore.doctor.context.value_bounds import ValueBounds
from gradlab.explore.doctor.examine import examine
from gradlab.explore.doctor.session import NOTEBOOK
from gradlab.explore.operations import lookup, names_where

INF = math.inf
LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]

# Expressions of a parameter w (4, 3) and data x in [0, 1] (5, 4), and the bounds of their values for any w; None if unknown.
BOUNDS = {
    "w": (-INF, INF),
    "x @ w": (-INF, INF),
    "x @ w.exp()": (0, INF),
    "w.sigmoid()": (0, 1),
    "1 - w.sigmoid()": (0, 1),
    "w.sigmoid() * 0.9 + 0.05": (0.05, 0.95),
    "torch.softmax(w, 1)": (0, 1),
    "torch.softmax(torch.tanh(w), 1)": (math.exp(-2) / 4, 1),
    "w.tanh().exp()": (math.exp(-1), math.e),
    "(-(w ** 2)).exp()": (0, 1),
    "torch.exp(-w.abs())": (0, 1),
    "w * w + 1": (1, INF),
    "w ** 2 + 1e-12": (1e-12, INF),
    "w ** 4": (0, INF),
    "(w ** 2 + 4).sqrt()": (2, INF),
    "(w ** 2).sum(1)": (0, INF),
    "(w ** 2 + 1).sum(0)": (4, INF),
    "w.sigmoid().mean()": (0, 1),
    "w.std(0)": (0, INF),
    "w.norm(dim=1) + 1e-8": (1e-8, INF),
    "w / w.norm(dim=1, keepdim=True)": (-1, 1),
    "F.normalize(w, dim=0) @ F.normalize(w, dim=1).T[:, :3].T": (-1, 1),
    "w.clamp(min=1e-6)": (1e-6, INF),
    "w.clamp(-1, 2) * 3": (-3, 6),
    "w.sigmoid().clamp(max=0.5)": (0, 0.5),
    "torch.maximum(w, torch.tensor(0.1))": (0.1, INF),
    "torch.relu(w)[:, 0]": (0, INF),
    "torch.cat([w.sigmoid(), w.tanh()])": (-1, 1),
    "1 / (1 + torch.exp(-w))": (0, 1),
    "F.softplus(w) + 0.1": (0.1, INF),
    "w - 3": (-INF, INF),
    "torch.where(w > 0, w, torch.ones_like(w))": None,
    "w.masked_fill(w < 0, 1.0)": None,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_bounds_of_values(library):
    pytest.importorskip(library)
    for code, expected in BOUNDS.items():
        text = f"%%grad\nw = torch.randn(4, 3, requires_grad=True)\nx = torch.rand(5, 4)\ny = {code}\nloss = (y * 0.5).sum()"
        with case_of(library, [f"{text}\nloss.backward()"]) as (case, space):
            flow = flow_of(case)
            at = next(i for i, node in enumerate(flow.nodes) if node.place is not None and node.place.source == "y * 0.5")
            bounds = ValueBounds(flow).of(flow.inputs[at][0].source)
            y = space["y"].detach().numpy()
        if expected is None:
            assert math.isnan(bounds.low), code
            continue
        np.testing.assert_allclose((bounds.low, bounds.high), expected, rtol=1e-5, atol=1e-7, err_msg=code)
        assert bounds.low - 1e-6 <= y.min() and y.max() <= bounds.high + 1e-6, code


def test_functions_are_infinite_at_their_poles():
    """At a distance of 1e-9 from a pole, the absolute value of the function exceeds 19 or that of its derivative 1e4."""
    for op in PRIMITIVES.values():
        for pole in lookup(op.node_name).poles_at:
            inside = math.nextafter(pole, 0.5 if pole != 1 or op.name != "acosh" else 2)
            x = gl.tensor(pole + math.copysign(1e-9, inside - pole), dtype=gl.float64, requires_grad=True)
            y = getattr(gl, op.name)(x)
            y.backward()
            assert abs(y.item()) > 19 or abs(x.grad.item()) > 1e4, op.name
    assert names_where(lambda p: len(p.poles_at) == 2) == {"Acos", "Asin", "Atanh"}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_limits_of_exponentials_and_sigmoids(dtype):
    number = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        assert np.isfinite(np.exp(number(largest_exponent(dtype, "Exp") * 0.999)))
        assert np.isinf(np.exp(number(largest_exponent(dtype, "Exp") * 1.001)))
    x = largest_sigmoid_input(dtype)
    below, above = gl.sigmoid(gl.tensor([x - 0.01, x + 0.01], dtype=getattr(gl, dtype))).tolist()
    assert below < 1 == above
    assert LARGEST_NUMBERS[dtype] == float(np.finfo(dtype).max)


# --------------------------------------------------------------------------------------------------------------- findings
GAN = """
G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
og, od = optim.SGD(G.parameters(), lr=0.05), optim.SGD(D.parameters(), lr=0.05)
real = torch.randn(16, 3)
# %%
for step in range(3):
    fake = G(torch.randn(16, 2))
    d_loss = -torch.log(D(real)).mean() - torch.log(1 - D(fake.detach())).mean()
    od.zero_grad()
    d_loss.backward()
    od.step()
    g_loss = torch.log(1 - D(fake)).mean()
    og.zero_grad()
    g_loss.backward()
    og.step()
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_loss_of_a_training_is_checked(run, library):
    before, cell = GAN.split("# %%\n")
    run(library, (before, f"%%grad\n{cell}"))
    found = NOTEBOOK.last
    assert not found.findings
    assert {(one.kind, line) for one in found.remarks for line in (one.line, *one.lines)} == {("unstable", 4), ("unstable", 8)}


INFINITE = {  # the loss or its gradient is infinite already, so only the Problem is reported
    "p = torch.softmax(200 * w, 1)\nloss = -torch.log(p).sum()": "inf-born",
    "loss = torch.log(torch.exp(100 * w.abs() + 90).sum(1)).mean()": "inf-born",
    "loss = ((w - 1) ** 2).sqrt().sum()": "inf-born",
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("code", INFINITE)
def test_a_problem_has_no_note_beside_it(library, code):
    pytest.importorskip(library)
    text = f"%%grad\nw = torch.arange(12.0).reshape(4, 3).requires_grad_()\n{code}\nloss.backward()"
    with case_of(library, [text]) as (case, _):
        found = examine(case)
    assert {one.kind for one in found.findings} <= {"inf-born", "nan-born"}, found
    assert INFINITE[code] in {one.kind for one in found.findings}, found
    assert not found.remarks, found


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_loop_is_reported_once(library):
    """The Note gives the step that is closest to the limit."""
    pytest.importorskip(library)
    text = """%%grad
w = torch.tensor([[1.0, -1.0]], requires_grad=True)
loss = 0.0
for scale in (1.0, 20.0, 5.0):
    p = torch.softmax(scale * w, 1)
    loss = loss - torch.log(p)[0, 0]
loss.backward()"""
    with case_of(library, [text]) as (case, _):
        (note,) = examine(case).remarks
    assert note.line == 6 and note.times == 1
    assert note.evidence["least"] == pytest.approx(1 / (1 + math.exp(40)), rel=1e-4)
    assert "`torch.log_softmax(scale * w, 1)` in place of `torch.log(p)`" in note.fix.replace("gl.", "torch.")
