"""Drawing a run does not change the program: its buffers, random numbers, hooks, memory and other threads."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import nullcontext

import pytest

import gradlab as gl
from gradlab.core.observers import observers


class BrokenError(Exception):
    """Raised by a model of the tests."""


def models_of(library):
    """Return a model with statistics, dropout and buffers that raises on request."""
    nn = library.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm, self.drop = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
            self.register_buffer("mean", library.zeros(3))
            self.register_buffer("steps", library.tensor(0.0))
            self.register_buffer("spare", library.ones(2))
            self.error = None

        def forward(self, x):
            x = self.drop(self.norm(self.fc(x)))
            with library.no_grad():
                self.mean.mul_(0.9)
                self.steps = self.steps + 1
                self.noise = library.randn(3)
            if self.error is not None:
                raise self.error
            return x + self.mean

    library.manual_seed(0)
    return Net()


@pytest.fixture(params=["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def library(request):
    return gl if request.param == "gradlab" else pytest.importorskip("torch")


def state_of(library, model):
    return {
        "buffers": {key: (one, one.tolist()) for key, one in model.named_buffers()},
        "parameters": {key: (one, one.tolist()) for key, one in model.named_parameters()},
        "random": library.get_rng_state().tolist() if library is not gl else repr(library.random.get_rng_state()),
        "training": [one.training for one in model.modules()],
        "gradients": {key: None if one.grad is None else (one.grad, one.grad.tolist()) for key, one in model.named_parameters()},
        "grad mode": library.is_grad_enabled(),
    }


def same(before, after):
    """Return whether two states have the same tensors with the same numbers."""
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)
    if isinstance(before, tuple) and len(before) == 2:
        return before[0] is after[0] and before[1] == after[1]
    return before == after


ERRORS = [None, BrokenError("stop"), KeyboardInterrupt(), GeneratorExit()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("graded", [True, False])
def test_the_state_is_unchanged(library, error, graded):
    model = models_of(library)
    x = library.randn(4, 3)
    model(x).sum().backward()
    if not graded:
        model.zero_grad()
    before, watched = state_of(library, model), len(observers.active)
    model.error = error
    if error is None or isinstance(error, Exception):
        graph = gl.graph(model, x)
        assert (graph.error is None) == (error is None)
    else:
        with pytest.raises(type(error)):
            gl.graph(model, x)
    assert same(before, state_of(library, model))
    assert len(observers.active) == watched


@pytest.mark.torch
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_hook_and_no_mode_is_left(error):
    torch = pytest.importorskip("torch")
    from torch.nn.modules import module
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    model = models_of(torch)
    model.error = error
    with pytest.raises(type(error)) if isinstance(error, (KeyboardInterrupt, GeneratorExit)) else nullcontext():
        gl.graph(model, torch.randn(4, 3))
    assert not _get_current_function_mode_stack()
    assert not _get_current_dispatch_mode_stack()
    hooks = [value for name, value in vars(module).items() if name.startswith("_global_") and name.endswith("hooks")]
    assert len(hooks) > 3
    assert not any(hooks)


@pytest.mark.torch
def test_unwritten_buffers_keep_their_versions():
    torch = pytest.importorskip("torch")
    model = models_of(torch)
    x = torch.randn(4, 3)
    versions = {key: one._version for key, one in model.named_buffers()}
    gl.graph(model, x)
    moved = {key for key, one in model.named_buffers() if one._version != versions[key]}
    assert moved <= {"mean", "norm.num_batches_tracked"}  # forward writes these
    out = model(x)
    gl.graph(model.eval(), x)
    out.sum().backward()  # no tensor that backward needs was written
    model.norm.train()
    out = model.norm(x)
    gl.graph(model.norm, x)
    out.sum().backward()


@pytest.mark.torch
def test_special_buffers_are_restored():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("wide", torch.zeros(1).expand(3))
            self.register_buffer("sparse", torch.eye(3).to_sparse())
            self.register_buffer("missing", None)
            self.register_buffer("grown", torch.zeros(1))
            self.register_buffer("unknown", torch.tensor([float("nan"), 1.0]))
            with torch.inference_mode():
                self.register_buffer("inferred", torch.zeros(2))

        def forward(self, x):
            self.missing = x.sum()
            self.grown.resize_(4).fill_(1.0)
            self.unknown[1] = 5
            with torch.inference_mode():
                self.inferred.add_(1)
            return x @ self.sparse + self.wide

    net = Net()
    assert gl.graph(net, torch.randn(2, 3)).error is None
    assert net.missing is None
    assert net.grown.tolist() == [0]
    assert net.unknown[1] == 1
    assert net.inferred.tolist() == [0, 0]


def test_a_graph_keeps_no_tensor_alive(library):
    def run(error):
        model = models_of(library)
        model.error = error and error()
        seen = []

        def function(x):
            h = model(x * 2)
            return h + 1

        function_of_model = model.forward

        def forward(x):
            seen.append(weakref.ref(x))
            return function_of_model(x)

        model.forward = forward
        x = library.randn(4, 3)
        seen += [weakref.ref(x), weakref.ref(model.fc.weight), weakref.ref(model)]
        return gl.graph(function, x, values=True), gl.graph(model, x), seen

    for error in (None, BrokenError):
        *graphs, seen = run(error)
        gc.collect()
        assert [ref() is None for ref in seen] == [True] * 5
        for graph in graphs:
            assert "linear" in graph.svg() or "fc" in graph.svg()
            assert graph.table().text()


@pytest.mark.torch
def test_intermediate_tensors_are_freed_without_the_garbage_collector():
    torch = pytest.importorskip("torch")
    seen = []

    def function(x, fails):
        h = x * 2
        seen.append(weakref.ref(h))
        k = h + 1
        if fails:
            raise BrokenError
        return k

    gc.collect()
    gc.disable()
    try:
        for fails in (False, True):
            gl.graph(function, torch.ones(2), fails)
            assert seen.pop()() is None, fails
    finally:
        gc.enable()


def test_operations_of_other_threads_are_not_recorded(library):
    entered, left = threading.Event(), threading.Event()
    other = library.nn.Linear(5, 7)

    class Net(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = library.nn.Linear(3, 3)

        def forward(self, x):
            x = self.fc(x)
            entered.set()
            left.wait()
            return x + 1

    def run():
        entered.wait()
        other(library.randn(2, 5)).exp()
        left.set()

    thread = threading.Thread(target=run)
    thread.start()
    graph = gl.graph(Net(), library.randn(2, 3))
    thread.join()
    assert [row.kind for row in graph.table().rows if row.kind] == ["Net", "Linear"]
    assert "exp" not in {node.operation for node in graph.nodes}
    assert {node.shape for node in graph.nodes if node.shape} == {(2, 3), (3, 3), (3,)}


def test_a_generator_that_stays_open_records_nothing_afterwards(library):
    def steps(x):
        yield x + 1
        yield x.exp()

    held = []

    def function(x):
        held.append(steps(x))
        return next(held[0]) * 2

    graph = gl.graph(function, library.ones(2))
    nodes = len(graph.nodes)
    next(held[0])
    assert len(graph.nodes) == nodes == 4
    assert len(observers.active) == 0


def test_a_model_that_draws_itself(library):
    class Net(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.inner = library.nn.Linear(3, 3), None

        def forward(self, x):
            self.inner = gl.graph(self.fc, x)
            return self.fc(x) + 1

    net = Net()
    graph = gl.graph(net, library.ones(2, 3))
    assert net.inner.flops == 2 * 2 * 3 * 3
    assert [node.shape for node in net.inner.nodes if node.kind == "output"] == [(2, 3)]
    assert [node.shape for node in graph.nodes if node.kind == "output"] == [(2, 3)]
    assert graph.error is None
