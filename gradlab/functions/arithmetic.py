"""Arithmetic and the functions of one number, element by element."""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor, constant
from gradlab.functions.arguments import checked
from gradlab.rules import elementwise as el

__all__ = ["abs", "absolute", "add", "cos", "div", "divide", "exp", "log", "maximum", "minimum", "mul", "multiply", "neg",
           "negative", "pow", "reciprocal", "relu", "sigmoid", "sin", "sqrt", "square", "sub", "subtract", "tanh",
           "true_divide"]

exp, log, sqrt, sin, cos, tanh = (op.record for op in (el.exp, el.log, el.sqrt, el.sin, el.cos, el.tanh))
sigmoid, relu, reciprocal, abs, neg = (op.record for op in (el.sigmoid, el.relu, el.reciprocal, el.absolute, el.neg))


def add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """input + alpha · other."""
    return checked("add", el.add.record(input, other if alpha == 1 else other * alpha), other)


def sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """input - alpha · other."""
    return checked("sub", el.sub.record(input, other if alpha == 1 else other * alpha), other)


def mul(input: Any, other: Any) -> Tensor:
    """input · other, element by element."""
    return checked("mul", el.mul.record(input, other), other)


def div(input: Any, other: Any) -> Tensor:
    """input / other, element by element; integers are divided as floats."""
    return checked("div", el.div.record(input, other), other)


def pow(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, either of them a tensor or a number."""
    exponent = exponent.item() if isinstance(exponent, np.generic) else exponent
    if not isinstance(input, Tensor):
        return checked("pow", rpow(exponent, input), input)
    if not isinstance(exponent, (int, float)):
        return checked("pow", el.pow_.record(*promoted_power(input, exponent)), exponent)
    if input.array.dtype.kind != "f":
        if isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed. Call .float() first.")
        if input.array.dtype.kind == "b" and isinstance(exponent, bool):
            return constant(input.array | (not exponent))
        input = agree(el.add, input, exponent)[0]
    return el.pow_scalar.record(input, exponent=exponent)


def promoted_power(base: Any, exponent: Any) -> Any:
    """Base and exponent in one dtype, which must not be bool."""
    agreed = agree(el.add, base, exponent)
    if agreed is not NotImplemented and agreed[0].array.dtype.kind == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'. Call .int() or .float() on one of the two first.")
    return (base, exponent) if agreed is NotImplemented else agreed


def square(input: Tensor) -> Tensor:
    """input², element by element."""
    return pow(input, 2)


def rpow(self: Tensor, base: Any) -> Any:
    """base ** self."""
    base = base.item() if isinstance(base, np.generic) else base
    if type(base) in (int, float) and self.array.dtype.kind == "f":
        return el.rpow_scalar.record(self, base=base)
    return el.pow_.record(*promoted_power(base, self))


def rsub(self: Tensor, other: Any) -> Any:
    """other - self."""
    other = other.item() if isinstance(other, np.generic) else other
    if type(other) in (int, float) and self.array.dtype.kind == "f":
        return el.rsub.record(self, other=other)
    return el.sub.record(other, self)


def rdiv(self: Tensor, other: Any) -> Any:
    """other / self: as torch has it, a reciprocal times a number."""
    return el.mul.record(el.reciprocal.record(self), other)


def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of each pair; a gradient is shared between equals."""
    return el.maximum.record(both_tensors("maximum", input, other), other)


def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of each pair; a gradient is shared between equals."""
    return el.minimum.record(both_tensors("minimum", input, other), other)


def both_tensors(name: str, input: Any, other: Any) -> Tensor:
    """`input`, if both are tensors: torch takes no numbers here."""
    for what, x in (("input", input), ("other", other)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): argument '{what}' must be Tensor, not {type(x).__name__}. Make a number a tensor: "
                            "gradlab.tensor(0.0).")
    return input


absolute, subtract, multiply, divide, true_divide, negative = abs, sub, mul, div, div, neg
