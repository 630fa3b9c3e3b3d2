"""Element by element: arithmetic and the functions of one number."""
from __future__ import annotations

from typing import Any

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.functions import arithmetic as functions
from gradlab.methods.writing import twin
from gradlab.rules import elementwise as el


class Arithmetic:
    """Arithmetic, exponentials, trigonometry; each with its in-place twin."""

    add, sub, mul, div, pow, square = (functions.add, functions.sub, functions.mul, functions.div, functions.pow,
                                       functions.square)
    subtract, multiply, divide, true_divide = functions.sub, functions.mul, functions.div, functions.div
    exp, log, sqrt, sin, cos, tanh = (functions.exp, functions.log, functions.sqrt, functions.sin, functions.cos,
                                      functions.tanh)
    sigmoid, relu, reciprocal, abs, neg = (functions.sigmoid, functions.relu, functions.reciprocal, functions.abs,
                                           functions.neg)
    absolute, negative = functions.abs, functions.neg
    maximum, minimum = functions.maximum, functions.minimum

    mul_, div_, neg_, abs_, reciprocal_ = map(twin, (el.mul, el.div, el.neg, el.absolute, el.reciprocal))
    exp_, log_, sqrt_, sin_, cos_, tanh_ = map(twin, (el.exp, el.log, el.sqrt, el.sin, el.cos, el.tanh))
    sigmoid_, relu_ = map(twin, (el.sigmoid, el.relu))

    def pow_(self, exponent: Any) -> Tensor:
        """self ** exponent, in place."""
        if isinstance(exponent, Tensor):
            return inplace.in_place(el.pow_, self, exponent)
        return inplace.in_place(el.pow_scalar, self, exponent=exponent)

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self + alpha · other, in place."""
        return inplace.in_place(el.add, self, other if alpha == 1 else other * alpha)

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """self - alpha · other, in place."""
        return inplace.in_place(el.sub, self, other if alpha == 1 else other * alpha)
