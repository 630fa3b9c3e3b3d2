"""The functions of one number: exponentials, trigonometry, rounding. `rules.elementwise` says how rules are written.

What NumPy lacks (erf, lgamma …) is in `rules.special`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from math import log as log_of

import numpy as np

from gradlab.core.primitive import elementwise
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.elementwise import LN2, kept, sign_of, zero_slope

LN10 = log_of(10)


# --------------------------------------------------------------------------------------------- exponentials, logarithms
exp = elementwise("exp", np.exp, x=lambda out: out, tex="e^{{{x}}}", promote="float")
exp2 = elementwise("exp2", np.exp2, x=lambda out: out * LN2, tex="2^{{{x}}}", promote="float")
expm1 = elementwise("expm1", np.expm1, x=lambda out: out + 1, tex="e^{{{x}}} - 1", promote="float")
log = elementwise("log", np.log, x=lambda g, x: g / x, tex=r"\log {x}", promote="float")
log2 = elementwise("log2", np.log2, x=lambda g, x: g / (x * LN2), tex=r"\log_2 {x}", promote="float")
log10 = elementwise("log10", np.log10, x=lambda g, x: g / (x * LN10), tex=r"\log_{{10}} {x}", promote="float")
log1p = elementwise("log1p", np.log1p, x=lambda g, x: g / (x + 1), tex=r"\log(1 + {x})", promote="float", node="Log1PBackward0")
sqrt = elementwise("sqrt", np.sqrt, x=lambda g, out: g / (2 * out), tex=r"\sqrt{{{x}}}", promote="float")
rsqrt = elementwise(
    "rsqrt",
    lambda xp, x: 1 / xp.sqrt(x),
    x=lambda out: -0.5 * (out * out * out),
    tex=r"\frac{{1}}{{\sqrt{{{x}}}}}",
    promote="float",
)


def stable_sigmoid(xp: Namespace, x: Array) -> Array:
    """1 / (1 + e^-x), in one buffer. Where e^-x overflows, 1 / inf is the 0 it should be."""
    e = xp.empty_like(x)
    xp.negative(x, out=e)
    xp.exp(e, out=e)
    e += 1
    return xp.divide(1, e, out=e)


sigmoid = elementwise("sigmoid", stable_sigmoid, x=lambda out: out * (1 - out), tex=r"\sigma({x})", promote="float")


def log_odds(xp: Namespace, x: Array, *, eps: float | None) -> Array:
    """log(x / (1 - x)), of x kept eps away from 0 and 1 unless eps is None."""
    if eps is not None:
        x = xp.minimum(xp.maximum(x, eps), 1 - eps)
    return xp.log(x / (1 - x))


def log_odds_slope(xp: Namespace, g: Array, x: Array, eps: float | None) -> Array:
    slope = g / (x * (1 - x))
    return xp.where((x < 0) | (x > 1), nan, slope) if eps is None else xp.where((x < eps) | (x > 1 - eps), 0, slope)


logit = elementwise(
    "logit",
    log_odds,
    x=log_odds_slope,
    tex=r"\log\frac{{{x}}}{{1 - {x}}}",
    promote="float",
    formula=r"\bar{x} = \frac{\bar{y}}{x\,(1 - x)}",
)

# --------------------------------------------------------------------------------------------------------- trigonometry
sin = elementwise("sin", np.sin, x=lambda xp, x: xp.cos(x), tex=r"\sin {x}", promote="float")
cos = elementwise("cos", np.cos, x=lambda xp, x: -xp.sin(x), tex=r"\cos {x}", promote="float")
tan = elementwise("tan", np.tan, x=lambda out: 1 + out * out, tex=r"\tan {x}", promote="float")
asin = elementwise("asin", np.arcsin, x=lambda xp, g, x: g / xp.sqrt(1 - x * x), tex=r"\arcsin {x}", promote="float")
acos = elementwise("acos", np.arccos, x=lambda xp, g, x: -g / xp.sqrt(1 - x * x), tex=r"\arccos {x}", promote="float")
atan = elementwise("atan", np.arctan, x=lambda g, x: g / (x * x + 1), tex=r"\arctan {x}", promote="float")
sinh = elementwise("sinh", np.sinh, x=lambda xp, x: xp.cosh(x), tex=r"\sinh {x}", promote="float")
cosh = elementwise("cosh", np.cosh, x=lambda xp, x: xp.sinh(x), tex=r"\cosh {x}", promote="float")
tanh = elementwise("tanh", np.tanh, x=lambda out: 1 - out * out, tex=r"\tanh {x}", promote="float")
asinh = elementwise(
    "asinh", np.arcsinh, x=lambda xp, g, x: g / xp.sqrt(x * x + 1), tex=r"\mathrm{{arsinh}}\,{x}", promote="float"
)
acosh = elementwise(
    "acosh", np.arccosh, x=lambda xp, g, x: g / xp.sqrt(x * x - 1), tex=r"\mathrm{{arcosh}}\,{x}", promote="float"
)
atanh = elementwise("atanh", np.arctanh, x=lambda g, x: g / (1 - x * x), tex=r"\mathrm{{artanh}}\,{x}", promote="float")
deg2rad = elementwise(
    "deg2rad", np.deg2rad, x=lambda g: g * (pi / 180), tex=r"\tfrac{{\pi}}{{180}}\,{x}", promote="float", node="Deg2RadBackward0"
)
rad2deg = elementwise(
    "rad2deg", np.rad2deg, x=lambda g: g * (180 / pi), tex=r"\tfrac{{180}}{{\pi}}\,{x}", promote="float", node="Rad2DegBackward0"
)


def cardinal_sine(xp: Namespace, x: Array) -> Array:
    """sin(πx) / πx, and 1 at 0."""
    angle = x * pi
    at_zero = angle == 0
    return xp.where(at_zero, 1, xp.sin(angle) / xp.where(at_zero, 1, angle))


def cardinal_sine_slope(xp: Namespace, g: Array, x: Array) -> Array:
    angle = x * pi
    square = angle * x
    return xp.where(square == 0, 0, g * ((angle * xp.cos(angle) - xp.sin(angle)) / square))


sinc = elementwise(
    "sinc",
    cardinal_sine,
    x=cardinal_sine_slope,
    promote="float",
    tex=r"\frac{{\sin \pi {x}}}{{\pi {x}}}",
    formula=r"\bar{x} = \bar{y}\,\frac{\pi x \cos \pi x - \sin \pi x}{\pi x^2}",
)


# ------------------------------------------------------------------------------------------------------------- rounding
def rounded(name: str) -> Callable[[Namespace, Array], Array]:
    """NumPy's function on floats; integers stay as they are."""
    return lambda xp, x: getattr(xp, name)(x) if x.dtype.kind == "f" else x.copy()


