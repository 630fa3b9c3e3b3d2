"""Arguments that many functions take alike: an axis or several, another operand."""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor


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
        raise TypeError(f"{name}(): argument 'other' must be Tensor, not {type(other).__name__}.")
    return result
