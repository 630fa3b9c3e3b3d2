"""Clamping, and the functions `heaviside` and `positive`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.errors import invalid_combination, not_implemented
from gradlab.core.operator import composite
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.arithmetic import NUMBER_TYPES, check_integer_fits
from gradlab.rules import elementwise as el

__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "heaviside",
    "positive",
]


@composite(aliases="clip", inplace="function")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Clamp all elements to the range [`min`, `max`].

    Parameters
    ----------
    {input}
    min : Tensor or number, optional
        Lower bound.
    max : Tensor or number, optional
        Upper bound, a Tensor or a number like `min`. If `min` is greater than `max`, the result is `max`.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If `input` is not a Tensor, or one bound is a Tensor and the other a number.
    RuntimeError
        If neither bound is given.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.clamp(gl.tensor([-1., 0.5, 2.]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("gradlab.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(input, Tensor):
        if (min is None or isinstance(min, NUMBER_TYPES)) and (max is None or isinstance(max, NUMBER_TYPES)):
            return _clamp(el.clamp, input, min, max, out)
        if (min is None or isinstance(min, Tensor)) and (max is None or isinstance(max, Tensor)):
            if min is None:
                return el.clamp_max_only.record(input, max, out=out)
            if max is None:
                return el.clamp_min_only.record(input, min, out=out)
            return el.clamp_tensors.record(input, min, max, out=out)
    raise invalid_combination(
        "clamp",
        (input,),
        "(Tensor input, Tensor min = None, Tensor max = None)",
        "(Tensor input, Number min = None, Number max = None)",
        **{k: v for k, v in (("max", max), ("min", min)) if v is not None},
    )


@composite(inplace="function")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Clamp all elements from below: elements less than `min` become `min`.

    Parameters
    ----------
    {input}
    min : Tensor or number
        Lower bound.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.clamp_min(gl.tensor([-1., 0.5, 2.]), 0)
    tensor([0.0000, 0.5000, 2.0000])
    """
    if isinstance(input, Tensor):
        if isinstance(min, Tensor):
            return el.clamp_min_tensor.record(input, min, out=out)
        if isinstance(min, NUMBER_TYPES):
            return _clamp(el.clamp_min, input, min, None, out)
    raise invalid_combination("clamp_min", (input, min), "(Tensor input, Tensor min)", "(Tensor input, Number min)")


@composite(inplace="function")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Clamp all elements from above: elements greater than `max` become `max`.

    Parameters
    ----------
    {input}
    max : Tensor or number
        Upper bound.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.clamp_max(gl.tensor([-1., 0.5, 2.]), 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if isinstance(input, Tensor):
        if isinstance(max, Tensor):
            return el.clamp_max_tensor.record(input, max, out=out)
        if isinstance(max, NUMBER_TYPES):
            return _clamp(el.clamp_max, input, None, max, out)
    raise invalid_combination("clamp_max", (input, max), "(Tensor input, Tensor max)", "(Tensor input, Number max)")


def _clamp(op: Any, input: Tensor, min: Any, max: Any, out: Tensor | None) -> Tensor:
    if input.array.dtype.kind != "f":
        numbers = [x.item() if isinstance(x, np.generic) else x for x in (min, max)]
        if input.array.dtype.kind == "b" and all(x is None or isinstance(x, bool) for x in numbers):
            raise not_implemented(f"clamp{'_min' * (max is None)}{'_max' * (min is None)}_scalar", input.dtype)
        input = agree(el.add, input, *(x for x in numbers if x is not None))[0]
        for x in numbers:
            if x is not None:
                check_integer_fits(x, input)
    return op.record(input, min=min, max=max, out=out)


@composite(inplace="method")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the Heaviside step function: 0 for negative elements, 1 for positive ones, `values` at 0.

    It is not differentiable.

    Parameters
    ----------
    {input}
    values : Tensor
        Values for elements equal to 0, with the dtype of `input`.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape and common dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, or a gradient is requested.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.heaviside(gl.tensor([-1., 0., 2.]), gl.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    for i, (name, x) in enumerate((("input", input), ("values", values))):
        if not isinstance(x, Tensor):
            raise TypeError(f"heaviside(): argument '{name}' (position {i + 1}) must be Tensor, not {type(x).__name__}.")
    if input.array.dtype != values.array.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes. Convert one of them: values.to(input.dtype)."
        )
    return el.heaviside.record(input, values, out=out)


@composite()
def positive(input: Tensor) -> Tensor:
    """Return `input` unchanged: the unary operator `+`.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        `input`.

    Raises
    ------
    RuntimeError
        If `input` is boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.positive(gl.tensor([1., -2.]))
    tensor([ 1., -2.])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("positive", input)
    if input.array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported. Call .int() first.")
    return input


clip = clamp
