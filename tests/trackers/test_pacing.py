"""Writing takes a bounded share of the time, and a step's numbers stay together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from by_hand import Training
from stand_ins import Recorder

from gradlab.explore.watch import measuring
from gradlab.explore.watch.pace import Pace
from gradlab.explore.watch.tracking import writing
from gradlab.explore.watch.tracking.writing import HISTOGRAMS, SCALARS, Spikes

STEP, WRITE = 0.02, 0.005  # seconds


@pytest.fixture
def run(clock):
    class Slow(Recorder):
        def log(self, values, step):
            super().log(values, step)
            clock.move(WRITE)

    def train(steps):
        training, tracker = Training(steps=steps), Slow()
        w = training.watch(tracker, before_step=lambda step: clock.move(STEP))
        return training, tracker, w

    return train


def test_slow_trackers_get_fewer_steps(run):
    training, tracker, w = run(1000)
    written = [step for step in sorted(tracker.scalars) if step > 200]
    spent = len(written) * WRITE / (800 * STEP)
    assert 0.4 * SCALARS < spent <= SCALARS + HISTOGRAMS
    assert w.measuring.spent == pytest.approx(len(tracker.scalars) * WRITE)  # it is counted as time that watching takes


def test_numbers_are_of_the_step_that_they_are_written_for(run):
    training, tracker, _ = run(300)
    assert len(tracker.scalars) < 150
    for step, row in tracker.scalars.items():
        expected = training.expected[step - 1]
        assert row == pytest.approx({name: expected[name] for name in row}, rel=1e-3), f"step {step}"
    assert all("gradlab/gradient_norm" in row for row in tracker.scalars.values())


def test_at_most_one_write_between_two_steps(clock):
    """A tracker that counts its rows, as W&B does, never counts ahead of the program."""
    training, tracker, counts = Training(steps=50), Recorder(), []

    def note(step):
        clock.move(0.03)
        counts.append(len(tracker.scalars))

    training.watch(tracker, before_step=note)
    assert {after - before for before, after in pairwise(counts)} == {0, 1} and counts[-1] > 30
    assert len(tracker.scalars) == 50


def test_all_parts_of_a_window_are_written(monkeypatch):
    """Gradients, updates and units that were measured in different steps of a window are all written."""
    training, tracker = Training(steps=260), Recorder()
    strides = {measuring.GRADIENTS: 4, measuring.UPDATES: 7}
    monkeypatch.setattr(measuring, "Pace", lambda share, every=1: Pace(share, strides.get(share, every)))
    monkeypatch.setattr(writing, "Pace", lambda share, every=1: Pace(share, 16))
    training.watch(tracker)
    for first in range(113, 241, 16):  # after the 100 steps that are looked at in full
        rows = [row for step, row in tracker.scalars.items() if first <= step < first + 16]
        assert 1 <= len(rows) <= 4
        assert {"gradient_norm/0", "update_ratio/0", "dead_units/1"} <= set().union(*rows)


def test_a_spike_in_a_row_of_looks_counts_once():
    spikes = Spikes()
    assert not any(spikes.find(1.0) for _ in range(10))
    assert spikes.find(11.0) and not spikes.find(12.0) and not spikes.find(1.0) and spikes.find(float("inf"))


def test_a_norm_is_no_spike_before_there_are_ten_looks():
    spikes = Spikes()
    assert not any(spikes.find(1.0) for _ in range(9)) and not spikes.find(100.0)


def test_at_most_twenty_spikes_are_written():
    spikes = Spikes()
    for _ in range(10):
        spikes.find(1.0)
    assert sum(bool(spikes.find(x)) for _ in range(40) for x in (100.0, 1.0, 1.0)) == 20
