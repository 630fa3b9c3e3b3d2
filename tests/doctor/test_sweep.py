"""The recursion of the sweep predicts the gradients of actual nets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sweep import ACTIVATIONS, Net, figures, mean, nets


def test_the_recursion_by_hand():
    assert math.isclose(mean(np.square), 1) and math.isclose(mean(ACTIVATIONS["relu"][1]), 0.5)
    assert math.isclose(Net("mlp", "relu", "he", 64, 10, 0).predicted_gain, 1, rel_tol=1e-6)  # He et al.: χ = 2 · ½
    assert math.isclose(Net("mlp", "linear", "default", 64, 4, 0).predicted_gain, 1 / 9)
    assert Net("mlp", "sigmoid", "xavier", 64, 12, 0).predicted_gain < 0.25**12  # each derivative is at most ¼


@pytest.mark.parametrize("net", list(nets(("mlp", "conv"), (64,), (2, 8), (0,))), ids=str)
def test_nets_match_the_prediction(net):
    """Up to a factor of 1.25 per layer at width 64; the recursion is exact for infinite width."""
    assert abs(math.log(net.gains()[0] / net.predicted_gain)) < net.depth * math.log(1.25)


def test_figures_of_a_perfect_and_of_a_silent_claim():
    few = list(nets(("mlp",), (16,), (2, 16), (0,)))
    assert figures(lambda net: net.truth, iter(few))["misses"] == 0
    silent = figures(lambda net: None, iter(few))
    assert silent["false alarms"] == 0 and silent["misses"] == 1 and silent["healthy"] and silent["unhealthy"]
