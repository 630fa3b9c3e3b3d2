"""Arithmetic, element by element: sums, products, quotients, powers, and choosing between numbers.

The operators are the recording functions themselves (see `gradlab.methods.python`). The functions here are what torch calls by
name: they take `alpha`, `rounding_mode` and the like, and refuse what is no tensor in torch's words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.destination import takes_out
from gradlab.core.errors import forward_failed, invalid_combination, not_implemented
from gradlab.core.promotion import PROMOTIONS, agree, cast, expected_tensor, tensors
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import Called, checked, number
from gradlab.rules import elementwise as el

__all__ = [
    "add",
    "addcdiv",
    "addcmul",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copysign",
    "div",
    "divide",
    "float_power",
    "floor_divide",
    "fmod",
    "gcd",
    "heaviside",
    "lcm",
    "lerp",
    "mul",
    "multiply",
    "positive",
    "pow",
    "remainder",
    "rsub",
    "square",
    "sub",
    "subtract",
    "true_divide",
    "xlogy",
]

NUMBERS = bool, int, float, np.generic
OPERANDS = Tensor, *NUMBERS
PLAIN = int, float  # as a constant: a tuple made anew costs 20 ns


def add(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha · other."""
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.add, input)
    if alpha == 1 and type(alpha) is int:
        return checked("add", el.add.record(input, other, out=out), other)
    return _scaled(el.add, el.add_scaled, input, other, alpha, out)


