"""Elementwise arithmetic: sums, products, quotients and remainders.

These functions have PyTorch's names, take `alpha`, `rounding_mode` and the like, and raise PyTorch's errors. Operators such as
`+` call the recording functions directly (see `gradlab.methods.python`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.core import inplace
from gradlab.core.errors import invalid_combination
from gradlab.core.operator import Operator, build_docstring, composite
from gradlab.core.promotion import PROMOTIONS, expected_tensor
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import FunctionInfo, convert_number, require_implemented
from gradlab.rules import elementwise as el
from gradlab.rules import quotients

__all__ = [
    "add",
    "copysign",
    "div",
    "divide",
    "floor_divide",
    "fmod",
    "mul",
    "multiply",
    "remainder",
    "rsub",
    "sub",
    "subtract",
    "true_divide",
    "xlogy",
]

NUMBER_TYPES = bool, int, float, np.generic
OPERAND_TYPES = Tensor, *NUMBER_TYPES
INT_OR_FLOAT = int, float  # a constant: building the tuple in each call costs 20 ns


def check_integer_fits(number: int | float, like: Tensor) -> None:
    """Raise PyTorch's error for an integer that the dtype of `like` cannot hold. It does not wrap around here."""
    if isinstance(number, int) and like.array.dtype.kind in "ui":
        limits = np.iinfo(like.array.dtype)
        if not limits.min <= number <= limits.max:
            raise RuntimeError(
                f"value cannot be converted to type {like.dtype.name}_t without overflow. Got {number}; convert "
                "the tensor: x.long()."
            )


