"""Element-wise arithmetic and selection (where, maximum, clamp).

The Jacobian of each is diagonal, so a rule is a partial derivative. A rule with a parameter `g` instead maps the cotangent.
It is used if a product would turn an infinite cotangent into NaN (relu, where) or take another pass (div). The only constants are
Python numbers. Functions of one number are in `rules.elementary`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, pi
from math import log as log_of
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from gradlab.core.operator import operator
from gradlab.core.primitive import Primitive, elementwise
from gradlab.core.properties import Properties
from gradlab.core.registry import PRIMITIVES, core_primitives
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.masking import clip, keep_where, zero_where

LN2 = log_of(2)


def sign_of(xp: Namespace, x: Array) -> Array:
    """Return 1, 0 or -1, and 0 for NaN as in PyTorch. Quicker than NumPy's `sign`. In traced rules, `sign` does the same."""
    if xp is np:
        return (x > 0).view(np.int8) - (x < 0).view(np.int8)
    sign = xp.sign(x)
    return sign if isinstance(xp, SimpleNamespace) else xp.where(x != x, 0, sign)


def zero_slope(xp: Namespace, g: Array) -> Array:
    """Derivative of a piecewise constant function."""
    return xp.zeros_like(g)


def nondifferentiable_primitive(name: str, forward: Callable[..., Array], **options: Any) -> Any:
    """Create a primitive of two arguments that PyTorch records without a derivative; its rules raise a RuntimeError.

    It is removed from `PRIMITIVES`, because the checks of primitives do not apply to it.
    """

    def refuse(g: Array) -> NoReturn:
        raise RuntimeError(f"derivative for aten::{name} is not implemented. Call detach() on its inputs.")

    elementwise(f"{name}_", forward, a=refuse, b=refuse, node="NotImplemented", formula=r"\text{no derivative}", **options)
    return PRIMITIVES.pop(f"{name}_")


# ----------------------------------------------------------------------------------------------------------- arithmetic
add = elementwise(
    "add",
    np.add,
    a=lambda g: g,
    b=lambda g: g,
    tex="{a} + {b}",
    promote="arithmetic",
    properties=Properties(adds=True, short_name="+"),
)
add_scaled = elementwise(
    "add_scaled",
    lambda a, b, *, alpha: a + alpha * b,
    a=lambda g: g,
    b=lambda g, alpha: g * alpha,
    tex=r"{a} + {alpha}\,{b}",
    node="AddBackward0",
    formula=r"\bar{a} = \bar{y},\quad \bar{b} = \alpha\,\bar{y}",
    promote="single",
    properties=Properties(adds=True, short_name="+"),
)
sub_scaled = add_scaled.with_node("SubBackward0")
sub = elementwise(
    "sub",
    np.subtract,
    a=lambda g: g,
    b=lambda g: -g,
    tex="{a} - {b}",
    promote="difference",
    properties=Properties(adds=True, short_name="−"),
)
rsub = elementwise(
    "rsub",
    lambda x, *, other: other - x,
    x=lambda g: -g,
    tex="{other} - {x}",
    node="RsubBackward1",
    promote="single",
    properties=Properties(adds=True),
)
mul = elementwise(
    "mul",
    np.multiply,
    a=lambda b: b,
    b=lambda a: a,
    tex=r"{a}\,{b}",
    promote="arithmetic",
    properties=Properties(multiplies=True, short_name="×"),
)
div = elementwise(
    "div",
    np.divide,
    a=lambda g, b: g / b,
    b=lambda g, a, b: g * (a / b / -b),
    tex=r"\frac{{{a}}}{{{b}}}",
    promote="float",
    properties=Properties(poles=True, multiplies=True, short_name="÷"),
)
neg = operator(
    elementwise("neg", np.negative, x=lambda g: -g, tex="-{x}"),
    "The negative of each element.",
    "[-1., 0., 2.] -> [ 1., -0., -2.]",
    aliases="negative",
    inplace="function",
)
absolute = operator(
    elementwise(
        "abs",
        np.absolute,
        x=sign_of,
        tex=r"\left|{x}\right|",
        promote="number",
        properties=Properties(still=True, low=0, steepest=1),
    ),
    "The absolute value of each element. Its derivative at 0 is 0.",
    "[-1., 0., 2.] -> [1., 0., 2.]",
    aliases="absolute",
    inplace="abs_",
)
reciprocal = operator(
    elementwise(
        "reciprocal",
        lambda x: 1 / x,
        x=lambda out: -out * out,
        tex=r"\frac{{1}}{{{x}}}",
        promote="float",
        properties=Properties(poles=True, poles_at=(0.0,)),
    ),
    "1 divided by each element.",
    "[1., 2., 4.] -> [1.0000, 0.5000, 0.2500]",
    inplace="function",
)
addcmul = elementwise(
    "addcmul",
    lambda x, tensor1, tensor2, *, value: x + (tensor1 if value == 1 else value * tensor1) * tensor2,
    x=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (value * tensor2),
    tensor2=lambda g, tensor1, value: g * (value * tensor1),
    promote="single tensors",
    tex=r"{x} + {value}\,{tensor1}\,{tensor2}",
    formula=r"\bar{x} = \bar{y},\quad \bar{a} = v\,b\,\bar{y},\quad \bar{b} = v\,a\,\bar{y}",
    properties=Properties(addend=0),
)
addcdiv = elementwise(
    "addcdiv",
    lambda x, tensor1, tensor2, *, value: x + (tensor1 if value == 1 else value * tensor1) / tensor2,
    x=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (value / tensor2),
    tensor2=lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
    promote="single tensors",
    tex=r"{x} + {value}\,\frac{{{tensor1}}}{{{tensor2}}}",
    formula=r"\bar{x} = \bar{y},\quad \bar{a} = \frac{v}{b}\,\bar{y},\quad \bar{b} = -\frac{v\,a}{b^2}\,\bar{y}",
    properties=Properties(poles=True, addend=0),
)