floor = elementwise("floor", rounded("floor"), x=zero_slope, tex=r"\lfloor {x} \rfloor", promote="number")
ceil = elementwise("ceil", rounded("ceil"), x=zero_slope, tex=r"\lceil {x} \rceil", promote="number")
round_ = elementwise("round", rounded("rint"), x=zero_slope, tex=r"\mathrm{{round}}\,{x}", promote="number")
trunc = elementwise("trunc", rounded("trunc"), x=zero_slope, tex=r"\mathrm{{trunc}}\,{x}", promote="number")
round_decimals = elementwise(
    "round_decimals",
    lambda xp, x, *, decimals: xp.round(x, decimals),
    x=zero_slope,
    tex=r"\mathrm{{round}}\,{x}",
    node="RoundBackward1",
    formula=r"\bar{x} = 0",
    promote="real tensors",
)
frac = elementwise(
    "frac", lambda xp, x: x - xp.trunc(x), x=lambda g: g, tex=r"{x} - \mathrm{{trunc}}\,{x}", promote="real tensors"
)
sign = elementwise(
    "sign",
    lambda xp, x: x.copy() if x.dtype.kind == "b" else sign_of(xp, x).astype(x.dtype),
    x=zero_slope,
    tex=r"\mathrm{{sgn}}\,{x}",
)
sgn = sign.named("SgnBackward0")
angle = elementwise(
    "angle",
    lambda xp, x: xp.where(x != x, x, xp.where(x < 0, pi, 0).astype(x.dtype)),
    x=zero_slope,
    tex=r"\arg {x}",
    promote="float",
)


def finite(xp: Namespace, x: Array, *, nan: float, posinf: float, neginf: float) -> Array:
    """x, with numbers in place of NaN and the infinities."""
    x = xp.where(x != x, nan, x)
    return xp.where(x == inf, posinf, xp.where(x == -inf, neginf, x))


nan_to_num = elementwise(
    "nan_to_num",
    finite,
    masks=True,
    x=lambda xp, g, x: kept(xp, xp.isfinite(x), g),
    tex=r"\mathrm{{finite}}({x})",
    formula=r"\bar{x} = [x \text{ finite}]\,\bar{y}",
)
