"""Jacobians whose sweeps take as long as a test says, by the clock that it moves."""

from __future__ import annotations


def taking(J, seconds, clock):
    """J, each of whose sweeps takes so many seconds."""
    values, backward = J.runner.values, J.runner.backward
    J.runner.values = lambda block: (clock.move(seconds * block.size), values(block))[1]
    J.runner.backward = lambda weights: (clock.move(seconds), backward(weights))[1]
    return J