def lerp_forward(xp: Namespace, start: Array, end: Array, weight: Array) -> Array:
    """Compute start + weight · (end - start) from the nearer end, so that both ends are exact."""
    step = end - start
    return xp.where(abs(weight) < 0.5, start + weight * step, end - step * (1 - weight))


lerp = elementwise(
    "lerp",
    lerp_forward,
    start=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    weight=lambda g, start, end: g * (end - start),
    node="LerpBackward1",
    promote="real tensors",
    tex=r"(1 - {weight})\,{start} + {weight}\,{end}",
)
lerp_scalar = elementwise(
    "lerp_scalar",
    lambda xp, x, end, *, weight: lerp_forward(xp, x, end, weight),
    x=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    node="LerpBackward0",
    promote="real tensors",
    tex=r"(1 - {weight})\,{x} + {weight}\,{end}",
    formula=r"\bar{x} = (1 - w)\,\bar{y},\quad \bar{e} = w\,\bar{y}",
)


# --------------------------------------------------------------------------------------------------------------- powers
def power(x: Array, *, exponent: float) -> Array:
    """Compute x ** exponent. Squares and cubes are products, which are as exact as multiplication and far quicker than `pow`."""
    if exponent == 2 and hasattr(x, "dtype"):  # a symbolic formula keeps its square
        return x * x
    if exponent == 3:
        return x * x * x
    if exponent == -0.5:  # NaN for -∞, like the square root
        return 1 / x**0.5
    return x**exponent


def power_slope(x: Array, exponent: float) -> Array:
    if exponent == 2 and type(x) is np.ndarray:  # a sum of arrays is quicker than a product with a Python number
        return x + x
    if exponent == 0:
        return 0.0
    return exponent * (x if exponent == 2 and type(x) is not Tensor else pow_scalar(x, exponent=exponent - 1))


pow_scalar: Primitive = elementwise(
    "pow_scalar",
    power,
    node="PowBackward0",
    piecewise=True,
    x=power_slope,
    tex="{x}^{{{exponent}}}",
    promote="single",
    properties=Properties(poles=True, still=True, short_name="**"),
)


