"""The trace: values at every node equal those of `retain_grad` and NumPy, in gradlab and in PyTorch, and nothing of it stays
in the program."""

from __future__ import annotations

import gc
import math
import random
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from leftovers import active_observers

import gradlab as gl
from gradlab.core.observers import observers
from gradlab.explore.trace import pacing
from gradlab.explore.trace.recorder import Recorder

try:
    import torch
except ImportError:
    torch = None

both = pytest.mark.parametrize("lib", [gl, pytest.param(torch, marks=pytest.mark.torch)], ids=["gradlab", "torch"])


def tensor(lib, array, grad=True):
    return lib.tensor(np.asarray(array, np.float32), requires_grad=grad)


def by_name(trace):
    return {node.name: node for node in trace.nodes if node.name and node.kind != "output"}


def close(value, tensor):
    """Return whether a Value describes an array: by its numbers, or NumPy's statistics of it."""
    array = tensor.detach().numpy()
    assert value.shape == array.shape
    if value.numbers is not None:
        np.testing.assert_array_equal(np.array(value.numbers, array.dtype).reshape(array.shape), array)
        return
    found = value.statistics
    np.testing.assert_allclose(found.norm, np.linalg.norm(array.astype(np.float64)), rtol=1e-5)
    assert (found.minimum, found.maximum) == (array.min(), array.max())
    np.testing.assert_allclose(found.mean, array.mean(dtype=np.float64), rtol=1e-4, atol=1e-7)
    assert found.zeros == np.count_nonzero(array == 0)


# -------------------------------------------------------------------------------------------------------------- numbers
UNARY = ["tanh", "sigmoid", "exp", "relu", "sin", "neg"]


def program(lib, seed, size):
    """Run a random program, and return its named tensors (leaves, intermediates, loss); intermediates retain their gradients."""
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    space = {f"x{i}": tensor(lib, rng.normal(size=size) * 0.5) for i in range(3)}
    names = list(space)
    for k in range(draw.randrange(4, 14)):
        a, b = space[draw.choice(names)], space[draw.choice(names)]
        kind = draw.choice(["+", "-", "*", "unary", "scale", "view", "index"])
        if kind == "unary":
            made = getattr(a, draw.choice(UNARY))()
        elif kind == "scale":
            made = a * draw.choice([0.5, 2.0, -1.5])
        elif kind == "view":
            made = a.reshape(-1, 1).squeeze(1)
        elif kind == "index":
            made = a[1:].sum() * b
        else:
            made = a + b if kind == "+" else a - b if kind == "-" else a * b
        made.retain_grad()
        names.append(f"y{k}")
        space[names[-1]] = made
    loss = sum((space[name] * space[name]).mean() for name in names[-3:])
    return space, loss


@both
@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("seed", range(12))
def test_values_and_gradients_match_retain_grad(lib, seed, size):
    space = {}
    with Recorder(lambda: space) as recorder:
        made, loss = program(lib, seed, size)
        space.update(made)
        loss.backward()
    trace = recorder.trace()
    nodes = {part: node for node in trace.nodes if node.name for part in node.name.split(", ")}
    reached = {name: x for name, x in made.items() if x.grad is not None}
    assert set(reached) <= set(nodes)
    for name, x in reached.items():
        assert nodes[name].value is not None
        close(nodes[name].value, x)
        close(nodes[name].gradient, x.grad)
    assert {leaf.name for leaf in trace.leaves} == {name for name in reached if name.startswith("x")}
    for leaf in trace.leaves:
        close(leaf.value, made[leaf.name])
        close(leaf.gradient, made[leaf.name].grad)


@both
@pytest.mark.parametrize("seed", range(6))
def test_shares_add_up_and_are_the_projections(lib, seed):
    with Recorder(dict) as recorder:
        made, loss = program(lib, seed, 5)
        loss.backward()
    trace = recorder.trace()
    incoming = {}
    for edge in trace.edges:
        if trace.nodes[edge.target].kind != "output":
            incoming.setdefault(edge.source, []).append(edge)
    met = 0
    for at, edges in incoming.items():
        g = trace.nodes[at].gradient
        if g is None or g.all_zero:
            continue
        total = np.array(g.numbers, np.float64)
        parts = [np.array(edge.gradient.numbers, np.float64) for edge in edges]
        np.testing.assert_allclose(sum(parts), total, rtol=1e-4, atol=1e-6)
        assert sum(edge.share for edge in edges) == pytest.approx(1, abs=1e-4)
        for edge, part in zip(edges, parts, strict=True):
            assert edge.share == pytest.approx(part @ total / (total @ total), rel=1e-3, abs=1e-4)
        met += len(edges) > 1
    assert met


