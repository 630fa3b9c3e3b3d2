"""Activations: the functions of `gradlab.nn.functional` with their settings kept."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.described import Described, InPlace, unset
from gradlab.nn.modules.module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


# ------------------------------------------------------------------------------------------------------- without settings
class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.sigmoid(input)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanh(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanhshrink(input)


# --------------------------------------------------------------------------------------------------------- in place or not
class Rectifier(InPlace):
    """`inplace` is the only setting."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(Rectifier):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, self.inplace)


class SELU(Rectifier):
    """The scaled ELU of self-normalizing networks (Klambauer et al. 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.selu(input, self.inplace)


class SiLU(Rectifier):
    """x · sigmoid(x), also called swish."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, self.inplace)


class Mish(Rectifier):
    """x · tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.mish(input, self.inplace)


class Hardsigmoid(Rectifier):
    """relu6(x + 3) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(Rectifier):
    """x · relu6(x + 3) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(InPlace):
    """x, kept within min_val ... max_val."""

    shown = "min_val={min_val}, max_val={max_val}"

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn("keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn("keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    shown = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(InPlace):
    """x where positive, negative_slope · x elsewhere."""

    shown = "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(InPlace):
    """x where positive, alpha (exp(x) - 1) elsewhere."""

    shown = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha, self.inplace)


class CELU(InPlace):
    """x where positive, alpha (exp(x / alpha) - 1) elsewhere."""

    shown = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha, self.inplace)


class Threshold(InPlace):
    """x where above the threshold, `value` elsewhere."""

    shown = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, self.inplace)


class RReLU(InPlace):
    """Leaky ReLU with slopes drawn from lower ... upper while training, and with their mean in evaluation."""

    shown = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


# ----------------------------------------------------------------------------------------------------------- with settings
class GELU(Described):
    """x Φ(x), with Φ the normal distribution's; or its approximation by "tanh"."""

    shown = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, approximate=self.approximate)


class Softplus(Described):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""

    shown = "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)


class Shrink(Described):
    """The settings of the two shrinking functions."""

    shown = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(Shrink):
    """x, or 0 where |x| is at most lambd."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardshrink(input, self.lambd)


class Softshrink(Shrink):
    """x moved by lambd towards 0, and 0 where that would pass it."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softshrink(input, self.lambd)


class PReLU(Described):
    """Leaky ReLU whose slope is learned: one for all channels, or one for each (`num_parameters`)."""

    shown = "num_parameters={num_parameters}"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = unset(num_parameters, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)


class GLU(Described):
    """The first half along `dim`, times the sigmoid of the second."""

    shown = "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)


# ---------------------------------------------------------------------------------------------------------------- softmaxes
class Normalized(Described):
    """The settings of the softmaxes. Without `dim` torch's old choice is made, with its warning."""

    shown = "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(Normalized):
    """exp(x) divided by its sum along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, 5)


class Softmin(Normalized):
    """The softmax of -x."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, 5)


class LogSoftmax(Normalized):
    """The logarithm of the softmax, without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, 5)


class Softmax2d(Module):
    """The softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return functional.softmax(input, -3)
