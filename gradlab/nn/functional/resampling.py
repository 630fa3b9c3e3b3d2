"""Columns of windows, interpolation and shuffles of pixels, as `torch.nn.functional` spells them."""

from __future__ import annotations

import warnings
from math import floor, prod
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, check_tensor, refused
from gradlab.ops.copies import in_order
from gradlab.rules.resampling import columns_map, interpolation_map, resample
from gradlab.rules.shapes import permute, reshape

__all__ = [
    "channel_shuffle",
    "fold",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

Sizes = int | tuple[int, ...] | list[int]


def rearranged(node: str) -> Any:
    """The last step of a function that only moves elements, under its node's name."""
    return reshape.named(f"{node}Backward0", view=False)


IM2COL, COL2IM = rearranged("Im2Col"), resample.named("Col2ImBackward0")
SHUFFLED, UNSHUFFLED, CHANNELS = rearranged("PixelShuffle"), rearranged("PixelUnshuffle"), rearranged("ChannelShuffle")


# ----------------------------------------------------------------------------------------------------- columns of windows
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The windows of an image as columns: (N, C, H, W) to (N, C · K · K, number of windows); unbatched without N."""
    check_tensor("im2col", input)
    k, d, p, s = blocks(kernel_size, dilation, padding, stride)
    shape = input.array.shape
    if len(shape) not in (3, 4):
        raise (IndexError if len(shape) == 2 else RuntimeError)(
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
            if len(shape) == 2
            else "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
            f"got: {list(shape)}"
        )
    refuse_integers("im2col_out_cpu", input)
    if not prod(shape[-3:]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(shape)}"
        )
    out = counted(shape[-2:], k, d, p, s)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={k}, dilation={d}, padding={p}, calculated "
            f"shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    maps = tuple([columns_map(*axis) for axis in zip(shape[-2:], out, k, s, p, d, strict=True)])
    made = resample.record(input, maps=maps, over=None, first=False, fill=0)
    apart = reshape.record(made, shape=(*shape[:-2], k[0], out[0], k[1], out[1]))
    apart = permute.record(apart, axes=(*range(-len(apart.array.shape), -4), -4, -2, -3, -1))
    return in_order(IM2COL.record(apart, shape=(*shape[:-3], shape[-3] * prod(k), prod(out))))


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """The adjoint of `unfold`: columns (N, C · K · K, number of windows) added up to images (N, C, *output_size)."""
    check_tensor("col2im", input)
    k, d, p, s = blocks(kernel_size, dilation, padding, stride)
    size = pair("output_size", output_size)
    shape = input.array.shape
    if len(shape) not in (2, 3) or not prod(shape[-2:]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions "
            f"for input, but got: {list(shape)}"
        )
    if shape[-2] % prod(k):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={k}."
        )
    out = counted(size, k, d, p, s)
    if shape[-1] != prod(out):
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={k}, dilation={d}, padding={p}, stride={s}, expected size of "
            f"input's dimension 2 to match the calculated number of sliding blocks {out[0]} * {out[1]} = "
            f"{prod(out)}, but got input.size(2)={shape[-1]}."
        )
    refuse_integers("col2im_out_cpu", input)
    front = (*shape[:-2], shape[-2] // prod(k))
    apart = reshape.record(input, shape=(*front, *k, *out))
    apart = permute.record(apart, axes=(*range(-len(apart.array.shape), -4), -4, -2, -3, -1))
    made = reshape.record(apart, shape=(*front, k[0] * out[0], k[1] * out[1]))
    maps = tuple([columns_map(*axis).transposed for axis in zip(size, out, k, s, p, d, strict=True)])
    return in_order(COL2IM.record(made, maps=maps, over=None, first=False, fill=0))


def pair(name: str, value: Any) -> tuple[int, int]:
    """One number for each of two axes."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) not in (1, 2):
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    if not all(hasattr(v, "__index__") for v in values):
        raise TypeError(f"argument '{name}' must be tuple of ints, not {type(values[0]).__name__}")
    return int(values[0]), int(values[-1])


def blocks(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, int], ...]:
    """What `unfold` and `fold` share, checked."""
    given = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    k, d, p, s = (pair(name, value) for name, value in given.items())
    for (name, (height, width)), least in zip(
        (("kernel size", k), ("dilation", d), ("padding", p), ("stride", s)), (1, 1, 0, 1), strict=True
    ):
        if min(height, width) < least:
            short = name.split()[0].removesuffix("ding")
            raise RuntimeError(
                f"{name} should be {'non-negative' if not least else 'greater than zero'}, but got "
                f"{short}_height: {height} {short}_width: {width}"
            )
    return k, d, p, s


