"""Comparisons and logic: results are tensors of bools without history. `where` chooses by one."""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of, wrap
from gradlab.core.errors import forward_failed
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor, constant
from gradlab.functions.arguments import checked
from gradlab.rules import elementwise as el

__all__ = ["allclose", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "equal", "ge", "gt", "isfinite", "isnan", "le",
           "logical_not", "lt", "ne", "where"]


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; with the condition alone, the indices where it holds."""
    if input is None and other is None:
        return tuple(constant(i) for i in condition.array.nonzero())
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' must be Tensor, not {type(condition).__name__}.")
    if condition.array.dtype.kind != "b":
        raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype "
                           f"{condition.dtype.word}. Compare (x > 0), or call .bool().")
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        input, other = agree(el.add, condition, input, other)[1:]
    return checked("where", el.where.record(condition, input, other), other)


def _comparison(ufunc: Any, name: str, symbol: str) -> Any:
    def compare(input: Any, other: Any) -> Any:
        if type(input) is Tensor and type(other) is Tensor and input.array.dtype is other.array.dtype:
            a, b = input, other
        else:
            other = constant(other) if is_array(other) else other
            if not isinstance(other, (Tensor, bool, int, float, np.generic)):
                return NotImplemented                                  # x == "text" is False, x < "text" Python's TypeError
            a, b = agree(el.add, input, other)
        try:
            return constant(wrap(ufunc(a.array, b.array)))
        except ValueError as error:
            raise forward_failed(el.add, error, (a.array, b.array)) from error
    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = f"input {symbol} other, element by element, as a tensor of bools."
    return compare


eq, ne = _comparison(np.equal, "eq", "=="), _comparison(np.not_equal, "ne", "!=")
lt, le = _comparison(np.less, "lt", "<"), _comparison(np.less_equal, "le", "<=")
gt, ge = _comparison(np.greater, "gt", ">"), _comparison(np.greater_equal, "ge", ">=")


def _logic(ufunc: Any, name: str, symbol: str) -> Any:
    def combine(input: Any, other: Any) -> Any:
        agreed = agree(el.add, input, other)
        if agreed is NotImplemented:
            return agreed
        if agreed[0].array.dtype.kind == "f":
            raise RuntimeError(f'"{name}_cpu" not implemented for floating point tensors: give bools or integers.')
        return constant(wrap(ufunc(agreed[0].array, agreed[1].array)))
    combine.__name__ = combine.__qualname__ = name
    combine.__doc__ = f"input {symbol} other on bools or on the bits of integers."
    return combine


bitwise_and, bitwise_or = _logic(np.bitwise_and, "bitwise_and", "&"), _logic(np.bitwise_or, "bitwise_or", "|")
bitwise_xor = _logic(np.bitwise_xor, "bitwise_xor", "^")


def logical_not(input: Tensor) -> Tensor:
    """True where the element is zero or False."""
    return constant(wrap(np.logical_not(input.array)))


def isnan(input: Tensor) -> Tensor:
    """True where the element is NaN."""
    return constant(wrap(input.array != input.array))


def isfinite(input: Tensor) -> Tensor:
    """True where the element is neither infinite nor NaN."""
    return constant(wrap(namespace_of[type(input.array)].isfinite(input.array)))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether |input - other| ≤ atol + rtol · |other| everywhere."""
    return bool(namespace_of[type(input.array)].allclose(input.array, other.array, rtol, atol, equal_nan))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements."""
    return input.array.shape == other.array.shape and bool((input.array == other.array).all())
