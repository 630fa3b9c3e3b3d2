"""A watched step: results of closures, which hooks are added and when, and gradients before they are clipped."""

from __future__ import annotations

import importlib
import tracemalloc

import numpy as np
import pytest
from watched import LIBRARIES, ByHand, data, library, mlp, norm

import gradlab as gl
from gradlab.diagnose.faults import Faults
from gradlab.explore.watch.pace import FIRST, Pace


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return library(request.param)


@pytest.fixture
def watch_without_examination(monkeypatch):
    """Let the doctor examine only one step, after which the paces decide."""
    for place in ("examination.FULL", "examination.FIRST", "watching.FULL"):
        monkeypatch.setattr(f"gradlab.explore.watch.{place}", 1)


@pytest.mark.parametrize("by_name", [False, True])
def test_the_numbers_of_a_step_with_a_closure_are_those_of_its_closure(lib, by_name):
    """The gradients are those of the closure, and the ratio is that of the step."""
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    optimizer = lib.optim.Adam(net.parameters(), lr=0.01)
    hand = ByHand([list(net[0].parameters()), list(net[2].parameters())])

    def closure():
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        hand.before()
        return loss

    with gl.watch(net, optimizer) as w:
        for _ in range(8):
            loss = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
            hand.after(loss)
            w.log(loss)
    found = w.history()
    assert w.steps == 8
    for at, (loss, gradients, ratios) in enumerate(hand.rows):
        assert found["loss"][at] == pytest.approx(loss, rel=1e-6)
        for layer, gradient, ratio in zip(w.layers, gradients, ratios, strict=True):
            assert found[f"gradient {layer}"][at] == pytest.approx(gradient, rel=1e-5)
            assert ratio > 0 and found[f"ratio {layer}"][at] == pytest.approx(ratio, rel=1e-3)


