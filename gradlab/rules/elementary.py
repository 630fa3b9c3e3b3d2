"""Functions of one number: exponentials, trigonometry, rounding. `rules.elementwise` explains how rules are written.

Functions that NumPy does not have (erf, lgamma …) are in `rules.special`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from math import log as log_of

import numpy as np

from gradlab.core.operator import operator
from gradlab.core.primitive import elementwise
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.constants import ONE, one_minus
from gradlab.rules.elementwise import LN2, sign_of, zero_slope
from gradlab.rules.masking import keep_where

LN10 = log_of(10)


# --------------------------------------------------------------------------------------------- exponentials, logarithms
exp = operator(
    elementwise(
        "exp",
        np.exp,
        x=lambda out: out,
        tex="e^{{{x}}}",
        promote="float",
        properties=Properties(poles=True, costly=True, low=0, saturates="below", ignores_minus_inf=True),
    ),
    "The exponential of each element.",
    "[0., 1., 2.] -> [1.0000, 2.7183, 7.3891]",
    inplace="function",
)
exp2 = operator(
    elementwise(
        "exp2",
        np.exp2,
        x=lambda out: out * LN2,
        tex="2^{{{x}}}",
        promote="float",
        properties=Properties(poles=True, costly=True, low=0, saturates="below", ignores_minus_inf=True),
    ),
    "2 to the power of each element.",
    "[0., 1., 3.] -> [1., 2., 8.]",
    inplace="function",
    special="exp2",
)
expm1 = operator(
    elementwise(
        "expm1",
        np.expm1,
        x=lambda out: out + 1,
        tex="e^{{{x}}} - 1",
        promote="float",
        properties=Properties(poles=True, costly=True, low=-1, keeps_sign=True, saturates="below"),
    ),
    "The exponential of each element minus 1, exact near 0.",
    "[0., 1e-8, 1.] -> [0.0000e+00, 1.0000e-08, 1.7183e+00]",
    inplace="function",
    special="expm1",
)
log = operator(
    elementwise(
        "log",
        np.log,
        x=lambda g, x: g / x,
        tex=r"\log {x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,), costly=True),
    ),
    "The natural logarithm of each element.",
    "[1., 2., 10.] -> [0.0000, 0.6931, 2.3026]",
    inplace="function",
)
log2 = operator(
    elementwise(
        "log2",
        np.log2,
        x=lambda g, x: g / (x * LN2),
        tex=r"\log_2 {x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,), costly=True),
    ),
    "The logarithm to base 2 of each element.",
    "[1., 2., 8.] -> [0., 1., 3.]",
    inplace="function",
)
log10 = operator(
    elementwise(
        "log10",
        np.log10,
        x=lambda g, x: g / (x * LN10),
        tex=r"\log_{{10}} {x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,), costly=True),
    ),
    "The logarithm to base 10 of each element.",
    "[2., 20., 2000.] -> [0.3010, 1.3010, 3.3010]",
    inplace="function",
)
log1p = operator(
    elementwise(
        "log1p",
        np.log1p,
        x=lambda g, x: g / (x + 1),
        tex=r"\log(1 + {x})",
        promote="float",
        node="Log1PBackward0",
        properties=Properties(poles=True, poles_at=(-1.0,), costly=True, keeps_sign=True),
    ),
    "The natural logarithm of 1 plus each element, exact near 0.",
    "[0., 1e-8, 1.] -> [0.0000e+00, 1.0000e-08, 6.9315e-01]",
    inplace="function",
    special="log1p",
)
sqrt = operator(
    elementwise(
        "sqrt",
        np.sqrt,
        x=lambda g, out: g / (2 * out),
        tex=r"\sqrt{{{x}}}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,), low=0),
    ),
    "The square root of each element.",
    "[0., 4., 9.] -> [0., 2., 3.]",
    inplace="function",
)
rsqrt = operator(
    elementwise(
        "rsqrt",
        lambda xp, x: 1 / xp.sqrt(x),
        x=lambda out: -0.5 * (out * out * out),
        tex=r"\frac{{1}}{{\sqrt{{{x}}}}}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,), low=0, saturates="above"),
    ),
    "The reciprocal of the square root of each element.",
    "[1., 4., 16.] -> [1.0000, 0.5000, 0.2500]",
    inplace="function",
)


def stable_sigmoid(xp: Namespace, x: Array) -> Array:
    """Compute 1 / (1 + e^-x) in one buffer. If e^-x overflows, 1 / inf is 0, as it should be."""
    e = xp.empty_like(x)
    xp.negative(x, out=e)
    xp.exp(e, out=e)
    one = ONE if xp is np else 1
    e += one
    return xp.divide(one, e, out=e)


sigmoid = operator(
    elementwise(
        "sigmoid",
        stable_sigmoid,
        x=lambda out: out * one_minus(out),
        tex=r"\sigma({x})",
        promote="float",
        properties=Properties(low=0, high=1, steepest=1 / 4, saturates="both", sigmoidal=True, ignores_minus_inf=True),
    ),
    "The logistic function of each element.",
    "[-1., 0., 1.] -> [0.2689, 0.5000, 0.7311]",
    inplace="function",
    special="expit",
)


def log_odds(xp: Namespace, x: Array, *, eps: float | None) -> Array:
    """Compute log(x / (1 - x)), with x clamped to [eps, 1 - eps] unless eps is None."""
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
    properties=Properties(poles=True),
)

# --------------------------------------------------------------------------------------------------------- trigonometry
sin = operator(
    elementwise(
        "sin",
        np.sin,
        x=lambda xp, x: xp.cos(x),
        tex=r"\sin {x}",
        promote="float",
        properties=Properties(costly=True, low=-1, high=1, steepest=1),
    ),
    "The sine of each element, an angle in radians.",
    "[0., 0.5, 1.] -> [0.0000, 0.4794, 0.8415]",
    inplace="function",
)
cos = operator(
    elementwise(
        "cos",
        np.cos,
        x=lambda xp, x: -xp.sin(x),
        tex=r"\cos {x}",
        promote="float",
        properties=Properties(costly=True, still=True, low=-1, high=1, steepest=1),
    ),
    "The cosine of each element, an angle in radians.",
    "[0., 0.5, 1.] -> [1.0000, 0.8776, 0.5403]",
    inplace="function",
)
tan = operator(
    elementwise(
        "tan",
        np.tan,
        x=lambda out: 1 + out * out,
        tex=r"\tan {x}",
        promote="float",
        properties=Properties(poles=True, costly=True),
    ),
    "The tangent of each element, an angle in radians.",
    "[0., 0.5, 1.] -> [0.0000, 0.5463, 1.5574]",
    inplace="function",
)
asin = operator(
    elementwise(
        "asin",
        np.arcsin,
        x=lambda xp, g, x: g / xp.sqrt(one_minus(x * x)),
        tex=r"\arcsin {x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(-1.0, 1.0), costly=True, low=-pi / 2, high=pi / 2, keeps_sign=True),
    ),
    "The arcsine of each element, in radians; NaN outside [-1, 1].",
    "[-1., 0., 0.5] -> [-1.5708,  0.0000,  0.5236]",
    aliases="arcsin",
    inplace="function",
)
acos = operator(
    elementwise(
        "acos",
        np.arccos,
        x=lambda xp, g, x: -g / xp.sqrt(one_minus(x * x)),
        tex=r"\arccos {x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(-1.0, 1.0), costly=True, low=0, high=pi),
    ),
    "The arccosine of each element, in radians; NaN outside [-1, 1].",
    "[-1., 0., 0.5] -> [3.1416, 1.5708, 1.0472]",
    aliases="arccos",
    inplace="function",
)
atan = operator(
    elementwise(
        "atan",
        np.arctan,
        x=lambda g, x: g / (x * x + 1),
        tex=r"\arctan {x}",
        promote="float",
        properties=Properties(costly=True, low=-pi / 2, high=pi / 2, keeps_sign=True, steepest=1, saturates="both"),
    ),
    "The arctangent of each element, in radians.",
    "[-1., 0., 1.] -> [-0.7854,  0.0000,  0.7854]",
    aliases="arctan",
    inplace="function",
)
sinh = operator(
    elementwise(
        "sinh",
        np.sinh,
        x=lambda xp, x: xp.cosh(x),
        tex=r"\sinh {x}",
        promote="float",
        properties=Properties(poles=True, costly=True, keeps_sign=True),
    ),
    "The hyperbolic sine of each element.",
    "[-1., 0., 1.] -> [-1.1752,  0.0000,  1.1752]",
    inplace="function",
)
cosh = operator(
    elementwise(
        "cosh",
        np.cosh,
        x=lambda xp, x: xp.sinh(x),
        tex=r"\cosh {x}",
        promote="float",
        properties=Properties(poles=True, costly=True, still=True, low=1),
    ),
    "The hyperbolic cosine of each element.",
    "[-1., 0., 1.] -> [1.5431, 1.0000, 1.5431]",
    inplace="function",
)
tanh = operator(
    elementwise(
        "tanh",
        np.tanh,
        x=lambda out: one_minus(out * out),
        tex=r"\tanh {x}",
        promote="float",
        properties=Properties(costly=True, low=-1, high=1, keeps_sign=True, steepest=1, saturates="both", sigmoidal=True),
    ),
    "The hyperbolic tangent of each element.",
    "[-1., 0., 1.] -> [-0.7616,  0.0000,  0.7616]",
    inplace="function",
)
asinh = operator(
    elementwise(
        "asinh",
        np.arcsinh,
        x=lambda xp, g, x: g / xp.sqrt(x * x + 1),
        tex=r"\mathrm{{arsinh}}\,{x}",
        promote="float",
        properties=Properties(costly=True, keeps_sign=True, steepest=1),
    ),
    "The inverse hyperbolic sine of each element.",
    "[-1., 0., 1.] -> [-0.8814,  0.0000,  0.8814]",
    aliases="arcsinh",
    inplace="function",
)
acosh = operator(
    elementwise(
        "acosh",
        np.arccosh,
        x=lambda xp, g, x: g / xp.sqrt(x * x - 1),
        tex=r"\mathrm{{arcosh}}\,{x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(1.0,), costly=True, low=0),
    ),
    "The inverse hyperbolic cosine of each element; NaN below 1.",
    "[1., 2., 3.] -> [0.0000, 1.3170, 1.7627]",
    aliases="arccosh",
    inplace="function",
)
atanh = operator(
    elementwise(
        "atanh",
        np.arctanh,
        x=lambda g, x: g / one_minus(x * x),
        tex=r"\mathrm{{artanh}}\,{x}",
        promote="float",
        properties=Properties(poles=True, poles_at=(-1.0, 1.0), costly=True, keeps_sign=True),
    ),
    "The inverse hyperbolic tangent of each element; NaN outside [-1, 1].",
    "[-0.5, 0., 0.5] -> [-0.5493,  0.0000,  0.5493]",
    aliases="arctanh",
    inplace="function",
)
deg2rad = operator(
    elementwise(
        "deg2rad",
        np.deg2rad,
        x=lambda g: g * (pi / 180),
        tex=r"\tfrac{{\pi}}{{180}}\,{x}",
        promote="float",
        node="Deg2RadBackward0",
        properties=Properties(keeps_sign=True, steepest=pi / 180),
    ),
    "Convert angles from degrees to radians.",
    "[0., 90., 180.] -> [0.0000, 1.5708, 3.1416]",
    inplace="function",
)
rad2deg = operator(
    elementwise(
        "rad2deg",
        np.rad2deg,
        x=lambda g: g * (180 / pi),
        tex=r"\tfrac{{180}}{{\pi}}\,{x}",
        promote="float",
        node="Rad2DegBackward0",
        properties=Properties(keeps_sign=True, steepest=180 / pi),
    ),
    "Convert angles from radians to degrees.",
    "[0., 1., 2.] -> [  0.0000,  57.2958, 114.5916]",
    inplace="function",
)


def cardinal_sine(xp: Namespace, x: Array) -> Array:
    """Compute sin(πx) / πx, and 1 at 0."""
    angle = x * pi
    at_zero = angle == 0
    return xp.where(at_zero, 1, xp.sin(angle) / xp.where(at_zero, 1, angle))


def cardinal_sine_slope(xp: Namespace, g: Array, x: Array) -> Array:
    angle = x * pi
    square = angle * x
    return xp.where(square == 0, 0, g * ((angle * xp.cos(angle) - xp.sin(angle)) / square))


sinc = operator(
    elementwise(
        "sinc",
        cardinal_sine,
        x=cardinal_sine_slope,
        promote="float",
        tex=r"\frac{{\sin \pi {x}}}{{\pi {x}}}",
        formula=r"\bar{x} = \bar{y}\,\frac{\pi x \cos \pi x - \sin \pi x}{\pi x^2}",
        properties=Properties(still=True, low=-0.21724, high=1, saturates="both"),
    ),
    "The normalised cardinal sine of each element: 1 at 0.",
    "[0., 0.5, 1.5] -> [ 1.0000,  0.6366, -0.2122]",
    inplace="function",
    special="sinc",
)


# ------------------------------------------------------------------------------------------------------------- rounding
def rounding_function(name: str) -> Callable[[Namespace, Array], Array]:
    """Return a function that applies NumPy's `name` to floats and copies integers."""
    return lambda xp, x: getattr(xp, name)(x) if x.dtype.kind == "f" else x.copy()