def _add_in_place(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if alpha == 1 and alpha is not True:
        return inplace.in_place(el.add, input, other)
    if input.array.dtype.kind != "f":
        return inplace.composed_in_place(add, input, other, alpha=alpha)
    return inplace.in_place(el.add_scaled, input, other, alpha=alpha)


@composite(inplace="method", twin=_add_in_place)
def add(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Add `other`, scaled by `alpha`, to `input`: input + alpha · other.

    Parameters
    ----------
    {either}
    {number}
    alpha : number, default: 1
        Multiplier of `other`.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast, or `alpha` is not valid for the dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.add(gl.tensor([1., 2.]), gl.tensor([3., 4.]), alpha=10)
    tensor([31., 42.])
    """
    if type(input) is not Tensor and not isinstance(input, OPERAND_TYPES):
        raise expected_tensor(el.add, input)
    if alpha == 1 and type(alpha) is int:
        return require_implemented("add", el.add.record(input, other, out=out), other)
    return _record_scaled(el.add, el.add_scaled, input, other, alpha, out)


def _sub_in_place(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if alpha == 1 and alpha is not True:
        return inplace.in_place(el.sub, input, other)
    if input.array.dtype.kind != "f":
        return inplace.composed_in_place(sub, input, other, alpha=alpha)
    return inplace.in_place(el.sub_scaled, input, other, alpha=-alpha)


@composite(aliases="subtract", inplace="method", twin=_sub_in_place)
def sub(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Subtract `other`, scaled by `alpha`, from `input`: input - alpha · other.

    Parameters
    ----------
    {either}
    {number}
    alpha : number, default: 1
        Multiplier of `other`.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast, an operand is boolean, or `alpha` is not valid for the dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.sub(gl.tensor([1., 2.]), gl.tensor([3., 4.]), alpha=10)
    tensor([-29., -38.])
    """
    if type(input) is not Tensor and not isinstance(input, OPERAND_TYPES):
        raise expected_tensor(el.sub, input)
    if alpha == 1 and type(alpha) is int:
        return require_implemented("sub", el.sub.record(input, other, out=out), other)
    return _record_scaled(el.sub, el.sub_scaled, input, other, alpha, out)


def _record_scaled(op: Any, scaled: Any, input: Any, other: Any, alpha: Any, out: Tensor | None) -> Tensor:
    a, b = require_implemented(op.name, PROMOTIONS[op.promote](FunctionInfo(op.name), input, other), other)
    kind = a.array.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results. Write 1 for True.")
    if isinstance(alpha, float) and kind != "f":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number. Convert the tensors: x.float()."
        )
    factor = alpha if op is el.add else -alpha
    return scaled.record(a, b, alpha=factor if kind == "f" else convert_number(factor, a.array.dtype), out=out)


@composite(method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `input`, scaled by `alpha`, from `other`: other - alpha · input.

    Parameters
    ----------
    {input}
    {number}
    alpha : number, default: 1
        Multiplier of `input`.

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If the shapes do not broadcast, or an operand is boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.rsub(gl.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
    if not isinstance(input, Tensor) or not isinstance(other, OPERAND_TYPES):
        raise invalid_combination(
            "rsub",
            (input, other),
            "(Tensor input, Tensor other, *, Number alpha = 1)",
            "(Tensor input, Number other, *, Number alpha = 1)",
        )
    if alpha == 1 and type(alpha) is int:
        return reverse_sub(input, other)
    return _record_scaled(el.sub, RSUB_SCALED[isinstance(other, Tensor)], other, input, alpha, None)


RSUB_SCALED = {True: el.sub_scaled.with_node("RsubBackward0"), False: el.sub_scaled.with_node("RsubBackward1")}


def reverse_sub(self: Tensor, other: Any) -> Any:
    """Compute other - self for the operator `-`."""
    if type(other) in INT_OR_FLOAT and self.array.dtype.kind == "f":
        return el.rsub.record(self, other=other)
    if isinstance(other, np.generic):
        return reverse_sub(self, other.item())
    return RSUB.record(other, self)


RSUB = el.sub.with_node("RsubBackward0")


@composite(aliases="multiply", inplace="method", twin=el.mul)
def mul(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiply `input` by `other`, element by element.

    Parameters
    ----------
    {either}
    {number}
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.mul(gl.tensor([1., 2.]), gl.tensor([3., 4.]))
    tensor([3., 8.])
    """
    if type(input) is not Tensor and not isinstance(input, OPERAND_TYPES):
        raise expected_tensor(el.mul, input)
    return require_implemented("mul", el.mul.record(input, other, out=out), other)


# ------------------------------------------------------------------------------------------------------------ quotients
DIV_BY_ROUNDING_MODE = {None: el.div, "floor": quotients.div_floor, "trunc": quotients.div_trunc}


def _div_in_place(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return inplace.in_place(el.div, input, other)
    return inplace.composed_in_place(div, input, other, rounding_mode=rounding_mode)


@composite(aliases="divide", inplace="method", twin=_div_in_place)
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """Divide `input` by `other`, element by element.

    Parameters
    ----------
    {either}
    {number}
    rounding_mode : {"floor", "trunc"}, optional
        Round the quotient down ("floor") or towards 0 ("trunc"); integers then stay integers. By default the quotient is not
        rounded, and integers are divided as floats.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands; floating point, unless integers are divided with a `rounding_mode`.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast, `rounding_mode` is unknown, or integers are divided by 0 with a `rounding_mode`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.div(gl.tensor([7., -7.]), 2)
    tensor([ 3.5000, -3.5000])
    >>> gl.div(gl.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if type(input) is not Tensor and not isinstance(input, OPERAND_TYPES):
        raise expected_tensor(el.div, input)
    if rounding_mode is None:
        return require_implemented("div", el.div.record(input, other, out=out), other)
    if rounding_mode not in DIV_BY_ROUNDING_MODE:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return require_implemented("div", DIV_BY_ROUNDING_MODE[rounding_mode].record(input, other, out=out), other)


def reverse_div(self: Tensor, other: Any) -> Any:
    """Compute other / self for the operator `/`: the reciprocal of `self` times `other`."""
    return el.mul.record(el.reciprocal.record(self), other)


def make_binary_function(
    name: str, doc: str, example: str, op: Any, by_number: Any = None, of_number: Any = None, **places: Any
) -> Callable[..., Tensor]:
    """Return a function of two tensors or of a tensor and a number; with `of_number`, also of a number and a tensor.

    PyTorch records each of these cases under a different node name, so each has its own primitive.
    """
    by_number = by_number or op

    def function(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        if isinstance(input, Tensor):
            if isinstance(other, Tensor):
                return op.record(input, other, out=out)
            if isinstance(other, NUMBER_TYPES):
                return by_number.record(input, other, out=out)
        elif of_number is not None and isinstance(other, Tensor) and isinstance(input, NUMBER_TYPES):
            return of_number.record(input, other, out=out)
        raise invalid_combination(
            name,
            (input, other),
            *["(Tensor input, Tensor other)", "(Tensor input, Number other)", "(Number self, Tensor other)"][
                : 2 + (of_number is not None)
            ],
        )

    public = name.removeprefix("special_")
    function.__name__ = function.__qualname__ = public
    arguments, _, result = example.partition(" -> ")
    operands = ", ".join(f"gl.tensor({one})" if one[0] == "[" else one for one in arguments.split("; "))
    function.__doc__ = build_docstring(
        doc,
        f"{'input' if of_number is None else 'either'} number out",
        "Broadcast shape and common dtype of the operands.",
        ["TypeError\n    If an operand has the wrong type.", "RuntimeError\n    If the shapes do not broadcast."],
        f"{'' if public == name else 'special.'}{public}({operands}) -> tensor({result})",
    )
    Operator(public, function, **places)
    return function


floor_divide = make_binary_function(
    "floor_divide",
    "Divide `input` by `other` and round down, element by element; integers stay integers.",
    "[7., -7.]; 2 -> [ 3., -4.]",
    quotients.floor_divide,
    of_number=quotients.floor_divide,
    inplace="method",
)
remainder = make_binary_function(
    "remainder",
    "Remainder with the sign of `other`, like Python's `%`: input - other · ⌊input / other⌋.",
    "[7., -7.]; 3 -> [1., 2.]",
    quotients.remainder,
    quotients.remainder_scalar,
    quotients.number_remainder,
    inplace="method",
)
fmod = make_binary_function(
    "fmod",
    "Remainder with the sign of `input`, like C's `fmod`: input - other · trunc(input / other).",
    "[7., -7.]; 3 -> [ 1., -1.]",
    quotients.fmod,
    quotients.fmod_scalar,
    inplace="method",
)
copysign = make_binary_function(
    "copysign",
    "Magnitude of `input` with the sign of `other`, element by element.",
    "[1., -2.]; [-3., 4.] -> [-1.,  2.]",
    el.copysign,
    el.copysign_number,
    inplace="method",
)
xlogy = make_binary_function(
    "xlogy",
    "Elementwise product input · log(other), which is 0 if `input` is 0.",
    "[0., 2.]; [0., 3.] -> [0.0000, 2.1972]",
    el.xlogy,
    el.xlogy.with_node("XlogyBackward2"),
    el.xlogy.with_node("XlogyBackward1"),
    inplace="function",
    special="xlogy",
)


subtract, multiply, divide = sub, mul, div


@composite(inplace="method")
def true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Divide `input` by `other`, element by element; integers are divided as floats.

    Parameters
    ----------
    {either}
    {number}
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, floating point.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.true_divide(gl.tensor([7., -7.]), 2)
    tensor([ 3.5000, -3.5000])
    >>> gl.true_divide(gl.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    """
    if not isinstance(input, OPERAND_TYPES) or not isinstance(other, Tensor if not isinstance(input, Tensor) else OPERAND_TYPES):
        raise invalid_combination("true_divide", (input, other), "(Tensor input, Tensor other)", "(Tensor input, Number other)")
    return el.div.record(input, other, out=out)
