"""Convolutions and transposed convolutions over one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.bases import ReprModule, empty_parameter, sizes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(ReprModule):
    """Base of all convolutions: arguments, parameters and their initialisation.

    `weight` and `bias` are initialised uniformly within ±1/√fan_in. The fan-in is the number of terms of an output element.
    """

    n: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]
    transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        n = self.n
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.dilation = sizes(kernel_size, n), sizes(stride, n), sizes(dilation, n)
        self.padding = padding if isinstance(padding, str) else sizes(padding, n)
        self.output_padding, self.groups, self.padding_mode = sizes(output_padding, n), groups, padding_mode
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{padding_mode}'")
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = empty_parameter(*channels, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", empty_parameter(out_channels, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weight, then the bias.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.Conv1d(2, 3, 3)
        >>> before = layer.weight.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight == before).any())
        False
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        if self.padding_mode == "zeros":
            return type(self).function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        padded = functional.pad(input, self.edges(), self.padding_mode)
        return type(self).function(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)

    def edges(self) -> list[int]:
        """Return the padding before and after each axis, the last axis first, for `functional.pad`."""
        if self.padding == "same":
            whole = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            both = [(total // 2, total - total // 2) for total in whole]
        else:
            both = [(p, p) for p in ((0,) * self.n if self.padding == "valid" else self.padding)]
        return [p for pair in reversed(both) for p in pair]

    def extra_repr(self) -> str:
        n, shown = (
            self.n,
            [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}", f"stride={self.stride}"],
        )
        usual = {"padding": (0,) * n, "dilation": (1,) * n, "output_padding": (0,) * n, "groups": 1}
        shown += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        if self.bias is None:
            shown.append("bias=False")
        if self.padding_mode != "zeros":
            shown.append(f"padding_mode={self.padding_mode}")
        return ", ".join(shown)


class DirectConvolution(Convolution):
    """Base of the convolutions that are not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype
        )


class Conv1d(DirectConvolution):
    """The convolution (cross-correlation) of sequences with learned kernels.

    Parameters
    ----------
    {convolution}
    {same_padding}
    {dilation}
    {groups}
    {padding_mode}
    {device}
    {dtype}

    Attributes
    ----------
    {kernel}

    Raises
    ------
    {convolution_refused}

    Notes
    -----
    fan_in is in_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, L), or without N. Output: (N, out_channels, L'), where
    {convolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Conv1d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 16)).shape == (1, 8, 14)
    True
    """

    n, function = 1, staticmethod(functional.conv1d)


class Conv2d(DirectConvolution):
    """The convolution (cross-correlation) of images with learned kernels.

    Parameters
    ----------
    {convolution}
    {same_padding}
    {dilation}
    {groups}
    {padding_mode}
    {device}
    {dtype}

    Attributes
    ----------
    {kernel}

    Raises
    ------
    {convolution_refused}

    Notes
    -----
    fan_in is in_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, H, W), or without N. Output: (N, out_channels, H', W'), where
    {convolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Conv2d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 16, 16)).shape == (1, 8, 14, 14)
    True
    """

    n, function = 2, staticmethod(functional.conv2d)


class Conv3d(DirectConvolution):
    """The convolution (cross-correlation) of volumes with learned kernels.

    Parameters
    ----------
    {convolution}
    {same_padding}
    {dilation}
    {groups}
    {padding_mode}
    {device}
    {dtype}

    Attributes
    ----------
    {kernel}

    Raises
    ------
    {convolution_refused}

    Notes
    -----
    fan_in is in_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, D, H, W), or without N. Output: (N, out_channels, D', H', W'), where
    {convolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Conv3d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 8, 8, 8)).shape == (1, 8, 6, 6, 6)
    True
    """

    n, function = 3, staticmethod(functional.conv3d)


class TransposedConvolution(Convolution):
    """The transpose of a convolution with the same arguments. `weight`: (in_channels, out_channels / groups, *kernel)."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        added = self.output_padding if output_size is None else self.missing_output_padding(input, list(output_size))
        return type(self).function(input, self.weight, self.bias, self.stride, self.padding, added, self.groups, self.dilation)

    def missing_output_padding(self, input: Tensor, output_size: list[int]) -> list[int]:
        """Return the output padding for an output of this size."""
        n, dims = self.n, input.dim()
        lead = 2 if dims == n + 2 else 1
        if len(output_size) == lead + n:
            output_size = output_size[lead:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {dims}D input, output_size must have {n} or {lead + n} elements (got {len(output_size)})"
            )
        least = [
            (length - 1) * s - 2 * p + d * (k - 1) + 1
            for length, s, p, d, k in zip(
                input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [low + s - 1 for low, s in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                f"input of {input.shape[2:]})"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]


class ConvTranspose1d(TransposedConvolution):
    """The transpose of `Conv1d`: it maps the gradient of its output to the gradient of its input.

    Parameters
    ----------
    {convolution}
    {transposed_padding}
    {groups}
    {dilation}
    {zeros_only}
    {device}
    {dtype}

    Attributes
    ----------
    {transposed_kernel}

    Raises
    ------
    {transposed_refused}

    Notes
    -----
    fan_in is out_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, L), or without N. Output: (N, out_channels, L'), where
    {unconvolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConvTranspose1d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 16)).shape == (1, 8, 18)
    True
    """

    n, function = 1, staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(TransposedConvolution):
    """The transpose of `Conv2d`: it maps the gradient of its output to the gradient of its input.

    Parameters
    ----------
    {convolution}
    {transposed_padding}
    {groups}
    {dilation}
    {zeros_only}
    {device}
    {dtype}

    Attributes
    ----------
    {transposed_kernel}

    Raises
    ------
    {transposed_refused}

    Notes
    -----
    fan_in is out_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, H, W), or without N. Output: (N, out_channels, H', W'), where
    {unconvolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConvTranspose2d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 16, 16)).shape == (1, 8, 18, 18)
    True
    """

    n, function = 2, staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(TransposedConvolution):
    """The transpose of `Conv3d`: it maps the gradient of its output to the gradient of its input.

    Parameters
    ----------
    {convolution}
    {transposed_padding}
    {groups}
    {dilation}
    {zeros_only}
    {device}
    {dtype}

    Attributes
    ----------
    {transposed_kernel}

    Raises
    ------
    {transposed_refused}

    Notes
    -----
    fan_in is out_channels / groups times the number of elements of the kernel.

    Input: (N, in_channels, D, H, W), or without N. Output: (N, out_channels, D', H', W'), where
    {unconvolved}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ConvTranspose3d(3, 8, kernel_size=3)(gradlab.zeros(1, 3, 8, 8, 8)).shape == (1, 8, 10, 10, 10)
    True
    """

    n, function = 3, staticmethod(functional.conv_transpose3d)
