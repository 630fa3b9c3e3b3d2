"""Element by element: arithmetic, and choosing between numbers. The Jacobian of each is diagonal, so a rule is a derivative.

A rule that names `g` is a map, used where a product would turn an infinite cotangent into NaN (relu, where) or cost a
pass (div). Python numbers are the only constants. The functions of one number are in `rules.elementary`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from math import log as log_of
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from gradlab.backend.bounds import within
from gradlab.core.errors import not_implemented
from gradlab.core.operator import operator
from gradlab.core.primitive import Primitive, elementwise
from gradlab.core.registry import PRIMITIVES, used
from gradlab.core.tensor import Tensor
from gradlab.rules.arguments import Array, Namespace

LN2 = log_of(2)
BITS = {2: np.int16, 4: np.int32, 8: np.int64}


def kept(xp: Namespace, mask: Array, g: Array) -> Array:
    """g where the mask holds, 0 elsewhere. On NumPy by masking bits: a fifth of `where`'s time, and unlike `g * mask` right
    where g is infinite."""
    if type(g) is not np.ndarray:
        return xp.where(mask, g, 0)
    bits = BITS[g.itemsize]
    return (g.view(bits) & -mask.astype(bits)).view(g.dtype)


def dropped(xp: Namespace, mask: Array, g: Array) -> Array:
    """0 where the mask holds, g elsewhere."""
    if type(g) is not np.ndarray:
        return xp.where(mask, 0, g)
    bits = BITS[g.itemsize]
    return (g.view(bits) & (mask.astype(bits) - 1)).view(g.dtype)


def sign_of(xp: Namespace, x: Array) -> Array:
    """1, 0 or -1, and 0 of NaN, as in PyTorch; quicker than NumPy's `sign`. (Where rules are traced, `sign` means this.)"""
    if xp is np:
        return (x > 0).view(np.int8) - (x < 0).view(np.int8)
    sign = xp.sign(x)
    return sign if isinstance(xp, SimpleNamespace) else xp.where(x != x, 0, sign)


def zero_slope(xp: Namespace, g: Array) -> Array:
    """The derivative of what is constant piece by piece."""
    return xp.zeros_like(g)


def undifferentiable(name: str, forward: Callable[..., Array], **options: Any) -> Any:
    """A primitive of two arguments that torch records without a derivative: asking for one is an error. Nothing that is
    checked of primitives holds for such a rule, so it is not listed among them."""

    def refuse(g: Array) -> NoReturn:
        raise RuntimeError(f"derivative for aten::{name} is not implemented. Call detach() on what it is computed from.")

    elementwise(f"{name}_", forward, a=refuse, b=refuse, node="NotImplemented", formula=r"\text{no derivative}", **options)
    return PRIMITIVES.pop(f"{name}_")


# ----------------------------------------------------------------------------------------------------------- arithmetic
add = elementwise("add", np.add, a=lambda g: g, b=lambda g: g, tex="{a} + {b}", promote="arithmetic")
add_scaled = elementwise(
    "add_scaled",
    lambda a, b, *, alpha: a + alpha * b,
    a=lambda g: g,
    b=lambda g, alpha: g * alpha,
    tex=r"{a} + {alpha}\,{b}",
    node="AddBackward0",
    formula=r"\bar{a} = \bar{y},\quad \bar{b} = \alpha\,\bar{y}",
    promote="single",
)
sub_scaled = add_scaled.named("SubBackward0")
sub = elementwise("sub", np.subtract, a=lambda g: g, b=lambda g: -g, tex="{a} - {b}", promote="difference")
rsub = elementwise(
    "rsub", lambda x, *, other: other - x, x=lambda g: -g, tex="{other} - {x}", node="RsubBackward1", promote="single"
)
mul = elementwise("mul", np.multiply, a=lambda b: b, b=lambda a: a, tex=r"{a}\,{b}", promote="arithmetic")
div = elementwise(
    "div", np.divide, a=lambda g, b: g / b, b=lambda g, a, b: g * (a / b / -b), tex=r"\frac{{{a}}}{{{b}}}", promote="float"
)
neg = operator(
    elementwise("neg", np.negative, x=lambda g: -g, tex="-{x}"),
    "Each element with the other sign.",
    "[-1., 0., 2.] -> [ 1., -0., -2.]",
    aliases="negative",
    inplace="function",
)
absolute = operator(
    elementwise("abs", np.absolute, x=sign_of, tex=r"\left|{x}\right|", promote="number"),
    "The absolute value of each element. Its derivative at 0 is 0.",
    "[-1., 0., 2.] -> [1., 0., 2.]",
    aliases="absolute",
    inplace="abs_",
)
reciprocal = operator(
    elementwise("reciprocal", lambda x: 1 / x, x=lambda out: -out * out, tex=r"\frac{{1}}{{{x}}}", promote="float"),
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
)