def raise_to_power(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute a ** b. A negative power of an integer is rounded towards 0, so it is non-zero only for 1 and -1."""
    if a.dtype.kind == "f" or (type(b) is np.ndarray and not (b < 0).any()):
        return a**b
    sign = xp.where(b % 2 == 0, 1, -1)
    return xp.where(b >= 0, a ** xp.where(b < 0, 0, b), xp.where(a == 1, 1, xp.where(a == -1, sign, 0))).astype(a.dtype)


pow_ = elementwise(
    "pow",
    raise_to_power,
    node="PowBackward1",
    a=lambda xp, g, a, b: xp.where(b == 0, 0, g * b * a ** (b - 1)),
    b=lambda xp, g, a, b, out: xp.where((a == 0) & (b >= 0), 0, g * out * xp.log(a)),
    tex="{a}^{{{b}}}",
    promote="single",
    properties=Properties(poles=True, still=True, short_name="**"),
)


def base_power_slope(xp: Namespace, g: Array, x: Array, out: Array, base: float) -> Array:
    """Compute d base^x / dx = base^x log(base): 0 for base 0 and x ≥ 0 as in PyTorch, NaN for a negative base."""
    if base == 0:
        return xp.where(x >= 0, 0, g * out * -inf)
    return g * out * (log_of(base) if base > 0 else nan)


rpow_scalar = elementwise(
    "rpow_scalar",
    lambda x, *, base: base**x,
    x=base_power_slope,
    node="PowBackward2",
    tex="{base}^{{{x}}}",
    formula=r"\bar{x} = \bar{y}\,y\,\log b",
    promote="single",
    properties=Properties(poles=True, short_name="**"),
)
ldexp = operator(
    elementwise(
        "ldexp",
        lambda a, b: a * 2.0**b,
        a=lambda b: 2.0**b,
        b=lambda out: out * LN2,
        promote="float tensors",
        tex=r"{a}\,2^{{{b}}}",
        properties=Properties(poles=True),
    ),
    "`input` times 2 to the power of `other`.",
    "[1., 3.]; [2, -1] -> [4.0000, 1.5000]",
    inplace="function",
)
frexp: Primitive = elementwise(
    "frexp",
    lambda xp, x, *, exponent: xp.ldexp(x, -exponent),
    tex=r"{x} / 2^{{k}}",
    x=lambda g, exponent: frexp(g, exponent=exponent),
    formula=r"\bar{x} = \bar{y} / 2^k",
    properties=Properties(poles=True),
)
hypot = operator(
    elementwise(
        "hypot",
        np.hypot,
        a=lambda a, out: a / out,
        b=lambda b, out: b / out,
        promote="real tensors",
        tex=r"\sqrt{{{a}^2 + {b}^2}}",
        properties=Properties(poles=True, costly=True, low=0),
    ),
    "The hypotenuse of a right triangle with the legs `input` and `other`.",
    "[3., 5.]; [4., 12.] -> [ 5., 13.]",
    inplace="method",
)
atan2 = operator(
    elementwise(
        "atan2",
        np.arctan2,
        a=lambda xp, g, a, b: angle_slope(xp, g, b, a * a + b * b),
        promote="float tensors",
        b=lambda xp, g, a, b: angle_slope(xp, -g, a, a * a + b * b),
        tex=r"\mathrm{{atan2}}({a}, {b})",
        properties=Properties(poles=True, costly=True, low=-pi, high=pi),
    ),
    "The angle, in radians, from the positive x-axis to the point (`other`, `input`).",
    "[1., -1.]; [1., 0.] -> [ 0.7854, -1.5708]",
    aliases="arctan2",
    inplace="method",
)


def angle_slope(xp: Namespace, g: Array, leg: Array, square: Array) -> Array:
    """Derivative of the angle by one leg: the other leg over the squared distance; 0 at the origin, as in PyTorch."""
    return xp.where(square == 0, 0, g * (leg / square))


logaddexp = operator(
    elementwise(
        "logaddexp",
        np.logaddexp,
        a=lambda xp, g, a, b: g / (1 + xp.exp(b - a)),
        b=lambda xp, g, a, b: g / (1 + xp.exp(a - b)),
        promote="real tensors",
        tex=r"\log(e^{{{a}}} + e^{{{b}}})",
        properties=Properties(poles=True, costly=True, ignores_minus_inf=True),
    ),
    "The logarithm of the sum of the exponentials of `input` and `other`, without overflow.",
    "[0., 1000.]; [0., 1000.] -> [6.9315e-01, 1.0007e+03]",
)
logaddexp2 = operator(
    elementwise(
        "logaddexp2",
        np.logaddexp2,
        a=lambda g, a, b: g / (1 + 2.0 ** (b - a)),
        b=lambda g, a, b: g / (1 + 2.0 ** (a - b)),
        promote="real tensors",
        tex=r"\log_2(2^{{{a}}} + 2^{{{b}}})",
        properties=Properties(poles=True, costly=True, ignores_minus_inf=True),
    ),
    "The logarithm to base 2 of 2 ** `input` + 2 ** `other`, without overflow.",
    "[0., 1000.]; [0., 1000.] -> [1.0000e+00, 1.0010e+03]",
)
xlogy = elementwise(
    "xlogy",
    lambda xp, a, b: xp.where((a == 0) & (b == b), 0, a * xp.log(b)),
    a=lambda xp, g, a, b: xp.where((a == 0) & (b <= 0), 0, g * xp.log(b)),
    b=lambda g, a, b: g * a / b,
    promote="float",
    piecewise=True,
    tex=r"{a} \log {b}",
    properties=Properties(poles=True),
)
xlog1py = elementwise(
    "xlog1py",
    lambda xp, a, b: xp.where((a == 0) & (b == b), 0, a * xp.log1p(b)),
    a=lambda xp, g, a, b: xp.where((a == 0) & (b <= -1), 0, g * xp.log1p(b)),
    b=lambda g, a, b: g * a / (b + 1),
    promote="float",
    piecewise=True,
    node="SpecialXlog1PyBackward0",
    tex=r"{a} \log(1 + {b})",
    properties=Properties(poles=True),
)


# ------------------------------------------------------------------------------------------------------------- choosing
relu = operator(
    elementwise(
        "relu",
        lambda xp, x: clip(xp, x, 0, None),
        x=lambda xp, g, out: zero_where(xp, out <= 0, g),
        tex=r"\max({x}, 0)",
        promote="number",
        properties=Properties(still=True, low=0, keeps_sign=True, steepest=1, saturates="below", rectifier=True),
    ),
    "The rectified linear unit: positive elements are kept, others become 0. The derivative at 0 is 0.",
    "[-1., 0., 2.] -> [0., 0., 2.]",
    inplace="function",
)
where = elementwise(
    "where",
    lambda xp, condition, a, b: xp.where(condition, a, b),
    a=lambda xp, g, condition: keep_where(xp, condition, g),
    b=lambda xp, g, condition: zero_where(xp, condition, g),
    tex=r"[{condition}]\,{a} + [\lnot {condition}]\,{b}",
    properties=Properties(keeps_sign=True, chooses=True, writes=True),
)


def choice_cotangent(xp: Namespace, g: Array, lost: Array, tied: Array) -> Array:
    """Return the cotangent of one of two operands: g if it was chosen, 0 if it lost, half of g if they are equal."""
    return xp.where(tied, g * 0.5, xp.where(lost, 0, g))


maximum = operator(
    elementwise(
        "maximum",
        np.maximum,
        piecewise=True,
        a=lambda xp, g, a, b: choice_cotangent(xp, g, b > a, a == b),
        b=lambda xp, g, a, b: choice_cotangent(xp, g, a > b, a == b),
        tex=r"\max({a}, {b})",
        promote="tensors",
        properties=Properties(keeps_sign=True),
    ),
    "The element-wise maximum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient.",
    "[1., 5.]; [3., 2.] -> [3., 5.]",
)
minimum = operator(
    elementwise(
        "minimum",
        np.minimum,
        piecewise=True,
        a=lambda xp, g, a, b: choice_cotangent(xp, g, a > b, a == b),
        b=lambda xp, g, a, b: choice_cotangent(xp, g, b > a, a == b),
        tex=r"\min({a}, {b})",
        promote="tensors",
        properties=Properties(keeps_sign=True),
    ),
    "The element-wise minimum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient.",
    "[1., 5.]; [3., 2.] -> [1., 2.]",
)
fmax = operator(
    elementwise(
        "fmax",
        np.fmax,
        piecewise=True,
        a=lambda xp, g, a, b: keep_where(xp, (a >= b) | (b != b), g),
        promote="tensors",
        b=lambda xp, g, a, b: zero_where(xp, (a >= b) | (b != b), g),
        tex=r"\mathrm{{fmax}}({a}, {b})",
        formula=r"\bar{a} = [a \ge b]\,\bar{y},\quad \bar{b} = [a < b]\,\bar{y}",
        properties=Properties(keeps_sign=True),
    ),
    "The element-wise maximum of `input` and `other`; if one of them is NaN, the other one.",
    "[1., float('nan')]; [3., 2.] -> [3., 2.]",
)
fmin = operator(
    elementwise(
        "fmin",
        np.fmin,
        piecewise=True,
        a=lambda xp, g, a, b: keep_where(xp, (a <= b) | (b != b), g),
        promote="tensors",
        b=lambda xp, g, a, b: zero_where(xp, (a <= b) | (b != b), g),
        tex=r"\mathrm{{fmin}}({a}, {b})",
        formula=r"\bar{a} = [a \le b]\,\bar{y},\quad \bar{b} = [a > b]\,\bar{y}",
        properties=Properties(keeps_sign=True),
    ),
    "The element-wise minimum of `input` and `other`; if one of them is NaN, the other one.",
    "[1., float('nan')]; [3., 2.] -> [1., 2.]",
)


def clamp_slope(xp: Namespace, g: Array, x: Array, min: float | None, max: float | None) -> Array:
    """Pass the cotangent on inside the bounds, including the bounds themselves but not NaN, as in PyTorch."""
    inside = x <= max if min is None else x >= min if max is None else (x >= min) & (x <= max)
    return keep_where(xp, inside, g)


clamp = elementwise(
    "clamp",
    lambda xp, x, *, min, max: clip(xp, x, min, max),
    piecewise=True,
    x=clamp_slope,
    node="ClampBackward1",
    tex=r"\mathrm{{clamp}}({x}, {min}, {max})",
    formula=r"\bar{x} = [m \le x \le M]\,\bar{y}",
    properties=Properties(steepest=1, saturates="both", rectifier=True),
)
clamp_min, clamp_max = clamp.with_node("ClampMinBackward0"), clamp.with_node("ClampMaxBackward0")
clamp_tensors = elementwise(
    "clamp_tensors",
    lambda xp, x, min, max: xp.minimum(xp.maximum(x, min), max),
    promote="tensors",
    piecewise=True,
    node="ClampBackward0",
    x=lambda xp, g, x, min, max: keep_where(xp, (x >= min) & (x <= max), g),
    min=lambda xp, g, x, min, max: keep_where(xp, (min < max) & (x < min), g),
    max=lambda xp, g, x, min, max: keep_where(xp, (x > max) | (max < min), g),
    tex=r"\mathrm{{clamp}}({x}, {min}, {max})",
    formula=r"\bar{x} = [m \le x \le M]\,\bar{y},\; \bar{m} = [x < m < M]\,\bar{y},\; \bar{M} = [x > M \lor M < m]\,\bar{y}",
    properties=Properties(steepest=1, saturates="both", rectifier=True),
)
clamp_min_tensor = elementwise(
    "clamp_min",
    lambda xp, x, min: xp.maximum(x, min),
    x=lambda xp, g, x, min: keep_where(xp, x >= min, g),
    min=lambda xp, g, x, min: keep_where(xp, x < min, g),
    promote="tensors",
    piecewise=True,
    node="ClampMinBackward1",
    tex=r"\max({x}, {min})",
    properties=Properties(steepest=1, saturates="below", rectifier=True, short_name="clamp"),
)
clamp_max_tensor = elementwise(
    "clamp_max",
    lambda xp, x, max: xp.minimum(x, max),
    x=lambda xp, g, x, max: keep_where(xp, x <= max, g),
    max=lambda xp, g, x, max: keep_where(xp, x > max, g),
    promote="tensors",
    piecewise=True,
    node="ClampMaxBackward1",
    tex=r"\min({x}, {max})",
    properties=Properties(steepest=1, saturates="above", rectifier=True, short_name="clamp"),
)
clamp_min_only, clamp_max_only = clamp_min_tensor.with_node("ClampBackward0"), clamp_max_tensor.with_node("ClampBackward0")
copysign = elementwise(
    "copysign",
    lambda xp, a, b: xp.copysign(a, b),
    promote="float",
    a=lambda xp, g, a, out: xp.where(a == 0, 0, g * (out / a)),
    b=zero_slope,
    tex=r"\left|{a}\right|\,\mathrm{{sgn}}\,{b}",
)
copysign_number = copysign.with_node("CopysignBackward1")
nextafter = operator(
    elementwise(
        "nextafter",
        np.nextafter,
        piecewise=True,
        a=lambda xp, g, a, b: zero_where(xp, a == b, g),
        b=zero_slope,
        promote="real tensors",
        tex=r"\mathrm{{nextafter}}({a}, {b})",
    ),
    "The next representable number after each element of `input` in the direction of `other`.",
    "[0.]; [1.] -> [1.4013e-45]",
    inplace="method",
)
heaviside = nondifferentiable_primitive(
    "heaviside", lambda xp, a, b: xp.where(a == 0, b, a > 0).astype(a.dtype), tex=r"[{a} > 0] + [{a} = 0]\,{b}"
)


# ------------------------------------------------------------------------------------------------- copies and new values
def copy_keeping_order(x: Array) -> Array:
    """Return a copy in the memory order of x, as in PyTorch; in C order if x was broadcast."""
    return x.copy() if x.flags.c_contiguous else x.copy(order="C" if 0 in x.strides else "K")


clone = elementwise("clone", copy_keeping_order, x=lambda g: g, tex="{x}", properties=Properties(moves="layout"))
core_primitives.clone = clone
fill = elementwise(
    "fill",
    lambda xp, x, *, value: xp.full_like(x, value),
    x=zero_slope,
    tex="{value}",
    node="FillBackward2",
    properties=Properties(flat=True, writes=True),
)
zero = fill.with_node("ZeroBackward0")
replace = elementwise(
    "replace",
    lambda x, *, value: value.astype(x.dtype),
    x=zero_slope,
    tex="{value}",
    formula=r"\bar{x} = 0",
    properties=Properties(flat=True, writes=True),
)
