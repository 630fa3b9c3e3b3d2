"""Layers that resample or rearrange images: upsampling, pixel and channel shuffles, sliding windows."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.bases import ReprModule

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Upsample(ReprModule):
    """Resize images, sequences or volumes to a size or by a factor.

    Parameters
    ----------
    size : int or tuple of ints, optional
        Size of the result in the dimensions after N and C.
    scale_factor : float or tuple of floats, optional
        Factor of the size, in place of `size`.
    mode : str, optional
        "nearest" (the default), "linear", "bilinear", "bicubic" or "trilinear", by the input's number of dimensions.
    align_corners : bool, optional
        Align the centres of the corner elements. Only for modes that interpolate.
    recompute_scale_factor : bool, optional
        Compute positions from the rounded sizes instead of the factor.

    Notes
    -----
    Input: (N, C, L), (N, C, H, W) or (N, C, D, H, W). Output: each size n becomes ⌊n scale_factor⌋, or that of `size`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Upsample(scale_factor=2)(gradlab.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor = (
            tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else float(scale_factor) if scale_factor else None
        )
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        target = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Enlarge images by repeating the nearest element.

    Parameters
    ----------
    size : int or tuple of ints, optional
        Height and width of the result.
    scale_factor : float or tuple of floats, optional
        Factor of the size, in place of `size`.

    Notes
    -----
    Input: (N, C, H, W). Output: (N, C, ⌊H scale_factor⌋, ⌊W scale_factor⌋), or the given size.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.UpsamplingNearest2d(scale_factor=2)(gradlab.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Enlarge images by bilinear interpolation with aligned corners.

    Parameters
    ----------
    size : int or tuple of ints, optional
        Height and width of the result.
    scale_factor : float or tuple of floats, optional
        Factor of the size, in place of `size`.

    Notes
    -----
    Input: (N, C, H, W). Output: (N, C, ⌊H scale_factor⌋, ⌊W scale_factor⌋), or the given size.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.UpsamplingBilinear2d(size=(1, 3))(gradlab.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(ReprModule):
    """Rearrange channels to pixels: r² channels become an image that is r times as high and wide.

    Parameters
    ----------
    upscale_factor : int
        The factor r.

    Notes
    -----
    Input: (*, C r², H, W). Output: (*, C, H r, W r).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.PixelShuffle(2)(gradlab.tensor([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1))
    tensor([[[[1., 2.],
              [3., 4.]]]])
    """

    repr_format = "upscale_factor={upscale_factor}"

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return functional.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(ReprModule):
    """Rearrange pixels to channels: the inverse of `PixelShuffle`.

    Parameters
    ----------
    downscale_factor : int
        The factor r.

    Notes
    -----
    Input: (*, C, H r, W r). Output: (*, C r², H, W).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.PixelUnshuffle(2)(gradlab.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).flatten()
    tensor([1., 2., 3., 4.])
    """

    repr_format = "downscale_factor={downscale_factor}"

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return functional.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(ReprModule):
    """Reorder channels so that they come from the groups in turn.

    Parameters
    ----------
    groups : int
        Number of groups, which must divide the number of channels.

    Notes
    -----
    Input: (N, C, *). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.ChannelShuffle(2)(gradlab.tensor([[[1.0], [2.0], [3.0], [4.0]]])).flatten()
    tensor([1., 3., 2., 4.])
    """

    repr_format = "groups={groups}"

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return functional.channel_shuffle(input, self.groups)


class Unfold(ReprModule):
    """Arrange the sliding windows of images as columns, which a convolution multiplies by its kernels.

    Parameters
    ----------
    kernel_size : int or tuple of ints
        Size of the windows.
    dilation, padding, stride : int or tuple of ints, optional
        As in a convolution (default: 1, 0 and 1).

    Notes
    -----
    Input: (N, C, H, W) or (C, H, W). Output: (N, C · elements of a window, number of windows).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Unfold(2)(gradlab.arange(6.0).reshape(1, 1, 2, 3))
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])
    """

    repr_format = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(ReprModule):
    """Add columns up to images: the transpose of `Unfold`.

    Parameters
    ----------
    output_size : int or tuple of ints
        Height and width of the images.
    kernel_size : int or tuple of ints
        Size of the windows.
    dilation, padding, stride : int or tuple of ints, optional
        As in a convolution (default: 1, 0 and 1).

    Notes
    -----
    Input: (N, C · elements of a window, number of windows), or without N. Output: (N, C, *output_size).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Fold((2, 3), kernel_size=2)(gradlab.ones(1, 4, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """

    repr_format = "output_size={output_size}, " + Unfold.repr_format

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
