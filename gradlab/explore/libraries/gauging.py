"""Norms and other statistics of many tensors at once, computed on their device and read together later.

The methods of a `Gauge` return a vector: an array of the library, with one number for each tensor. Nothing waits for a device
before `read`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isfinite, nan
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, read_floats
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.trace.slopes import FLAT

DEAD = frozenset(("ReLU", "ReLU6"))  # modules whose output is exactly 0 below 0


def flat_beyond(kind: str, module: Any) -> tuple[float, float] | None:
    """Return the limits at and beyond which an activation's output is saturated; None for one that never saturates."""
    if kind == "Hardtanh":
        return float(module.min_val), float(module.max_val)
    return (-1.0, 6.0) if kind == "ReLU6" else flat_ends(kind.lower())


@cache
def flat_ends(name: str) -> tuple[float, float] | None:
    """Return the values beyond which the slope of a sigmoidal primitive is less than `FLAT` of the steepest; None for others.

    For a sigmoid s these are the roots of s (1 − s) = 0.01 / 4, that is 0.0025 and 0.9975.
    """
    op = PRIMITIVES.get(name)
    if op is None or not op.properties.sigmoidal or op.meta:
        return None
    x = np.linspace(-8, 8, 1 << 16)
    out = op(x)
    slope = op.cotangent("x", xp=np, g=np.ones_like(x), x=x, out=out)
    steep = np.flatnonzero(slope >= FLAT * op.properties.steepest)
    return float(out[steep[0] - 1]), float(out[steep[-1] + 1])


class UnreadableError(TypeError):
    """Raised if the numbers of a tensor cannot be read, such as those of a DTensor, which is split among processes."""


class Gauge:
    """Statistics of gradlab's tensors. Subclasses support other libraries."""

    def __init__(self, waits: bool) -> None:
        self.waits = waits  # whether reading a number waits for a device

    def norms(self, tensors: Sequence[Any]) -> Any:
        """Return the norm of each tensor in its own precision; non-finite if an element is, or if the squares overflow."""
        arrays = [self.array(tensor) for tensor in tensors]
        if not self.waits:
            return np.sqrt([_square(array) for array in arrays])
        xp = namespace_of[type(arrays[0])]
        return xp.sqrt(xp.stack([xp.vdot(a, a).real.astype(np.float64) for a in (array.reshape(-1) for array in arrays)]))

    def are_finite(self, tensors: Sequence[Any]) -> bool:
        """Return whether all elements of tensors on the host are finite. Items may be None."""
        for tensor in tensors:
            if tensor is not None:
                array = self.array(tensor).reshape(-1)
                if not isfinite(abs(np.vdot(array, array))) and not np.isfinite(array).all():  # a square may overflow
                    return False
        return True

    def copies(self, tensors: Sequence[Any], old: Sequence[Any] | None) -> list[Any]:
        """Return copies of the tensors' values. They overwrite the copies `old`, if given."""
        arrays = [self.array(tensor) for tensor in tensors]
        if old is None:
            return [array.copy() for array in arrays]
        for copy, array in zip(old, arrays, strict=True):
            copy[...] = array
        return list(old)

    def update_norms(self, tensors: Sequence[Any], copies: Sequence[Any]) -> Any:
        """Return ‖tensor − copy‖ for each tensor. The copies are overwritten."""
        arrays = [self.array(tensor) for tensor in tensors]
        for copy, array in zip(copies, arrays, strict=True):
            np.subtract(array, copy, out=copy) if not self.waits else copy.__isub__(array)
        if not self.waits:
            return np.sqrt([_square(copy) for copy in copies])
        xp = namespace_of[type(arrays[0])]
        return xp.sqrt(xp.stack([xp.vdot(a, a).real.astype(np.float64) for a in (copy.reshape(-1) for copy in copies)]))

    def as_vector(self, tensor: Any) -> Any:
        """Return a tensor of one element as a vector, detached from its graph."""
        array = self.array(tensor).reshape(-1)[:1]
        return array.astype(np.float64)

    def value(self, tensor: Any) -> float:
        """Return the value of a tensor of one element on the host, or its modulus if it is complex; NaN for other sizes."""
        array = self.array(tensor)
        number = array.item() if array.size == 1 else nan
        return abs(number) if isinstance(number, complex) else float(number)

    def value_and_version(self, tensor: Any) -> tuple[float, int] | None:
        """Return the value of a tensor of one element, and how often it was written to, if both can be read at once and hidden
        from the program. Otherwise return None; `value` may still read the value."""
        return None

    def version(self, tensor: Any) -> int | None:
        """Return how often a tensor was written to; None if the program would see that this is read."""
        return None

    def is_nonfinite(self, tensor: Any) -> bool:
        """Return whether the value of a tensor of one element on the host is NaN or infinite."""
        return not isfinite(self.value(tensor))

    def unit_shares(self, tensor: Any, kind: str, flat: tuple[float, float] | None) -> Any:
        """Return the share of dead units (columns, or channels of a convolution) and of saturated elements in an activation's
        output; −1 if it cannot have any."""
        array = self.array(tensor)
        xp = np if not self.waits else namespace_of[type(array)]
        array = array.reshape(1) if array.ndim == 0 else array
        axis = 1 if array.ndim >= 4 else max(array.ndim - 1, 0)
        others = tuple(k for k in range(array.ndim) if k != axis)
        dead = (array == 0).all(others).mean() if kind in DEAD else xp.asarray(-1.0)
        full = ((array <= flat[0]) | (array >= flat[1])).mean() if flat is not None else xp.asarray(-1.0)
        return xp.stack([xp.asarray(dead, np.float64), xp.asarray(full, np.float64)])

    def read(self, vectors: Sequence[Any]) -> list[np.ndarray]:
        """Return vectors as float64 arrays on the host, with one transfer."""
        return read_floats(vectors)

    def array(self, tensor: Any) -> Any:
        """Return the array of a tensor."""
        return tensor.array


def _square(array: np.ndarray) -> float:
    flat = array.reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    return float(np.vdot(flat, flat).real)
