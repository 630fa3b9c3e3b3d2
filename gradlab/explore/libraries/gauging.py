"""The few numbers a training monitor takes of many tensors at once, computed where they lie and read together later.

What a `Gauge` returns, a vector, is an array of the library's own that holds a number for each tensor. Nothing waits for a
device before `read`.
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
    """At and below, at and above what an activation's output is flat besides being dead; None of one that never is."""
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
    """The numbers of a tensor cannot be read, as those of a DTensor, of which each process has a part."""


class Gauge:
    """Of gradlab's tensors, and by subclasses of others'."""

    def __init__(self, waits: bool) -> None:
        self.waits = waits  # whether reading a number waits for a device

    def norms(self, tensors: Sequence[Any]) -> Any:
        """The Euclidean norm of each, in their own precision; not finite where an element is not, or the squares overflow."""
        arrays = [self.array(tensor) for tensor in tensors]
        if not self.waits:
            return np.sqrt([_square(array) for array in arrays])
        xp = namespace_of[type(arrays[0])]
        return xp.sqrt(xp.stack([xp.vdot(a, a).real.astype(np.float64) for a in (array.reshape(-1) for array in arrays)]))

    def are_finite(self, tensors: Sequence[Any]) -> bool:
        """Whether every element of some tensors on the host is finite; there may be None among them."""
        for tensor in tensors:
            if tensor is not None:
                array = self.array(tensor).reshape(-1)
                if not isfinite(abs(np.vdot(array, array))) and not np.isfinite(array).all():  # a square may overflow
                    return False
        return True

    def copies(self, tensors: Sequence[Any], old: Sequence[Any] | None) -> list[Any]:
        """Their values, copied, into what `old` copies were if there are any."""
        arrays = [self.array(tensor) for tensor in tensors]
        if old is None:
            return [array.copy() for array in arrays]
        for kept, array in zip(old, arrays, strict=True):
            kept[...] = array
        return list(old)

    def moved(self, tensors: Sequence[Any], copies: Sequence[Any]) -> Any:
        """‖now − copy‖ of each. The copies are used up."""
        arrays = [self.array(tensor) for tensor in tensors]
        for kept, array in zip(copies, arrays, strict=True):
            np.subtract(array, kept, out=kept) if not self.waits else kept.__isub__(array)
        if not self.waits:
            return np.sqrt([_square(kept) for kept in copies])
        xp = namespace_of[type(arrays[0])]
        return xp.sqrt(xp.stack([xp.vdot(a, a).real.astype(np.float64) for a in (kept.reshape(-1) for kept in copies)]))

    def number(self, tensor: Any) -> Any:
        """A tensor of one element as a vector, cut from its graph."""
        array = self.array(tensor).reshape(-1)[:1]
        return array.astype(np.float64)

    def value(self, tensor: Any) -> float:
        """The number of a tensor of one element on the host, the modulus of a complex one; NaN of one with several, or none."""
        array = self.array(tensor)
        number = array.item() if array.size == 1 else nan
        return abs(number) if isinstance(number, complex) else float(number)

    def glance(self, tensor: Any) -> tuple[float, int] | None:
        """The number of a tensor of one element, and how often it was written to, if both can be read at once and unseen by the
        program. None of a tensor of which they cannot; its number may be read by `value`."""
        return None

    def version(self, tensor: Any) -> int | None:
        """How often a tensor was written to; None if that cannot be read without being seen."""
        return None

    def is_odd(self, tensor: Any) -> bool:
        """Whether the number of a tensor of one element on the host is NaN or infinite."""
        return not isfinite(self.value(tensor))

    def units(self, tensor: Any, kind: str, flat: tuple[float, float] | None) -> Any:
        """The share of dead units (columns of a layer, channels of a convolution) and of saturated elements of an activation's
        output; −1 for what it cannot have."""
        array = self.array(tensor)
        xp = np if not self.waits else namespace_of[type(array)]
        array = array.reshape(1) if array.ndim == 0 else array
        axis = 1 if array.ndim >= 4 else max(array.ndim - 1, 0)
        others = tuple(k for k in range(array.ndim) if k != axis)
        dead = (array == 0).all(others).mean() if kind in DEAD else xp.asarray(-1.0)
        full = ((array <= flat[0]) | (array >= flat[1])).mean() if flat is not None else xp.asarray(-1.0)
        return xp.stack([xp.asarray(dead, np.float64), xp.asarray(full, np.float64)])

    def read(self, vectors: Sequence[Any]) -> list[np.ndarray]:
        """Vectors as float64 arrays on the host: the host waits once."""
        return read_floats(vectors)

    def array(self, tensor: Any) -> Any:
        """Where the numbers of a tensor lie."""
        return tensor.array


def _square(array: np.ndarray) -> float:
    flat = array.reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.astype(np.float32)
    return float(np.vdot(flat, flat).real)
