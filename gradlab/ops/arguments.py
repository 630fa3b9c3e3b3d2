"""Arguments that many functions take alike: an axis or several, another operand."""

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


def over_dims(function: F) -> F:
    """Give a function of a tensor the keywords `out`, and `axis` and `keepdims` for `dim` and `keepdim`, which torch takes in
    NumPy's spelling too. A first argument that is no tensor is torch's TypeError."""
    with_out = takes_out(function)

    @functools.wraps(function)
    def spelled(*args: Any, **options: Any) -> Any:
        try:
            if not options:
                return function(*args)
            for theirs, ours in NUMPY_NAMES:
                if theirs in options:
                    options[ours] = options.pop(theirs)
            return with_out(*args, **options)
        except AttributeError:
            first = args[0] if args else options.get("input")
            if isinstance(first, Tensor):
                raise
            raise not_a_tensor(function.__name__, first) from None

    return spelled  # type: ignore[return-value]


def not_a_tensor(name: str, x: Any, argument: str = "input", position: int = 1) -> TypeError:
    """Torch's error for an argument that should be a tensor."""
    return TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type_name(x)}. "
        + advice("Make it a tensor first: gradlab.tensor(…).")
    )


def check_tensors(name: str, **arguments: Any) -> None:
    """Raise that error for the first of the arguments, in their order, that is none."""
    for position, (argument, x) in enumerate(arguments.items(), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor(name, x, argument, position)


class Called:
    """What promotion needs to know of a function of tensors that is no primitive: how errors name it."""

    kind, explain, promote = "elementwise", None, "same"

    def __init__(self, name: str) -> None:
        self.name, self.public = name, ["input", "other"]


def number(value: Any, dtype: np.dtype) -> Any:
    """A number as the dtype holds it: of integers the whole part, and unsigned ones may count from the end, as in torch."""
    value = value.item() if isinstance(value, np.generic) else value
    if dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if not isfinite(value) or not (least or -most) <= value <= most:
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[dtype.name]} without overflow")
        return int(value) if least or value >= 0 else int(value) % (most + 1)
    return bool(value) if dtype.kind == "b" else value


def fits_in_memory(*shape: int) -> None:
    """Torch's error for a shape whose elements cannot be counted. (NumPy's `bincount`, `repeat` and `arange` do not look: they
    write past what they allocated, or make nothing.)"""
    if prod(shape) >= 2**60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


C_NAMES = {"int64": "int64_t", "int32": "int", "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t"}


def one_dim(dim: int, ndim: int) -> int:
    """`dim` as a negative axis, or torch's IndexError."""
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    if not isinstance(dim, (int, np.integer)):
        raise TypeError(f"dim must be an integer, got {dim!r}.")
    if not low <= dim <= high:
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")
    return int(dim) - ndim if dim >= 0 else int(dim)


def many_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """`dim` (None, an integer or several) as negative axes, sorted."""
    if type(dim) is int and ndim:
        return (one_dim(dim, ndim),)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(-ndim, 0))
    dims = [one_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise RuntimeError(f"dim {d + ndim} appears multiple times in the list of dims")
    return tuple(sorted(dims)) if ndim else ()


def checked(name: str, result: Any, other: Any) -> Tensor:
    """The result of an operator that may have returned NotImplemented: a function raises where `+` would ask the other."""
    if result is NotImplemented:
        raise TypeError(f"{name}(): argument 'other' (position 2) must be Tensor, not {type_name(other)}.")
    return result
