"""Layers that multiply by a matrix: `Linear` and `Bilinear`."""

from __future__ import annotations

import math
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.bases import ReprModule, empty_parameter

__all__ = ["Bilinear", "Linear"]


class Linear(ReprModule):
    """The affine map y = x Wᵀ + b of the last dimension.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the inputs and of the output.
    bias : bool, optional
        Add b (default: True).
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (out_features, in_features)
        W, initialised uniformly within ±1/√in_features.
    bias : Parameter of shape (out_features,), or None
        b, initialised likewise.

    Notes
    -----
    Input: (*, in_features). Output: (*, out_features).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.Linear(3, 2)
    >>> layer(gradlab.ones(5, 3)).sum().backward()
    >>> layer.weight.grad
    tensor([[5., 5., 5.],
            [5., 5., 5.]])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty_parameter(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weight, then the bias.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.Linear(2, 3)
        >>> before = layer.weight.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight == before).any())
        False
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(ReprModule):
    """The bilinear map y_k = x₁ᵀ W_k x₂ + b_k of the last dimensions of two inputs.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Sizes of the inputs and of the output.
    bias : bool, optional
        Add b (default: True).
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (out_features, in1_features, in2_features)
        W, initialised uniformly within ±1/√in1_features.
    bias : Parameter of shape (out_features,), or None
        b, initialised likewise.

    Raises
    ------
    ValueError
        If `in1_features` is not positive.

    Notes
    -----
    Inputs: (*, in1_features) and (*, in2_features). Output: (*, out_features).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Bilinear(2, 3, 4)(gradlab.ones(5, 2), gradlab.ones(5, 3)).shape == (5, 4)
    True
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = empty_parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weight, then the bias.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.Bilinear(2, 3, 4)
        >>> before = layer.weight.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight == before).any())
        False
        """
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