@both
def test_special_numbers_are_counted(lib):
    x = tensor(lib, [0.0, 1.0, -1.0, *[2.0] * 20])
    with Recorder(lambda: {"x": x}) as recorder:
        x.log().sum().backward()
    node = next(node for node in recorder.trace().nodes if node.operation == "LogBackward0")
    assert (node.value.nans, node.value.infs) == (1, 1)
    assert math.isnan(node.value.norm)
    leaf = recorder.trace().leaves[0]
    assert leaf.gradient.infs == 1 and leaf.gradient.norm == math.inf


@both
def test_overwritten_values_are_unknown(lib):
    x = tensor(lib, np.ones(50))
    with Recorder(lambda: {"x": x}) as recorder:
        y = x * 2
        z = y + 1
        y.add_(5)
        z.sum().backward()
    nodes = recorder.trace().nodes
    written = next(node for node in nodes if node.place is not None and node.place.statement == "y = x * 2")
    assert written.value is None
    close(next(node for node in nodes if node.place is not None and node.place.source == "y + 1").value, z)


# ----------------------------------------------------------------------------------------------------- lines, operands
@both
def test_lines_constants_inputs_indices_and_names(lib):
    w, data, N = tensor(lib, [1.0, 2.0, 3.0]), tensor(lib, [4.0, 5.0, 6.0], grad=False), 6
    with Recorder(lambda: {"w": w, "data": data}) as recorder:
        diff = w[1:] - data[:-1]
        loss = (diff**2).sum() / N
        loss.backward()
    trace = recorder.trace()
    index = next(node for node in trace.nodes if node.label == "[1:]")
    assert index.place.source == "w[1:]" and index.place.statement == "diff = w[1:] - data[:-1]"
    minus = next(node for node in trace.nodes if node.label == "−")
    assert minus.name == "diff" and [(x.kind, x.text) for x in minus.operands] == [("input", "data[:-1]")]
    assert minus.operands[0].value.numbers == (4.0, 5.0)
    square = next(node for node in trace.nodes if node.label == "**")
    assert [(x.kind, x.text, x.value.numbers) for x in square.operands] == [("constant", "2", (2,))]
    over = next(node for node in trace.nodes if node.label == "÷")
    assert [(x.kind, x.text, x.value.numbers[0]) for x in over.operands] == [("constant", "N", 6)]
    assert over.place.line == square.place.line == minus.place.line + 1
    source = Path(__file__).read_text(encoding="utf-8").splitlines()[over.place.line - 1]
    assert source[slice(*over.place.columns)] == over.place.source == "(diff**2).sum() / N"


@both
def test_operands_of_a_call_are_its_arguments(lib):
    """`F` is not an operand, and a keyword argument is at its position."""
    nn, F = lib.nn, lib.nn.functional
    net, x, labels, goal = nn.Linear(3, 4), lib.ones(8, 3), lib.tensor([0, 1, 2, 3] * 2), lib.zeros(8, 4)
    with gl.tracing() as traced:
        loss = F.cross_entropy(net(x), labels, weight=lib.ones(4)) + F.mse_loss(target=goal, input=net(x))
        loss.backward()
    texts = {
        (node.operation.partition("Loss")[0], operand.argument, operand.text)
        for node in traced.trace.nodes
        for operand in node.operands
        if node.operation.startswith(("NllLoss", "MseLoss"))
    }
    assert ("Mse", 1, "goal") in texts
    assert texts <= {("Mse", 1, "goal"), ("Nll", 1, "labels"), ("Nll", 2, "lib.ones(4)"), *(("Nll", k, "") for k in (1, 2))}


@both
def test_modules_are_named_by_their_paths(lib):
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Sequential(lib.nn.Tanh(), lib.nn.Linear(4, 1)))
    X = lib.ones(2, 3)
    with Recorder(lambda: {"model": model}) as recorder:
        model(X).sum().backward()
    trace = recorder.trace()
    assert [(call.path, call.kind, call.depth) for call in trace.calls] == [
        ("model", "Sequential", 0),
        ("model[0]", "Linear", 1),
        ("model[1]", "Sequential", 1),
        ("model[1][0]", "Tanh", 2),
        ("model[1][1]", "Linear", 2),
    ]
    made = {node.operation: node.module for node in trace.nodes if node.kind == "operation"}
    assert made["TanhBackward0"] == "model[1][0]" and made["SumBackward0"] == ""
    assert {node.module for node in trace.nodes} == {"", "model[0]", "model[1][0]", "model[1][1]"}
    assert next(call for call in trace.calls if call.path == "model").nodes == sum(
        n.module.startswith("model") for n in trace.nodes
    )


