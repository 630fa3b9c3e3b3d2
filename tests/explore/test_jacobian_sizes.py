"""Sizes of a cluster's tasks from measured costs, for ten and for a thousand workers."""

from __future__ import annotations

import concurrent.futures
import math

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.jacobian.distributed import sizes


@pytest.mark.parametrize("workers", [1, 10, 100, 1000])
@pytest.mark.parametrize("block", [0.001, 0.03, 0.5])
def test_tasks_take_half_a_second_to_five(workers, block):
    made = sizes.Sizes()
    assert made.blocks(10**9, workers) == 1, "no measurement yet"
    made.note(7 * block, 7)
    for left in (10**9, 1000, 10, 1):
        seconds = made.blocks(left, workers) * block
        assert 0.5 - block <= seconds <= 5 + block
    assert workers * sizes.OVERHEAD / sizes.task_seconds(workers) <= 0.2, "the scheduler is not the bottleneck"


def test_the_last_tasks_are_distributed():
    """Ten workers with 40 s of remaining work in total get a few tasks each."""
    assert sizes.task_seconds(10, math.inf) == 2 and sizes.task_seconds(10, 40.0) == 1 and sizes.task_seconds(10, 1.0) == 0.5


def test_a_slow_block_is_one_task():
    made = sizes.Sizes()
    made.note(30.0, 1)
    assert made.blocks(100, 10) == 1


def test_later_measurements_matter():
    made = sizes.Sizes()
    made.note(1.0, 10)
    for _ in range(20):
        made.note(1.0, 1)
    assert made.seconds == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(("start", "each"), [(0.0, 0.001), (0.1, 0.001), (0.0, 10.0), (0.0, 1e-9), (0.3, 0.05)])
def test_a_block_takes_half_a_second_or_is_one_vector(start, each):
    measured = []

    def measure(count):
        measured.append(start + each * count)
        return measured[-1]

    found = sizes.affordable(measure, 10_000)
    assert found == 10_000 or found == 1 or each * found <= 0.5
    assert found in (1, 10_000) or start + each * found >= 0.1
    assert sum(measured[:-1]) < 0.5, "unneeded measurements are cheap"


def test_the_plan_uses_measured_times(clock):
    class Slow(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            clock.move(0.01 * (len(g) if g.ndim == 2 else 1))
            return g * 2

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        J = gl.jacobian(Slow.apply, gl.ones(200, dtype=gl.float64), method="batched", executor=pool).compute()
        assert J.plan.chunk <= 25, "eight blocks or more for two workers"
        np.testing.assert_allclose(J, 2 * np.eye(200))
        quick = gl.jacobian(lambda x: x * 2, gl.ones(200, dtype=gl.float64), method="batched", executor=pool).compute()
        assert quick.plan.chunk == 25
        said = gl.jacobian(lambda x: x * 2, gl.ones(200, dtype=gl.float64), method="batched", chunk_size=70, executor=pool)
        assert said.compute().plan.chunk == 70
