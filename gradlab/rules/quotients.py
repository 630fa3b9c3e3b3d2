"""Integer quotients and their remainders."""

from __future__ import annotations

from gradlab.backend.bounds import check_bounds
from gradlab.core.errors import not_implemented
from gradlab.core.primitive import elementwise
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.elementwise import nondifferentiable_primitive, zero_slope


def has_float_divisor(name: str, a: Array, b: Array) -> bool:
    """Return True if b is floating point. Raise an error if it is a bool tensor, or an integer tensor with a 0 in it."""
    if b.dtype.kind == "f":
        return True
    if b.dtype.kind == "b":
        raise not_implemented(name, "Bool")
    if a.size:
        check_bounds(
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
    has_float_divisor("div_floor", a, b)
    return xp.floor_divide(a, b)


def truncated_quotient(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute a / b rounded towards 0. Integers are not converted to floats."""
    if has_float_divisor("div_trunc", a, b):
        return xp.trunc(a / b)
    quotient = xp.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def modulo(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute a - b · floor(a / b). A result of 0 has the sign of a as in C and PyTorch, not that of b as in Python and NumPy."""
    floating = has_float_divisor("remainder", a, b)
    rest = xp.remainder(a, b)
    return xp.where(rest == 0, xp.copysign(rest, a), rest) if floating else rest


def truncated_modulo(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute a - b · trunc(a / b)."""
    has_float_divisor("fmod", a, b)
    return xp.fmod(a, b)


div_floor = elementwise(
    "div_floor",
    floored_quotient,
    a=zero_slope,
    b=zero_slope,
    node="DivBackward2",
    tex=r"\lfloor {a} / {b} \rfloor",
    promote="single",
    properties=Properties(flat=True),
)
div_trunc = elementwise(
    "div_trunc",
    truncated_quotient,
    a=zero_slope,
    b=zero_slope,
    node="DivBackward2",
    tex=r"\mathrm{{trunc}}({a} / {b})",
    promote="single",
    properties=Properties(flat=True),
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
    properties=Properties(poles=True),
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
    properties=Properties(poles=True),
)
remainder_scalar, fmod_scalar = remainder.with_node("RemainderBackward0"), fmod.with_node("FmodBackward0")
floor_divide = nondifferentiable_primitive("floor_divide", floored_quotient, tex=r"\lfloor {a} / {b} \rfloor")
number_remainder = nondifferentiable_primitive("remainder", modulo, tex=r"{a} \bmod {b}")