@both
@pytest.mark.parametrize("how", ["detach", "data", "no_grad", "item", "numpy"])
def test_cuts_name_the_leaves_behind_them(lib, how):
    w, v = tensor(lib, [2.0]), tensor(lib, [3.0])
    with Recorder(lambda: {"w": w, "v": v}) as recorder:
        y = w * 5
        if how == "detach":
            t = y.detach()
        elif how == "data":
            t = y.data
        elif how == "no_grad":
            with lib.no_grad():
                t = y * 1
        elif how == "item":
            t = y.item()
        else:
            t = lib.tensor(y.detach().numpy())
        (t * v).sum().backward()
    trace = recorder.trace()
    assert trace.cuts[0].leaves == ("w",)
    assert {"item": "item()", "numpy": "detach"}.get(how, how) in [cut.how for cut in trace.cuts]
    if how in ("detach", "data", "no_grad"):
        cut = next(x.cut for node in trace.nodes for x in node.operands if x.cut is not None)
        assert cut.leaves == ("w",) and cut.place.source.startswith(("y.", "y *"))


# ------------------------------------------------------------------------------------------------------ loops and limits
@both
def test_the_trace_is_of_the_last_recorded_sweep(lib):
    w = tensor(lib, [1.0])
    with Recorder(lambda: {"w": w}) as recorder:
        for k in range(5):
            (w * k).sum().backward()
    trace = recorder.trace()
    assert (trace.sweep, trace.sweeps) == (5, 5) and trace.leaves[0].gradient.numbers == (10.0,)
    assert trace.leaves[0].before.numbers == (6.0,) and trace.leaves[0].arrived.numbers == (4.0,)


