"""Jacobians whose sweeps take a given time on the clock of a test."""

from __future__ import annotations


def set_sweep_time(J, seconds, clock):
    """Make each sweep of J move the clock by some seconds. Return J."""
    values, backward = J.runner.values, J.runner.backward
    J.runner.values = lambda block: (clock.move(seconds * block.size), values(block))[1]
    J.runner.backward = lambda weights: (clock.move(seconds), backward(weights))[1]
    return J
