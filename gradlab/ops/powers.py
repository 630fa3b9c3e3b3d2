"""Powers, of tensors by tensors and by numbers, which are primitives of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import wrap
from gradlab.core import inplace
from gradlab.core.errors import invalid_combination, not_implemented
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import agree, cast
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import Called
from gradlab.ops.arithmetic import NUMBERS, OPERANDS, PLAIN, fits
from gradlab.rules import elementwise as el

__all__ = [
    "float_power",
    "pow",
    "square",
]


def _raised_in_place(input: Tensor, exponent: Any) -> Tensor:
    if type(exponent) in (int, float) and input.array.dtype.kind == "f":
        return inplace.in_place(el.pow_scalar, input, exponent=exponent)
    return inplace.composed_in_place(pow, input, exponent)


@composed(inplace="method", twin=_raised_in_place)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input to the power of exponent, either of them a tensor or a number.

    Parameters
    ----------
    {either}
    {exponent}
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
        If the shapes do not broadcast, or an integer is raised to a negative number.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.pow(gl.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    >>> gl.pow(2, gl.tensor([1., 2., 3.]))
    tensor([2., 4., 8.])
    """
    exponent = exponent.item() if isinstance(exponent, np.generic) else exponent
    if isinstance(input, Tensor) and isinstance(exponent, (int, float)):
        return _pow_number(input, exponent, out)
    if isinstance(exponent, Tensor) and isinstance(input, NUMBERS):
        return power_of(exponent, input, out)
    if not isinstance(input, Tensor) or not isinstance(exponent, Tensor):
        raise invalid_combination(
            "pow",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    return el.pow_.record(*_powers(input, exponent), out=out)


def _pow_number(input: Tensor, exponent: int | float, out: Tensor | None = None) -> Tensor:
    if input.array.dtype.kind != "f":
        if isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed. Call .float() first.")
        if input.array.dtype.kind == "b" and isinstance(exponent, bool):
            return constant(wrap(input.array | (not exponent)))
        input = agree(el.add, input, exponent)[0]
        fits(exponent, input)
    return el.pow_scalar.record(input, exponent=exponent, out=out)


def raised(self: Tensor, exponent: Any) -> Any:
    """self ** exponent, as the operator has it."""
    if type(exponent) in PLAIN and self.array.dtype.kind == "f":
        return el.pow_scalar.record(self, exponent=exponent)
    return pow(self, exponent) if isinstance(exponent, OPERANDS) else NotImplemented


def power_of(self: Tensor, base: Any, out: Tensor | None = None) -> Any:
    """base ** self, as the operator has it."""
    base = base.item() if isinstance(base, np.generic) else base
    if type(base) in (int, float) and self.array.dtype.kind == "f":
        return el.rpow_scalar.record(self, base=base, out=out)
    return el.pow_.record(*_powers(base, self), out=out) if isinstance(base, (bool, int, float, Tensor)) else NotImplemented


def _powers(base: Any, exponent: Any) -> Any:
    """Base and exponent in one dtype, which must not be bool."""
    agreed = agree(Called("pow"), base, exponent)
    if agreed[0].array.dtype.kind == "b":
        raise not_implemented("pow", "Bool")
    return agreed


@composed(inplace="function")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square of each element.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype; of bools int64.

    Raises
    ------
    TypeError
        If `input` is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.square(gl.tensor([-1., 2., 3.]))
    tensor([1., 4., 9.])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"square(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}.")
    return _pow_number(input, 2, out)


def _raised_in_double_in_place(input: Tensor, exponent: Any) -> Tensor:
    if input.array.dtype != np.float64:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.word} but the operation's result requires "
            "dtype Double. Call .double() first, or pow_."
        )
    return _raised_in_place(input, exponent)


@composed(inplace="method", twin=_raised_in_double_in_place)
@takes_out
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input to the power of exponent, in float64.

    Parameters
    ----------
    {either}
    {exponent}
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, float64.

    Raises
    ------
    TypeError
        If neither operand is a tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.float_power(gl.tensor([1., 2.], dtype=gl.float64), 0.5)
    tensor([1.0000, 1.4142], dtype=gradlab.float64)
    >>> gl.float_power(gl.tensor([1, 2]), 0.5)
    tensor([1.0000, 1.4142], dtype=gradlab.float64)
    """
    are_tensors = [isinstance(x, Tensor) for x in (input, exponent)]
    if not any(are_tensors) or not all(isinstance(x, OPERANDS) for x in (input, exponent)):
        raise invalid_combination(
            "float_power",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    double = np.dtype(np.float64)
    return pow(*(cast(x, double) if isinstance(x, Tensor) else float(x) for x in (input, exponent)))
