"""Observers: their events, their thread, and their removal in any order."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from leftovers import active_observers
from threads import no_threads

import gradlab as gl
from gradlab.core.observers import OBSERVERS, Observer, add_observer, observers, observing, remove_observer


class Log(Observer):
    def __init__(self):
        self.seen = []

    def on_record(self, op, made, args, meta):
        self.seen.append(op.name)

    def on_after_write(self, tensor):
        self.seen.append("wrote")

    def on_detach(self, made, source, how):
        self.seen.append(how)

    def on_cast(self, made, source):
        self.seen.append(f"{source.dtype.name} as {made.dtype.name}")

    def on_store(self, target, region, value):
        self.seen.append(("stored", [meta["index"] for _, meta in region]))


def test_events():
    x = gl.tensor([1.0, 2.0])
    with observing(Log()) as log:
        x * 2
        x.detach()
        _ = x.data
        x + gl.tensor([1.0, 2.0], dtype=gl.float64)
        x.mul_(2)
        x[0] = 3.0
    x * 3
    assert log.seen == [
        "mul",
        "detach",
        "data",
        "float32 as float64",
        "add",
        "mul",
        "wrote",
        ("stored", []),
        "wrote",
        ("stored", [(0, Ellipsis)]),
    ]


def test_observers_are_removed_in_any_order():
    one, two = add_observer(Log()), add_observer(Log())
    remove_observer(one)
    with observing(Log()) as three:
        gl.ones(1) * 2
        remove_observer(two)
        gl.ones(1) + 2
    assert (one.seen, two.seen, three.seen) == ([], ["mul"], ["mul", "add"])
    assert not active_observers() and observers.active == ()


def test_an_observer_may_be_added_twice():
    log = Log()
    with observing(log), observing(log):
        gl.ones(1) * 2
    assert log.seen == ["mul", "mul"] and not active_observers()


@no_threads
def test_other_threads_are_not_observed():
    with observing(Log()) as log:
        thread = threading.Thread(target=lambda: gl.ones(1) * 2)
        thread.start()
        thread.join()
    assert log.seen == []


def test_an_error_in_an_observer_reaches_the_caller():
    class Refusing(Observer):
        def on_record(self, op, made, args, meta):
            raise ValueError(op.name)

    with observing(Refusing()), pytest.raises(ValueError, match="mul"):
        gl.ones(1) * 2
    assert not active_observers()
    np.testing.assert_array_equal((gl.ones(1) * 2).numpy(), [2])


def test_an_observer_receives_only_the_events_it_overrides():
    """An observer of sweeps adds no cost to operations, and vice versa."""

    class OfSweeps(Observer):
        visited = 0

        def on_node(self, node, g, cotangents):
            self.visited += 1

    class Both(Log, OfSweeps):
        pass

    x = gl.ones(1, requires_grad=True)
    with observing(OfSweeps()) as of_sweeps:
        assert not active_observers() and observers.sweeps == (of_sweeps,)
        (x * 2).backward()
    with observing(Log()) as log:
        assert [log] == OBSERVERS and observers.sweeps == ()
    with observing(Both()) as both, observing(both):
        assert [both, both] == OBSERVERS and observers.sweeps == (both, both)
        (x * 2).backward()
    assert (of_sweeps.visited, both.visited, both.seen) == (2, 4, ["mul", "mul", "wrote", "wrote"])
    assert not active_observers() and observers.active == observers.sweeps == ()


@pytest.mark.parametrize("error", [None, ValueError])
def test_an_observer_may_keep_the_graph_until_the_end_of_the_sweep(error):
    """The graph can be traversed again at the end of the sweep, even after an error in a hook. Then it is freed."""

    class Holding(Observer):
        again = None

        def keeps_saved(self, sweep):
            return sweep.accumulates

        def on_sweep_end(self, sweep, error):
            if sweep.accumulates:
                self.again = gl.autograd.grad(sweep.outputs[0], x, retain_graph=True)[0].numpy().copy()

    class Square(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    def hook(g):
        if error is not None and watcher.again is None:
            raise error

    x = gl.tensor([2.0, 3.0], requires_grad=True)
    watcher = Holding()
    with observing(watcher):
        inner = gl.exp(x)
        y = Square.apply(inner).sum()
        inner.register_hook(hook)
        if error is None:
            y.backward()
        else:
            with pytest.raises(error):
                y.backward()
            watcher.again = None
    if error is None:
        np.testing.assert_allclose(watcher.again, 2 * np.exp(2 * x.detach().numpy()), rtol=1e-6)
        np.testing.assert_allclose(x.grad.numpy(), watcher.again)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    y = gl.exp(x).sum()
    with observing(watcher):
        y.backward(retain_graph=True)
    y.backward()  # retain_graph=True still retains it
