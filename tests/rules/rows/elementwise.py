"""Samples of the element-wise primitives of two or more numbers."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl

MASK = np.arange(12).reshape(3, 4) % 3 > 0


def number(x, value):
    return like(x, np.array(value, x.array.dtype))


CASES = [
    case("add", lambda a, b: a + b, (3, 4), (4,)),
    case("add", lambda a, b: a + b, (), (2, 1)),
    case("add_scaled", lambda a, b: gl.add(a, b, alpha=2.5), (3, 4), (4,)),
    case("add_scaled", lambda a, b: gl.sub(a, b, alpha=2.5), (), (2, 1)),
    case("sub", lambda a, b: a - b, (3, 1), (3, 4)),
    case("rsub", lambda x: 2.5 - x, (3, 4)),
    case("mul", lambda a, b: a * b, (3, 4), (2, 1, 4)),
    case("mul", lambda a: a * 2.5, (3,)),
    case("div", lambda a, b: a / b, (4,), (3, 4)),
    case("neg", lambda x: -x, (3,)),
    case("abs", lambda x: (x - 1).abs(), (3, 4)),
    case("reciprocal", lambda x: 2 / x, (3, 4)),
    case("addcmul", lambda x, a, b: gl.addcmul(x, a, b, value=0.5), (3, 1), (4,), (3, 4)),
    case("addcmul", gl.addcmul, (3,), (), (3,)),
    case("addcdiv", lambda x, a, b: gl.addcdiv(x, a, b, value=0.5), (3, 4), (4,), (3, 1)),
    case("lerp", gl.lerp, (3, 4), (4,), (3, 1)),
    case("lerp_scalar", lambda x, end: gl.lerp(x, end, 0.3), (3, 4), (4,)),
    case("lerp_scalar", lambda x, end: gl.lerp(x, end, 0.8), (), (2,)),
    case("div_floor", lambda a, b: gl.div(a * 10, b, rounding_mode="floor") + a, (3, 1), (4,), coincidence=True),
    case("div_trunc", lambda a, b: gl.div(a * 10, b, rounding_mode="trunc") + a, (3, 1), (4,), coincidence=True),
    case("remainder", lambda a, b: (a * -7) % b, (3, 4), (4,), coincidence=True),
    case("remainder", lambda a: a % 0.4, (3,), coincidence=True),
    case("fmod", lambda a, b: gl.fmod(a * -7, b), (3, 4), (4,), coincidence=True),
    case("fmod", lambda a: gl.fmod(a, 0.4), (3,), coincidence=True),
    case("pow", lambda a, b: a**b, (3, 4), (4,)),
    case("pow_scalar", lambda x: x**3, (3,)),
    case("pow_scalar", lambda x: x**-1.5, (2, 2)),
    case("pow_scalar", lambda x: x**2, ()),
    case("rpow_scalar", lambda x: 2.5**x, (3,)),
    case("ldexp", gl.ldexp, (3, 1), (4,)),
    case("frexp", lambda x: gl.frexp(x * 3).mantissa, (3, 4), coincidence=True),
    case("hypot", gl.hypot, (3, 1), (4,)),
    case("atan2", gl.atan2, (3, 1), (4,)),
    case("atan2", lambda a, b: gl.atan2(-a, -b), (3,), ()),
    case("logaddexp", gl.logaddexp, (3, 1), (4,)),
    case("logaddexp2", gl.logaddexp2, (3,), ()),
    case("xlogy", gl.xlogy, (3, 1), (4,)),
    case("xlogy", lambda x: gl.xlogy(2.5, x), (3,)),
    case("xlog1py", gl.special.xlog1py, (3, 1), (4,)),
    case("relu", lambda x: (x - 1).relu(), (3, 4), coincidence=True),
    case("where", lambda a, b: gl.where(like(a, MASK), a, b), (3, 4), (4,), coincidence=True),
    case("maximum", gl.maximum, (3, 4), (4,), coincidence=True),
    case("minimum", gl.minimum, (2, 1), (2, 3), coincidence=True),
    case("fmax", gl.fmax, (3, 4), (4,), coincidence=True),
    case("fmin", gl.fmin, (2, 1), (2, 3), coincidence=True),
    case("clamp", lambda x: x.clamp(0.8, 1.2), (3, 4), coincidence=True),
    case("clamp", lambda x: x.clamp(min=1.0), (3, 4), coincidence=True),
    case("clamp", lambda x: gl.clamp_max(x, 1.0), (3, 4), coincidence=True),
    case("clamp_tensors", gl.clamp, (3, 4), (4,), (3, 1), coincidence=True),
    case("clamp_tensors", lambda x, low, high: gl.clamp(x, low - 0.3, high + 0.3), (3, 4), (4,), (), coincidence=True),
    case("clamp_min", gl.clamp_min, (3, 4), (4,), coincidence=True),
    case("clamp_max", gl.clamp_max, (3, 1), (4,), coincidence=True),
    case("copysign", lambda a, b: gl.copysign(a, b - 1), (3, 4), (4,), coincidence=True),
    case("copysign", lambda a: gl.copysign(a, -2.0), (3,)),
    case("nextafter", gl.nextafter, (3, 4), (4,), coincidence=True),
    case("clone", lambda x: x.clone(), (3,)),
    case("fill", lambda x: (x * 2).fill_(3.0) + x, (3,), coincidence=True),
    case("replace", lambda x: (x * 2).lt_(1.5) + x, (3,), coincidence=True),
]
