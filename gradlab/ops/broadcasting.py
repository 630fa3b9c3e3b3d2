"""Axes of length 1 repeated without copying, and the shapes that this leads to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.errors import Size, broadcast_mismatch
from gradlab.core.tensor import Tensor
from gradlab.ops.shapes import ints, is_int, several_tensors
from gradlab.rules import shapes as rules

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
]


def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Axes of length 1 repeated to the given sizes, without copying; -1 leaves an axis as it is."""
    if size is None:
        size = sizes[0] if len(sizes) == 1 and type(sizes[0]) is not int else sizes
    if type(size) is not tuple:
        size = ints("expand", "size", (size,))
    if -1 not in size:
        try:
            return rules.expand.record(self, shape=size, skip=0)
        except (TypeError, ValueError, AttributeError):
            size = ints("expand", "size", (size,))
    have = self.array.shape
    extra = len(size) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(gradlab.{self.dtype.legacy}{{{list(have)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    for at, n in enumerate(size):
        if n == -1 and at < extra:
            raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {at}")
    shape = tuple(n if n != -1 else have[at - extra] for at, n in enumerate(size))
    for at in range(len(size) - 1, extra - 1, -1):
        if have[at - extra] not in (1, shape[at]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[at]}) must match the existing size ({have[at - extra]}) "
                f"at non-singleton dimension {at}.  Target sizes: {list(size)}.  Tensor sizes: {list(have)}"
            )
    return rules.expand.record(self, shape=shape, skip=0)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the shape of `other`."""
    return expand(self, other.array.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expanded to `size`."""
    return expand(input, tuple(size))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to the shape that they broadcast to."""
    given = several_tensors("broadcast_tensors", tensors)
    shape: tuple[int, ...] = ()
    for x in given:
        shape = joint_shape(shape, x.array.shape)
    return tuple(x if x.array.shape == shape else expand(x, shape) for x in given)


def joint_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes broadcast to, or torch's RuntimeError."""
    if error := broadcast_mismatch(a, b):
        raise error
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    return tuple(m if n == 1 else n for n, m in zip(a, b, strict=True))


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that the shapes (or lengths of one axis) broadcast to."""
    whole: list[int] = []
    for at, shape in enumerate(shapes):
        sizes = [int(shape)] if is_int(shape) else [int(n) for n in shape]
        if any(n < 0 for n in sizes):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(sizes)}): ({min(sizes)})")
        whole = [1] * (len(sizes) - len(whole)) + whole
        for i in range(-1, -len(sizes) - 1, -1):
            if sizes[i] not in (1, whole[i]) and whole[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[i]} at {i}! Mismatching argument at "
                    f"index {at} had {tuple(sizes)}; but expected shape should be broadcastable to {whole}"
                )
            whole[i] = whole[i] if sizes[i] == 1 else sizes[i]
    return Size(whole)