def between(xp: Namespace, start: Array, end: Array, weight: Array) -> Array:
    """start + weight · (end - start), reckoned from the nearer end, so that both ends are met exactly."""
    step = end - start
    return xp.where(abs(weight) < 0.5, start + weight * step, end - step * (1 - weight))


lerp = elementwise(
    "lerp",
    between,
    start=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    weight=lambda g, start, end: g * (end - start),
    node="LerpBackward1",
    promote="real tensors",
    tex=r"(1 - {weight})\,{start} + {weight}\,{end}",
)
lerp_scalar = elementwise(
    "lerp_scalar",
    lambda xp, x, end, *, weight: between(xp, x, end, weight),
    x=lambda g, weight: g * (1 - weight),
    end=lambda g, weight: g * weight,
    node="LerpBackward0",
    promote="real tensors",
    tex=r"(1 - {weight})\,{x} + {weight}\,{end}",
    formula=r"\bar{x} = (1 - w)\,\bar{y},\quad \bar{e} = w\,\bar{y}",
)


# ------------------------------------------------------------------------------------------------- quotients in whole steps
def divisible(name: str, a: Array, b: Array) -> bool:
    """Whether b is floating point. If not, a 0 in it is an error where something is divided by it, and so are bools."""
    if b.dtype.kind == "f":
        return True
    if b.dtype.kind == "b":
        raise not_implemented(name, "Bool")
    if a.size:
        within(
            name,
            b.all(),
            True,
            True,
            lambda wrong: RuntimeError(
                "ZeroDivisionError: integers were divided by 0. Floats give inf or nan: call .float() first."
            ),
        )
    return False


def floored_quotient(xp: Namespace, a: Array, b: Array) -> Array:
    divisible("div_floor", a, b)
    return xp.floor_divide(a, b)


def truncated_quotient(xp: Namespace, a: Array, b: Array) -> Array:
    """a / b rounded towards 0; of integers without a detour through floats."""
    if divisible("div_trunc", a, b):
        return xp.trunc(a / b)
    quotient = xp.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def modulo(xp: Namespace, a: Array, b: Array) -> Array:
    """a - b · floor(a / b). A result 0 has the sign of a, as C and torch have it; in Python and NumPy it has that of b."""
    floating = divisible("remainder", a, b)
    rest = xp.remainder(a, b)
    return xp.where(rest == 0, xp.copysign(rest, a), rest) if floating else rest


def truncated_modulo(xp: Namespace, a: Array, b: Array) -> Array:
    """a - b · trunc(a / b)."""
    divisible("fmod", a, b)
    return xp.fmod(a, b)


