"""Samples of the functions of one number."""

from __future__ import annotations

from rules.sample import case

import gradlab as gl

# fmt: off
CASES = [
    *(case(name, getattr(gl, name), (3, 2)) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "sinh", "cosh",
        "tanh", "asinh", "sigmoid", "sinc", "deg2rad", "rad2deg", "frac")),
    *(case(name, lambda x, name=name: getattr(gl, name)(x - 0.6), ()) for name in ("exp", "tanh", "asin", "sigmoid")),
    *(case(name, lambda x, name=name: getattr(gl, name)(x / 2), (3, 2)) for name in ("asin", "acos", "atanh", "logit")),
    case("logit", lambda x: gl.logit(x / 2, eps=0.4), (3, 4), coincidence=True),
    case("acosh", lambda x: gl.acosh(x + 1), (3, 2)),
    *(case(name, lambda x, name=name: getattr(gl, name)(x * 10) + x, (3, 2), coincidence=True) for name in (
        "floor", "ceil", "trunc", "round", "sign", "angle")),
    case("round_decimals", lambda x: gl.round(x, decimals=1) + x, (3,), coincidence=True),
    case("nan_to_num", gl.nan_to_num, (3, 2)),
]
# fmt: on
