"""Arithmetic, element by element: sums, products, quotients, powers, and choosing between numbers.

The operators are the recording functions themselves (see `gradlab.methods.python`). The functions here are what torch calls by
name: they take `alpha`, `rounding_mode` and the like, and refuse what is no tensor in torch's words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.core import inplace
from gradlab.core.errors import invalid_combination
from gradlab.core.operator import Operator, composed, documented
from gradlab.core.promotion import PROMOTIONS, expected_tensor
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import Called, checked, number
from gradlab.rules import elementwise as el

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

NUMBERS = bool, int, float, np.generic
OPERANDS = Tensor, *NUMBERS
PLAIN = int, float  # as a constant: a tuple made anew costs 20 ns


def fits(number: int | float, like: Tensor) -> None:
    """Torch's error for an integer that a dtype cannot hold, where it does not wrap around."""
    if isinstance(number, int) and like.array.dtype.kind in "ui":
        limits = np.iinfo(like.array.dtype)
        if not limits.min <= number <= limits.max:
            raise RuntimeError(
                f"value cannot be converted to type {like.dtype.name}_t without overflow. It is {number}; convert "
                "the tensor: x.long()."
            )


def _added_in_place(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if alpha == 1 and alpha is not True:
        return inplace.in_place(el.add, input, other)
    if input.array.dtype.kind != "f":
        return inplace.composed_in_place(add, input, other, alpha=alpha)
    return inplace.in_place(el.add_scaled, input, other, alpha=alpha)


@composed(inplace="method", twin=_added_in_place)
def add(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input + alpha · other, element by element.

    Parameters
    ----------
    {either}
    {number}
    alpha : number, default 1
        The factor of the operand that is added or subtracted.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If neither operand is a tensor.
    RuntimeError
        If the shapes do not broadcast, or the dtype has no such `alpha`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.add(gl.tensor([1., 2.]), gl.tensor([3., 4.]), alpha=10)
    tensor([31., 42.])
    """
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.add, input)
    if alpha == 1 and type(alpha) is int:
        return checked("add", el.add.record(input, other, out=out), other)
    return _scaled(el.add, el.add_scaled, input, other, alpha, out)


def _subtracted_in_place(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    if alpha == 1 and alpha is not True:
        return inplace.in_place(el.sub, input, other)
    if input.array.dtype.kind != "f":
        return inplace.composed_in_place(sub, input, other, alpha=alpha)
    return inplace.in_place(el.sub_scaled, input, other, alpha=-alpha)


@composed(aliases="subtract", inplace="method", twin=_subtracted_in_place)
def sub(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """input - alpha · other, element by element.

    Parameters
    ----------
    {either}
    {number}
    alpha : number, default 1
        The factor of the operand that is added or subtracted.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If neither operand is a tensor.
    RuntimeError
        If the shapes do not broadcast, an operand holds bools, or the dtype has no such `alpha`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.sub(gl.tensor([1., 2.]), gl.tensor([3., 4.]), alpha=10)
    tensor([-29., -38.])
    """
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


@composed(method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha · input, element by element.

    Parameters
    ----------
    {input}
    {number}
    alpha : number, default 1
        The factor of the operand that is added or subtracted.

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If `input` is no tensor.
    RuntimeError
        If the shapes do not broadcast, or an operand holds bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.rsub(gl.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
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


@composed(aliases="multiply", inplace="method", twin=el.mul)
def mul(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input · other, element by element.

    Parameters
    ----------
    {either}
    {number}
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If neither operand is a tensor.
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.mul(gl.tensor([1., 2.]), gl.tensor([3., 4.]))
    tensor([3., 8.])
    """
    if type(input) is not Tensor and not isinstance(input, OPERANDS):
        raise expected_tensor(el.mul, input)
    return checked("mul", el.mul.record(input, other, out=out), other)


# ------------------------------------------------------------------------------------------------------------ quotients
ROUNDED = {None: el.div, "floor": el.div_floor, "trunc": el.div_trunc}


def _divided_in_place(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return inplace.in_place(el.div, input, other)
    return inplace.composed_in_place(div, input, other, rounding_mode=rounding_mode)


@composed(aliases="divide", inplace="method", twin=_divided_in_place)
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """input / other, element by element, of integers as floats; or a quotient that is rounded.

    Parameters
    ----------
    {either}
    {number}
    rounding_mode : {"floor", "trunc"}, optional
        Rounds the quotient down, or towards 0; integers then stay integers.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to: floating point, unless a quotient of integers is rounded.

    Raises
    ------
    TypeError
        If neither operand is a tensor.
    RuntimeError
        If the shapes do not broadcast, `rounding_mode` is unknown, or integers are divided by 0 and rounded.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.div(gl.tensor([7., -7.]), 2)
    tensor([ 3.5000, -3.5000])
    >>> gl.div(gl.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
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


def with_number(
    name: str, doc: str, example: str, op: Any, by_number: Any = None, of_number: Any = None, **places: Any
) -> Callable[..., Tensor]:
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

    public = name.removeprefix("special_")
    function.__name__ = function.__qualname__ = public
    arguments, _, result = example.partition(" -> ")
    operands = ", ".join(f"gl.tensor({one})" if one[0] == "[" else one for one in arguments.split("; "))
    function.__doc__ = documented(
        doc,
        f"{'input' if of_number is None else 'either'} number out",
        "The shape that the operands broadcast to, of their common dtype.",
        ["TypeError\n    If no operand is a tensor.", "RuntimeError\n    If the shapes do not broadcast."],
        f"{'' if public == name else 'special.'}{public}({operands}) -> tensor({result})",
    )
    Operator(public, function, **places)
    return function


floor_divide = with_number(
    "floor_divide",
    "⌊input / other⌋, element by element, of integers an integer.",
    "[7., -7.]; 2 -> [ 3., -4.]",
    el.floor_divide,
    of_number=el.floor_divide,
    inplace="method",
)
remainder = with_number(
    "remainder",
    "input - other · ⌊input / other⌋: it has the sign of `other`, as Python's %.",
    "[7., -7.]; 3 -> [1., 2.]",
    el.remainder,
    el.remainder_scalar,
    el.number_remainder,
    inplace="method",
)
fmod = with_number(
    "fmod",
    "input - other · trunc(input / other): it has the sign of `input`, as C's fmod.",
    "[7., -7.]; 3 -> [ 1., -1.]",
    el.fmod,
    el.fmod_scalar,
    inplace="method",
)
copysign = with_number(
    "copysign",
    "The magnitude of `input` with the sign of `other`.",
    "[1., -2.]; [-3., 4.] -> [-1.,  2.]",
    el.copysign,
    el.copysign_number,
    inplace="method",
)
xlogy = with_number(
    "xlogy",
    "input · log(other), and 0 where `input` is 0.",
    "[0., 2.]; [0., 3.] -> [0.0000, 2.1972]",
    el.xlogy,
    el.xlogy.named("XlogyBackward2"),
    el.xlogy.named("XlogyBackward1"),
    inplace="function",
    special="xlogy",
)


subtract, multiply, divide = sub, mul, div


@composed(inplace="method")
def true_divide(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input / other, element by element, of integers as floats.

    Parameters
    ----------
    {either}
    {number}
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, floating point.

    Raises
    ------
    TypeError
        If neither operand is a tensor.
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
    if not isinstance(input, OPERANDS) or not isinstance(other, Tensor if not isinstance(input, Tensor) else OPERANDS):
        raise invalid_combination("true_divide", (input, other), "(Tensor input, Tensor other)", "(Tensor input, Number other)")
    return el.div.record(input, other, out=out)
