"""Comparisons and logic: results are tensors of bools without history. `where` chooses by one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.bounds import settle
from gradlab.backend.namespaces import is_array, namespace_of, wrap
from gradlab.backend.sizes import as_long
from gradlab.core.devices import different_devices, together
from gradlab.core.dtypes import default
from gradlab.core.errors import forward_failed, invalid_combination, not_implemented
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import Operator, composed, documented
from gradlab.core.out_argument import into, takes_out
from gradlab.core.promotion import agree, all_tensors
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import Called
from gradlab.rules import elementwise as el

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
    "where",
]

BOOLS = "The shape that the operands broadcast to, of bools. It has no history."
NO_TENSOR = "TypeError\n    If no operand is a tensor."
NO_BROADCAST = "RuntimeError\n    If the shapes do not broadcast."
WITH_NUMBERS = "(Tensor input, Tensor other)", "(Tensor input, Number other)", "(Number self, Tensor other)"


def row(values: Any) -> str:
    """Numbers or bools as a tensor prints them."""
    texts = [str(value) for value in values]
    width = max(map(len, texts))
    return f"tensor([{', '.join(text.rjust(width) for text in texts)}])"


def computed(called: Called, ufunc: Any, a: Tensor, b: Tensor) -> Tensor:
    """A ufunc of two arrays of one dtype, without history."""
    try:
        result = constant(wrap(ufunc(a.array, b.array)))
    except (TypeError, ValueError) as error:
        joined = together(called, (a, b))
        if joined is not None:
            return computed(called, ufunc, *joined)
        raise forward_failed(called, error, (a.array, b.array))  # noqa: B904  (it decides whether the cause is shown)
    if OBSERVERS:
        notify_detach(result, a if a.node is not None or (b.node is None and hasattr(a, "lost")) else b, "comparison")
    return result


# ---------------------------------------------------------------------------------------------------------- comparisons
def _comparison(ufunc: Any, name: str, symbol: str, shares: str = "") -> tuple[Callable[..., Any], Callable[..., Tensor]]:
    """The operator, which leaves what it does not know to Python, and the function."""
    called = Called(name)

    def compare(input: Any, other: Any) -> Any:
        if type(input) is Tensor and type(other) is Tensor and input.array.dtype is other.array.dtype:
            return computed(called, ufunc, input, other)
        if type(other) in (int, float) and input.array.dtype.kind == "f":
            result = constant(wrap(ufunc(input.array, other)))
            if OBSERVERS:
                notify_detach(result, input, "comparison")
            return result
        other = constant(other) if is_array(other) else other
        agreed = agree(called, input, other)
        return agreed if agreed is NotImplemented else computed(called, ufunc, *agreed)

    def function(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        result = compare(input, other) if isinstance(input, Tensor) else NotImplemented
        if result is NotImplemented:
            raise invalid_combination(name, (input, other), *WITH_NUMBERS[:2])
        return result if out is None else into(name, out, result, (input, other))

    function.__name__ = function.__qualname__ = name
    answers = [bool(ufunc(a, 2)) for a in (1, 2, 3)]
    function.__doc__ = documented(
        f"Whether input {symbol} other, element by element.",
        "input number out",
        BOOLS,
        [NO_TENSOR, NO_BROADCAST],
        f"{name}(gl.tensor([1., 2., 3.]), 2) -> {row(answers)}",
    )
    Operator(name, function, inplace="method", history=False, shares=shares)
    return compare, function


equals, eq = _comparison(np.equal, "eq", "=")
differs, ne = _comparison(np.not_equal, "ne", "≠")
is_less, lt = _comparison(np.less, "lt", "<")
is_at_most, le = _comparison(np.less_equal, "le", "≤")
is_greater, gt = _comparison(np.greater, "gt", ">")
is_at_least, ge = _comparison(np.greater_equal, "ge", "≥")
not_equal, less, less_equal, greater, greater_equal = (
    _comparison(ufunc, name, symbol, twin)[1]
    for ufunc, name, symbol, twin in (
        (np.not_equal, "not_equal", "≠", "ne"),
        (np.less, "less", "<", "lt"),
        (np.less_equal, "less_equal", "≤", "le"),
        (np.greater, "greater", ">", "gt"),
        (np.greater_equal, "greater_equal", "≥", "ge"),
    )
)


# ---------------------------------------------------------------------------------------------------------------- logic
def _logic(name: str, doc: str) -> Callable[..., Tensor]:
    called = Called(name)

    @takes_out
    def combine(input: Tensor, other: Tensor) -> Tensor:
        a, b = all_tensors(called, (input, other))
        return computed(called, getattr(namespace_of[type(a.array)], name), a, b)

    combine.__name__ = combine.__qualname__ = name
    answers = [bool(getattr(np, name)(*pair)) for pair in ((0, 1), (2, 1), (0, 0))]
    combine.__doc__ = documented(
        f"{doc} Numbers other than 0 count as True.",
        "input other out",
        BOOLS,
        [NO_TENSOR, NO_BROADCAST],
        f"{name}(gl.tensor([0, 2, 0]), gl.tensor([1, 1, 0])) -> {row(answers)}",
    )
    Operator(name, combine, inplace="method", history=False)
    return combine


logical_and = _logic("logical_and", "Whether both elements hold.")
logical_or = _logic("logical_or", "Whether at least one of the elements holds.")
logical_xor = _logic("logical_xor", "Whether exactly one of the elements holds.")


def _bits(ufunc: Any, name: str, doc: str) -> tuple[Callable[..., Any], Callable[..., Tensor]]:
    """The operator and the function, on bools or the bits of integers."""
    called = Called(name)

    def combine(input: Any, other: Any) -> Any:
        agreed = agree(called, input, other)
        if agreed is NotImplemented:
            return agreed
        if agreed[0].array.dtype.kind == "f" or (name.endswith("shift") and agreed[0].array.dtype.kind == "b"):
            raise not_implemented(name, agreed[0].dtype)
        return computed(called, ufunc, *agreed)

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        result = combine(input, other) if isinstance(input, Tensor) or isinstance(other, Tensor) else NotImplemented
        if result is NotImplemented:
            raise invalid_combination(name, (input, other), *WITH_NUMBERS)
        return result if out is None else into(name, out, result, (input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = documented(
        doc,
        "either number out",
        "The shape that the operands broadcast to, of their common dtype. It has no history.",
        [NO_TENSOR, NO_BROADCAST, "NotImplementedError\n    If the operands are floating point; of shifts, bools."],
        f"{name}(gl.tensor([12, 5]), 3) -> {row(int(ufunc(a, 3)) for a in (12, 5))}",
    )
    Operator(name, function, inplace="method")
    return combine, function


bits_and, bitwise_and = _bits(np.bitwise_and, "bitwise_and", "input & other on bools or on the bits of integers.")
bits_or, bitwise_or = _bits(np.bitwise_or, "bitwise_or", "input | other on bools or on the bits of integers.")
bits_xor, bitwise_xor = _bits(np.bitwise_xor, "bitwise_xor", "input ^ other on bools or on the bits of integers.")
shifted_left, bitwise_left_shift = _bits(
    np.left_shift, "bitwise_left_shift", "The bits of integers moved to the left: input · 2^other."
)
shifted_right, bitwise_right_shift = _bits(
    np.right_shift, "bitwise_right_shift", "The bits of integers moved to the right: ⌊input / 2^other⌋."
)


# ----------------------------------------------------------------------------------------------------------- properties
def _property(
    name: str, doc: str, of_array: Callable[[Any, Any], Any], out: bool = False, inplace: str = ""
) -> Callable[..., Tensor]:
    called = Called(name)

    def function(input: Tensor) -> Tensor:
        array = all_tensors(called, (input,))[0].array
        return constant(wrap(of_array(namespace_of[type(array)], array)))

    function.__name__ = function.__qualname__ = name
    published = takes_out(function) if out else function
    answers = of_array(np, np.array([0.0, -2.0, np.inf, np.nan]))
    published.__doc__ = documented(
        doc,
        "input out" if out else "input",
        "The shape of `input`, of bools. It has no history.",
        ["TypeError\n    If `input` is no tensor."],
        f'{name}(gl.tensor([0., -2., float("inf"), float("nan")])) -> {row(answers)}',
    )
    Operator(name, published, inplace=inplace, history=False)
    return published


def _infinite(sign: int) -> Callable[[Any, Any], Any]:
    return lambda xp, x: x == sign * np.inf if x.dtype.kind == "f" else xp.zeros(x.shape, dtype=bool)


isnan = _property("isnan", "True where the element is NaN.", lambda xp, x: x != x)
isfinite = _property("isfinite", "True where the element is neither infinite nor NaN.", lambda xp, x: xp.isfinite(x))
isinf = _property("isinf", "True where the element is infinite.", lambda xp, x: xp.isinf(x))
isreal = _property("isreal", "True everywhere: there are no complex tensors.", lambda xp, x: xp.ones(x.shape, dtype=bool))
isposinf = _property("isposinf", "True where the element is +∞.", _infinite(1), out=True)
isneginf = _property("isneginf", "True where the element is -∞.", _infinite(-1), out=True)
signbit = _property(
    "signbit",
    "True where the element's sign is minus; -0. has one.",
    lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
    out=True,
)
logical_not = _property(
    "logical_not", "True where the element is zero or False.", lambda xp, x: xp.logical_not(x), out=True, inplace="method"
)


@composed(inplace="method")
@takes_out
def bitwise_not(input: Tensor) -> Tensor:
    """~input: every bit of the integers, every bool, turned round.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        The shape and the dtype of `input`. It has no history.

    Raises
    ------
    TypeError
        If `input` is no tensor.
    NotImplementedError
        If it is floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.bitwise_not(gl.tensor([0, 5]))
    tensor([-1, -6])
    """
    array = all_tensors(Called("bitwise_not"), (input,))[0].array
    if array.dtype.kind == "f":
        raise not_implemented("bitwise_not", input.dtype)
    return constant(wrap(namespace_of[type(array)].invert(array)))


# -------------------------------------------------------------------------------------------------------------- closeness
@composed()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Where |input - other| ≤ atol + rtol · |other|; infinities are close to themselves.

    Parameters
    ----------
    {input}
    {other}
    rtol, atol : float, default 1e-05 and 1e-08
        The tolerances: a part of `other`, and an amount.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of bools. It has no history.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, the shapes do not broadcast, or a tolerance is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.isclose(gl.tensor([1.0, 2.0]), gl.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return _close(Called("isclose"), input, other, rtol, atol, equal_nan)


@composed()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether |input - other| ≤ atol + rtol · |other| everywhere.

    Parameters
    ----------
    {input}
    {other}
    rtol, atol : float, default 1e-05 and 1e-08
        The tolerances: a part of `other`, and an amount.
    equal_nan : bool, default False
        Whether NaN is close to NaN.

    Returns
    -------
    bool
        Whether all elements are close.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, the shapes do not broadcast, or a tolerance is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.allclose(gl.tensor([1.0, 2.0]), gl.tensor([1.0, 2.1]))
    False
    """
    close = _close(Called("allclose"), input, other, rtol, atol, equal_nan).array.all()
    settle()
    return bool(close)