div_floor = elementwise(
    "div_floor",
    floored_quotient,
    a=zero_slope,
    b=zero_slope,
    node="DivBackward2",
    tex=r"\lfloor {a} / {b} \rfloor",
    promote="single",
)
div_trunc = elementwise(
    "div_trunc",
    truncated_quotient,
    a=zero_slope,
    b=zero_slope,
    node="DivBackward2",
    tex=r"\mathrm{{trunc}}({a} / {b})",
    promote="single",
)
remainder = elementwise(
    "remainder",
    modulo,
    a=lambda g: g,
    b=lambda g, a, b: -g * div_floor(a, b),
    node="RemainderBackward1",
    tex=r"{a} \bmod {b}",
    formula=r"\bar{a} = \bar{y},\quad \bar{b} = -\bar{y}\,\lfloor a / b \rfloor",
    promote="single",
)
fmod = elementwise(
    "fmod",
    truncated_modulo,
    a=lambda g: g,
    b=lambda g, a, b: -g * div_trunc(a, b),
    node="FmodBackward1",
    tex=r"{a} \,\mathrm{{fmod}}\, {b}",
    formula=r"\bar{a} = \bar{y},\quad \bar{b} = -\bar{y}\,\mathrm{trunc}(a / b)",
    promote="single",
)
remainder_scalar, fmod_scalar = remainder.named("RemainderBackward0"), fmod.named("FmodBackward0")
floor_divide = undifferentiable("floor_divide", floored_quotient, tex=r"\lfloor {a} / {b} \rfloor")
number_remainder = undifferentiable("remainder", modulo, tex=r"{a} \bmod {b}")


# --------------------------------------------------------------------------------------------------------------- powers
def power(x: Array, exponent: float) -> Array:
    """x ** exponent. Small whole powers are products, as exact as the multiplication and far quicker than `pow`."""
    if exponent == 2 and hasattr(x, "dtype"):  # (a formula keeps its square)
        return x * x
    if exponent == 3:
        return x * x * x
    if exponent == -0.5:  # NaN for -∞, as the square root
        return 1 / x**0.5
    return x**exponent


pow_scalar: Primitive = elementwise(
    "pow_scalar",
    lambda x, *, exponent: power(x, exponent),
    node="PowBackward0",
    piecewise=True,
    x=lambda x, exponent: (
        0.0
        if exponent == 0
        else exponent * (x if exponent == 2 and type(x) is not Tensor else pow_scalar(x, exponent=exponent - 1))
    ),
    tex="{x}^{{{exponent}}}",
    promote="single",
)


def raised(xp: Namespace, a: Array, b: Array) -> Array:
    """a ** b. A negative power of an integer is rounded towards 0, so that only 1 and -1 have one."""
    if a.dtype.kind == "f" or (type(b) is np.ndarray and not (b < 0).any()):
        return a**b
    sign = xp.where(b % 2 == 0, 1, -1)
    return xp.where(b >= 0, a ** xp.where(b < 0, 0, b), xp.where(a == 1, 1, xp.where(a == -1, sign, 0))).astype(a.dtype)


pow_ = elementwise(
    "pow",
    raised,
    node="PowBackward1",
    a=lambda xp, g, a, b: xp.where(b == 0, 0, g * b * a ** (b - 1)),
    b=lambda xp, g, a, b, out: xp.where((a == 0) & (b >= 0), 0, g * out * xp.log(a)),
    tex="{a}^{{{b}}}",
    promote="single",
)


