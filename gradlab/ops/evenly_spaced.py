"""Sequences of numbers that are evenly spaced, linearly or logarithmically."""

from __future__ import annotations

import warnings
from math import ceil, isfinite
from typing import Any

import numpy as np

from gradlab.backend.mersenne import multiply_add
from gradlab.core.dtypes import default
from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.numpy_warnings import silence
from gradlab.core.tensor import Tensor
from gradlab.ops.creation import require_representable
from gradlab.ops.creation_arguments import Device, factory

__all__ = ["arange", "linspace", "logspace", "range"]


def as_number(name: str, argument: str, position: int, value: Any) -> Any:
    """Return a bound of a range, a number or a tensor with one element, as a number."""
    if isinstance(value, (Tensor, np.generic)):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise wrong_type(name, argument, position, "Number", value)
    return value


@factory
def arange(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Return evenly spaced numbers from `start` up to `end`, which is excluded.

    Parameters
    ----------
    bounds : number
        ``end``, or ``start, end``, or ``start, end, step``.
    start : number, default: 0
        First number.
    end : number
        End of the interval.
    step : number, default: 1
        Distance between neighbours; negative to count down.
    {created_out}
    dtype : dtype, optional
        Dtype of the result. Default: int64 if all bounds are integers, otherwise the default dtype.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        One-dimensional tensor.

    Raises
    ------
    TypeError
        If `end` is not given, or a bound is not a number.
    RuntimeError
        If `step` is 0 or has the wrong sign, or a bound is not finite.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.arange(4)
    tensor([0, 1, 2, 3])
    >>> gl.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    if dtype is None and start is end is step is None and len(bounds) == 1 and type(bounds[0]) is int and bounds[0] >= 0:
        return np.arange(bounds[0], dtype=np.int64)  # the most frequent call
    named = {k: v for k, v in (("start", start), ("end", end), ("step", step)) if v is not None}
    order = ["end"] if len(bounds) + len(named) == 1 else [k for k in ("start", "end", "step") if k not in named]
    if len(bounds) > len(order) or (len(bounds) == 1 and "end" not in named and order != ["end"] and "step" in named):
        order = ["end"] if len(bounds) == 1 else order
    if len(bounds) > len(order) or "end" not in {*order[: len(bounds)], *named}:
        raise invalid_combination("arange", bounds, "(Number end)", "(Number start, Number end, Number step = 1)", **named)
    named |= zip(order, bounds, strict=False)
    values = {k: as_number("arange", k, 1 + at, v) for at, (k, v) in enumerate(named.items())}
    return arithmetic_sequence(values.get("start", 0), values["end"], values.get("step", 1), dtype)


def arithmetic_sequence(start: Any, end: Any, step: Any, dtype: Any) -> np.ndarray:
    """Return start, start + step, … up to end, which is excluded. Integer dtypes truncate start, end and step."""
    if dtype is None:
        dtype = np.dtype(np.int64) if all(isinstance(x, int) for x in (start, end, step)) else default.float
    if dtype.kind == "b":
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'. Use an integer dtype.")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) / step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign. From {start} to {end} by {step}.")
    count = ceil((end - start) / step)
    if dtype.kind in "iu":
        asked, start, end, step = step, int(start), int(end), int(step)
        if dtype == np.int64:
            if not step:
                raise ValueError(f"step must be nonzero. As an integer, {asked} is 0.")
            count = -((start - end) // step)
    return (start + step * np.arange(count, dtype=np.int64 if dtype.kind in "iu" else np.float64)).astype(dtype)


@factory
def range(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Return evenly spaced numbers from `start` to `end`, which is included. Deprecated: use `arange`.

    Parameters
    ----------
    start : number
        First number.
    end : number
        End of the interval.
    step : number, default: 1
        Distance between neighbours.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        One-dimensional tensor.

    Raises
    ------
    TypeError
        If `end` is not given, or a bound is not a number.
    RuntimeError
        If `step` is 0 or has the wrong sign.

    Examples
    --------
    >>> import gradlab as gl
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     gl.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warnings.warn(
        "gradlab.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use gradlab.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    start, end, step = (as_number("range", "start", 1, x) for x in (start or 0, end, step))
    count = int((end - start) / step) + 1 if step else 0
    return arithmetic_sequence(start, start + (count - 0.5) * step, step, default.float if dtype is None else dtype)


def parse_bounds(name: str, start: Any, end: Any, steps: Any, wanted: np.dtype) -> tuple[Any, Any]:
    """Return the two bounds of a range of `steps` numbers, as the dtype holds them."""
    bounds = []
    for argument, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x.array.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {argument} with {x.array.ndim} dimension(s)."
            )
        x = x.item() if isinstance(x, (Tensor, np.generic)) else x
        if not isinstance(x, (int, float)) or not isinstance(steps, (int, np.integer)):
            raise invalid_combination(
                name, (start, end) if steps is None else (start, end, steps), "(Number start, Number end, int steps)"
            )
        bounds.append(x)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if wanted.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'. Use another dtype.")
    if steps > 1:
        bounds = [require_representable(x, wanted) for x in bounds]
    return bounds[0], bounds[1]


@factory
def linspace(
    start: Any,
    end: Any,
    steps: Any = None,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included.

    Parameters
    ----------
    start : number or Tensor
        First number; a tensor must be 0-d.
    end : number or Tensor
        Last number; a tensor must be 0-d.
    steps : int
        Number of elements.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        One-dimensional tensor of `steps` numbers.

    Raises
    ------
    TypeError
        If a bound is not a number, or `steps` is not an integer.
    RuntimeError
        If `steps` is negative, or a bound is a tensor that is not 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    wanted = default.float if dtype is None else dtype
    bounds = parse_bounds("linspace", start, end, steps, wanted)
    if steps < 2:
        return np.full(steps, bounds[0]).astype(wanted)
    typed = wanted.type if wanted.kind == "f" else np.float64  # like torch, compute each half from its own end in this type
    first, last = map(typed, bounds)
    width = (last - first) / typed(steps - 1)
    forth, back = (np.arange(n).astype(typed) for n in (steps // 2, steps - steps // 2))
    halves = (
        (first + width * forth, last - width * back)
        if typed is np.float16
        else (multiply_add(forth, width, first), multiply_add(back, -width, last))
    )
    return np.concatenate((halves[0], halves[1][::-1])).astype(wanted)


@factory
def logspace(
    start: Any,
    end: Any,
    steps: Any = None,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Return powers of `base` with evenly spaced exponents from `start` to `end`.

    Parameters
    ----------
    start : number or Tensor
        First exponent; a tensor must be 0-d.
    end : number or Tensor
        Last exponent; a tensor must be 0-d.
    steps : int
        Number of elements.
    base : float, default: 10.0
        Base of the powers.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        One-dimensional tensor of `steps` numbers.

    Raises
    ------
    TypeError
        If a bound is not a number, or `steps` is not an integer.
    RuntimeError
        If `steps` is negative, or a bound is a tensor that is not 0-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logspace(0, 3, 4, base=2)
    tensor([1., 2., 4., 8.])
    """
    wanted = default.float if dtype is None else dtype
    bounds = parse_bounds("logspace", start, end, steps, wanted)
    if steps < 2:
        powers = np.full(steps, float(bounds[0]))
    else:
        first, last = map(wanted.type if wanted.kind == "f" else int, bounds)
        width = float(last - first) / (steps - 1)
        powers = np.concatenate(
            (float(first) + width * np.arange(steps // 2), (float(last) - width * np.arange(steps - steps // 2))[::-1])
        )
    with silence():
        return (float(base) ** powers).astype(wanted)
