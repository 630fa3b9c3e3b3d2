"""Under PyTorch's GradScaler all numbers are those of the loss itself, as in a training without one.

The scales are powers of two and the tensors float32, so that both trainings compute the same numbers.
"""

from __future__ import annotations

import copy
import math

import pytest
from leftovers import find_torch_leftovers

import gradlab as gl
from gradlab.explore.trace.recorder import Recorder

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not hasattr(torch.amp, "GradScaler"), reason="this version has a GradScaler for CUDA only"),
]
SCALE = 1024.0


def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def batch(seed=1, rows=16):
    drawn = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 4, generator=drawn), torch.randn(rows, 1, generator=drawn)


def mse(model, seed=1):
    x, y = batch(seed)
    return torch.nn.functional.mse_loss(model(x), y)


def gradients(model, loss_of):
    """Return the gradient of each parameter of a copy of the model."""
    other = copy.deepcopy(model)
    loss_of(other).backward()
    return [p.grad for p in other.parameters()]


def trace_of(space, run):
    """Return the trace of the last sweep of a program."""
    with Recorder(lambda: space) as recorder:
        run()
        recorder.settle_journal()
        return recorder.trace()


def norms(trace, names):
    """Return the norms of the gradients that arrived at some leaves, and of their `.grad` after the sweep."""
    by_name = {leaf.name: leaf for leaf in trace.leaves}
    return [(by_name[name].arrived.norm, by_name[name].gradient.norm) for name in names]


NAMES = ["model[0].weight", "model[0].bias", "model[2].weight", "model[2].bias"]
WAYS = {
    "a tensor": lambda scaler, model: scaler.scale(mse(model)),
    "a named loss": lambda scaler, model: scaler.scale(loss := mse(model)) or loss,
    "divided afterwards": lambda scaler, model: scaler.scale(4 * mse(model)) / 4,
    "a list": lambda scaler, model: scaler.scale([mse(model)])[0],
    "a sum of two": lambda scaler, model: scaler.scale(0.5 * mse(model)) + scaler.scale(0.5 * mse(model)),
}


@pytest.mark.parametrize("way", WAYS)
def test_recorded_gradients_are_those_of_the_loss_itself(way):
    model, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=SCALE)
    expected = [g.norm().item() for g in gradients(model, mse)]
    trace = trace_of({"model": model}, lambda: WAYS[way](scaler, model).backward())
    assert trace.scale == SCALE
    for (arrived, held), right in zip(norms(trace, NAMES), expected, strict=True):
        assert arrived == pytest.approx(right, rel=1e-6)
        assert held == pytest.approx(right, rel=1e-6)
    assert model[0].weight.grad.norm().item() == pytest.approx(SCALE * expected[0], rel=1e-6)
    entries = {entry.name: entry for entry in trace.journal[-1].entries}
    for name, right in zip(NAMES, expected, strict=True):
        assert (entries[name].arrived, entries[name].after) == pytest.approx((right, right), rel=1e-6)


def test_the_graph_begins_with_the_loss_and_not_with_its_multiple():
    model, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=SCALE)
    space = {"model": model}

    def run():
        space["loss"] = loss = mse(model)
        scaler.scale(loss).backward()

    trace = trace_of(space, run)
    (out,) = trace.outputs
    assert trace.nodes[out].name == "loss" and trace.nodes[out].gradient.numbers == (1.0,)
    assert not any(node.operation == "MulBackward0" for node in trace.nodes)
    assert trace.journal[-1].loss == pytest.approx(space["loss"].item())


def test_all_values_in_the_graph_are_unscaled():
    model = mlp()
    plain = trace_of({"model": model}, lambda: mse(model).backward())
    model.zero_grad()
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    trace = trace_of({"model": model}, lambda: scaler.scale(mse(model)).backward())
    assert [node.operation for node in trace.nodes] == [node.operation for node in plain.nodes]
    for one, other in zip(trace.nodes, plain.nodes, strict=True):
        assert (one.gradient is None) == (other.gradient is None)
        if one.gradient is not None:
            assert one.gradient.norm == pytest.approx(other.gradient.norm, rel=1e-6)
            assert one.gradient.statistics.mean == pytest.approx(other.gradient.statistics.mean, rel=1e-5, abs=1e-9)
    for one, other in zip(trace.edges, plain.edges, strict=True):
        if one.gradient is not None:
            assert one.gradient.largest == pytest.approx(other.gradient.largest, rel=1e-6)
            assert one.share == other.share or one.share == pytest.approx(other.share, rel=1e-5)


def test_a_sweep_without_the_scaler_is_not_divided():
    model, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=SCALE)
    expected = [g.norm().item() for g in gradients(model, mse)]

    def run():
        scaler.scale(mse(model))  # is not differentiated
        mse(model).backward()

    trace = trace_of({"model": model}, run)
    assert trace.scale == 1.0 and norms(trace, NAMES)[0][0] == pytest.approx(expected[0], rel=1e-6)


def test_a_scaler_that_is_switched_off_changes_nothing():
    model, scaler = mlp(), torch.amp.GradScaler("cpu", enabled=False)
    trace = trace_of({"model": model}, lambda: scaler.scale(mse(model)).backward())
    assert trace.scale == 1.0


