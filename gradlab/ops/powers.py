"""Powers of tensors and numbers. Powers with a number as base or exponent have their own primitives."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import wrap
from gradlab.core import inplace
from gradlab.core.errors import invalid_combination, not_implemented
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import agree, cast
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import FunctionInfo
from gradlab.ops.arithmetic import INT_OR_FLOAT, NUMBER_TYPES, OPERAND_TYPES, check_integer_fits
from gradlab.rules import elementwise as el

__all__ = [
    "float_power",
    "pow",
    "square",
]


def _pow_in_place(input: Tensor, exponent: Any) -> Tensor:
    if type(exponent) in (int, float) and input.array.dtype.kind == "f":
        return inplace.in_place(el.pow_scalar, input, exponent=exponent)
    return inplace.composed_in_place(pow, input, exponent)


@composite(inplace="method", twin=_pow_in_place)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Raise `input` to the power of `exponent`. Either can be a tensor or a number.

    Parameters
    ----------
    {either}
    {exponent}
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, common dtype.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.
    RuntimeError
        If the shapes do not broadcast, or if an integer tensor is raised to a negative integer.

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
    if isinstance(exponent, Tensor) and isinstance(input, NUMBER_TYPES):
        return rpow_operator(exponent, input, out)
    if not isinstance(input, Tensor) or not isinstance(exponent, Tensor):
        raise invalid_combination(
            "pow",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    return el.pow_.record(*_promote_powers(input, exponent), out=out)


def _pow_number(input: Tensor, exponent: int | float, out: Tensor | None = None) -> Tensor:
    if input.array.dtype.kind != "f":
        if isinstance(exponent, int) and exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed. Call .float() first.")
        if input.array.dtype.kind == "b" and isinstance(exponent, bool):
            return constant(wrap(input.array | (not exponent)))
        input = agree(el.add, input, exponent)[0]
        check_integer_fits(exponent, input)
    return el.pow_scalar.record(input, exponent=exponent, out=out)


def pow_operator(self: Tensor, exponent: Any) -> Any:
    """Compute self ** exponent for the operator."""
    if type(exponent) in INT_OR_FLOAT and self.array.dtype.kind == "f":
        return el.pow_scalar.record(self, exponent=exponent)
    return pow(self, exponent) if isinstance(exponent, OPERAND_TYPES) else NotImplemented


def rpow_operator(self: Tensor, base: Any, out: Tensor | None = None) -> Any:
    """Compute base ** self for the operator."""
    base = base.item() if isinstance(base, np.generic) else base
    if type(base) in (int, float) and self.array.dtype.kind == "f":
        return el.rpow_scalar.record(self, base=base, out=out)
    return (
        el.pow_.record(*_promote_powers(base, self), out=out) if isinstance(base, (bool, int, float, Tensor)) else NotImplemented
    )


def _promote_powers(base: Any, exponent: Any) -> Any:
    """Convert base and exponent to their common dtype, which must not be bool."""
    agreed = agree(FunctionInfo("pow"), base, exponent)
    if agreed[0].array.dtype.kind == "b":
        raise not_implemented("pow", "Bool")
    return agreed


@composite(inplace="function")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square each element.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype. For bools, int64.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.square(gl.tensor([-1., 2., 3.]))
    tensor([1., 4., 9.])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"square(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}.")
    return _pow_number(input, 2, out)


def _float_power_in_place(input: Tensor, exponent: Any) -> Tensor:
    if input.array.dtype != np.float64:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.word} but the operation's result requires "
            "dtype Double. Call .double() first, or pow_."
        )
    return _pow_in_place(input, exponent)


@composite(inplace="method", twin=_float_power_in_place)
@takes_out
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """Raise `input` to the power of `exponent`, in float64.

    Parameters
    ----------
    {either}
    {exponent}
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, float64.

    Raises
    ------
    TypeError
        If neither operand is a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.float_power(gl.tensor([1., 2.], dtype=gl.float64), 0.5)
    tensor([1.0000, 1.4142], dtype=gradlab.float64)
    >>> gl.float_power(gl.tensor([1, 2]), 0.5)
    tensor([1.0000, 1.4142], dtype=gradlab.float64)
    """
    are_tensors = [isinstance(x, Tensor) for x in (input, exponent)]
    if not any(are_tensors) or not all(isinstance(x, OPERAND_TYPES) for x in (input, exponent)):
        raise invalid_combination(
            "float_power",
            (input, exponent),
            "(Tensor input, Tensor exponent)",
            "(Number self, Tensor exponent)",
            "(Tensor input, Number exponent)",
        )
    double = np.dtype(np.float64)
    return pow(*(cast(x, double) if isinstance(x, Tensor) else float(x) for x in (input, exponent)))
