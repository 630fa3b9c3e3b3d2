"""Arithmetic, element by element, and choosing between numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.methods.writing import twin
from gradlab.ops import arithmetic as functions
from gradlab.rules import elementwise as el


class Arithmetic:
    """Sums, products, quotients, powers, bounds; each with its in-place twin where torch has one."""

    array: Any

    add, sub, mul, div, pow = functions.add, functions.sub, functions.mul, functions.div, functions.pow
    subtract, multiply, divide, true_divide = functions.sub, functions.mul, functions.div, functions.true_divide
    floor_divide, remainder, fmod = functions.floor_divide, functions.remainder, functions.fmod
    square, positive, float_power, xlogy = functions.square, functions.positive, functions.float_power, functions.xlogy
    addcmul, addcdiv, lerp = functions.addcmul, functions.addcdiv, functions.lerp
    clamp, clip, clamp_min, clamp_max = functions.clamp, functions.clamp, functions.clamp_min, functions.clamp_max
    copysign, heaviside, gcd, lcm = functions.copysign, functions.heaviside, functions.gcd, functions.lcm

    mul_ = multiply_ = twin(el.mul)
    square_, floor_divide_, remainder_, fmod_ = map(
        twin, (functions.square, functions.floor_divide, functions.remainder, functions.fmod)
    )
    true_divide_, xlogy_, lerp_, copysign_, heaviside_, gcd_, lcm_ = map(
        twin,
        (
            functions.true_divide,
            functions.xlogy,
            functions.lerp,
            functions.copysign,
            functions.heaviside,
            functions.gcd,
            functions.lcm,
        ),
    )
    clamp_, clamp_min_, clamp_max_ = map(twin, (functions.clamp, functions.clamp_min, functions.clamp_max))
    clip_ = clamp_

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self + alpha · other, in place."""
        if alpha == 1 and alpha is not True:
            return inplace.in_place(el.add, self, other)
        if self.array.dtype.kind != "f":
            return inplace.composed_in_place(functions.add, self, other, alpha=alpha)
        return inplace.in_place(el.add_scaled, self, other, alpha=alpha)

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self - alpha · other, in place."""
        if alpha == 1 and alpha is not True:
            return inplace.in_place(el.sub, self, other)
        if self.array.dtype.kind != "f":
            return inplace.composed_in_place(functions.sub, self, other, alpha=alpha)
        return inplace.in_place(el.sub_scaled, self, other, alpha=-alpha)

    subtract_ = sub_

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """self / other, in place; rounded as in `div`."""
        if rounding_mode is None:
            return inplace.in_place(el.div, self, other)
        return inplace.composed_in_place(functions.div, self, other, rounding_mode=rounding_mode)

    divide_ = div_

    def pow_(self, exponent: Any) -> Tensor:
        """self ** exponent, in place."""
        if type(exponent) in (int, float) and self.array.dtype.kind == "f":
            return inplace.in_place(el.pow_scalar, self, exponent=exponent)
        return inplace.composed_in_place(functions.pow, self, exponent)

    def float_power_(self, exponent: Any) -> Tensor:
        """self ** exponent, in place, of a float64 tensor."""
        if self.array.dtype != np.float64:
            raise RuntimeError(
                f"the base given to float_power_ has dtype {self.dtype.word} but the operation's result requires "
                "dtype Double. Call .double() first, or pow_."
            )
        return self.pow_(exponent)

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """self + value · tensor1 · tensor2, in place."""
        return inplace.in_place(el.addcmul, self, tensor1, tensor2, value=functions.scale(value, self, tensor1, tensor2))

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """self + value · tensor1 / tensor2, in place."""
        return inplace.in_place(el.addcdiv, self, tensor1, tensor2, value=value)