floor = operator(
    elementwise(
        "floor",
        rounding_function("floor"),
        x=zero_slope,
        tex=r"\lfloor {x} \rfloor",
        promote="number",
        properties=Properties(flat=True, keeps_sign=True),
    ),
    "The largest integer less than or equal to each element. Its derivative is 0.",
    "[-1.5, 0.5, 2.] -> [-2.,  0.,  2.]",
    inplace="function",
)
ceil = operator(
    elementwise(
        "ceil",
        rounding_function("ceil"),
        x=zero_slope,
        tex=r"\lceil {x} \rceil",
        promote="number",
        properties=Properties(flat=True, keeps_sign=True),
    ),
    "The smallest integer greater than or equal to each element. Its derivative is 0.",
    "[-1.5, 0.5, 2.] -> [-1.,  1.,  2.]",
    inplace="function",
)
round_ = elementwise(
    "round",
    rounding_function("rint"),
    x=zero_slope,
    tex=r"\mathrm{{round}}\,{x}",
    promote="number",
    properties=Properties(flat=True, keeps_sign=True),
)
trunc = operator(
    elementwise(
        "trunc",
        rounding_function("trunc"),
        x=zero_slope,
        tex=r"\mathrm{{trunc}}\,{x}",
        promote="number",
        properties=Properties(flat=True, keeps_sign=True),
    ),
    "Each element rounded towards 0. Its derivative is 0.",
    "[-1.5, 0.5, 2.] -> [-1.,  0.,  2.]",
    aliases="fix",
    inplace="function",
)
round_decimals = elementwise(
    "round_decimals",
    lambda xp, x, *, decimals: xp.round(x, decimals),
    x=zero_slope,
    tex=r"\mathrm{{round}}\,{x}",
    node="RoundBackward1",
    formula=r"\bar{x} = 0",
    promote="real tensors",
    properties=Properties(flat=True, keeps_sign=True),
)
frac = operator(
    elementwise(
        "frac",
        lambda xp, x: x - xp.trunc(x),
        x=lambda g: g,
        tex=r"{x} - \mathrm{{trunc}}\,{x}",
        promote="real tensors",
        properties=Properties(low=-1, high=1, keeps_sign=True, steepest=1),
    ),
    "The fractional part of each element, with its sign.",
    "[-1.5, 0.25, 2.] -> [-0.5000,  0.2500,  0.0000]",
    inplace="function",
)
sign = operator(
    elementwise(
        "sign",
        lambda xp, x: x.copy() if x.dtype.kind == "b" else sign_of(xp, x).astype(x.dtype),
        x=zero_slope,
        tex=r"\mathrm{{sgn}}\,{x}",
        properties=Properties(flat=True, low=-1, high=1, keeps_sign=True),
    ),
    "The sign of each element: -1, 0 or 1. Its derivative is 0.",
    "[-1.5, 0., 2.] -> [-1.,  0.,  1.]",
    inplace="method",
)
sgn = operator(
    sign.with_node("SgnBackward0"),
    "The sign of each element: -1, 0 or 1. Its derivative is 0.",
    "[-1.5, 0., 2.] -> [-1.,  0.,  1.]",
    name="sgn",
    inplace="method",
)
angle = operator(
    elementwise(
        "angle",
        lambda xp, x: xp.where(x != x, x, xp.where(x < 0, pi, 0).astype(x.dtype)),
        x=zero_slope,
        tex=r"\arg {x}",
        promote="float",
        properties=Properties(low=0, high=pi),  # not flat: in PyTorch its argument may be complex
    ),
    "The angle of each element in the complex plane: π for negative elements, otherwise 0.",
    "[-1.5, 0., 2.] -> [3.1416, 0.0000, 0.0000]",
)


def replace_nonfinite(xp: Namespace, x: Array, *, nan: float, posinf: float, neginf: float) -> Array:
    """Replace NaN and the infinities in x with numbers."""
    x = xp.where(x != x, nan, x)
    return xp.where(x == inf, posinf, xp.where(x == -inf, neginf, x))


nan_to_num = elementwise(
    "nan_to_num",
    replace_nonfinite,
    piecewise=True,
    x=lambda xp, g, x: keep_where(xp, xp.isfinite(x), g),
    tex=r"\mathrm{{finite}}({x})",
    formula=r"\bar{x} = [x \text{ finite}]\,\bar{y}",
    properties=Properties(keeps_sign=True, steepest=1),
)
