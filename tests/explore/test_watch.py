"""`watch`: its numbers against a loop by hand, its bounds on time and memory, and that it removes all hooks."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref

import numpy as np
import pytest
from watched import LIBRARIES, ByHand, data, library, mlp, numbers

import gradlab as gl
from gradlab.explore.watch.columns import Columns
from gradlab.explore.watch.pace import Pace


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return library(request.param)


def layers_of(net):
    return [list(module.parameters()) for module in net if list(module.parameters())]


# ------------------------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_numbers_are_those_of_a_loop_by_hand(lib, name):
    net, (x, y) = mlp(lib, 6, 8, 8, 1), data(lib)
    opt = getattr(lib.optim, name)(net.parameters(), lr=0.05)
    hand = ByHand(layers_of(net))
    with gl.watch(net, opt) as w:
        for _ in range(25):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            hand.before()
            opt.step()
            hand.after(loss)
            w.log(loss)
    assert w.steps == 25
    assert w.layers == ("net[0]", "net[2]", "net[4]")
    found = w.history()
    assert found["step"].tolist() == list(range(1, 26))
    assert np.allclose(found["lr"], 0.05)
    for at, (loss, gradients, ratios) in enumerate(hand.rows):
        assert found["loss"][at] == pytest.approx(loss, rel=1e-6)
        for layer, gradient, ratio in zip(w.layers, gradients, ratios, strict=True):
            assert found[f"gradient {layer}"][at] == pytest.approx(gradient, rel=1e-5)
            assert found[f"ratio {layer}"][at] == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize("in_turn", [False, True])
def test_of_several_optimizers_each_layer_has_its_own_numbers(lib, in_turn):
    """Both step after one backward, or each after its own backward."""
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    slow, fast = lib.optim.SGD(net[0].parameters(), lr=1e-3), lib.optim.Adam(net[2].parameters(), lr=0.1)
    hand = ByHand(layers_of(net))
    with gl.watch(net, [slow, fast]) as w:
        for _ in range(12):
            for one in (slow, fast) if in_turn else (None,):
                net.zero_grad()
                loss = ((net(x) - y) ** 2).mean()
                loss.backward()
                hand.before()
                for optimizer in (slow, fast):
                    if one in (None, optimizer):
                        optimizer.step()
                hand.after(loss)
                w.log(loss)
    found = w.history()
    assert w.steps == len(hand.rows) == (24 if in_turn else 12) and w.optimizer_name == "SGD and Adam"
    assert np.isnan(found["lr"]).all()
    for at, (loss, gradients, ratios) in enumerate(hand.rows):
        assert found["loss"][at] == pytest.approx(loss, rel=1e-6)
        for k, layer in enumerate(w.layers):
            assert found[f"gradient {layer}"][at] == pytest.approx(gradients[k], rel=1e-5)
            if in_turn and at % 2 != k:
                assert ratios[k] == 0 and np.isnan(found[f"ratio {layer}"][at])  # not its turn
            else:
                assert found[f"ratio {layer}"][at] == pytest.approx(ratios[k], rel=1e-3)


def test_a_list_without_an_optimizer_is_refused(lib):
    net = mlp(lib, 6, 1)
    with pytest.raises(TypeError, match="has no optimizer"):
        gl.watch(net, [])
    with pytest.raises(TypeError, match="or a list of them"):
        gl.watch(net, [lib.optim.SGD(net.parameters(), lr=0.1), 3])


def test_updates_by_hand_are_steps_that_log_ends(lib):
    x, y = data(lib)
    lib.manual_seed(0)
    w0 = lib.randn(6, 1).requires_grad_()
    b0 = lib.zeros(1).requires_grad_()
    hand = ByHand([[w0], [b0]])
    with gl.watch([w0, b0]) as w:
        for _ in range(12):
            loss = ((x @ w0 + b0 - y) ** 2).mean()
            loss.backward()
            hand.before()
            with lib.no_grad():
                w0 -= 0.1 * w0.grad
                b0 -= 0.1 * b0.grad
            hand.after(loss)
            w0.grad = b0.grad = None  # gone before the step is logged
            w.log(loss)
    found = w.history()
    assert w.layers == ("w0", "b0") and w.steps == 12
    assert np.allclose(found["loss"], [row[0] for row in hand.rows], rtol=1e-6)
    assert np.allclose(found["gradient w0"], [row[1][0] for row in hand.rows], rtol=1e-5)
    assert np.allclose(found["gradient b0"], [row[1][1] for row in hand.rows], rtol=1e-5)
    assert np.allclose(found["ratio w0"], [row[2][0] for row in hand.rows], rtol=1e-3)
    assert np.isnan(found["ratio b0"][0])  # it was 0: no share of that
    assert np.allclose(found["ratio b0"][1:], [row[2][1] for row in hand.rows[1:]], rtol=1e-3)


def test_the_loss_may_be_logged_before_the_step(lib):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    with gl.watch(net, opt) as w:
        for _ in range(5):
            loss = ((net(x) - y) ** 2).mean()
            w.log(loss)
            losses.append(float(loss.detach()))
            opt.zero_grad()
            loss.backward()
            opt.step()
    assert w.history()["loss"] == pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize("activation", ["ReLU", "Sigmoid", "Tanh"])
def test_dead_and_saturated_units_are_counted(lib, activation):
    net, (x, y) = mlp(lib, 6, 8, 1, activation=activation), data(lib)
    with lib.no_grad():
        net[0].weight[:3] = 0.0
        net[0].bias[:3] = -50.0  # three units of eight are shut for any input
    opt = lib.optim.SGD(net.parameters(), lr=0.0)
    with gl.watch(net, opt) as w:
        for _ in range(3):
            loss = ((net(x) - y) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            w.log(loss)
    made = numbers(net[1](net[0](x)))
    found = w.history()
    if activation == "ReLU":
        assert found["dead net[1]"] == pytest.approx([(made == 0).all(0).mean()] * 3)
        assert "saturated net[1]" not in found
    else:
        slope = made * (1 - made) * 4 if activation == "Sigmoid" else 1 - made**2
        assert found["saturated net[1]"] == pytest.approx([(slope < 0.01).mean()] * 3)
        assert found["saturated net[1]"][0] >= 3 / 8


def test_a_model_in_evaluation_is_not_counted(lib):
    net, (x, y) = mlp(lib, 6, 8, 1, activation="ReLU"), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt) as w:
        net.eval()
        net(x * 0 - 100)
        net.train()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        w.log(loss)
    made = numbers(mlp(lib, 6, 8, 1, activation="ReLU")[:2](x))
    assert w.history()["dead net[1]"][0] == pytest.approx((made == 0).all(0).mean())


def test_histograms_are_of_the_weights_and_gradients_of_that_step(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt) as w:
        for _ in range(4):
            opt.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            weights, gradients = numbers(net[0].weight).copy(), numbers(net[0].weight.grad).copy()
            opt.step()
    last = w.measuring.histograms.moments[-1]
    assert last.step == 3
    for spread, array in ((last.weights[0], weights), (last.gradients[0], gradients)):
        assert (spread.low, spread.high) == pytest.approx((array.min(), array.max()))
        assert list(spread.bins) == np.histogram(array, len(spread.bins))[0].tolist()


# -------------------------------------------------------------------------------------------------------------- bounds
def test_pooled_columns_keep_sums_and_extremes():
    drawn = np.random.default_rng(3)
    rows = drawn.normal(size=(1000, 2))
    rows[drawn.random((1000, 2)) < 0.3] = np.nan
    rows[777, 1] = np.inf
    columns, at = Columns(2, 16), 0
    while at < 1000:
        more = int(drawn.integers(1, 40))
        columns.add(np.arange(at, min(at + more, 1000)), rows[at : at + more])
        at += more
    summary = columns.summary()
    assert summary.width == 64 and len(summary.mean) == 16
    for k in range(16):
        part = rows[64 * k : 64 * (k + 1)]
        finite = np.where(np.isfinite(part), part, np.nan)
        assert summary.mean[k] == pytest.approx(np.nanmean(finite, 0))
        assert summary.low[k].tolist() == np.nanmin(finite, 0).tolist()
        assert summary.high[k].tolist() == np.nanmax(finite, 0).tolist()
        assert summary.count[k].tolist() == (~np.isnan(finite)).sum(0).tolist()
        assert summary.bad[k].tolist() == np.isinf(part).sum(0).tolist()


def test_memory_does_not_grow_with_the_steps():
    columns = Columns(30, 64)
    size = columns.nbytes
    for start in range(0, 50_000, 500):
        columns.add(np.arange(start, start + 500), np.zeros((500, 30)))
    assert columns.nbytes == size and columns.used <= 64


@pytest.mark.exhaustive
def test_memory_is_flat_over_a_hundred_thousand_steps():
    a = gl.tensor([1.0, 2.0]).requires_grad_()
    x = gl.tensor([0.5, -1.0])
    sizes = []
    tracemalloc.start()
    try:
        with gl.watch([a]) as w:
            for step in range(100_000):
                loss = ((a * x) ** 2).sum()
                loss.backward()
                with gl.no_grad():
                    a -= 1e-6 * a.grad
                a.grad = None
                w.log(loss)
                if step in (20_000, 99_999):
                    w.measuring.frame()
                    gc.collect()
                    ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, f"{gl.__path__[0]}/*")])
                    sizes.append(sum(one.size for one in ours.statistics("filename")))  # not what other threads allocate
    finally:
        tracemalloc.stop()
    assert w.steps == 100_000 and sizes[0] > 10_000
    assert sizes[1] - sizes[0] < 32_768  # and the columns, which are pooled, take the same


def test_a_pace_keeps_its_share():
    pace = Pace(0.02)
    assert pace.due(0)
    for step in range(40):
        if pace.due(step):
            pace.add_cost(step, 1e-3)
            pace.set_step_time(5e-3)  # a fiftieth of 5 ms is 0.1 ms: every tenth step at most, and strides are powers of two
    assert pace.stride == 16
    assert [step for step in range(40, 70) if pace.due(step)][:1] == [48]
    pace.set_step_time(1.0)
    assert pace.stride == 1


def test_looking_keeps_its_share_of_the_time(clock, monkeypatch):
    """Steps take 10 ms, and examining the gradients takes 1 ms. At a share of 1.5 thousandths, at most every 67th step may be
    examined, so every 128th is."""
    net, (x, y) = mlp(gl, 6, 1), data(gl)
    opt = gl.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt) as w:
        norms, looks, calls = w.measuring.gauge.norms, [], []

        def slow(tensors):
            clock.move(1e-3)
            calls.append(len(tensors))
            if tensors[0] is net[0].weight.grad:
                looks.append(w.steps)
            return norms(tensors)

        monkeypatch.setattr(w.measuring.gauge, "norms", slow)
        for _ in range(800):
            clock.move(10e-3)
            opt.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            opt.step()
    assert np.diff(looks)[-3:].tolist() == [128, 128, 128]
    assert w.cost["gradients"] == 128 and w.cost["seconds"] == pytest.approx(1e-3 * len(calls))


def test_every_is_heeded(lib):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt, every=4) as w:
        for _ in range(12):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
    assert np.flatnonzero(~np.isnan(w.history()["gradient net[0]"])).tolist() == [0, 4, 8]
    assert not np.isnan(w.history()["loss"]).any()


def test_nothing_of_the_graph_is_held(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt) as w:
        for _ in range(3):
            opt.zero_grad()
            hidden = net[:2](x)
            loss = ((net[2](hidden) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
        gone = weakref.ref(hidden), weakref.ref(loss)
        del hidden, loss
        gc.collect()
        assert [ref() for ref in gone] == [None, None]


# ------------------------------------------------------------------------------------------------ nothing is left behind
def hooks_of(lib, net, opt):
    of_tensors = [p for p in net.parameters() if p._backward_hooks]
    if lib is gl:
        modules = [m for m in net.modules() if m._hooks is not None and m._hooks.after]
        steps = [opt._before, opt._after]
    else:
        modules = [m for m in net.modules() if m._forward_hooks]
        of_tensors += [p for p in net.parameters() if p._post_accumulate_grad_hooks]
        steps = [opt._optimizer_step_pre_hooks, opt._optimizer_step_post_hooks]
    return [*of_tensors, *modules, *(hooks for hooks in steps if hooks)]


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_no_hook_is_left(lib, error):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)

    def train():
        with gl.watch(net, opt) as w:
            assert hooks_of(lib, net, opt)
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
            if error is not None:
                raise error("stop")

    if error is None:
        train()
    else:
        with pytest.raises(error):
            train()
    assert hooks_of(lib, net, opt) == []


def test_a_training_does_not_fail_by_being_watched(lib, monkeypatch):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, opt) as w:
        monkeypatch.setattr(type(w.measuring.gauge), "norms", lambda *given: 1 / 0)
        ((net(x) - y) ** 2).mean().backward()
        opt.step()
    assert w.steps == 1 and "ZeroDivisionError" in w.findings.unseen[0]


# --------------------------------------------------------------------------------------------------------------- errors
def test_what_cannot_be_watched_is_said(lib):
    net = mlp(lib, 6, 1)
    opt = lib.optim.SGD(net.parameters(), lr=0.1)
    x = lib.ones(2).requires_grad_()
    with pytest.raises(TypeError, match="takes a model, or tensors, and got int"):
        gl.watch(3)
    with pytest.raises(TypeError, match="not its class"):
        gl.watch(lib.nn.Linear)
    with pytest.raises(ValueError, match="requires grad"):
        gl.watch(lib.ones(2))
    with pytest.raises(ValueError, match="result of an operation"):
        gl.watch([x * 2])
    with pytest.raises(TypeError, match=r"`params\[0\]` is not a Tensor"):
        gl.watch(["a"])
    with pytest.raises(TypeError, match="takes an optimizer"):
        gl.watch(net, 0.1)
    with pytest.raises(TypeError, match="not its class"):
        gl.watch(net, lib.optim.SGD)
    with pytest.raises(ValueError, match="has none of the parameters"):
        gl.watch([x], opt)
    with pytest.raises(ValueError, match="positive number"):
        gl.watch(net, opt, every=0)
    with pytest.raises(TypeError, match="name of the loss"):
        gl.watch(net, opt, loss=x.sum())
    w = gl.watch(net, opt)
    with pytest.raises(RuntimeError, match="outside the block"):
        w.log(1.0)
    with w:
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            w.log(x)
        with pytest.raises(TypeError, match="got str"):
            w.log("low")
        with pytest.raises(RuntimeError, match="replay"):
            w.loss(x)
    with pytest.raises(RuntimeError, match="records one run"), w:
        pass
    with pytest.raises(RuntimeError, match="nothing to replay"):
        w.replay()


# ------------------------------------------------------------------------------------------------------------ passing on
@pytest.fixture
def run(lib):
    return train(lib, 0.1)


def train(lib, rate, steps=30):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=rate)
    with gl.watch(net, opt) as w:
        for _ in range(steps):
            opt.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
    return w


def test_a_run_is_saved_in_each_form(run, tmp_path):
    for kind, first in ((".html", b"<!doctype html>"), (".svg", b"<svg"), (".png", b"\x89PNG"), (".json", b"{")):
        assert run.save(tmp_path / f"run{kind}").read_bytes().startswith(first)
    kept = json.loads((tmp_path / "run.json").read_text())
    assert kept["layers"][0]["gradient"]["mean"] == pytest.approx(run.history()["gradient net[0]"], rel=1e-4)
    with pytest.raises(ValueError, match="ends in one of"):
        run.save(tmp_path / "run.txt")


def test_a_run_is_a_picture_a_table_and_a_text(run):
    bundle = run._repr_mimebundle_()
    assert {"text/html", "text/plain"} <= bundle.keys()
    assert "Step 30" in bundle["text/plain"] and "net[0]" in bundle["text/plain"] and repr(run) == bundle["text/plain"]
    assert "alt=" in bundle["text/html"]


def test_a_plot_has_the_numbers(run):
    pytest.importorskip("matplotlib").use("agg")
    loss, gradient, ratio = run.plot()
    assert loss.lines[0].get_ydata() == pytest.approx(run.history()["loss"])
    assert [line.get_label() for line in gradient.lines] == ["net[0]", "net[2]"]
    assert ratio.lines[1].get_ydata() == pytest.approx(run.history()["ratio net[2]"])
    with pytest.raises(ValueError, match="three axes"):
        run.plot([loss])


def test_two_runs_are_laid_over_each_other(lib, run):
    other = train(lib, 0.01, steps=50)
    found = run.compare(other)
    assert f"step 30, loss {run.history()['loss'][-1]:.3g}" in found.text() and "step 50" in found.text()
    assert found.drawing.body.count("stroke-dasharray") == 1
    assert "net[2]" in found._repr_mimebundle_()["text/html"]
    with pytest.raises(TypeError, match="another Watch"):
        run.compare(3)
