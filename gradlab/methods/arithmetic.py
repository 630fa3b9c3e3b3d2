"""The in-place twins of arithmetic that are more than their function. (The others follow from declarations.)"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.methods.writing import twin
from gradlab.ops import arithmetic as functions
from gradlab.ops import interpolation, powers
from gradlab.rules import elementwise as el


class Arithmetic:
    """Sums, products, quotients, powers."""

    array: Any

    mul_ = multiply_ = twin(el.mul)

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
        return inplace.composed_in_place(powers.pow, self, exponent)

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
        return inplace.in_place(el.addcmul, self, tensor1, tensor2, value=interpolation.scale(value, self, tensor1, tensor2))

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """self + value · tensor1 / tensor2, in place."""
        return inplace.in_place(el.addcdiv, self, tensor1, tensor2, value=value)
