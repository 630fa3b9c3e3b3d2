"""Train for many steps with random failures: values, memory and modes must be as in an undisturbed training.

The test undoes and repeats a failed step, so the final parameters must equal those of an undisturbed training bit for bit. After
every step the thread's modes and observers are checked, and at the end the hooks, the number of objects and the memory.
"""

from __future__ import annotations

import gc
import linecache
import random
import sys
import tracemalloc
from contextlib import ExitStack, nullcontext
from functools import partial

import numpy as np
import pytest
from interrupting import run_interrupted
from leftovers import find_leftovers

import gradlab as gl
from gradlab.autograd import forward_ad
from gradlab.autograd.graph import saved_tensors_hooks
from gradlab.core.modes import mode
from gradlab.core.observers import Observer, observing
from gradlab.utils.checkpoint import checkpoint

RATE = 0.05
PLACES = 3000  # approximate number of places in a step where an interrupt may come
SOURCES = [tracemalloc.Filter(False, linecache.__file__), tracemalloc.Filter(False, "<frozen *")]  # allocated for error messages


class Doubled(gl.autograd.Function):
    """Custom function 2x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 + x * 0


class Training:
    """Small regression: parameters, data and steps of gradient descent."""

    def __init__(self):
        made = np.random.default_rng(7)
        self.parameters = [gl.tensor(made.normal(size=shape), requires_grad=True) for shape in ((4, 8), (8,), (8, 1))]
        self.data = [tuple(gl.tensor(made.normal(size=(5, n))) for n in (4, 1)) for _ in range(16)]
        self.optimizer = gl.optim.SGD(self.parameters, lr=RATE)

    def hidden(self, x):
        w, b, _ = self.parameters
        h = (x @ w + b).tanh()
        h = h.clone()
        h[:, 1:3].mul_(1.0)  # through a view: keeps the values but rewrites the history
        return h

    def loss(self, i, hidden=None):
        x, y = self.data[i % len(self.data)]
        h = self.hidden(x) if hidden is None else hidden(x)
        return ((Doubled.apply(h) @ self.parameters[2] - y) ** 2).mean()

    def update(self, i):
        if i % 2:
            self.optimizer.step()
        else:
            with gl.no_grad():
                for p in self.parameters:
                    p -= RATE * p.grad
        for p in self.parameters:
            p.grad = None

    def step(self, i):
        self.loss(i).backward()
        self.update(i)

    def values(self):
        return [p.array.copy() for p in self.parameters]

    def restore(self, values):
        for p, value in zip(self.parameters, values, strict=True):
            p.array[...] = value
            p.grad = None


class HookError(Exception):
    """Error raised by hooks of this test."""


# ------------------------------------------------------------------------------------------- contexts that change no values
def step_in_contexts(training, i, chance):
    """Run a step inside random contexts that do not change its values."""
    with ExitStack() as stack:
        if chance.random() < 0.4:
            stack.enter_context(gl.record_sites())
        if chance.random() < 0.3:
            stack.enter_context(saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t))
        if chance.random() < 0.2:
            stack.enter_context(gl.autograd.detect_anomaly())
        hidden = (lambda x: checkpoint(training.hidden, x, use_reentrant=False)) if chance.random() < 0.3 else None
        loss = training.loss(i, hidden)
        if chance.random() < 0.3:
            (g,) = gl.autograd.grad(loss, training.parameters[:1], create_graph=True)
            gl.autograd.grad((g * g).sum(), training.parameters[:1], retain_graph=True)
        loss.backward()
    if chance.random() < 0.2:
        with forward_ad.dual_level():
            w = training.parameters[0]
            dual = forward_ad.make_dual(w, gl.ones_like(w))
            tangent = forward_ad.unpack_dual(dual.tanh()).tangent
            np.testing.assert_array_equal(tangent.detach().numpy(), (1 - w.tanh() ** 2).detach().numpy())
    training.update(i)


# ------------------------------------------------------------------------------------------------------------- failing steps
def raising_hook(error):
    def hook(*args):
        raise error

    return hook


def in_a_tensor_hook(training, i, error):
    loss = training.loss(i)
    training.parameters[1].register_hook(raising_hook(error)).remove()
    with training.parameters[0].register_hook(raising_hook(error)):
        loss.backward()


def in_a_node_hook(training, i, error):
    loss = training.loss(i)
    loss.grad_fn.next_functions[0][0].register_prehook(raising_hook(error))
    loss.backward()


def after_accumulation(training, i, error):
    with training.parameters[2].register_post_accumulate_grad_hook(raising_hook(error)):
        training.step(i)


def while_packing(training, i, error):
    with gl.record_sites(), saved_tensors_hooks(raising_hook(error), lambda t: t):
        training.step(i)


def while_unpacking(training, i, error):
    with saved_tensors_hooks(lambda t: t, raising_hook(error)):
        training.step(i)


def in_an_observer(training, i, error):
    class FailingObserver(Observer):
        def on_node(self, node, g, cotangents):
            if node.name() == "TanhBackward0":
                raise error

    with gl.autograd.detect_anomaly() if i % 2 else nullcontext(), observing(FailingObserver()):
        training.step(i)


def inside_modes(training, i, error):
    with gl.no_grad(), gl.enable_grad(), gl.record_sites(), forward_ad.dual_level():
        training.loss(i)
        with gl.inference_mode():
            raise error


def in_a_checkpoint(training, i, error):
    calls = []

    def hidden(x):
        calls.append(1)
        if len(calls) > 1:  # in the recomputation
            raise error
        return training.hidden(x)

    training.loss(i, lambda x: checkpoint(hidden, x, use_reentrant=False)).backward()


def by_a_write(training, i, error):
    with gl.record_sites() if i % 2 else nullcontext():
        loss = training.loss(i)
        with gl.no_grad():
            training.parameters[2].add_(1)
        loss.backward()


def by_a_second_backward(training, i, error):
    with gl.record_sites() if i % 2 else nullcontext():
        loss = training.loss(i)
        loss.backward()
        loss.backward()


FAILURES = (
    in_a_tensor_hook,
    in_a_node_hook,
    after_accumulation,
    while_packing,
    while_unpacking,
    in_an_observer,
    inside_modes,
    in_a_checkpoint,
    by_a_write,
    by_a_second_backward,
)


# ------------------------------------------------------------------------------------------------------------------- the test
def train_with_failures(steps, seed):
    """Train with failures. Return the training, the number of failed steps, and the growth in objects and bytes."""
    chance, training, failed = random.Random(seed), Training(), 0
    for i in range(steps):
        if i == steps // 4:
            gc.collect()
            objects = len(gc.get_objects())
        if i == steps * 3 // 4:
            tracemalloc.start()  # it slows everything down
        values, kind = training.values(), chance.random()
        if kind < 0.6:
            step_in_contexts(training, i, chance)
            again = False
        elif kind < 0.85:
            failure, error = chance.choice(FAILURES), chance.choice((HookError(), KeyboardInterrupt()))
            with pytest.raises((HookError, KeyboardInterrupt, RuntimeError)):
                failure(training, i, error)
            again = True
        else:
            work = partial(step_in_contexts, training, i, chance)
            struck = run_interrupted(work, at=chance.randrange(1, PLACES), files=("",)).where  # in any file
            again = struck is not None
            if find_leftovers():
                gc.collect()  # a traceback in a reference cycle may keep a context manager alive
            if again and struck[1] == "the beginning of __exit__":  # no cleanup: __exit__ has not started
                mode.grad, mode.inference = True, False
        assert find_leftovers() == [], f"after step {i} ({kind:.3f})"
        if again:
            failed += 1
            training.restore(values)
            training.step(i)
    failure = error = work = struck = values = None
    gc.collect()
    grown = len(gc.get_objects()) - objects
    size = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(SOURCES).traces)
    tracemalloc.stop()
    return training, failed, grown, size


def compare_with_undisturbed(steps, seed):
    plain = Training()
    for i in range(steps):
        plain.step(i)
    train_with_failures(60, seed)  # warm up: generates functions and reads sources
    training, failed, grown, size = train_with_failures(steps, seed)
    assert failed > steps // 5
    for p, q in zip(training.parameters, plain.parameters, strict=True):
        np.testing.assert_array_equal(p.array, q.array)
        hooks = p.node.hooks
        assert hooks is None or not (hooks.tensor or hooks.pre or hooks.post or hooks.accumulated)
    return grown, size


@pytest.fixture(autouse=True)
def silence_unraisable_interrupts(monkeypatch):
    """Silence reports of interrupts in destructors, which are not raised."""
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_failures_leave_no_trace():
    grown, size = compare_with_undisturbed(300, seed=1)
    assert grown < 500 and size < 100_000, (grown, size)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_ten_thousand_steps_with_failures():
    grown, size = compare_with_undisturbed(10_000, seed=2)
    assert grown < 500 and size < 100_000, (grown, size)
