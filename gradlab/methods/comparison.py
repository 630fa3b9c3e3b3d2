"""Comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.methods.writing import twin
from gradlab.ops import comparison as functions
from gradlab.rules import elementwise as el


def answer(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The in-place twin of a function whose result has no history: the answers replace the numbers, and no gradient passes."""
    node = f"{function.__name__.title().replace('_', '')}Backward"
    by_number, by_tensor = el.replace.named(f"{node}0"), el.replace.named(f"{node}1")

    def method(self: Any, *other: Any) -> Tensor:
        return inplace.in_place(
            by_tensor if other and isinstance(other[0], Tensor) else by_number, self, value=function(self, *other).array
        )

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}`, written into this tensor's memory."
    return method


class Comparison:
    """Results are tensors of bools, but for `where` and the bits of integers."""

    eq, ne, lt, le, gt, ge = functions.eq, functions.ne, functions.lt, functions.le, functions.gt, functions.ge
    not_equal, less, less_equal, greater, greater_equal = (
        functions.not_equal,
        functions.less,
        functions.less_equal,
        functions.greater,
        functions.greater_equal,
    )
    eq_, ne_, lt_, le_, gt_, ge_ = map(
        answer, (functions.eq, functions.ne, functions.lt, functions.le, functions.gt, functions.ge)
    )
    not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
    logical_and, logical_or, logical_xor, logical_not = (
        functions.logical_and,
        functions.logical_or,
        functions.logical_xor,
        functions.logical_not,
    )
    logical_and_, logical_or_, logical_xor_, logical_not_ = map(
        answer, (functions.logical_and, functions.logical_or, functions.logical_xor, functions.logical_not)
    )
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = (
        functions.bitwise_and,
        functions.bitwise_or,
        functions.bitwise_xor,
        functions.bitwise_not,
    )
    bitwise_left_shift, bitwise_right_shift = functions.bitwise_left_shift, functions.bitwise_right_shift
    bitwise_and_, bitwise_or_, bitwise_xor_, bitwise_not_, bitwise_left_shift_, bitwise_right_shift_ = map(
        twin,
        (
            functions.bitwise_and,
            functions.bitwise_or,
            functions.bitwise_xor,
            functions.bitwise_not,
            functions.bitwise_left_shift,
            functions.bitwise_right_shift,
        ),
    )
    isnan, isfinite, isinf, isreal, isposinf, isneginf, signbit = (
        functions.isnan,
        functions.isfinite,
        functions.isinf,
        functions.isreal,
        functions.isposinf,
        functions.isneginf,
        functions.signbit,
    )
    isclose, allclose, equal = functions.isclose, functions.allclose, functions.equal

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, `other` elsewhere."""
        return functions.where(condition, self, other)