def counted(size: tuple[int, ...], k: Any, d: Any, p: Any, s: Any) -> tuple[int, ...]:
    return tuple(
        [(n + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for n, kernel, gap, pad, step in zip(size, k, d, p, s, strict=True)]
    )


def refuse_integers(kernel: str, input: Tensor) -> None:
    if input.array.dtype.kind in ("ui" if "col" in kernel else "uib"):
        raise refused(kernel, input)


# ----------------------------------------------------------------------------------------------------------- interpolation
LINEAR = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
KERNELS = {
    "nearest": "Nearest{n}D",
    "nearest-exact": "NearestExact{n}D",
    "linear": "Linear1D",
    "bilinear": "Bilinear2D",
    "bicubic": "Bicubic2D",
    "trilinear": "Trilinear3D",
}
UPSAMPLE: dict[tuple[str, int], Any] = {
    (mode, n): resample.named(f"Upsample{kernel.format(n=n)}Backward0")
    for mode, kernel in KERNELS.items()
    for n in (1, 2, 3)
    if n == LINEAR.get(mode, n)
}
AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
AXES = {1: "W", 2: "HW", 3: "DHW"}


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input (N, C, …) with one to three spatial axes at another `size`, or `scale_factor` times its size.

    mode: "nearest", "nearest-exact", "linear" (one axis), "bilinear" and "bicubic" (two), "trilinear" (three), "area".
    align_corners: whether the first and last elements keep their places, rather than the outer edges. antialias is not
    supported.
    """
    check_tensor("interpolate", input)
    shape = input.array.shape
    n = len(shape) - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    wanted, scales = target_size(shape[2:], size, scale_factor, recompute_scale_factor)
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if antialias:
        raise NotImplementedError("interpolate(antialias=True) is not supported. Average the input first, with avg_pool2d.")
    if n not in (1, 2, 3) or mode not in (*KERNELS, "area"):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {len(shape)}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"lanczos | area | nearest-exact (got {mode})"
        )
    if mode == "area":
        return AREA[n](input, wanted)
    if LINEAR.get(mode, n) != n:
        raise NotImplementedError(f"Got {len(shape)}D input, but {mode} mode needs {LINEAR[mode] + 2}D input")
    if min(wanted) < 1 or min(shape[2:]) < 1:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input ("
            + ", ".join(f"{a}: {m}" for a, m in zip(AXES[n], shape[2:], strict=True))
            + ") output ("
            + ", ".join(f"{a}: {m}" for a, m in zip(AXES[n], wanted, strict=True))
            + ")"
        )
    refuse_integers(f"upsample_{mode.replace('-exact', '')}{n}d_channels_last", input)
    dtype = "float64" if input.array.dtype.itemsize == 8 else "float32"
    maps = tuple(
        [
            interpolation_map(
                length,
                out,
                mode if mode in ("nearest", "nearest-exact", "bicubic") else "linear",
                bool(align_corners),
                scale,
                dtype,
            )
            for length, out, scale in zip(shape[2:], wanted, scales, strict=True)
        ]
    )
    return in_order(UPSAMPLE[mode, n].record(input, maps=maps, over=None, first=False, fill=0))


def target_size(
    shape: tuple[int, ...], size: Any, scale_factor: Any, recompute_scale_factor: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The spatial axes of the result, and the scales that positions are worked out with (None: the sizes' ratio)."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        sizes = tuple(size) if isinstance(size, (tuple, list)) else (size,) * len(shape)
        if len(sizes) != len(shape):
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(shape)} and output size of {size}. Please provide input tensor in (N, C, d1, "
                "d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if not all(hasattr(s, "__index__") for s in sizes):
            raise TypeError(
                f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got "
                f"size with types {[type(s) for s in sizes]}"
            )
        return tuple([int(s) for s in sizes]), (None,) * len(shape)
    scales = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * len(shape)
    if len(scales) != len(shape):
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(shape)} and scale_factor of shape {scale_factor}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    wanted = tuple([floor(float(n * s)) for n, s in zip(shape, scales, strict=True)])
    return wanted, (None,) * len(shape) if recompute_scale_factor else tuple([float(s) for s in scales])


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate` under its old name."""
    return deprecated("upsample", input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="nearest")` under its old name."""
    return deprecated("upsample_nearest", input, size, scale_factor, "nearest", None)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="bilinear", align_corners=True)` under its old name."""
    return deprecated("upsample_bilinear", input, size, scale_factor, "bilinear", True)


def deprecated(name: str, input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None) -> Tensor:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=3)
    return interpolate(input, size, scale_factor, mode, align_corners)


# -------------------------------------------------------------------------------------------------------------- shuffles
def moved(op: Any, input: Tensor, apart: tuple[int, ...], axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """The axes taken apart, exchanged and put together."""
    x = permute.record(reshape.record(input, shape=apart), axes=(*range(-len(apart), -len(axes)), *axes))
    return in_order(op.record(x, shape=shape))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C · r · r, H, W) to (…, C, H · r, W · r), r the upscale_factor."""
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
    return moved(SHUFFLED, input, (*front, r, r, h, w), (-2, -4, -1, -3), (*front, h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H · r, W · r) to (…, C · r · r, H, W), r the downscale_factor."""
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
    return moved(UNSHUFFLED, input, (*front, c, h // r, r, w // r, r), (-3, -1, -4, -2), (*front, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, …) with the channels of `groups` groups taken in turn."""
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
    return moved(CHANNELS, input, apart, axes, shape)
