"""Rows of the element by element primitives."""
from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl

MASK = np.arange(12).reshape(3, 4) % 3 > 0

CASES = [
    case("add", lambda a, b: a + b, (3, 4), (4,)),
    case("add", lambda a, b: a + b, (), (2, 1)),
    case("sub", lambda a, b: a - b, (3, 1), (3, 4)),
    case("rsub", lambda x: 2.5 - x, (3, 4)),
    case("mul", lambda a, b: a * b, (3, 4), (2, 1, 4)),
    case("mul", lambda a: a * 2.5, (3,)),
    case("div", lambda a, b: a / b, (4,), (3, 4)),
    case("neg", lambda x: -x, (3,)),
    case("abs", lambda x: (x - 1).abs(), (3, 4)),
    case("reciprocal", lambda x: 2 / x, (3, 4)),
    case("pow", lambda a, b: a ** b, (3, 4), (4,)),
    case("pow_scalar", lambda x: x ** 3, (3,)),
    case("pow_scalar", lambda x: x ** -1.5, (2, 2)),
    case("pow_scalar", lambda x: x ** 2, ()),
    case("rpow_scalar", lambda x: 2.5 ** x, (3,)),
    case("maximum", gl.maximum, (3, 4), (4,), coincidence=True),
    case("minimum", gl.minimum, (2, 1), (2, 3), coincidence=True),
    case("exp", gl.exp, (3,)),
    case("log", gl.log, (3,)),
    case("sqrt", gl.sqrt, (3, 2)),
    case("sin", gl.sin, (3,)),
    case("cos", gl.cos, (3,)),
    case("tanh", gl.tanh, ()),
    case("tanh", gl.tanh, (2, 3)),
    case("sigmoid", gl.sigmoid, (2, 3)),
    case("relu", lambda x: (x - 1).relu(), (3, 4), coincidence=True),
    case("where", lambda a, b: gl.where(like(a, MASK), a, b), (3, 4), (4,), coincidence=True),
    case("clone", lambda x: x.clone(), (3,)),
    case("fill", lambda x: (x * 2).fill_(3.0) + x, (3,), coincidence=True),
]
