"""Argument checks and conversions shared by many functions: dimensions, numbers, a second operand."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import isfinite, prod
from typing import Any, TypeVar

import numpy as np

from gradlab.core.errors import advice, type_name
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
NUMPY_NAMES = ("axis", "dim"), ("keepdims", "keepdim")


def takes_axis(function: F) -> F:
    """Make a function accept `out`, and NumPy's `axis` and `keepdims` for `dim` and `keepdim`, as in PyTorch.

    The function raises PyTorch's TypeError if the first argument is not a Tensor.
    """
    with_out = takes_out(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        try:
            if not options:
                return function(*args)
            for numpy_name, name in NUMPY_NAMES:
                if numpy_name in options:
                    options[name] = options.pop(numpy_name)
            return with_out(*args, **options)
        except AttributeError:
            first = args[0] if args else options.get("input")
            if isinstance(first, Tensor):
                raise
            raise not_a_tensor(function.__name__, first) from None

    return wrapper  # type: ignore[return-value]


def not_a_tensor(name: str, x: Any, argument: str = "input", position: int = 1) -> TypeError:
    """Return PyTorch's error for an argument that is not a Tensor."""
    return TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(x)}. "
        + advice("Make it a tensor first: gradlab.tensor(…).")
    )


def check_tensors(name: str, **arguments: Any) -> None:
    """Raise PyTorch's error for the first argument that is not a Tensor."""
    for position, (argument, x) in enumerate(arguments.items(), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, argument, position)


class FunctionInfo:
    """Name and promotion rule of a function that is not a primitive, with the attributes that `core.promotion` reads."""

    kind, explain, promote = "elementwise", None, "same"

    def __init__(self, name: str) -> None:
        self.name, self.public = name, ["input", "other"]


def convert_number(value: Any, dtype: np.dtype) -> Any:
    """Convert a number to a dtype. Integer dtypes truncate, and negative numbers wrap around in unsigned ones, as in PyTorch."""
    value = value.item() if isinstance(value, np.generic) else value
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if not isfinite(value) or not (least or -most) <= value <= most:
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[dtype.name]} without overflow")
        return int(value) if least or value >= 0 else int(value) % (most + 1)
    return bool(value) if dtype.kind == "b" else value


def check_storage_size(*shape: int) -> None:
    """Raise PyTorch's error if a shape has 2**60 elements or more.

    NumPy's `bincount`, `repeat` and `arange` do not check: they write past the memory they allocated, or return an empty array.
    """
    if prod(shape) >= 2**60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


C_NAMES = {"int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t"}


def negative_dim(dim: int, ndim: int) -> int:
    """Return `dim` as a negative axis, or raise PyTorch's IndexError."""
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    if not isinstance(dim, (int, np.integer)):
        raise TypeError(f"dim must be an integer, got {dim!r}.")
    if not low <= dim <= high:
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")
    return int(dim) - ndim if dim >= 0 else int(dim)


def negative_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return `dim` (None, an integer or several) as sorted negative axes."""
    if type(dim) is int and ndim:
        return (negative_dim(dim, ndim),)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(-ndim, 0))
    dims = [negative_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise RuntimeError(f"dim {d + ndim} appears multiple times in the list of dims")
    return tuple(sorted(dims)) if ndim else ()


def require_implemented(name: str, result: Any, other: Any) -> Tensor:
    """Return the result of an operator, or raise PyTorch's TypeError if it is NotImplemented."""
    if result is NotImplemented:
        raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor, not {type_name(other)}.")
    return result
