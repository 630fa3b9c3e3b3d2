"""Layers that multiply by a matrix: `Linear` and `Bilinear`."""

from __future__ import annotations

import math
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.described import unset
from gradlab.nn.modules.module import Module

__all__ = ["Bilinear", "Linear"]


class Linear(Module):
    """y = x Wᵀ + b over the last axis: (..., in_features) to (..., out_features).

    `weight` has shape (out_features, in_features) and `bias` (out_features,). Both start uniform within ±1/√in_features.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = unset(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", unset(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """y_k = x₁ᵀ W_k x₂ + b_k over the last axes of two inputs.

    `weight` has shape (out_features, in1_features, in2_features). All start uniform within ±1/√in1_features.
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = unset(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", unset(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
