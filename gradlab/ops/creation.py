"""Tensors of one value, of ones on a diagonal, and of numbers evenly spaced."""

from __future__ import annotations

import builtins
import warnings
from math import ceil, isfinite
from typing import Any

import numpy as np

from gradlab.backend.mersenne import multiply_add
from gradlab.core.dtypes import OF_NUMPY, default
from gradlab.core.errors import expected, invalid_combination
from gradlab.core.layout import arranged
from gradlab.core.silence import silence
from gradlab.core.tensor import Tensor
from gradlab.ops.creation_arguments import factory, factory_like, sizes

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "range",
    "zeros",
    "zeros_like",
]


@factory
def zeros(*shape: Any, size: Any = None, dtype: Any, xp: Any) -> Any:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`; of the default dtype if none is given."""
    return xp.zeros(sizes("zeros", shape, size), default.float if dtype is None else dtype)


@factory
def ones(*shape: Any, size: Any = None, dtype: Any, xp: Any) -> Any:
    """A tensor of ones."""
    return xp.ones(sizes("ones", shape, size), default.float if dtype is None else dtype)


@factory
def empty(*shape: Any, size: Any = None, memory_format: Any = None, dtype: Any, xp: Any) -> Any:
    """A tensor with unset values."""
    return arranged(xp.empty(sizes("empty", shape, size), default.float if dtype is None else dtype), memory_format)


@factory
def empty_strided(size: Any, stride: Any, *, dtype: Any, xp: Any) -> Any:
    """A tensor with unset values whose neighbours along each axis lie `stride` elements apart in memory."""
    shape, steps = sizes("empty_strided", (size,)), tuple(stride)
    if len(shape) != len(steps):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(steps)} and {len(shape)}.")
    if min((0, *shape, *steps)) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}. None may be negative."
        )
    wanted = default.float if dtype is None else dtype
    memory = xp.empty(1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if 0 not in shape else 0, wanted)
    return xp.lib.stride_tricks.as_strided(memory, shape, tuple(s * memory.itemsize for s in steps))


def value_of(name: str, value: Any, position: int) -> Any:
    """A number, or the one in a 0-d tensor."""
    if isinstance(value, Tensor) and not value.array.ndim and value.node is None:
        return value.array.item()
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, (builtins.bool, int, float)):
        raise expected(name, "fill_value", position, "Number", value)
    return value


def fits(value: Any, wanted: np.dtype) -> Any:
    """The number, if the dtype has it."""
    if wanted.kind == "f" and isinstance(value, float) and isfinite(value) and abs(value) > float(np.finfo(wanted).max):
        raise RuntimeError(
            f"value cannot be converted to type {'at::Half' if wanted.itemsize == 2 else 'float'} without "
            f"overflow. It is {value:g}."
        )
    if wanted.kind in "iu":
        wraps = wanted.kind == "u" and isinstance(value, int)  # torch lets -1 be 255, not -1.0
        if not isfinite(value) or not np.iinfo(wanted).min - 255 * wraps <= value <= np.iinfo(wanted).max:
            raise RuntimeError(f"value cannot be converted to type {OF_NUMPY[wanted].name}_t without overflow. It is {value}.")
        return int(value) % 256 if wanted.kind == "u" else int(value)
    return value


@factory
def full(size: Any, fill_value: Any, *, dtype: Any, xp: Any) -> Any:
    """A tensor of one value, whose type gives the dtype if none is given."""
    if not isinstance(size, (tuple, list)):
        raise expected("full", "size", 1, "tuple of ints", size)
    value = value_of("full", fill_value, 2)
    if dtype is None:
        dtype = np.dtype(bool) if isinstance(value, bool) else np.dtype(np.int64) if isinstance(value, int) else default.float
    return xp.full(sizes("full", (size,)), fits(value, dtype), dtype)


@factory_like
def zeros_like(input: Any, *, dtype: Any, xp: Any) -> Any:
    """Zeros of the shape, dtype and device of `input`."""
    return xp.zeros_like(input, dtype)


@factory_like
def ones_like(input: Any, *, dtype: Any, xp: Any) -> Any:
    """Ones of the shape, dtype and device of `input`."""
    return xp.ones_like(input, dtype)


@factory_like
def empty_like(input: Any, *, dtype: Any, xp: Any) -> Any:
    """Unset values of the shape, dtype and device of `input`."""
    return xp.empty_like(input, dtype)


@factory_like
def full_like(input: Any, fill_value: Any, *, dtype: Any, xp: Any) -> Any:
    """One value in the shape, dtype and device of `input`."""
    return xp.full_like(input, fits(value_of("full_like", fill_value, 2), dtype), dtype)


def number(name: str, argument: str, position: int, value: Any) -> Any:
    """A bound of a range: a number, or the one in a tensor of one element."""
    if isinstance(value, (Tensor, np.generic)):
        value = value.item()
    if not isinstance(value, (int, float)):
        raise expected(name, argument, position, "Number", value)
    return value


@factory
def arange(*bounds: Any, start: Any = None, end: Any = None, step: Any = None, dtype: Any, xp: Any) -> Any:
    """The numbers from start up to but not including end: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`;
    int64 if all are integers, else the default float."""
    if dtype is None and start is end is step is None and len(bounds) == 1 and type(bounds[0]) is int and bounds[0] >= 0:
        return np.arange(bounds[0], dtype=np.int64)  # nearly always
    named = {k: v for k, v in (("start", start), ("end", end), ("step", step)) if v is not None}
    order = ["end"] if len(bounds) + len(named) == 1 else [k for k in ("start", "end", "step") if k not in named]
    if len(bounds) > len(order) or (len(bounds) == 1 and "end" not in named and order != ["end"] and "step" in named):
        order = ["end"] if len(bounds) == 1 else order
    if len(bounds) > len(order) or "end" not in {*order[: len(bounds)], *named}:
        raise invalid_combination("arange", bounds, "(Number end)", "(Number start, Number end, Number step = 1)", **named)
    named |= zip(order, bounds, strict=False)
    values = {k: number("arange", k, 1 + at, v) for at, (k, v) in enumerate(named.items())}
    return counted(values.get("start", 0), values["end"], values.get("step", 1), dtype)


def counted(start: Any, end: Any, step: Any, dtype: Any) -> np.ndarray:
    """start, start + step, … up to end, which is left out. An integer dtype counts by the whole part of step."""
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
        given, start, end, step = step, int(start), int(end), int(step)
        if dtype == np.int64:
            if not step:
                raise ValueError(f"step must be nonzero. As an integer, {given} is 0.")
            count = -((start - end) // step)
    return (start + step * np.arange(count, dtype=np.int64 if dtype.kind in "iu" else np.float64)).astype(dtype)


@factory
def range(start: Any = None, end: Any = None, step: Any = 1, *, dtype: Any, xp: Any) -> Any:
    """The numbers from start to end, which is included. Deprecated: use arange."""
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warnings.warn(
        "gradlab.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use gradlab.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=3,
    )
    start, end, step = (number("range", "start", 1, x) for x in (start or 0, end, step))
    count = int((end - start) / step) + 1 if step else 0
    return counted(start, start + (count - 0.5) * step, step, default.float if dtype is None else dtype)


def bounds_of(name: str, start: Any, end: Any, steps: Any, wanted: np.dtype) -> tuple[Any, Any]:
    """The two bounds of a range of `steps` numbers, as numbers that the dtype has."""
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
        bounds = [fits(x, wanted) for x in bounds]
    return bounds[0], bounds[1]


@factory
def linspace(start: Any, end: Any, steps: Any = None, *, dtype: Any, xp: Any) -> Any:
    """`steps` numbers from `start` to `end`, both included, evenly spaced."""
    wanted = default.float if dtype is None else dtype
    bounds = bounds_of("linspace", start, end, steps, wanted)
    if steps < 2:
        return np.full(steps, bounds[0]).astype(wanted)
    typed = wanted.type if wanted.kind == "f" else np.float64  # counted from either end in this type, as torch does
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
def logspace(start: Any, end: Any, steps: Any = None, base: float = 10.0, *, dtype: Any, xp: Any) -> Any:
    """`base` to the power of `steps` numbers from `start` to `end`, evenly spaced."""
    wanted = default.float if dtype is None else dtype
    bounds = bounds_of("logspace", start, end, steps, wanted)
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


@factory
def eye(n: Any, m: Any = None, *, dtype: Any, xp: Any) -> Any:
    """Ones on the diagonal of an (n, m) matrix, zeros elsewhere."""
    for position, (name, count) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        if not isinstance(count, (int, np.integer)):
            raise expected("eye", name, position, "int", count)
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    return xp.eye(n, m, dtype=default.float if dtype is None else dtype)
