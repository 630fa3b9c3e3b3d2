"""Element by element: arithmetic, exponentials, activations. The Jacobian of each is diagonal, so a rule is a derivative.

A rule that names `g` is a map, used where a product would turn an infinite cotangent into NaN (relu, where) or cost a
pass (div, log). Python numbers are the only constants.
"""
from __future__ import annotations

from math import inf, nan
from math import log as log_of

import numpy as np

from gradlab.core.primitive import elementwise

add = elementwise("add", np.add, a=lambda g: g, b=lambda g: g, tex="{a} + {b}")
sub = elementwise("sub", np.subtract, a=lambda g: g, b=lambda g: -g, tex="{a} - {b}")
rsub = elementwise("rsub", lambda x, *, other: other - x, x=lambda g: -g, tex="{other} - {x}", node="RsubBackward1")
mul = elementwise("mul", np.multiply, a=lambda b: b, b=lambda a: a, tex=r"{a}\,{b}")
div = elementwise("div", np.divide, a=lambda g, b: g / b, b=lambda g, a, b: -g * (a / b / b), tex=r"\frac{{{a}}}{{{b}}}",
                  promote="float")
neg = elementwise("neg", np.negative, x=lambda g: -g, tex="-{x}")
absolute = elementwise("abs", np.absolute, x=lambda xp, x: xp.sign(x), tex=r"\left|{x}\right|", promote="number")
reciprocal = elementwise("reciprocal", lambda x: 1 / x, x=lambda out: -out * out, tex=r"\frac{{1}}{{{x}}}", promote="float")


def power(x, exponent):
    """x ** exponent. Small whole powers are products, as exact as the multiplication and far quicker than `pow`."""
    if exponent == 3:
        return x * x * x
    return x ** exponent


pow_scalar = elementwise("pow_scalar", lambda x, *, exponent: power(x, exponent), node="PowBackward0",
                         x=lambda x, exponent: 0.0 if exponent == 0 else exponent * power(x, exponent - 1),
                         tex="{x}^{{{exponent}}}")
pow_ = elementwise("pow", lambda a, b: a ** b, node="PowBackward1",
                   a=lambda xp, g, a, b: xp.where(b == 0, 0, g * b * a ** (b - 1)),
                   b=lambda xp, g, a, b, out: xp.where((a == 0) & (b >= 0), 0, g * out * xp.log(a)), tex="{a}^{{{b}}}")


def base_power_slope(xp, g, x, out, base):
    """d base^x / dx = base^x log(base); for base 0, where that is 0 · -∞, 0 as in PyTorch; NaN for a negative base."""
    if base == 0:
        return xp.where(x >= 0, 0, g * out * -inf)
    return g * out * (log_of(base) if base > 0 else nan)


rpow_scalar = elementwise("rpow_scalar", lambda x, *, base: base ** x, x=base_power_slope, node="PowBackward2",
                          tex="{base}^{{{x}}}", formula=r"\bar{x} = \bar{y}\,y\,\log b")

exp = elementwise("exp", np.exp, x=lambda out: out, tex="e^{{{x}}}", promote="float")
log = elementwise("log", np.log, x=lambda g, x: g / x, tex=r"\log {x}", promote="float")
sqrt = elementwise("sqrt", np.sqrt, x=lambda g, out: g / (2 * out), tex=r"\sqrt{{{x}}}", promote="float")
sin = elementwise("sin", np.sin, x=lambda xp, x: xp.cos(x), tex=r"\sin {x}", promote="float")
cos = elementwise("cos", np.cos, x=lambda xp, x: -xp.sin(x), tex=r"\cos {x}", promote="float")
tanh = elementwise("tanh", np.tanh, x=lambda out: 1 - out * out, tex=r"\tanh {x}", promote="float")


def stable_sigmoid(xp, x):
    """1 / (1 + e^-x) without overflow: the exponential is only ever taken of a number that is not positive."""
    small = xp.exp(-xp.absolute(x))
    return xp.where(x >= 0, 1, small) / (1 + small)


sigmoid = elementwise("sigmoid", stable_sigmoid, x=lambda out: out * (1 - out), tex=r"\sigma({x})", promote="float")
BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def kept(xp, mask, g):
    """g where the mask holds, 0 elsewhere. On NumPy by masking bits: a fifth of `where`'s time, and unlike `g * mask` right
    where g is infinite."""
    if type(g) is not np.ndarray:
        return xp.where(mask, g, 0)
    bits = BITS[g.itemsize]
    return (g.view(bits) & -mask.astype(bits)).view(g.dtype)


relu = elementwise("relu", lambda xp, x: xp.maximum(x, 0), x=lambda xp, g, out: kept(xp, out > 0, g),
                   tex=r"\max({x}, 0)", promote="number")

where = elementwise("where", lambda xp, condition, a, b: xp.where(condition, a, b),
                    a=lambda xp, g, condition: kept(xp, condition, g), b=lambda xp, g, condition: xp.where(condition, 0, g),
                    tex=r"[{condition}]\,{a} + [\lnot {condition}]\,{b}")


def chosen(xp, g, lost, tied):
    """The cotangent of one of two numbers, of which one was chosen: half of it where they are equal."""
    return xp.where(tied, g * 0.5, xp.where(lost, 0, g))


maximum = elementwise("maximum", np.maximum, a=lambda xp, g, a, b: chosen(xp, g, b > a, a == b),
                      b=lambda xp, g, a, b: chosen(xp, g, a > b, a == b), tex=r"\max({a}, {b})")
minimum = elementwise("minimum", np.minimum, a=lambda xp, g, a, b: chosen(xp, g, a > b, a == b),
                      b=lambda xp, g, a, b: chosen(xp, g, b > a, a == b), tex=r"\min({a}, {b})")

clone = elementwise("clone", lambda x: x.copy(), x=lambda g: g, tex="{x}")
fill = elementwise("fill", lambda xp, x, *, value: xp.full_like(x, value), x=lambda xp, g: xp.zeros_like(g), tex="{value}",
                   node="FillBackward2")
zero = fill.named("ZeroBackward0")