def test_two_optimizers_with_closures_of_their_own_make_two_steps(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    optimizers = [lib.optim.SGD(net[k].parameters(), lr=0.01) for k in (0, 2)]
    hand = ByHand([list(net[0].parameters()), list(net[2].parameters())])

    def closure():
        net.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        hand.before()
        return loss

    with gl.watch(net, optimizers) as w:
        for _ in range(4):
            for optimizer in optimizers:
                hand.after(optimizer.step(closure))
    found = w.history()
    assert w.steps == len(hand.rows) == 8
    for at, (_, gradients, ratios) in enumerate(hand.rows):
        moved, still = at % 2, 1 - at % 2
        assert found[f"gradient {w.layers[moved]}"][at] == pytest.approx(gradients[moved], rel=1e-5)
        assert found[f"ratio {w.layers[moved]}"][at] == pytest.approx(ratios[moved], rel=1e-3)
        assert np.isnan(found[f"ratio {w.layers[still]}"][at]) and ratios[still] == 0


@pytest.mark.parametrize("how", ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_"])
def test_gradients_have_their_norm_before_clipping(lib, how):
    utils = importlib.import_module(f"{lib.__name__}.nn.utils")
    early = utils.clip_grad_norm_  # imported before the watch begins
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    before, after = [], []
    with gl.watch(net, optimizer) as w:
        clip = early if how == "clip_grad_norm_" else getattr(utils, how)
        for _ in range(5):
            optimizer.zero_grad()
            (10 * (net(x) - y) ** 2).mean().backward()
            gradients = [p.grad for p in net.parameters()]
            before.append(norm(gradients))
            if how == "clip_grads_with_norm_":
                clip(list(net.parameters()), 0.1, utils.get_total_norm(gradients))
            else:
                clip(net.parameters(), 0.1 if how == "clip_grad_norm_" else 0.01)
            after.append(norm(gradients))
            optimizer.step()
    found = w.history()
    assert found["unclipped"] == pytest.approx(before, rel=1e-5)
    total = np.sqrt(sum(found[f"gradient {layer}"] ** 2 for layer in w.layers))
    assert total == pytest.approx(after, rel=1e-5) and max(after) < min(before)
    assert "unclipped" not in gl.watch(net, optimizer).history()


def test_the_norm_of_another_model_that_is_clipped_is_left_out(lib):
    net, other, (x, y) = mlp(lib, 6, 1), mlp(lib, 6, 1, seed=1), data(lib)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    original = lib.nn.utils.clip_grad_norm_
    with gl.watch(net, optimizer) as w:
        for _ in range(3):
            optimizer.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            lib.nn.utils.clip_grad_norm_(list(other.parameters()), 0.1)
            optimizer.step()
    assert "unclipped" not in w.history() and lib.nn.utils.clip_grad_norm_ is original


def hooks_of(net, optimizer):
    """Return the numbers of hooks: before the optimizer's step, on modules, on parameters, after the step."""
    before = optimizer._optimizer_step_pre_hooks if hasattr(optimizer, "_optimizer_step_pre_hooks") else optimizer._pre_hooks
    after = optimizer._optimizer_step_post_hooks if hasattr(optimizer, "_optimizer_step_post_hooks") else optimizer._post_hooks
    leaves = sum(len(p._backward_hooks or ()) + len(p._post_accumulate_grad_hooks or ()) for p in net.parameters())
    return len(before), sum(len(one._forward_hooks) for one in net.modules()), leaves, len(after)


def slower(function, clock):
    def call(*args):
        clock.move(1e-3)
        return function(*args)

    return call


@pytest.mark.torch
def test_only_the_steps_that_are_measured_are_hooked(clock, watch_without_examination, monkeypatch):
    """Steps take 10 ms and an examination takes 1 ms. At a share of at most 1.5 thousandths, every 128th step is hooked."""
    lib = library("torch")
    net, (x, y) = mlp(lib, 6, 8, 1, activation="ReLU"), data(lib)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    hooked = []
    with gl.watch(net, optimizer) as w:
        for owner, name in ((w.measuring.gauge, "norms"), (w.measuring.gauge, "unit_shares"), (w.measuring.histograms, "take")):
            monkeypatch.setattr(owner, name, slower(getattr(owner, name), clock))
        for _ in range(600):
            clock.move(10e-3)
            optimizer.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            hooked.append(hooks_of(net, optimizer))
            optimizer.step()
            assert hooks_of(net, optimizer)[3] == 1
    measured = {int(step) for step in w.history()["step"][~np.isnan(w.history()["gradient net[0]"])]}
    looked = {step for step, hooks in enumerate(hooked, 1) if hooks[0]}
    assert 4 <= len(looked) < 20 and measured <= looked
    assert all(hooks == (0, 0, 0, 1) for step, hooks in enumerate(hooked, 1) if step not in looked)
    assert hooks_of(net, optimizer) == (0, 0, 0, 0)


def test_a_pace_is_known_after_one_look_and_never_too_slow_by_the_first():
    """The first examination also loads modules, which must not delay the second one much."""
    pace = Pace(0.01)
    pace.set_step_time(1e-3)
    pace.add_cost(0, 100e-6)
    assert pace.stride == 16 and pace.next == 16  # ten steps for one look, as a power of two
    slow = Pace(0.01)
    slow.add_cost(0, 1.0)
    slow.set_step_time(1e-3)
    assert slow.next == FIRST
    slow.add_cost(FIRST, 100e-6)
    assert slow.stride == 16


@pytest.mark.parametrize("every", [1, 3])
def test_steps_in_full_are_looked_at_whatever_they_cost(every):
    pace = Pace(0.001, every)
    pace.measure_first_steps(20)
    looked = []
    for step in range(40):
        if pace.due(step):
            looked.append(step)
            pace.add_cost(step, 1.0)
            pace.set_step_time(1e-3)
    assert looked == list(range(0, 20, every))


@pytest.mark.torch
def test_hooks_on_the_graph_take_their_share_of_the_time(clock, monkeypatch):
    """Steps take 10 ms, and the hooks of a sweep take 1 ms and may take 0.001 of the time: of 500 sweeps, five are hooked, and
    ten more for the 10 ms that are free."""
    lib = library("torch")
    from gradlab.explore.libraries import risky_torch

    looks, finite = [], risky_torch._is_finite
    monkeypatch.setattr(risky_torch, "_is_finite", lambda g: (clock.move(1e-3), looks.append(1), finite(g))[2])
    x = lib.ones(3, requires_grad=True)
    optimizer = lib.optim.SGD([x], lr=1e-3)
    with gl.watch([x], optimizer):
        for _ in range(500):
            clock.move(10e-3)
            optimizer.zero_grad()
            x.sqrt().sum().backward()
            optimizer.step()
    assert 13 <= len(looks) <= 17


@pytest.mark.torch
def test_sweeps_that_become_slower_are_looked_at_as_often_as_the_time_allows(clock, monkeypatch):
    """After sweeps of 1 ms, an examination takes 0.11 s and may take 0.001 of the time. So the next one is 100 s later, which is
    100 of the sweeps of 1 s that follow and not 100 000."""
    lib = library("torch")
    from gradlab.explore.libraries import risky_torch

    risky = risky_torch.RiskyNodeHooks(lambda *args: None, 0.001, Faults("looked"), 100)
    looked, cost = [], 0.0
    monkeypatch.setattr(risky_torch, "_is_finite", lambda g: clock.move(cost) or True)
    for step in range(400):
        clock.move(1e-3 if step <= 50 else 1.0)
        cost = 0.1 + risky_torch.CREDIT if step == 50 else 0.0
        loss = lib.ones(3, requires_grad=True).sqrt().sum()
        if risky.skips:
            risky.skips -= 1
        elif risky.add(loss):
            looked.append(step)
            loss.backward()
            risky.remove()
    assert looked[:51] == list(range(51)) and 150 <= looked[51] <= 150 + risky_torch.MAX_SKIPS


@pytest.mark.torch
def test_graphs_without_a_risky_node_are_looked_at_less_and_less_often(clock, monkeypatch):
    """Twice as many sweeps are skipped each time, up to 64, and one more whose graph is not compared with the one before. A
    node that is there later is still found."""
    lib = library("torch")
    from gradlab.explore.libraries import risky_torch

    risky = risky_torch.RiskyNodeHooks(lambda *args: None, 0.001, Faults("looked"), 100)
    called, armed = [], []
    for step in range(600):
        clock.move(1e-3)
        x = lib.ones(3, requires_grad=True)
        loss = ((x * 2).sqrt() if step >= 400 else x * 2).sum()
        if risky.skips:
            risky.skips -= 1
            continue
        called.append(step)
        if risky.add(loss):
            armed.append(step)
            loss.backward()
            risky.remove()
    assert called[:9] == [0, 1, 2, 4, 5, 9, 10, 18, 19]
    assert [step for step in called if step >= 200] == [200, 265, 266, 331, 332, 397, 398, 463, *armed]
    assert armed == list(range(464, 600))


@pytest.mark.torch
def test_the_loss_of_a_device_is_not_read_when_a_sweep_begins(monkeypatch):
    lib = library("torch")
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    with gl.watch(net, optimizer) as w:
        monkeypatch.setattr(w.measuring.gauge, "waits", True)
        for name in ("value", "value_and_version", "is_nonfinite"):
            monkeypatch.setattr(w.measuring.gauge, name, lambda loss: pytest.fail("the loss was read"))
        w.before_backward(((net(x) - y) ** 2).mean())
    assert not w.trouble


def test_the_loss_that_is_logged_is_the_one_of_now(lib):
    """A loss that is written to after its backward has another number, and another tensor may be logged."""
    a = lib.ones(2).requires_grad_()
    optimizer = lib.optim.SGD([a], lr=0.0)
    with gl.watch([a], optimizer) as w:
        for k in range(3):
            optimizer.zero_grad()
            loss = (a * a).sum()
            loss.backward()
            optimizer.step()
            with lib.no_grad():
                loss.mul_(k + 1.0)
            w.log(loss)
    assert w.history()["loss"].tolist() == [2.0, 4.0, 6.0]


def test_memory_does_not_grow_with_the_steps(clock, watch_without_examination):
    """The test simulates steps: it reports them to the watch without computing them."""
    net = mlp(gl, 6, 1)
    optimizer = gl.optim.SGD(net.parameters(), lr=0.1)
    sizes = []
    with gl.watch(net, optimizer) as w:
        w.measuring.gauge.norms = lambda tensors: np.ones(len(tensors))
        tracemalloc.start()
        try:
            for step in range(100_000):
                clock.move(1e-3)
                w.measuring.note_loss(1.0)
                w.after_step([optimizer])
                if step in (20_000, 99_999):
                    sizes.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
    assert w.steps == 100_000 and abs(sizes[1] - sizes[0]) < 200_000
