"""Samples of the activations. Inputs are shifted so that both sides of each kink are covered."""

from __future__ import annotations

from rules.sample import case

from gradlab.nn import functional as F  # noqa: N812
from gradlab.rules.activations import elu_slope, gelu_slope, softplus_slope
from gradlab.rules.zero_derivative import zero_derivative

CASES = [
    case("zero_derivative", lambda x: zero_derivative.record(x * 2, x.detach()), (3, 4)),
    case("zero_derivative", lambda x: zero_derivative.record(x * 2, x.sum(0)), (3, 4)),
    case("leaky_relu", lambda x: F.leaky_relu(x - 1, 0.1), (3, 4)),
    case("leaky_relu", lambda x: F.leaky_relu(x - 1, -2), (3, 4)),
    case("prelu", lambda x, w: F.prelu(x - 1, w), (2, 3, 4), (3,), coincidence=True),
    case("prelu", lambda x, w: F.prelu(x - 1, w), (5,), (1,), coincidence=True),
    case("hardtanh", lambda x: F.hardtanh(x, 0.7, 1.2), (3, 4), coincidence=True),
    case("hardsigmoid", lambda x: F.hardsigmoid((x - 1) * 9), (3, 4), coincidence=True),
    case("hardswish", lambda x: F.hardswish((x - 1) * 9), (3, 4), coincidence=True),
    case("softshrink", lambda x: F.softshrink(x - 1, 0.2), (3, 4), coincidence=True),
    case("hardshrink", lambda x: F.hardshrink(x - 1, 0.2), (3, 4), coincidence=True),
    case("threshold", lambda x: F.threshold(x, 0.9, -1), (3, 4), coincidence=True),
    case("elu", lambda x: F.elu(x - 1), (3, 4)),
    case("elu", lambda x: F.elu(x - 1, 0.3), (4,)),
    case("elu", lambda x: F.celu(x - 1, 0.3), ()),
    case("elu_slope", lambda x: elu_slope.record(x - 1, alpha=1, scale=1, rate=1), (3, 4), coincidence=True),
    case("elu_slope", lambda x: elu_slope.record(x - 1, alpha=0.5, scale=2, rate=3), (3, 4), coincidence=True),
    case("softplus", lambda x: F.softplus(x, 2, 2.1), (3, 4)),
    case("softplus_slope", lambda x: softplus_slope.record(x, beta=2, threshold=2.1), (3, 4), coincidence=True),
    case("logsigmoid", lambda x: F.logsigmoid(x - 1), (3, 4)),
    case("silu", lambda x: F.silu(x - 1), (3, 4)),
    case("mish", lambda x: F.mish(x - 1), (3, 4)),
    case("gelu", lambda x: F.gelu(x - 1), (3, 4)),
    case("gelu_slope", lambda x: gelu_slope.record(x - 1), (3, 4)),
    case("gelu_tanh", lambda x: F.gelu(x - 1, approximate="tanh"), (3, 4)),
]