@both
@pytest.mark.parametrize(
    ("looking", "running", "seen"),
    [
        (0.0, 0.0, 6),  # no cost
        (0.6, 0.0, 1),  # 1 s is free: 0.4 s remain after one sweep, less than the two reserved for the end
        (0.3, 0.0, 2),  # 0.7 s remain after the first; nothing is added after the early ones, since the program takes no time
        (0.1, 0.3, 2),  # then a fifth of the program's time: 0.06 s, 0.12 s, 0.18 s and 0.24 s, minus the 0.1 s spent
        (0.02, 0.3, 6),
        (8.0, 100.0, 2),  # after its first ten seconds a twentieth: 6.5, 11.5, 16.5 and 21.5 s, minus the 8 s spent
        (1.0, 100.0, 6),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_recording_takes_no_more_than_its_share(lib, looking, running, seen, known, monkeypatch, clock):
    """Recording a sweep takes `looking` seconds, and the program takes `running` seconds before each. If the length of the loop
    is `known`, the last sweep is always recorded. (Two sweeps count as early here.)"""
    monkeypatch.setattr(pacing, "EARLY", 2)
    w, finish = tensor(lib, [1.0]), Recorder._finish
    monkeypatch.setattr(Recorder, "_finish", lambda self, sweep: (clock.move(looking), finish(self, sweep))[1])
    with Recorder(lambda: {"w": w}) as recorder:
        if known:
            for k in range(6):
                clock.move(running)
                w.grad = None
                (w * (k + 1)).sum().backward()
        else:
            for k in iter([0, 1, 2, 3, 4, 5].copy()):
                clock.move(running)
                w.grad = None
                (w * (k + 1)).sum().backward()
        trace = recorder.trace()
    last = 6 if known else seen
    assert (trace.sweep, trace.sweeps) == (last, 6) and trace.leaves[0].gradient.numbers == (float(last),)


@both
def test_recording_ends_when_its_time_has_run_out(lib, monkeypatch, clock):
    """Recording each operation before the second sweep takes 0.3 s, and 1 s is allowed."""
    monkeypatch.setattr(pacing, "EARLY", 2)
    w, kept = tensor(lib, [1.0]), []
    with Recorder(lambda: {"w": w}) as recorder:
        (w * 1.0).sum().backward()
        for _ in range(8):
            (w * 2.0).sum()
            kept.append(recorder.on)
            recorder.add_time(0.3)
        (w * 3.0).sum().backward()
        trace = recorder.trace()
    assert kept == [True] * 4 + [False] * 4
    assert (trace.sweep, trace.sweeps) == (1, 2)


@both
def test_values_are_those_of_the_sweep_and_not_later_ones(lib):
    w = tensor(lib, [1.0, 2.0])
    optimizer = lib.optim.SGD([w], lr=0.5)
    with Recorder(lambda: {"w": w}) as recorder:
        (w * w).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    trace = recorder.trace()
    assert trace.leaves[0].value.numbers == (1.0, 2.0) and trace.leaves[0].gradient.numbers == (2.0, 4.0)
    assert [event.kind for event in trace.events][:2] == ["backward", "step"]
    assert trace.events[1].place.statement == "optimizer.step()"


@both
def test_operations_of_a_derivative_have_no_operands_in_the_program(lib):
    x = tensor(lib, [3.0])
    with Recorder(lambda: {"x": x}) as recorder:
        (d,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
        (d * x * 5).sum().backward()
    trace = recorder.trace()
    words = {operand.text for node in trace.nodes for operand in node.operands}
    assert "5" in words and words <= {"5", "3", ""}, "d is 3·x ** 2, and neither `x ** 3` nor `lib.autograd` is its operand"
    assert "d" in {node.name for node in trace.nodes}


# ----------------------------------------------------------------------------------------------------------- side effects
@both
@pytest.mark.parametrize("ends", ["well", "in an error", "in an error of the sweep"])
def test_hooks_and_modes_are_removed(lib, ends):
    model = lib.nn.Linear(2, 1)

    def stop(g):
        raise ZeroDivisionError

    try:
        with Recorder(lambda: {"model": model}) as recorder:
            out = model(lib.ones(1, 2)).sum()
            if ends == "in an error":
                raise ZeroDivisionError
            if ends != "well":
                out.register_hook(stop)
            out.backward()
    except ZeroDivisionError:
        pass
    assert observers.active == () and not active_observers()
    if torch is not None:
        from torch.nn.modules import module as modules
        from torch.overrides import _len_torch_function_stack

        assert _len_torch_function_stack() == 0 and not modules._global_forward_pre_hooks and not modules._global_forward_hooks
        from torch.optim.optimizer import _global_optimizer_post_hooks

        assert not _global_optimizer_post_hooks
    assert recorder.call is None or ends != "well"


@both
def test_recorded_tensors_are_released(lib):
    x = tensor(lib, np.ones(100))
    recorder = Recorder(lambda: {"x": x})
    with recorder:
        y = x * 2
        seen = weakref.ref(y)
        y.sum().backward()
    trace = recorder.trace()
    recorder.forget()
    del y
    gc.collect()
    assert seen() is None and trace.nodes


@both
def test_other_threads_are_not_recorded(lib):
    x = tensor(lib, [1.0])
    with Recorder(lambda: {"x": x}) as recorder:
        thread = threading.Thread(target=lambda: (x * 3).sum().backward())
        thread.start()
        thread.join()
        assert recorder.sweeps == 0 and recorder.last is None
    with pytest.raises(RuntimeError, match="no backward was recorded"):
        recorder.trace()


@both
def test_a_private_sweep_has_no_side_effects(lib):
    x = tensor(lib, [1.0, 2.0])
    y = (x * x).sum()
    lib.manual_seed(3)
    first = lib.rand(2).tolist()
    lib.manual_seed(3)
    report = gl.explain(y, names={"x": x, "y": y})
    assert x.grad is None and x._version == 0 and lib.rand(2).tolist() == first
    assert report.trace.leaves[0].gradient.numbers == (2.0, 4.0)
    y.backward()  # the graph was kept
    assert x.grad.tolist() == [2.0, 4.0]


def test_tracing_outside_a_cell():
    w = gl.tensor([1.0, 2.0], requires_grad=True)
    with gl.tracing() as traced:
        loss = (w * w).sum()
        loss.backward()
    assert traced.sweeps == 1
    nodes = by_name(traced.trace)
    assert nodes["w"].gradient.numbers == (2.0, 4.0) and nodes["w"].value.numbers == (1.0, 2.0)
    with gl.tracing() as nothing:
        pass
    with pytest.raises(RuntimeError, match="no backward was called in the tracing block"):
        _ = nothing.trace
    stopped = None
    try:
        with gl.tracing() as stopped:
            (w * 3).sum().backward()
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert stopped.trace.leaves[0].gradient.numbers == (5.0, 7.0)
    assert observers.active == ()


@pytest.mark.torch
def test_other_modes_of_torch_keep_their_place():
    from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    mine = Mode()
    recorder = Recorder(lambda: {"x": x})
    recorder.meet_libraries()
    mine.__enter__()
    try:
        (x * 2).sum().backward()
        recorder.close()
        assert _get_current_function_mode_stack() == [mine]
    finally:
        mine.__exit__(None, None, None)
    assert recorder.trace().leaves[0].gradient.numbers == (2.0, 2.0)