def test_steps_and_skipped_steps_are_events():
    model = mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)

    def run():
        for factor in (1.0, math.inf, 1.0):
            opt.zero_grad()
            scaler.scale(factor * mse(model)).backward()
            scaler.unscale_(opt)
            scaler.step(opt)
            scaler.update()

    trace = trace_of({"model": model, "opt": opt}, run)
    kinds = [(event.kind, event.scale) for event in trace.events if event.kind != "backward"]
    half = SCALE / 2
    assert kinds == [
        *(("unscale", SCALE), ("step", SCALE)),
        *(("unscale", SCALE), ("skip", SCALE)),
        *(("unscale", half), ("step", half)),
    ]
    assert trace.scale == half


def test_everything_is_restored():
    model, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=SCALE)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    with gl.watch(model, opt):
        scaler.scale(mse(model)).backward()
        scaler.step(opt)
    trace_of({}, lambda: scaler.scale(mse(model)).backward())
    assert find_torch_leftovers() == []


def test_autocast_is_in_the_graph():
    model, (x, y) = mlp(), batch()

    def run():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
        torch.nn.functional.mse_loss(out.float(), y).backward()

    labels = [node.label for node in trace_of({"model": model}, run).nodes]
    assert labels.count("to bfloat16") >= 4 and "to float32" in labels


# ---------------------------------------------------------------------------------------------------------------- watching
STEPS = 6


def train(scaler=None, *, clip=None, before=False, fused=False, micro=1, bad=(), log=True):
    """Train for some steps, with or without a scaler, and return the watch. In the iterations `bad` the loss is infinite; without
    a scaler they are left out."""
    model = mlp()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, **({"fused": True} if fused else {}))
    losses = []
    with gl.watch(model, opt) as w:
        for i in range(STEPS + len(bad)):
            if i in bad and scaler is None:
                continue
            opt.zero_grad()
            for k in range(micro):
                loss = mse(model, seed=10 * i + k) / micro * (math.inf if i in bad else 1.0)
                (loss if scaler is None else scaler.scale(loss)).backward()
            if clip is not None:
                if scaler is not None and not before:
                    scaler.unscale_(opt)
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            if scaler is None:
                opt.step()
            else:
                scaler.step(opt)
                scaler.update()
            losses.append(loss.item())
            if log:
                w.log(loss)
    return w


def close(one, other, *names):
    for name in names:
        assert one[name] == pytest.approx(other[name], rel=1e-5), name


SERIES = ("loss", "gradient model[0]", "gradient model[2]", "ratio model[0]", "ratio model[2]")


@pytest.mark.parametrize("how", [{}, {"clip": 0.1}, {"fused": True}, {"micro": 2}, {"bad": (2,)}, {"bad": (0, 3)}], ids=str)
def test_a_watch_measures_what_a_training_without_a_scaler_would(how):
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    watched, plain = train(scaler, **how), train(**how)
    assert watched.steps == plain.steps == STEPS
    close(watched.history(), plain.history(), *SERIES, *(["unclipped"] if "clip" in how else []))
    assert watched.scaled.steps.skipped == len(how.get("bad", ()))
    scales = [SCALE / 2 ** sum(one <= i for one in how.get("bad", ())) for i in range(STEPS + len(how.get("bad", ())))]
    kept = [scale for i, scale in enumerate(scales) if i not in how.get("bad", ())]
    assert watched.history()["scale"] == pytest.approx(kept)
    assert not watched.findings.findings


def test_gradients_clipped_before_they_are_unscaled_are_measured_as_they_are_used():
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    watched, plain = train(scaler, clip=0.1, before=True), train(clip=0.1 / SCALE)
    close(watched.history(), plain.history(), *SERIES, "unclipped")


def test_histograms_are_unscaled():
    watched, plain = train(torch.amp.GradScaler("cpu", init_scale=SCALE)), train()
    ours, theirs = watched.measuring.histograms.moments, plain.measuring.histograms.moments
    assert [one.step for one in ours] == [one.step for one in theirs]
    for one, other in zip(ours, theirs, strict=True):
        for spread, right in zip(one.gradients, other.gradients, strict=True):
            assert (spread.low, spread.high) == pytest.approx((right.low, right.high), rel=1e-5)


def test_a_watch_names_the_operation_that_overflows_beyond_the_examined_steps():
    model = mlp()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    x, y = batch()
    with gl.watch(model, opt) as w:
        for step in range(160):
            opt.zero_grad()
            out = model(x)
            root = torch.sqrt(out - out) if step > 120 else out  # its derivative is infinite
            loss = (root - y).square().mean()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            w.log(loss)
    (found,) = [one for one in w.findings.findings if one.kind == "falling-scale"]
    assert "sqrt" in found.message and "39 of 160 steps" in found.message and "from 1024 to" in found.message
    assert "39 of 160 steps skipped" in str(w)
    assert w.bad_step is None


def test_a_step_that_a_fused_optimizer_skips_on_a_device_has_no_gradients(monkeypatch):
    """The host is taken for a device: numbers are read with a frame, and not when the step is made."""
    monkeypatch.setattr("gradlab.explore.libraries.loss_scaling.is_on_device", lambda tensor: True)
    model, scaler = mlp(), torch.amp.GradScaler("cpu", init_scale=SCALE)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, fused=True)
    with gl.watch(model, opt) as w:
        w.measuring.gauge.waits = True
        for factor in (1.0, math.inf, 1.0):
            opt.zero_grad()
            scaler.scale(factor * mse(model)).backward()
            scaler.step(opt)
            scaler.update()
    gradient = w.history()["gradient model[0]"]
    assert math.isnan(gradient[1]) and gradient[0] > 0 and gradient[2] > 0
    assert w.history()["not finite"].sum() == 0 and not w.findings.findings
