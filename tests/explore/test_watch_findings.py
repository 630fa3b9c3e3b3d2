"""Findings of `watch`: faulty runs with their causes, and healthy runs without findings."""

from __future__ import annotations

import gc
import inspect
import weakref

import numpy as np
import pytest
from grouped import exhaustive_after_first
from watched import LIBRARIES, data, library, mlp, numbers

import gradlab as gl


@pytest.fixture(params=LIBRARIES)
def lib(request):
    return library(request.param)


def train(lib, net, opt, steps, *, batch=None, clear=True, target=None, seed=0, before=None):
    """Train in an ordinary loop, and watch every step."""
    x, y = data(lib, seed=seed)
    y = y if target is None else target(x)
    drawn = np.random.default_rng(seed)
    with gl.watch(net, opt) as w:
        for step in range(steps):
            rows = slice(None) if batch is None else drawn.integers(0, x.shape[0], batch).tolist()
            if clear:
                opt.zero_grad()
            loss = ((net(x[rows]) - y[rows]) ** 2).mean()
            loss.backward()
            if before is not None:
                before(step + 1)
            opt.step()
            w.log(loss)
    assert w.trouble == ""
    return w


def only(w, *kinds):
    (found,) = w.findings.findings
    assert found.kind in kinds
    return found


@pytest.fixture
def late(monkeypatch):
    """Let the doctor examine one step, so that findings on others come from their numbers and from the record of a bad step."""
    monkeypatch.setattr("gradlab.explore.watch.examination.FULL", 1)
    monkeypatch.setattr("gradlab.explore.watch.watching.FULL", 1)


# ----------------------------------------------------------------------------------------------------------------- sick
def test_a_forgotten_zero_grad(lib):
    net = mlp(lib, 6, 8, 1)
    w = train(lib, net, lib.optim.SGD(net.parameters(), lr=1e-4), 30, clear=False)
    found = only(w, "accumulated")
    assert found.evidence["step"] == 2 and found.evidence["uncleared"] == 29
    assert found.fix == "Call `opt.zero_grad()` before `loss.backward()`."
    assert (
        found.line is not None
        and inspect.getsourcelines(train)[0][found.line - inspect.getsourcelines(train)[1]].strip() == "loss.backward()"
    )


def test_a_forgotten_zero_grad_in_later_steps(lib, late):
    net = mlp(lib, 6, 8, 1)
    w = train(lib, net, lib.optim.SGD(net.parameters(), lr=1e-4), 30, clear=False)
    found = only(w, "accumulated")
    assert found.evidence["step"] == 2 and found.evidence["uncleared"] == 29
    assert "optimizer.zero_grad()" in found.fix