def _close(called: Called, input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    a, b = all_tensors(called, (input, other))
    if a.array.dtype != b.array.dtype:
        raise RuntimeError(f"{a.dtype.word} did not match {b.dtype.word}. Convert one of the two: x.to(y.dtype).")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    xp = namespace_of[type(a.array)]

    def close(a: Any, b: Any) -> Any:
        same = a == b
        if equal_nan:
            same = same | ((a != a) & (b != b))
        if not rtol and not atol:
            return same
        if a.dtype.kind != "f":  # integers would overflow
            a, b = a.astype(default.float), b.astype(default.float)
        allowed, distance = atol + xp.absolute(rtol * b), xp.absolute(a - b)
        return same | (xp.isfinite(distance) & (distance <= allowed))

    return computed(called, close, a, b)


@composed()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements.

    Parameters
    ----------
    {input}
    other : Tensor
        The tensor that it is compared with, of any shape.

    Returns
    -------
    bool
        Whether they are equal. NaN is not equal to itself.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If they are on different devices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.equal(gl.tensor([1, 2]), gl.tensor([1, 2]))
    True
    """
    a, b = all_tensors(Called("equal"), (input, other))
    if type(a.array) is not type(b.array):
        raise different_devices("equal", (a.array, b.array))
    settle()
    return a.array.shape == b.array.shape and bool((a.array == b.array).all())


# -------------------------------------------------------------------------------------------------------------- where
NOT_GIVEN: Any = object()


@composed(method=False)
def where(condition: Tensor, input: Any = NOT_GIVEN, other: Any = NOT_GIVEN, *, out: Tensor | None = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; with the condition alone, the indices where it holds.

    Parameters
    ----------
    condition : Tensor
        Bools, of a shape that broadcasts with those of the others.
    input, other : Tensor or number, optional
        What is chosen from: both or neither.
    {out}

    Returns
    -------
    Tensor or tuple of Tensor
        The shape that the operands broadcast to, of the common dtype; with the condition alone one tensor of int64 for each
        axis.

    Raises
    ------
    TypeError
        If the condition is no tensor, or one of `input` and `other` is missing.
    RuntimeError
        If the condition does not hold bools, or the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([-1.0, 2.0])
    >>> gl.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if type(condition) is not Tensor or input is NOT_GIVEN or other is NOT_GIVEN:
        if not isinstance(condition, Tensor) or (input is NOT_GIVEN) != (other is NOT_GIVEN):
            raise _no_where(condition, input, other)
        if input is NOT_GIVEN:
            array = condition.array
            return tuple(constant(as_long(i)) for i in (array if array.ndim else array.reshape(1)).nonzero())
    if condition.array.dtype.kind != "b":
        if condition.array.dtype != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype.word}. Compare (x > 0), or call .bool()."
            )
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead: condition.bool().",
            UserWarning,
            stacklevel=2,
        )
        condition = constant(wrap(condition.array != 0))
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        agreed = agree(Called("where"), condition, input, other)
        if agreed is NotImplemented:
            raise _no_where(condition, input, other)
        input, other = agreed[1:]
    result = el.where.record(condition, input, other, out=out)
    if result is NotImplemented:
        raise _no_where(condition, input, other)
    return result


def _no_where(*arguments: Any) -> TypeError:
    return invalid_combination(
        "where",
        tuple(x for x in arguments if x is not NOT_GIVEN),
        "(Tensor condition)",
        "(Tensor condition, Tensor input, Tensor other)",
        "(Tensor condition, Number self, Tensor other)",
        "(Tensor condition, Tensor input, Number other)",
        "(Tensor condition, Number self, Number other)",
    )
