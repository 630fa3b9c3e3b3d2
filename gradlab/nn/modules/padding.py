"""Layers that pad the last one, two or three axes: with a constant, by reflection, by the edge's element, around the circle."""

from __future__ import annotations

from typing import Any, ClassVar

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.described import Described, sizes

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class Padding(Described):
    """`padding`: how much on each side, or before and after each axis, the last axis first."""

    n: ClassVar[int]
    mode: ClassVar[str]
    shown = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = sizes(padding, 2 * self.n)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, self.mode)


class ConstantPad(Padding):
    """A constant all around."""

    mode = "constant"
    shown = "padding={padding}, value={value}"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(ConstantPad):
    """A constant before and after the last axis."""

    n = 1


class ConstantPad2d(ConstantPad):
    """A constant around the last two axes."""

    n = 2


class ConstantPad3d(ConstantPad):
    """A constant around the last three axes."""

    n = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros before and after the last axis."""

    shown = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two axes."""

    shown = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three axes."""

    shown = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ReflectionPad1d(Padding):
    """(N, C, L) continued by its reflection, the edge not repeated."""

    n, mode = 1, "reflect"


class ReflectionPad2d(Padding):
    """(N, C, H, W) continued by its reflection, the edges not repeated."""

    n, mode = 2, "reflect"


class ReflectionPad3d(Padding):
    """(N, C, D, H, W) continued by its reflection, the faces not repeated."""

    n, mode = 3, "reflect"


class ReplicationPad1d(Padding):
    """(N, C, L) continued by its first and last elements."""

    n, mode = 1, "replicate"


class ReplicationPad2d(Padding):
    """(N, C, H, W) continued by its edges."""

    n, mode = 2, "replicate"


class ReplicationPad3d(Padding):
    """(N, C, D, H, W) continued by its faces."""

    n, mode = 3, "replicate"


class Circular(Padding):
    """The input continued from its other end."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        n, dims = self.n, input.dim()
        if dims not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {dims}D input)")
        return super().forward(input)


class CircularPad1d(Circular):
    """(N, C, L) continued from its other end."""

    n = 1


class CircularPad2d(Circular):
    """(N, C, H, W) continued from its other ends."""

    n = 2


class CircularPad3d(Circular):
    """(N, C, D, H, W) continued from its other ends."""

    n = 3