def test_zero_grad_that_sets_zeros_is_fine(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        for _ in range(20):
            opt.zero_grad(set_to_none=False)
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
    assert w.findings.findings == ()


def test_gradients_that_are_only_asked_for_before_they_are_cleared_are_fine(lib, late):
    """In meta-learning, `autograd.grad` finds the gradients of the previous step and adds nothing to them."""
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        for _ in range(20):
            loss = ((net(x) - y) ** 2).mean()
            lib.autograd.grad(loss, list(net.parameters()), retain_graph=True)
            opt.zero_grad()
            loss.backward()
            opt.step()
            w.log(loss)
    assert w.findings.findings == ()


def test_gradients_of_several_batches_for_one_step_are_fine(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        for _ in range(20):
            opt.zero_grad()
            for part in (slice(0, 32), slice(32, 64)):
                loss = ((net(x[part]) - y[part]) ** 2).mean()
                loss.backward()
            opt.step()
            w.log(loss)
    assert w.findings.findings == ()


def test_a_layer_that_stopped_at_a_step(lib):
    net = mlp(lib, 6, 8, 8, 1, activation="ReLU")

    def shut(step):
        if step == 40:
            with lib.no_grad():
                net[2].bias[:] = -1e3

    w = train(lib, net, lib.optim.SGD(net.parameters(), lr=0.01), 120, before=shut)
    found = only(w, "stopped-learning")
    assert found.evidence["step"] == 41
    assert found.evidence["layers"] == ["net[0]", "net[2]"]
    assert "net[3]" in found.message and "step 41" in found.message


def test_a_loss_that_swings(lib):
    net = mlp(lib, 6, 16, 16, 1, activation="Tanh")
    w = train(lib, net, lib.optim.Adam(net.parameters(), lr=1.0), 400, batch=16)
    (found,) = [one for one in w.findings.findings if one.kind == "loss-swings"]
    assert found.evidence["ratio"] > 0.1


def test_a_loss_that_grows_beyond_bounds(lib):
    net = mlp(lib, 6, 1)
    w = train(lib, net, lib.optim.SGD(net.parameters(), lr=1.15), 80)
    kinds = [one.kind for one in w.findings.findings]
    assert {"diverged", "nan-born", "inf-born"} & {*kinds}


def test_a_number_that_ceased_to_be_one_is_seen_before_the_step(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    bad = x * 1
    bad[3, 2] = float("nan")
    with gl.watch(net, opt) as w:
        for step in range(1, 20):
            given = bad if step == 12 else x
            opt.zero_grad()
            loss = ((net(given) - y) ** 2).mean()
            loss.backward()
            opt.step()
            w.log(loss)
    found = only(w, "nan-born", "nan-input")
    assert w.bad_step.step == 12 and w.bad_step.weights_finite
    assert set(w.bad_step.parameters) == {"net[0].weight", "net[0].bias", "net[2].weight", "net[2].bias"}
    assert "step 12" in found.message
    with pytest.raises(RuntimeError, match=r"w\.loss\(\*batch\)"):
        w.replay()


def test_of_the_first_loss_that_is_none_each_operation_is_kept(lib, late):
    """Without a callable for the loss, its graph is examined before its backward and then released."""
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    other = lib.nn.Linear(6, 1)
    opt = lib.optim.SGD(net.parameters(), lr=1e-12)
    backward = lib.Tensor.backward
    with gl.watch(net, opt) as w:
        for step in range(1, 8):
            opt.zero_grad()
            (other(x) * (float("nan") if step == 2 else 1.0)).sum().backward()  # of another model
            loss = (lib.log(net(x) + (9.0 if step < 5 else -9.0)) ** 2).mean()
            gone = weakref.ref(loss)
            loss.backward()
            opt.step()
            w.log(loss)
            del loss
            assert gone() is None
    assert lib.Tensor.backward is backward and not w.trouble
    assert w.bad_step.step == 5 and w.bad_step.what == "loss" and w.bad_step.weights_finite and w.bad_step.batch is None
    assert set(w.bad_step.parameters) == {"net[0].weight", "net[0].bias", "net[2].weight", "net[2].bias"}
    found = only(w, "nan-born")
    assert "step 5" in found.message and f"logarithm of negative numbers among {len(x)}" in found.message
    nodes = {node.name or node.label: node for node in w.bad_step.sweep.trace.nodes}
    (log,) = [node for node in nodes.values() if node.kind == "operation" and "og" in node.label]
    assert log.value.nans == len(x) and log.gradient.nans == len(x)
    assert "log" in w.bad_step.sweep.text()


POLES = {  # finite numbers h at which the value is finite and the slope is not, and the operation that the doctor must name
    "sqrt at 0": (lambda lib, h: (h * 0).sqrt().sum(), "sqrt"),
    "a branch that was not taken": (lambda lib, h: lib.where(h > 1e9, lib.log(h * 0), h).sum(), "log"),
    "a division that was not taken": (lambda lib, h: lib.where(h > 1e9, h / (h * 0), h).sum(), "64 zeros among 64"),
    "a root that was not taken": (lambda lib, h: lib.where(h > 1e9, (h * 0) ** 0.5, h * 2).mean() * 3, "power 0.5"),
}


@pytest.mark.parametrize("light", [True, False])
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("pole", POLES)
def test_of_the_first_gradient_that_is_none_each_operation_is_kept(lib, pole, by_hand, light, late, monkeypatch):
    """The loss is finite and no callable computes it. The step is examined in any case."""
    monkeypatch.setattr("gradlab.explore.watch.sweep_inspection.MAX_KEPT_BYTES", 1 << 20 if light else 0)
    poor, named = POLES[pole]
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    gone = []
    with gl.watch(net, None if by_hand else opt, every=50) as w:
        for step in range(1, 9):
            opt.zero_grad()
            hidden = net(x)
            loss = poor(lib, hidden) if step == 7 else ((hidden - y) ** 2).mean()
            before = [numbers(p).copy() for p in net.parameters()]
            loss.backward()
            if step == 7:
                with pytest.raises(RuntimeError, match="second time"):  # it is freed as it would have been
                    loss.backward()
                gradients = {name: numbers(p.grad).copy() for name, p in zip(w.target.names, net.parameters(), strict=True)}
                assert not any(np.isfinite(g).all() for g in gradients.values())
                gone = [weakref.ref(hidden), weakref.ref(loss)]
            if not by_hand or step < 7:
                opt.step()
            w.log(loss if step < 7 else 0.0)
            del hidden, loss
            if step == 7:
                assert w.bad_step is not None
                break
        gc.collect()
        assert [ref() for ref in gone] == [None, None]
    assert w.trouble == "" and w.bad_step.step == 7 and w.bad_step.what == "gradient" and w.bad_step.weights_finite
    assert set(w.bad_step.parameters) == set(w.target.names)
    found = only(w, "nan-born", "inf-born")
    assert "step 7" in found.message and named in found.message and found.fix
    trace = w.bad_step.sweep.trace
    for leaf in trace.leaves:  # the record is of that sweep: the same elements are not finite, and the norms are equal
        g = gradients[leaf.name]
        assert (leaf.gradient.nans, leaf.gradient.infs) == (np.isnan(g).sum(), np.isinf(g).sum())
    assert {leaf.name for leaf in trace.leaves} == set(w.target.names)
    assert all(np.isfinite(old).all() for old in before)


def test_gradients_that_make_no_step_are_no_finding(lib):
    """A loss was scaled too much and the step was skipped, or the gradients were replaced. The training continues."""
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)
    with gl.watch(net, opt) as w:
        for step in range(1, 12):
            opt.zero_grad()
            loss = ((net(x) * 0) ** 2).mean().sqrt() if step in (3, 5) else ((net(x) - y) ** 2).mean()
            loss.backward()
            if step == 5:
                for p in net.parameters():
                    p.grad = lib.zeros_like(p)
            if step != 3:
                opt.step()
            w.log(0.0)
    assert w.bad_step is None and w.findings.findings == ()


def test_an_overflow_in_a_sweep_is_kept_where_it_is_held(late):
    """No rule has a pole; a product of finite numbers is too large. gradlab keeps the sweep and reports it."""
    w0 = gl.tensor([1e-30, 0.0]).requires_grad_()
    with gl.watch([w0]) as w:
        loss = ((w0 * 1e20) * 1e20).sum()
        loss.backward()
        w.log(loss)
    assert np.isinf(numbers(w0.grad)).all() and np.isfinite(float(loss.detach()))
    assert w.bad_step.step == 1 and w.bad_step.what == "gradient" and w.bad_step.sweep is not None
    (product,) = [
        node
        for node in w.bad_step.sweep.trace.nodes
        if node.gradient is not None and node.gradient.norm == pytest.approx(2**0.5 * 1e20)
    ]
    assert product.gradient.infs == 0 and product.kind == "operation" and "overflows float32" in only(w, "inf-born").message


def test_a_gradient_whose_origin_is_not_seen_asks_for_a_replay(lib):
    net, (x, _) = mlp(lib, 6, 8, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.0)
    with gl.watch(net, opt) as w:
        net(x).sum().backward()
        net[0].weight.grad[0, 0] = float("nan")  # written by hand: no sweep made it
        opt.step()
        w.log(0.0)
    assert w.bad_step.what == "gradient" and w.bad_step.sweep is None and w.bad_step.parameters == ("net[0].weight",)
    assert "replay=" in only(w, "nan-born").fix


def test_a_step_is_replayed_with_its_batch_weights_and_random_state(lib):
    net, (x, y) = mlp(lib, 6, 8, 1), data(lib)
    drop = lib.nn.Dropout(0.5)
    opt = lib.optim.SGD(net.parameters(), lr=0.01)

    def poor(x, y):
        masked = drop(net[:2](x))
        return ((net[2](masked) * 0 + y * 0) ** 2).mean().sqrt()  # its slope at 0 is infinite

    with gl.watch(net, opt, replay=poor) as w:
        for step in range(1, 6):
            opt.zero_grad()
            before = [numbers(p).copy() for p in net.parameters()]
            loss = w.loss(x, y)
            loss.backward()
            opt.step()
            if step == 1:
                first = before
    assert w.steps == 5
    assert w.bad_step.step == 1 and w.bad_step.batch[0] is x
    after = [numbers(p).copy() for p in net.parameters()]
    gradients = [numbers(p.grad).copy() for p in net.parameters()]
    state = lib.get_rng_state()
    report = w.replay()
    assert "sqrt" in report.text()
    for p, now, g in zip(net.parameters(), after, gradients, strict=True):
        assert np.array_equal(numbers(p), now, equal_nan=True)
        assert np.array_equal(numbers(p.grad), g, equal_nan=True)
    assert np.array_equal(numbers(lib.get_rng_state()), numbers(state))
    with w._replay.restored_state():
        assert all(np.array_equal(numbers(p), old) for p, old in zip(net.parameters(), first, strict=True))
    found = only(w, "nan-born", "inf-born")
    assert "sqrt" in found.message


def test_a_replay_draws_the_same_numbers(lib):
    net, (x, y) = mlp(lib, 6, 1), data(lib)
    opt = lib.optim.SGD(net.parameters(), lr=0.0)
    drawn = []

    def loss_of(x, y):
        noise = lib.randn(3)
        drawn.append(numbers(noise))
        return ((net(x) - y) ** 2).mean() * (float("nan") if len(drawn) == 3 else 1.0)

    with gl.watch(net, opt, replay=loss_of) as w:
        for _ in range(5):
            opt.zero_grad()
            w.loss(x, y).backward()
            opt.step()
    assert w.bad_step.step == 3
    third = drawn[2]
    drawn.clear()
    w.replay()
    assert np.array_equal(drawn[0], third)


# -------------------------------------------------------------------------------------------------------------- healthy
HEALTHY = {
    "gradient descent": ((6, 16, 1), "Tanh", "SGD", {"lr": 0.1}, None),
    "momentum, batches of eight": ((6, 16, 16, 1), "ReLU", "SGD", {"lr": 0.02, "momentum": 0.9}, 8),
    "one row at a time": ((6, 16, 1), "ReLU", "SGD", {"lr": 0.01}, 1),
    "Adam": ((6, 32, 32, 1), "ReLU", "Adam", {"lr": 1e-3}, 16),
    "Adam, fast": ((6, 16, 1), "Tanh", "Adam", {"lr": 0.03}, 16),
    "AdamW, deep": ((6, 16, 16, 16, 16, 1), "GELU", "AdamW", {"lr": 2e-3}, 32),
    "RMSprop": ((6, 16, 1), "Sigmoid", "RMSprop", {"lr": 2e-3}, 16),
    "a regression": ((6, 1), "ReLU", "SGD", {"lr": 0.1}, None),
    "to the end": ((6, 1), "ReLU", "Adam", {"lr": 0.05}, None),
    "slow": ((6, 16, 16, 1), "Sigmoid", "SGD", {"lr": 1e-3}, 16),
}


@pytest.mark.parametrize("seed", exhaustive_after_first(0, 1, 2))
@pytest.mark.parametrize("name", HEALTHY)
def test_of_a_healthy_run_nothing_is_said(lib, name, seed):
    widths, activation, optimizer, settings, batch = HEALTHY[name]
    net = mlp(lib, *widths, activation=activation, seed=seed)
    w = train(lib, net, getattr(lib.optim, optimizer)(net.parameters(), **settings), 300, batch=batch, seed=seed)
    assert w.findings.findings == () and w.findings.unseen == ()


def test_a_frozen_layer_is_not_one_that_stopped(lib):
    net = mlp(lib, 6, 8, 1)

    def freeze(step):
        if step == 20:
            for p in net[0].parameters():
                p.requires_grad_(False)
                p.grad = p.grad * 0

    w = train(lib, net, lib.optim.SGD(net.parameters(), lr=0.01), 120, before=freeze)
    assert w.findings.findings == ()