def sub(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha · other."""
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.sub, input)
    if alpha == 1 and type(alpha) is int:
        return checked("sub", el.sub.record(input, other, out=out), other)
    return _scaled(el.sub, el.sub_scaled, input, other, alpha, out)


def _scaled(op: Any, scaled: Any, input: Any, other: Any, alpha: Any, out: Tensor | None) -> Tensor:
    a, b = checked(op.name, PROMOTIONS[op.promote](Called(op.name), input, other), other)
    kind = a.array.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results. Write 1 for True.")
    if isinstance(alpha, float) and kind != "f":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number. Convert the tensors: x.float()."
        )
    factor = alpha if op is el.add else -alpha
    return scaled.record(a, b, alpha=factor if kind == "f" else number(factor, a.array.dtype), out=out)


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha · input."""
    if not isinstance(input, Tensor) or not isinstance(other, OPERANDS):
        raise invalid_combination(
            "rsub",
            (input, other),
            "(Tensor input, Tensor other, *, Number alpha = 1)",
            "(Tensor input, Number other, *, Number alpha = 1)",
        )
    if alpha == 1 and type(alpha) is int:
        return subtracted_from(input, other)
    return _scaled(el.sub, RSUB_SCALED[isinstance(other, Tensor)], other, input, alpha, None)


RSUB_SCALED = {True: el.sub_scaled.named("RsubBackward0"), False: el.sub_scaled.named("RsubBackward1")}


def subtracted_from(self: Tensor, other: Any) -> Any:
    """other - self, as the operator has it."""
    if type(other) in PLAIN and self.array.dtype.kind == "f":
        return el.rsub.record(self, other=other)
    if isinstance(other, np.generic):
        return subtracted_from(self, other.item())
    return RSUB.record(other, self)


RSUB = el.sub.named("RsubBackward0")


def mul(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input · other, element by element."""
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.mul, input)
    return checked("mul", el.mul.record(input, other, out=out), other)


# ------------------------------------------------------------------------------------------------------------ quotients
ROUNDED = {None: el.div, "floor": el.div_floor, "trunc": el.div_trunc}


def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other, element by element; integers are divided as floats. `rounding_mode` "floor" and "trunc" round the quotient
    down and towards 0; integers then stay integers."""
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.div, input)
    if rounding_mode is None:
        return checked("div", el.div.record(input, other, out=out), other)
    if rounding_mode not in ROUNDED:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return checked("div", ROUNDED[rounding_mode].record(input, other, out=out), other)


def divided_into(self: Tensor, other: Any) -> Any:
    """other / self, as the operator has it: a reciprocal times a number."""
    return el.mul.record(el.reciprocal.record(self), other)


def with_number(name: str, doc: str, op: Any, by_number: Any = None, of_number: Any = None) -> Callable[..., Tensor]:
    """A function of two tensors, or of a tensor and a number (the other way round too if `of_number` is given), each of which
    torch records under a name of its own."""
    by_number = by_number or op

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if isinstance(input, Tensor):
            if isinstance(other, Tensor):
                return op.record(input, other, out=out)
            if isinstance(other, NUMBERS):
                return by_number.record(input, other, out=out)
        elif of_number is not None and isinstance(other, Tensor) and isinstance(input, NUMBERS):
            return of_number.record(input, other, out=out)
        raise invalid_combination(
            name,
            (input, other),
            *["(Tensor input, Tensor other)", "(Tensor input, Number other)", "(Number self, Tensor other)"][
                : 2 + (of_number is not None)
            ],
        )

    function.__name__ = function.__qualname__ = name.removeprefix("special_")
    function.__doc__ = doc
    return function


floor_divide = with_number(
    "floor_divide", "⌊input / other⌋, element by element, of integers an integer.", el.floor_divide, of_number=el.floor_divide
)
remainder = with_number(
    "remainder",
    "input - other · ⌊input / other⌋: it has the sign of `other`, as Python's %.",
    el.remainder,
    el.remainder_scalar,
    el.number_remainder,
)
fmod = with_number(
    "fmod", "input - other · trunc(input / other): it has the sign of `input`, as C's fmod.", el.fmod, el.fmod_scalar
)
copysign = with_number("copysign", "The magnitude of `input` with the sign of `other`.", el.copysign, el.copysign_number)
xlogy = with_number(
    "xlogy",
    "input · log(other), and 0 where `input` is 0.",
    el.xlogy,
    el.xlogy.named("XlogyBackward2"),
    el.xlogy.named("XlogyBackward1"),
)


# --------------------------------------------------------------------------------------------------------------- powers
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input to the power of exponent, either of them a tensor or a number."""
    exponent = exponent.item() if isinstance(exponent, np.generic) else exponent
    if isinstance(input, Tensor) and isinstance(exponent, (int, float)):
        return _pow_number(input, exponent, out)
    if isinstance(exponent, Tensor) and isinstance(input, NUMBERS):
        return power_of(exponent, input, out)
    if not isinstance(input, Tensor) or not isinstance(exponent, Tensor):
        raise invalid_combination(
            "pow",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    return el.pow_.record(*_powers(input, exponent), out=out)


def _pow_number(input: Tensor, exponent: int | float, out: Tensor | None = None) -> Tensor:
    if input.array.dtype.kind != "f":
        if isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed. Call .float() first.")
        if input.array.dtype.kind == "b" and isinstance(exponent, bool):
            return constant(wrap(input.array | (not exponent)))
        input = agree(el.add, input, exponent)[0]
        fits(exponent, input)
    return el.pow_scalar.record(input, exponent=exponent, out=out)


def raised(self: Tensor, exponent: Any) -> Any:
    """self ** exponent, as the operator has it."""
    if type(exponent) in PLAIN and self.array.dtype.kind == "f":
        return el.pow_scalar.record(self, exponent=exponent)
    return pow(self, exponent) if isinstance(exponent, OPERANDS) else NotImplemented


def power_of(self: Tensor, base: Any, out: Tensor | None = None) -> Any:
    """base ** self, as the operator has it."""
    base = base.item() if isinstance(base, np.generic) else base
    if type(base) in (int, float) and self.array.dtype.kind == "f":
        return el.rpow_scalar.record(self, base=base, out=out)
    return el.pow_.record(*_powers(base, self), out=out) if isinstance(base, (bool, int, float, Tensor)) else NotImplemented


def _powers(base: Any, exponent: Any) -> Any:
    """Base and exponent in one dtype, which must not be bool."""
    agreed = agree(Called("pow"), base, exponent)
    if agreed[0].array.dtype.kind == "b":
        raise not_implemented("pow", "Bool")
    return agreed


def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input², element by element."""
    if not isinstance(input, Tensor):
        raise TypeError(f"square(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}.")
    return _pow_number(input, 2, out)


@takes_out
def float_power(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, in float64."""
    given = [isinstance(x, Tensor) for x in (input, exponent)]
    if not any(given) or not all(isinstance(x, OPERANDS) for x in (input, exponent)):
        raise invalid_combination(
            "float_power",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    double = np.dtype(np.float64)
    return pow(*(cast(x, double) if isinstance(x, Tensor) else float(x) for x in (input, exponent)))


def fits(number: int | float, like: Tensor) -> None:
    """Torch's error for an integer that a dtype cannot hold, where it does not wrap around."""
    if isinstance(number, int) and like.array.dtype.kind in "ui":
        limits = np.iinfo(like.array.dtype)
        if not limits.min <= number <= limits.max:
            raise RuntimeError(
                f"value cannot be converted to type {like.dtype.name}_t without overflow. It is {number}; convert "
                "the tensor: x.long()."
            )


# ------------------------------------------------------------------------------------------------------------ three of them
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + value · tensor1 · tensor2."""
    return el.addcmul.record(input, tensor1, tensor2, value=scale(value, input, tensor1, tensor2), out=out)


def scale(value: Any, *operands: Any) -> Any:
    """The factor `value` of `addcmul`, in the operands' common dtype if that is not floating point."""
    if type(operands[0]) is Tensor and operands[0].array.dtype.kind == "f":  # nearly always
        return value
    if any(not isinstance(x, Tensor) or x.array.dtype.kind == "f" for x in operands):
        return value
    dtype = tensors(el.addcmul, *operands)[0].array.dtype
    if dtype.kind == "b":
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'. Call .int() first.")
    return number(value, dtype)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + value · tensor1 / tensor2, of floating point tensors."""
    if all(isinstance(x, Tensor) and x.array.dtype.kind != "f" for x in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division "
            "of tensor1 and tensor2. Convert one of them: tensor1.float()."
        )
    return el.addcdiv.record(input, tensor1, tensor2, value=value, out=out)


def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """input + weight · (end - input): the way from `input` to `end`; the weight a number or a tensor."""
    if not isinstance(input, Tensor) or not isinstance(end, Tensor) or not isinstance(weight, OPERANDS):
        raise invalid_combination(
            "lerp", (input, end, weight), "(Tensor input, Tensor end, Tensor weight)", "(Tensor input, Tensor end, Number weight)"
        )
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.array.dtype != input.array.dtype and (name == "end" or x.array.ndim):
            raise RuntimeError(
                f"expected dtype {input.dtype.c_name} for `{name}` but got dtype {x.dtype.c_name}. Convert it: "
                f"{name}.to(input.dtype)."
            )
    if isinstance(weight, Tensor):
        return el.lerp.record(input, end, weight, out=out)
    return el.lerp_scalar.record(input, end, weight=weight.item() if isinstance(weight, np.generic) else weight, out=out)


# ------------------------------------------------------------------------------------------------------------- choosing
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """input with what is below `min` raised to it and what is above `max` lowered to it: both numbers, or both tensors. One of
    them may be left away. Where min exceeds max, the result is max."""
    if min is None and max is None:
        raise RuntimeError("gradlab.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(input, Tensor):
        if (min is None or isinstance(min, NUMBERS)) and (max is None or isinstance(max, NUMBERS)):
            return _clamped(el.clamp, input, min, max, out)
        if (min is None or isinstance(min, Tensor)) and (max is None or isinstance(max, Tensor)):
            if min is None:
                return el.clamp_most.record(input, max, out=out)
            if max is None:
                return el.clamp_least.record(input, min, out=out)
            return el.clamp_tensors.record(input, min, max, out=out)
    raise invalid_combination(
        "clamp",
        (input,),
        "(Tensor input, Tensor min = None, Tensor max = None)",
        "(Tensor input, Number min = None, Number max = None)",
        **{k: v for k, v in (("max", max), ("min", min)) if v is not None},
    )


def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """input with what is below `min`, a number or a tensor, raised to it."""
    if isinstance(input, Tensor):
        if isinstance(min, Tensor):
            return el.at_least.record(input, min, out=out)
        if isinstance(min, NUMBERS):
            return _clamped(el.clamp_min, input, min, None, out)
    raise invalid_combination("clamp_min", (input, min), "(Tensor input, Tensor min)", "(Tensor input, Number min)")


def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """input with what is above `max`, a number or a tensor, lowered to it."""
    if isinstance(input, Tensor):
        if isinstance(max, Tensor):
            return el.at_most.record(input, max, out=out)
        if isinstance(max, NUMBERS):
            return _clamped(el.clamp_max, input, None, max, out)
    raise invalid_combination("clamp_max", (input, max), "(Tensor input, Tensor max)", "(Tensor input, Number max)")


def _clamped(op: Any, input: Tensor, min: Any, max: Any, out: Tensor | None) -> Tensor:
    if input.array.dtype.kind != "f":
        numbers = [x.item() if isinstance(x, np.generic) else x for x in (min, max)]
        if input.array.dtype.kind == "b" and all(x is None or isinstance(x, bool) for x in numbers):
            raise not_implemented(f"clamp{'_min' * (max is None)}{'_max' * (min is None)}_scalar", input.dtype)
        input = agree(el.add, input, *(x for x in numbers if x is not None))[0]
        for x in numbers:
            if x is not None:
                fits(x, input)
    return op.record(input, min=min, max=max, out=out)


def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 where the element is negative, 1 where it is positive, `values` where it is 0. It has no derivative."""
    for i, (name, x) in enumerate((("input", input), ("values", values))):
        if not isinstance(x, Tensor):
            raise TypeError(f"heaviside(): argument '{name}' (position {i + 1}) must be Tensor, not {type(x).__name__}.")
    if input.array.dtype != values.array.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes. Convert one of them: values.to(input.dtype)."
        )
    return el.heaviside.record(input, values, out=out)


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported. Call .int() first.")
    return input


# -------------------------------------------------------------------------------------------------------- whole numbers
def _of_integers(ufunc: Any, name: str, doc: str) -> Callable[..., Tensor]:
    called = Called(name)

    @takes_out
    def function(input: Tensor, other: Tensor) -> Tensor:
        a, b = tensors(called, input, other)
        if a.array.dtype.kind not in "ui":
            raise not_implemented(name, a.dtype)
        try:
            return constant(wrap(getattr(namespace_of[type(a.array)], name)(a.array, b.array)))
        except ValueError as error:
            raise forward_failed(called, error, (a.array, b.array))  # noqa: B904  (it decides whether the cause is shown)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


gcd = _of_integers(np.gcd, "gcd", "The greatest common divisor of each pair of integers.")
lcm = _of_integers(np.lcm, "lcm", "The least common multiple of each pair of integers.")

subtract, multiply, divide, clip = sub, mul, div, clamp


def true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input / other, element by element; integers are divided as floats."""
    if not isinstance(input, OPERANDS) or not isinstance(other, Tensor if not isinstance(input, Tensor) else OPERANDS):
        raise invalid_combination("true_divide", (input, other), "(Tensor input, Tensor other)", "(Tensor input, Number other)")
    return el.div.record(input, other, out=out)