def base_power_slope(xp: Namespace, g: Array, x: Array, out: Array, base: float) -> Array:
    """d base^x / dx = base^x log(base); for base 0, where that is 0 · -∞, 0 as in PyTorch; NaN for a negative base."""
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
)
ldexp = operator(
    elementwise(
        "ldexp",
        lambda a, b: a * 2.0**b,
        a=lambda b: 2.0**b,
        b=lambda out: out * LN2,
        promote="float tensors",
        tex=r"{a}\,2^{{{b}}}",
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
)
hypot = operator(
    elementwise(
        "hypot",
        np.hypot,
        a=lambda a, out: a / out,
        b=lambda b, out: b / out,
        promote="real tensors",
        tex=r"\sqrt{{{a}^2 + {b}^2}}",
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
    ),
    "The angle, in radians, from the positive x-axis to the point (`other`, `input`).",
    "[1., -1.]; [1., 0.] -> [ 0.7854, -1.5708]",
    aliases="arctan2",
    inplace="method",
)


def angle_slope(xp: Namespace, g: Array, leg: Array, square: Array) -> Array:
    """The angle's derivative by one leg: the other over the squared distance; 0 at the origin, as in PyTorch."""
    return xp.where(square == 0, 0, g * (leg / square))


logaddexp = operator(
    elementwise(
        "logaddexp",
        np.logaddexp,
        a=lambda xp, g, a, b: g / (1 + xp.exp(b - a)),
        b=lambda xp, g, a, b: g / (1 + xp.exp(a - b)),
        promote="real tensors",
        tex=r"\log(e^{{{a}}} + e^{{{b}}})",
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
    ),
    "The logarithm to base 2 of the sum of the powers of 2 by `input` and `other`, without overflow.",
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
)


# ------------------------------------------------------------------------------------------------------------- choosing
relu = operator(
    elementwise(
        "relu",
        lambda xp, x: xp.maximum(x, 0),
        x=lambda xp, g, out: dropped(xp, out <= 0, g),
        tex=r"\max({x}, 0)",
        promote="number",
    ),
    "Each element where it is positive, else 0. The derivative at 0 is 0.",
    "[-1., 0., 2.] -> [0., 0., 2.]",
    inplace="function",
)
where = elementwise(
    "where",
    lambda xp, condition, a, b: xp.where(condition, a, b),
    a=lambda xp, g, condition: kept(xp, condition, g),
    b=lambda xp, g, condition: dropped(xp, condition, g),
    tex=r"[{condition}]\,{a} + [\lnot {condition}]\,{b}",
)


def chosen(xp: Namespace, g: Array, lost: Array, tied: Array) -> Array:
    """The cotangent of one of two numbers, of which one was chosen: half of it where they are equal."""
    return xp.where(tied, g * 0.5, xp.where(lost, 0, g))


maximum = operator(
    elementwise(
        "maximum",
        np.maximum,
        piecewise=True,
        a=lambda xp, g, a, b: chosen(xp, g, b > a, a == b),
        b=lambda xp, g, a, b: chosen(xp, g, a > b, a == b),
        tex=r"\max({a}, {b})",
        promote="tensors",
    ),
    "The larger of the elements of `input` and `other`, and NaN if one of them is. Equal ones share the gradient.",
    "[1., 5.]; [3., 2.] -> [3., 5.]",
)
minimum = operator(
    elementwise(
        "minimum",
        np.minimum,
        piecewise=True,
        a=lambda xp, g, a, b: chosen(xp, g, a > b, a == b),
        b=lambda xp, g, a, b: chosen(xp, g, b > a, a == b),
        tex=r"\min({a}, {b})",
        promote="tensors",
    ),
    "The smaller of the elements of `input` and `other`, and NaN if one of them is. Equal ones share the gradient.",
    "[1., 5.]; [3., 2.] -> [1., 2.]",
)
fmax = operator(
    elementwise(
        "fmax",
        np.fmax,
        piecewise=True,
        a=lambda xp, g, a, b: kept(xp, (a >= b) | (b != b), g),
        promote="tensors",
        b=lambda xp, g, a, b: dropped(xp, (a >= b) | (b != b), g),
        tex=r"\mathrm{{fmax}}({a}, {b})",
        formula=r"\bar{a} = [a \ge b]\,\bar{y},\quad \bar{b} = [a < b]\,\bar{y}",
    ),
    "The larger of the elements of `input` and `other`, and the other one where one is NaN.",
    "[1., float('nan')]; [3., 2.] -> [3., 2.]",
)
fmin = operator(
    elementwise(
        "fmin",
        np.fmin,
        piecewise=True,
        a=lambda xp, g, a, b: kept(xp, (a <= b) | (b != b), g),
        promote="tensors",
        b=lambda xp, g, a, b: dropped(xp, (a <= b) | (b != b), g),
        tex=r"\mathrm{{fmin}}({a}, {b})",
        formula=r"\bar{a} = [a \le b]\,\bar{y},\quad \bar{b} = [a > b]\,\bar{y}",
    ),
    "The smaller of the elements of `input` and `other`, and the other one where one is NaN.",
    "[1., float('nan')]; [3., 2.] -> [1., 2.]",
)


def clamped(xp: Namespace, x: Array, *, min: float | None, max: float | None) -> Array:
    """x between two numbers, of which one may be None. Where min exceeds max, max."""
    if min is not None:
        x = xp.maximum(x, min)
    return x if max is None else xp.minimum(x, max)


def clamp_slope(xp: Namespace, g: Array, x: Array, min: float | None, max: float | None) -> Array:
    """The bounds belong to the inside, and NaN does not, as in PyTorch."""
    inside = x <= max if min is None else x >= min if max is None else (x >= min) & (x <= max)
    return kept(xp, inside, g)


clamp = elementwise(
    "clamp",
    clamped,
    piecewise=True,
    x=clamp_slope,
    node="ClampBackward1",
    tex=r"\mathrm{{clamp}}({x}, {min}, {max})",
    formula=r"\bar{x} = [m \le x \le M]\,\bar{y}",
)
clamp_min, clamp_max = clamp.named("ClampMinBackward0"), clamp.named("ClampMaxBackward0")
clamp_tensors = elementwise(
    "clamp_tensors",
    lambda xp, x, min, max: xp.minimum(xp.maximum(x, min), max),
    promote="tensors",
    piecewise=True,
    node="ClampBackward0",
    x=lambda xp, g, x, min, max: kept(xp, (x >= min) & (x <= max), g),
    min=lambda xp, g, x, min, max: kept(xp, (min < max) & (x < min), g),
    max=lambda xp, g, x, min, max: kept(xp, (x > max) | (max < min), g),
    tex=r"\mathrm{{clamp}}({x}, {min}, {max})",
    formula=r"\bar{x} = [m \le x \le M]\,\bar{y},\; \bar{m} = [x < m < M]\,\bar{y},\; \bar{M} = [x > M \lor M < m]\,\bar{y}",
)
at_least = elementwise(
    "clamp_min",
    lambda xp, x, min: xp.maximum(x, min),
    x=lambda xp, g, x, min: kept(xp, x >= min, g),
    min=lambda xp, g, x, min: kept(xp, x < min, g),
    promote="tensors",
    piecewise=True,
    node="ClampMinBackward1",
    tex=r"\max({x}, {min})",
)
at_most = elementwise(
    "clamp_max",
    lambda xp, x, max: xp.minimum(x, max),
    x=lambda xp, g, x, max: kept(xp, x <= max, g),
    max=lambda xp, g, x, max: kept(xp, x > max, g),
    promote="tensors",
    piecewise=True,
    node="ClampMaxBackward1",
    tex=r"\min({x}, {max})",
)
clamp_least, clamp_most = at_least.named("ClampBackward0"), at_most.named("ClampBackward0")
copysign = elementwise(
    "copysign",
    lambda xp, a, b: xp.copysign(a, b),
    promote="float",
    a=lambda xp, g, a, out: xp.where(a == 0, 0, g * (out / a)),
    b=zero_slope,
    tex=r"\left|{a}\right|\,\mathrm{{sgn}}\,{b}",
)
copysign_number = copysign.named("CopysignBackward1")
nextafter = operator(
    elementwise(
        "nextafter",
        np.nextafter,
        piecewise=True,
        a=lambda xp, g, a, b: dropped(xp, a == b, g),
        b=zero_slope,
        promote="real tensors",
        tex=r"\mathrm{{nextafter}}({a}, {b})",
    ),
    "The number next to each element of `input` in the direction of `other`, as its dtype has them.",
    "[0.]; [1.] -> [1.4013e-45]",
    inplace="method",
)
heaviside = undifferentiable(
    "heaviside", lambda xp, a, b: xp.where(a == 0, b, a > 0).astype(a.dtype), tex=r"[{a} > 0] + [{a} = 0]\,{b}"
)


# -------------------------------------------------------------------------------------------------------- other numbers


def copied(x: Array) -> Array:
    """A copy in x's memory order, as torch's is; in the order of the indices where x was broadcast."""
    return x.copy() if x.flags.c_contiguous else x.copy(order="C" if 0 in x.strides else "K")


clone = elementwise("clone", copied, x=lambda g: g, tex="{x}")
used.clone = clone
fill = elementwise("fill", lambda xp, x, *, value: xp.full_like(x, value), x=zero_slope, tex="{value}", node="FillBackward2")
zero = fill.named("ZeroBackward0")
replace = elementwise("replace", lambda x, *, value: value.astype(x.dtype), x=zero_slope, tex="{value}", formula=r"\bar{x} = 0")
