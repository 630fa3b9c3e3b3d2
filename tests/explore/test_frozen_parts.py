"""Frozen parts that change while sweeps are not recorded, and the recorder's references to them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.trace.frozen import INTERVAL, MAX_SAMPLED
from gradlab.explore.trace.recorder import Recorder

try:
    import torch
except ImportError:
    torch = None

both = pytest.mark.parametrize("lib", [gl, pytest.param(torch, marks=pytest.mark.torch)], ids=["gradlab", "torch"])


class Training:
    """A network with a batch normalisation, its data and its optimizer."""

    def __init__(self, lib):
        lib.manual_seed(0)
        self.lib = lib
        nn = lib.nn
        self.net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
        self.optimizer = lib.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self.x, self.y = lib.randn(16, 3), lib.randn(16, 1)

    def run(self, steps, *, to_none=True):
        left = steps  # not a loop with a known end, whose last sweep is always recorded
        while left:
            left -= 1
            loss = self.lib.nn.functional.mse_loss(self.net(self.x), self.y)
            self.optimizer.zero_grad(set_to_none=to_none)
            loss.backward()
            self.optimizer.step()


@both
def test_a_norm_that_is_frozen_while_calls_are_not_recorded(lib, clock):
    """Look at the norms after a step, since calls of PyTorch's modules are unknown then; gradlab reports them."""
    one = Training(lib)

    def statistics():
        return [tensor.numpy().copy() for tensor in (one.net[1].running_mean, one.net[1].running_var)]

    with Recorder(lambda: {"net": one.net}) as recorder:
        one.run(INTERVAL)
        recorder.add_time(1.5)
        for part in one.net[:2]:
            part.requires_grad_(False)
        one.x = one.x + 2
        first = statistics()
        one.run(1)
        assert not recorder.on
        one.run(INTERVAL - 1)
        mean, variance = first if lib is gl else statistics()
        clock.move(100.0)
        one.run(3)
        assert recorder.on
        found = recorder.trace().moved_statistics
    (norm,) = found
    shift = (one.net[1].running_mean.numpy() - mean) / np.sqrt(variance + one.net[1].eps)
    np.testing.assert_allclose(norm.shift, np.sqrt((shift**2).mean()), rtol=1e-5)
    np.testing.assert_allclose(norm.spread, one.net[1].running_var.numpy().sum() / variance.sum(), rtol=1e-5)
    assert (norm.path, norm.key, norm.while_training) == ("net[1]", id(one.net[1]), True)
    assert norm.learning == norm.place, "both are the line of the loss"


@both
def test_steps_that_move_a_frozen_parameter_while_sweeps_are_not_recorded(lib):
    one = Training(lib)
    with Recorder(lambda: {"net": one.net}) as recorder:
        one.run(2)
        recorder.add_time(1.5)
        one.net[3].requires_grad_(False)
        before = one.net[3].weight.numpy().copy()
        one.run(4, to_none=False)
        assert not recorder.on
        moved = {leaf.key: leaf for leaf in recorder.trace().moved_leaves}
    leaf = moved[id(one.net[3].weight)]
    assert leaf.steps == 4
    np.testing.assert_allclose(leaf.moved, np.linalg.norm(one.net[3].weight.numpy() - before), rtol=1e-5)
    assert set(moved) == {id(one.net[3].weight), id(one.net[3].bias)}


@both
def test_a_bounded_number_of_steps_is_sampled(lib):
    one = Training(lib)
    with Recorder(lambda: {"net": one.net}) as recorder:
        one.run(2)
        one.net[3].requires_grad_(False)
        one.optimizer.param_groups[0]["weight_decay"] = 0.1
        one.run(MAX_SAMPLED + 5, to_none=False)
        assert {leaf.steps for leaf in recorder.trace().moved_leaves} == {MAX_SAMPLED}


@both
def test_nothing_is_found_in_a_training_without_frozen_parts(lib):
    one = Training(lib)
    with Recorder(lambda: {"net": one.net}) as recorder:
        one.run(2 * INTERVAL, to_none=False)
        trace = recorder.trace()
    assert (trace.moved_statistics, trace.moved_leaves) == ((), ())


@both
def test_frozen_parts_are_not_kept_alive(lib):
    one = Training(lib)
    with Recorder(dict) as recorder:
        one.run(2)
        for part in one.net:
            part.requires_grad_(part is one.net[3])
        one.run(2, to_none=False)
        parts = [weakref.ref(part) for part in one.net]
        del part, one
        recorder.forget()
        gc.collect()
        assert [part() for part in parts] == [None] * len(parts)
