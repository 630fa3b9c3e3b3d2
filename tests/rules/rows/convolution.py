"""Samples of the convolutions: strides, padding, dilation, groups, one to three dimensions, and batch axes on both sides."""

from __future__ import annotations

from rules.sample import case

import gradlab as gl
from gradlab.nn import functional as F  # noqa: N812
from gradlab.rules import convolution as rules

PLAN = rules.plan_of((4, 5), (2, 3), (3, 2), (2, 2), (1, 1), (1, 2))
LINE = rules.plan_of((3,), (3,), (2,), (1,), (1,), (2,))
LARGE = rules.plan_of((4, 4), (2, 2), (3, 3), (1, 1), (0, 0), (1, 1))


def weight_of(plan, groups=1):
    return lambda x, y: rules.conv_weight.record(x, y, plan=plan, groups=groups)


def input_of(plan, groups=1):
    return lambda y, w: rules.conv_input.record(y, w, plan=plan, groups=groups)


CASES = [
    case("conv", lambda x, w: F.conv2d(x, w, padding=1), (2, 2, 3, 3), (2, 2, 3, 3)),
    case("conv", lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 0), dilation=(1, 2)), (2, 1, 4, 4), (2, 1, 3, 2)),
    case("conv", lambda x, w: F.conv2d(x, w, groups=2), (2, 2, 3, 2), (4, 1, 2, 2)),
    case("conv", F.conv2d, (3, 2, 2, 2), (3, 2, 1, 1)),
    case("conv", lambda x, w: F.conv2d(x, w, stride=2), (1, 2, 3, 3), (2, 2, 1, 1)),
    case("conv", lambda x, w: F.conv1d(x, w, padding="same"), (2, 4), (2, 2, 3)),
    case("conv", lambda x, w: F.conv3d(x, w, stride=(1, 2, 1), padding=1), (1, 1, 2, 2, 2), (2, 1, 2, 2, 2)),
    case("conv_bias", lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 2, 3, 3), (3, 2, 2, 2), (3,)),
    case("conv_bias", lambda x, w, b: F.conv1d(x, w, b, stride=2, groups=2), (2, 2, 5), (2, 1, 2), (2,)),
    case("conv_bias", lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 1, 2), (2, 2, 2, 2), (2, 3, 2, 2), (3,)),
    case("conv_bias", lambda x, w, b: F.conv_transpose1d(x, w, b, 2, groups=2), (2, 2, 3), (2, 2, 2), (4,)),
    case("conv_input", lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), (2, 2, 2, 3), (2, 1, 3, 2)),
    case("conv_input", lambda x, w: F.conv_transpose1d(x, w, padding=1, groups=2), (2, 4, 3), (4, 1, 2)),
    case("conv_input", input_of(PLAN, 2), (2, 2, 2, 3), (2, 2, 3, 2)),
    case("conv_weight", weight_of(PLAN, 2), (2, 4, 4, 5), (2, 2, 2, 3)),
    case("conv_weight", weight_of(LINE), (3, 2, 3), (3, 2, 3)),
    case("conv_weight", weight_of(LARGE), (1, 1, 4, 4), (1, 2, 2, 2)),
    case("conv", gl.conv2d, (1, 1, 3, 3), (1, 1, 3, 3)),
]
