"""The activations that torch has as methods."""

from __future__ import annotations

from gradlab.nn.functional import activations as functions


class Activations:
    """Piecewise linear functions. (relu, sigmoid and tanh are with the arithmetic, softmax with the reductions.)"""

    prelu, hardshrink = functions.prelu, functions.hardshrink
