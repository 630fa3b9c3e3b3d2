"""Comparisons, logical and bitwise functions, and `where`. Boolean results never require a gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.bounds import run_pending_checks
from gradlab.backend.namespaces import is_array, namespace_of, wrap
from gradlab.backend.sizes import as_long
from gradlab.core.devices import different_devices, move_to_one_device
from gradlab.core.dtypes import default
from gradlab.core.errors import forward_failed, invalid_combination, not_implemented
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import Operator, build_docstring, composite
from gradlab.core.out_argument import copy_to_out, takes_out
from gradlab.core.promotion import agree, require_tensors
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import FunctionInfo
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

RETURNS_BOOLS = "Broadcast shape of the operands, boolean. It never requires a gradient."
RAISES_NO_TENSOR = "TypeError\n    If an operand has the wrong type."
RAISES_NO_BROADCAST = "RuntimeError\n    If the shapes do not broadcast."
SIGNATURES = "(Tensor input, Tensor other)", "(Tensor input, Number other)", "(Number self, Tensor other)"


def format_row(values: Any) -> str:
    """Format numbers or bools as a tensor prints them."""
    texts = [str(value) for value in values]
    width = max(map(len, texts))
    return f"tensor([{', '.join(text.rjust(width) for text in texts)}])"


def apply_ufunc(called: FunctionInfo, ufunc: Any, a: Tensor, b: Tensor) -> Tensor:
    """Apply a ufunc to two arrays of the same dtype without recording it."""
    try:
        result = constant(wrap(ufunc(a.array, b.array)))
    except (TypeError, ValueError) as error:
        joined = move_to_one_device(called, (a, b))
        if joined is not None:
            return apply_ufunc(called, ufunc, *joined)
        raise forward_failed(called, error, (a.array, b.array))  # noqa: B904  (`forward_failed` sets the cause)
    if OBSERVERS:
        notify_detach(result, a if a.node is not None or (b.node is None and hasattr(a, "lost")) else b, "comparison")
    return result


# ---------------------------------------------------------------------------------------------------------- comparisons
def _make_comparison(ufunc: Any, name: str, symbol: str, shares: str = "") -> tuple[Callable[..., Any], Callable[..., Tensor]]:
    """Return the operator, which gives NotImplemented for unknown operands, and the function, which raises."""
    called = FunctionInfo(name)

    def compare(input: Any, other: Any) -> Any:
        if type(input) is Tensor and type(other) is Tensor and input.array.dtype is other.array.dtype:
            return apply_ufunc(called, ufunc, input, other)
        if type(other) in (int, float) and input.array.dtype.kind == "f":
            result = constant(wrap(ufunc(input.array, other)))
            if OBSERVERS:
                notify_detach(result, input, "comparison")
            return result
        other = constant(other) if is_array(other) else other
        agreed = agree(called, input, other)
        return agreed if agreed is NotImplemented else apply_ufunc(called, ufunc, *agreed)

    def function(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
        result = compare(input, other) if isinstance(input, Tensor) else NotImplemented
        if result is NotImplemented:
            raise invalid_combination(name, (input, other), *SIGNATURES[:2])
        return result if out is None else copy_to_out(name, out, result, (input, other))

    function.__name__ = function.__qualname__ = name
    answers = [bool(ufunc(a, 2)) for a in (1, 2, 3)]
    function.__doc__ = build_docstring(
        f"Compute input {symbol} other, element by element.",
        "input number out",
        RETURNS_BOOLS,
        [RAISES_NO_TENSOR, RAISES_NO_BROADCAST],
        f"{name}(gl.tensor([1., 2., 3.]), 2) -> {format_row(answers)}",
    )
    Operator(name, function, inplace="method", history=False, shares=shares)
    return compare, function


equals, eq = _make_comparison(np.equal, "eq", "=")
differs, ne = _make_comparison(np.not_equal, "ne", "≠")
is_less, lt = _make_comparison(np.less, "lt", "<")
is_at_most, le = _make_comparison(np.less_equal, "le", "≤")
is_greater, gt = _make_comparison(np.greater, "gt", ">")
is_at_least, ge = _make_comparison(np.greater_equal, "ge", "≥")
not_equal, less, less_equal, greater, greater_equal = (
    _make_comparison(ufunc, name, symbol, twin)[1]
    for ufunc, name, symbol, twin in (
        (np.not_equal, "not_equal", "≠", "ne"),
        (np.less, "less", "<", "lt"),
        (np.less_equal, "less_equal", "≤", "le"),
        (np.greater, "greater", ">", "gt"),
        (np.greater_equal, "greater_equal", "≥", "ge"),
    )
)


# ---------------------------------------------------------------------------------------------------------------- logic
def _make_logical(name: str, doc: str) -> Callable[..., Tensor]:
    called = FunctionInfo(name)

    @takes_out
    def combine(input: Tensor, other: Tensor) -> Tensor:
        a, b = require_tensors(called, (input, other))
        return apply_ufunc(called, getattr(namespace_of[type(a.array)], name), a, b)

    combine.__name__ = combine.__qualname__ = name
    answers = [bool(getattr(np, name)(*pair)) for pair in ((0, 1), (2, 1), (0, 0))]
    combine.__doc__ = build_docstring(
        f"{doc} Nonzero numbers count as True.",
        "input other out",
        RETURNS_BOOLS,
        [RAISES_NO_TENSOR, RAISES_NO_BROADCAST],
        f"{name}(gl.tensor([0, 2, 0]), gl.tensor([1, 1, 0])) -> {format_row(answers)}",
    )
    Operator(name, combine, inplace="method", history=False)
    return combine


logical_and = _make_logical("logical_and", "Compute the logical AND, element by element.")
logical_or = _make_logical("logical_or", "Compute the logical OR, element by element.")
logical_xor = _make_logical("logical_xor", "Compute the logical XOR, element by element.")


def _make_bitwise(ufunc: Any, name: str, doc: str) -> tuple[Callable[..., Any], Callable[..., Tensor]]:
    """Return the operator and the function, for bools or integers."""
    called = FunctionInfo(name)

    def combine(input: Any, other: Any) -> Any:
        agreed = agree(called, input, other)
        if agreed is NotImplemented:
            return agreed
        if agreed[0].array.dtype.kind == "f" or (name.endswith("shift") and agreed[0].array.dtype.kind == "b"):
            raise not_implemented(name, agreed[0].dtype)
        return apply_ufunc(called, ufunc, *agreed)

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        result = combine(input, other) if isinstance(input, Tensor) or isinstance(other, Tensor) else NotImplemented
        if result is NotImplemented:
            raise invalid_combination(name, (input, other), *SIGNATURES)
        return result if out is None else copy_to_out(name, out, result, (input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = build_docstring(
        doc,
        "either number out",
        "Broadcast shape and common dtype of the operands. It never requires a gradient.",
        [
            RAISES_NO_TENSOR,
            RAISES_NO_BROADCAST,
            "NotImplementedError\n    If the operands are floating point, or bools in a shift.",
        ],
        f"{name}(gl.tensor([12, 5]), 3) -> {format_row(int(ufunc(a, 3)) for a in (12, 5))}",
    )
    Operator(name, function, inplace="method")
    return combine, function


bits_and, bitwise_and = _make_bitwise(
    np.bitwise_and, "bitwise_and", "Compute the bitwise AND of integers or bools: input & other."
)
bits_or, bitwise_or = _make_bitwise(np.bitwise_or, "bitwise_or", "Compute the bitwise OR of integers or bools: input | other.")
bits_xor, bitwise_xor = _make_bitwise(
    np.bitwise_xor, "bitwise_xor", "Compute the bitwise XOR of integers or bools: input ^ other."
)
shift_left, bitwise_left_shift = _make_bitwise(
    np.left_shift, "bitwise_left_shift", "Shift the bits of integers to the left: input · 2^other."
)
shift_right, bitwise_right_shift = _make_bitwise(
    np.right_shift, "bitwise_right_shift", "Shift the bits of integers to the right: ⌊input / 2^other⌋."
)


# ----------------------------------------------------------------------------------------------------------- properties
def _make_predicate(
    name: str, doc: str, of_array: Callable[[Any, Any], Any], out: bool = False, inplace: str = ""
) -> Callable[..., Tensor]:
    called = FunctionInfo(name)

    def function(input: Tensor) -> Tensor:
        array = require_tensors(called, (input,))[0].array
        return constant(wrap(of_array(namespace_of[type(array)], array)))

    function.__name__ = function.__qualname__ = name
    published = takes_out(function) if out else function
    answers = of_array(np, np.array([0.0, -2.0, np.inf, np.nan]))
    published.__doc__ = build_docstring(
        doc,
        "input out" if out else "input",
        "Same shape as `input`, boolean. It never requires a gradient.",
        ["TypeError\n    If `input` is not a Tensor."],
        f'{name}(gl.tensor([0., -2., float("inf"), float("nan")])) -> {format_row(answers)}',
    )
    Operator(name, published, inplace=inplace, history=False)
    return published


def _is_infinity(sign: int) -> Callable[[Any, Any], Any]:
    return lambda xp, x: x == sign * np.inf if x.dtype.kind == "f" else xp.zeros(x.shape, dtype=bool)


isnan = _make_predicate("isnan", "Test each element for NaN.", lambda xp, x: x != x)
isfinite = _make_predicate(
    "isfinite", "Test whether each element is finite, that is, neither infinite nor NaN.", lambda xp, x: xp.isfinite(x)
)
isinf = _make_predicate("isinf", "Test whether each element is infinite.", lambda xp, x: xp.isinf(x))
isreal = _make_predicate(
    "isreal",
    "Test whether each element is real: always True, since there are no complex tensors.",
    lambda xp, x: xp.ones(x.shape, dtype=bool),
)
isposinf = _make_predicate("isposinf", "Test whether each element is +∞.", _is_infinity(1), out=True)
isneginf = _make_predicate("isneginf", "Test whether each element is -∞.", _is_infinity(-1), out=True)
signbit = _make_predicate(
    "signbit",
    "Test whether the sign bit of each element is set; it is set for -0.",
    lambda xp, x: xp.signbit(x) if x.dtype.kind == "f" else x < 0,
    out=True,
)
logical_not = _make_predicate(
    "logical_not",
    "Compute the logical NOT: True for elements that are zero or False.",
    lambda xp, x: xp.logical_not(x),
    out=True,
    inplace="method",
)


@composite(inplace="method")
@takes_out
def bitwise_not(input: Tensor) -> Tensor:
    """Compute the bitwise NOT of integers or bools: ~input.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`. It never requires a gradient.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError
        If `input` is floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.bitwise_not(gl.tensor([0, 5]))
    tensor([-1, -6])
    """
    array = require_tensors(FunctionInfo("bitwise_not"), (input,))[0].array
    if array.dtype.kind == "f":
        raise not_implemented("bitwise_not", input.dtype)
    return constant(wrap(namespace_of[type(array)].invert(array)))


# -------------------------------------------------------------------------------------------------------------- closeness
@composite()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Test |input - other| ≤ atol + rtol · |other|, element by element; equal infinities are close.

    Parameters
    ----------
    {input}
    {other}
    rtol, atol : float, default: 1e-05 and 1e-08
        Relative tolerance, which multiplies |other|, and absolute tolerance.
    equal_nan : bool, default: False
        Whether two NaNs are close.

    Returns
    -------
    Tensor
        Broadcast shape of the operands, boolean. It never requires a gradient.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, the shapes do not broadcast, or a tolerance is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.isclose(gl.tensor([1.0, 2.0]), gl.tensor([1.0, 2.1]))
    tensor([ True, False])
    """
    return _close(FunctionInfo("isclose"), input, other, rtol, atol, equal_nan)


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return True if |input - other| ≤ atol + rtol · |other| for all elements.

    Parameters
    ----------
    {input}
    {other}
    rtol, atol : float, default: 1e-05 and 1e-08
        Relative tolerance, which multiplies |other|, and absolute tolerance.
    equal_nan : bool, default: False
        Whether two NaNs are close.

    Returns
    -------
    bool
        True if all elements are close.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, the shapes do not broadcast, or a tolerance is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.allclose(gl.tensor([1.0, 2.0]), gl.tensor([1.0, 2.1]))
    False
    """
    close = _close(FunctionInfo("allclose"), input, other, rtol, atol, equal_nan).array.all()
    run_pending_checks()
    return bool(close)


def _close(called: FunctionInfo, input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    a, b = require_tensors(called, (input, other))
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

    return apply_ufunc(called, close, a, b)


@composite()
def equal(input: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have the same shape and elements.

    Parameters
    ----------
    {input}
    other : Tensor
        Tensor to compare with, of any shape.

    Returns
    -------
    bool
        True if they are equal. NaN is not equal to itself.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the tensors are on different devices.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.equal(gl.tensor([1, 2]), gl.tensor([1, 2]))
    True
    """
    a, b = require_tensors(FunctionInfo("equal"), (input, other))
    if type(a.array) is not type(b.array):
        raise different_devices("equal", (a.array, b.array))
    run_pending_checks()
    return a.array.shape == b.array.shape and bool((a.array == b.array).all())


# -------------------------------------------------------------------------------------------------------------- where
NOT_GIVEN: Any = object()


@composite(method=False)
def where(condition: Tensor, input: Any = NOT_GIVEN, other: Any = NOT_GIVEN, *, out: Tensor | None = None) -> Any:
    """Choose elements from `input` where `condition` is True, and from `other` elsewhere.

    With `condition` only, return the indices at which it is True.

    Parameters
    ----------
    condition : Tensor
        Boolean tensor that broadcasts with `input` and `other`.
    input, other : Tensor or number, optional
        Values to choose from. Give both or neither.
    {out}

    Returns
    -------
    Tensor or tuple of Tensor
        Broadcast shape and common dtype of the operands. With `condition` only, one int64 tensor for each dimension.

    Raises
    ------
    TypeError
        If `condition` is not a Tensor, or only one of `input` and `other` is given.
    RuntimeError
        If `condition` is not boolean, or the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([-1.0, 2.0])
    >>> gl.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if type(condition) is not Tensor or input is NOT_GIVEN or other is NOT_GIVEN:
        if not isinstance(condition, Tensor) or (input is NOT_GIVEN) != (other is NOT_GIVEN):
            raise _invalid_where(condition, input, other)
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
        agreed = agree(FunctionInfo("where"), condition, input, other)
        if agreed is NotImplemented:
            raise _invalid_where(condition, input, other)
        input, other = agreed[1:]
    result = el.where.record(condition, input, other, out=out)
    if result is NotImplemented:
        raise _invalid_where(condition, input, other)
    return result


def _invalid_where(*arguments: Any) -> TypeError:
    return invalid_combination(
        "where",
        tuple(x for x in arguments if x is not NOT_GIVEN),
        "(Tensor condition)",
        "(Tensor condition, Tensor input, Tensor other)",
        "(Tensor condition, Number self, Tensor other)",
        "(Tensor condition, Tensor input, Number other)",
        "(Tensor condition, Number self, Number other)",
    )
