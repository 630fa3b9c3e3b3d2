"""Watching the training of a compiled model. The number of compilations is read from Dynamo's own counters."""

import contextlib
import warnings

import pytest

import gradlab as gl
from tests.explore.watched import data, mlp
from tests.leftovers import find_torch_leftovers

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def train(model, *, watched, steps=12):
    """Train a compiled model, and return the weights and the numbers of graphs, of graph breaks and of recompilations."""
    x, y = data(torch)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with gl.watch(model, opt) if watched else contextlib.nullcontext() as watch:
        compiled = torch.compile(model, backend="eager")
        for _ in range(steps):
            opt.zero_grad()
            ((compiled(x) - y) ** 2).mean().backward()
            opt.step()
    counters = torch._dynamo.utils.counters
    counts = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()), sum(counters["recompiles"].values())
    return [p.detach().clone() for p in model.parameters()], counts, watch


def test_hooked_activations_are_compiled_as_without_a_watch():
    """The hooks are there when the model is compiled, and Dynamo inlines them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, counts, _ = train(mlp(torch, 6, 16, 1, activation="ReLU"), watched=False)
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        seen, watched_counts, watch = train(mlp(torch, 6, 16, 1, activation="ReLU"), watched=True)
    assert watch.target.activations and counts == watched_counts == (1, 0, 0)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert watch.steps == 12 and watch.findings.findings == ()
    assert find_torch_leftovers() == []
