"""Channels rearranged to pixels, pixels to channels, and channels in another order."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.resampling import rearranging_op
from gradlab.nn.functional.windows import check_tensor
from gradlab.ops.copies import make_contiguous
from gradlab.rules.shapes import permute, reshape

__all__ = [
    "channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
]

SHUFFLED = rearranging_op("PixelShuffle")
UNSHUFFLED = rearranging_op("PixelUnshuffle")
CHANNELS = rearranging_op("ChannelShuffle")


# -------------------------------------------------------------------------------------------------------------- shuffles
def split_and_permute(op: Any, input: Tensor, apart: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Split axes, permute them and merge them again."""
    x = permute.record(reshape.record(input, shape=apart), axes=(*range(-len(apart), -len(axes)), *axes))
    return make_contiguous(op.record(x, shape=shape))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels to pixels: the image becomes r times as high and wide.

    Parameters
    ----------
    input : Tensor
        The channels, (…, C · r², H, W).
    upscale_factor : int
        Factor r of height and width.

    Returns
    -------
    Tensor
        Shape (…, C, H · r, W · r).

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` has fewer than three dimensions, r is less than 1, or the number of channels is not divisible by r².

    Notes
    -----
    y[…, c, h r + i, w r + j] = x[…, c r² + i r + j, h, w] (Shi et al. 2016).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.pixel_shuffle(gl.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    check_tensor("pixel_shuffle", input)
    shape, r = input.array.shape, upscale_factor
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    c, h, w = shape[-3:]
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    front = (*shape[:-3], c // (r * r))
    return split_and_permute(SHUFFLED, input, (*front, r, r, h, w), (-2, -4, -1, -3), (*front, h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange pixels to channels: the inverse of `pixel_shuffle`.

    Parameters
    ----------
    input : Tensor
        The image, (…, C, H · r, W · r).
    downscale_factor : int
        Factor r of height and width.

    Returns
    -------
    Tensor
        Shape (…, C · r², H, W).

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` has fewer than three dimensions, r is less than 1, or height or width is not divisible by r.

    Notes
    -----
    y[…, c r² + i r + j, h, w] = x[…, c, h r + i, w r + j].

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.pixel_unshuffle(gl.arange(4.0).reshape(1, 2, 2), 2).shape
    gradlab.Size([4, 1, 1])
    """
    check_tensor("pixel_unshuffle", input)
    shape, r = input.array.shape, downscale_factor
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    c, h, w = shape[-3:]
    for name, axis, length in (("height", -2, h), ("width", -1, w)):
        if length % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({axis})={length} is not divisible by {r}"
            )
    front = shape[:-3]
    return split_and_permute(
        UNSHUFFLED, input, (*front, c, h // r, r, w // r, r), (-3, -1, -4, -2), (*front, c * r * r, h // r, w // r)
    )


@with_descriptions
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Reorder channels so that they come from the groups in turn.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …) of at least three dimensions.
    groups : int
        Number of groups; must divide C.

    Returns
    -------
    {same}

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` has fewer than three dimensions, or C is not divisible by `groups`.

    Notes
    -----
    Zhang et al. (2018).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.channel_shuffle(gl.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    check_tensor("channel_shuffle", input)
    shape = input.array.shape
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups.")
    apart = (shape[0], groups, shape[1] // groups, *shape[2:])
    axes = (-len(apart), 2 - len(apart), 1 - len(apart), *range(3 - len(apart), 0))
    return split_and_permute(CHANNELS, input, apart, axes, shape)
