"""Elements kept within bounds, and what depends on their sign alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.errors import invalid_combination, not_implemented
from gradlab.core.operator import composed
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.arithmetic import NUMBERS, fits
from gradlab.rules import elementwise as el

__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "heaviside",
    "positive",
]


@composed(aliases="clip", inplace="function")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """input with what is below `min` raised to it and what is above `max` lowered to it.

    Parameters
    ----------
    {input}
    min : Tensor or number, optional
        The lower bound.
    max : Tensor or number, optional
        The upper bound, of the same kind. Where `min` exceeds it, it is the result.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If `input` is no tensor, or one bound is a tensor and the other a number.
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
        if (min is None or isinstance(min, NUMBERS)) and (max is None or isinstance(max, NUMBERS)):
            return _clamped(el.clamp, input, min, max, out)
        if (min is None or isinstance(min, Tensor)) and (max is None or isinstance(max, Tensor)):
            if min is None:
                return el.clamp_most.record(input, max, out=out)
            if max is None:
                return el.clamp_least.record(input, min, out=out)
            return el.clamp_tensors.record(input, min, max, out=out)
    raise invalid_combination(
        "clamp",
        (input,),
        "(Tensor input, Tensor min = None, Tensor max = None)",
        "(Tensor input, Number min = None, Number max = None)",
        **{k: v for k, v in (("max", max), ("min", min)) if v is not None},
    )


@composed(inplace="function")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """input with what is below `min` raised to it.

    Parameters
    ----------
    {input}
    min : Tensor or number
        The lower bound.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If `input` is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.clamp_min(gl.tensor([-1., 0.5, 2.]), 0)
    tensor([0.0000, 0.5000, 2.0000])
    """
    if isinstance(input, Tensor):
        if isinstance(min, Tensor):
            return el.at_least.record(input, min, out=out)
        if isinstance(min, NUMBERS):
            return _clamped(el.clamp_min, input, min, None, out)
    raise invalid_combination("clamp_min", (input, min), "(Tensor input, Tensor min)", "(Tensor input, Number min)")


@composed(inplace="function")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """input with what is above `max` lowered to it.

    Parameters
    ----------
    {input}
    max : Tensor or number
        The upper bound.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If `input` is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.clamp_max(gl.tensor([-1., 0.5, 2.]), 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if isinstance(input, Tensor):
        if isinstance(max, Tensor):
            return el.at_most.record(input, max, out=out)
        if isinstance(max, NUMBERS):
            return _clamped(el.clamp_max, input, None, max, out)
    raise invalid_combination("clamp_max", (input, max), "(Tensor input, Tensor max)", "(Tensor input, Number max)")


def _clamped(op: Any, input: Tensor, min: Any, max: Any, out: Tensor | None) -> Tensor:
    if input.array.dtype.kind != "f":
        numbers = [x.item() if isinstance(x, np.generic) else x for x in (min, max)]
        if input.array.dtype.kind == "b" and all(x is None or isinstance(x, bool) for x in numbers):
            raise not_implemented(f"clamp{'_min' * (max is None)}{'_max' * (min is None)}_scalar", input.dtype)
        input = agree(el.add, input, *(x for x in numbers if x is not None))[0]
        for x in numbers:
            if x is not None:
                fits(x, input)
    return op.record(input, min=min, max=max, out=out)


@composed(inplace="method")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 where the element is negative, 1 where it is positive, `values` where it is 0. It has no derivative.

    Parameters
    ----------
    {input}
    values : Tensor
        What stands at 0, of the dtype of `input`.
    {out}

    Returns
    -------
    Tensor
        The shape that the operands broadcast to, of their common dtype.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, or a derivative is asked for.

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


@composed()
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

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
        If it holds bools.

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
