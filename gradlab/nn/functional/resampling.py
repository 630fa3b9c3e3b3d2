"""Interpolation to another resolution, and windows of images as columns (`unfold`, `fold`)."""

from __future__ import annotations

import warnings
from math import floor, prod
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.functional.average_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.windows import check_tensor, not_implemented_error
from gradlab.ops.copies import make_contiguous
from gradlab.rules.resampling import columns_map, interpolation_map, resample
from gradlab.rules.shapes import permute, reshape

__all__ = [
    "fold",
    "interpolate",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

Sizes = int | tuple[int, ...] | list[int]
Scales = float | tuple[float, ...] | list[float]


def rearranging_op(node: str) -> Any:
    """Return the last operation of a function that only moves elements, with the name of the function's node."""
    return reshape.with_node(f"{node}Backward0", view=False)


IM2COL = rearranging_op("Im2Col")
COL2IM = resample.with_node("Col2ImBackward0")


# ----------------------------------------------------------------------------------------------------- columns of windows
@with_descriptions
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Arrange the windows of an image as columns.

    Parameters
    ----------
    input : Tensor
        The image, (N, C, H, W), or without N, floating point.
    {unfold_kernel}
    {dilation}
    {zeros_around}
    {stride}

    Returns
    -------
    Tensor
        Shape (N, C · K₁ · K₂, number of windows), or without N.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` has neither 3 nor 4 dimensions, a number is out of range, or the kernel does not fit.
    IndexError
        If `input` has two dimensions.
    NotImplementedError
        If `input` holds integers.

    Notes
    -----
    A convolution is a matrix product with these columns. `fold` is the adjoint.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.unfold(gl.arange(9.0).reshape(1, 3, 3), 2)
    tensor([[0., 1., 3., 4.],
            [1., 2., 4., 5.],
            [3., 4., 6., 7.],
            [4., 5., 7., 8.]])
    """
    check_tensor("im2col", input)
    k, d, p, s = block_parameters(kernel_size, dilation, padding, stride)
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
    out = count_blocks(shape[-2:], k, d, p, s)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {shape[-2:]}, kernel_size={k}, dilation={d}, padding={p}, calculated "
            f"shape of the array of sliding blocks as {out}, but its components must be at least one."
        )
    maps = tuple([columns_map(*axis) for axis in zip(shape[-2:], out, k, s, p, d, strict=True)])
    windows = resample.record(input, maps=maps, over=None, first=False, fill=0)
    apart = reshape.record(windows, shape=(*shape[:-2], k[0], out[0], k[1], out[1]))
    apart = permute.record(apart, axes=(*range(-len(apart.array.shape), -4), -4, -2, -3, -1))
    return make_contiguous(IM2COL.record(apart, shape=(*shape[:-3], shape[-3] * prod(k), prod(out))))


@with_descriptions
def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Add columns up to an image: the adjoint of `unfold`.

    Parameters
    ----------
    input : Tensor
        The columns, (N, C · K₁ · K₂, number of windows), or without N, floating point.
    output_size : int or tuple of ints
        Height and width of the image.
    {unfold_kernel}
    {dilation}
    {zeros_around}
    {stride}

    Returns
    -------
    Tensor
        Shape (N, C, *output_size), or without N.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` has neither 2 nor 3 dimensions, or its shape does not fit the windows.
    NotImplementedError
        If `input` holds integers.

    Notes
    -----
    Elements that several windows contain are summed.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> columns = F.unfold(gl.ones(1, 3, 3), 2)
    >>> F.fold(columns, 3, 2)
    tensor([[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]])
    """
    check_tensor("col2im", input)
    k, d, p, s = block_parameters(kernel_size, dilation, padding, stride)
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
    out = count_blocks(size, k, d, p, s)
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
    windows = reshape.record(apart, shape=(*front, k[0] * out[0], k[1] * out[1]))
    maps = tuple([columns_map(*axis).transpose for axis in zip(size, out, k, s, p, d, strict=True)])
    return make_contiguous(COL2IM.record(windows, maps=maps, over=None, first=False, fill=0))


def pair(name: str, value: Any) -> tuple[int, int]:
    """Return one number for each of two axes."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) not in (1, 2):
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    if not all(hasattr(v, "__index__") for v in values):
        raise TypeError(f"argument '{name}' must be tuple of ints, not {type(values[0]).__name__}")
    return int(values[0]), int(values[-1])


def block_parameters(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, int], ...]:
    """Check and return the parameters of `unfold` and `fold`, as pairs."""
    arguments = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    k, d, p, s = (pair(name, value) for name, value in arguments.items())
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


def count_blocks(size: tuple[int, ...], k: Any, d: Any, p: Any, s: Any) -> tuple[int, ...]:
    return tuple(
        [(n + 2 * pad - gap * (kernel - 1) - 1) // step + 1 for n, kernel, gap, pad, step in zip(size, k, d, p, s, strict=True)]
    )


def refuse_integers(kernel: str, input: Tensor) -> None:
    if input.array.dtype.kind in ("ui" if "col" in kernel else "uib"):
        raise not_implemented_error(kernel, input)


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
    (mode, n): resample.with_node(f"Upsample{kernel.format(n=n)}Backward0")
    for mode, kernel in KERNELS.items()
    for n in (1, 2, 3)
    if n == LINEAR.get(mode, n)
}
AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
AXES = {1: "W", 2: "HW", 3: "DHW"}


@with_descriptions
def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Scales | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize a tensor by interpolation.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …) with one to three further dimensions, floating point.
    {resized}
    mode : str, default: "nearest"
        "nearest", "nearest-exact", "linear" (one dimension), "bilinear" and "bicubic" (two), "trilinear" (three), or "area",
        which is adaptive average pooling.
    {align_corners}
    recompute_scale_factor : bool, optional
        Compute positions from the rounded size instead of `scale_factor`.
    antialias : bool, default: False
        Not supported.

    Returns
    -------
    Tensor
        Shape (N, C, …) with the requested lengths.

    Raises
    ------
    TypeError
        If `input` is not a Tensor or a size is not an integer.
    ValueError
        If not exactly one of `size` and `scale_factor` is given, it does not have one number for each dimension, or
        `align_corners` is given in a mode that does not use it.
    RuntimeError
        If a length is less than 1.
    NotImplementedError
        If the mode does not support the number of dimensions, if `input` holds integers or bools, or if `antialias` is True.

    Notes
    -----
    Element i of the result is at (i + ½) L / L' - ½ of the input, or at i (L - 1) / (L' - 1) with `align_corners`. "nearest"
    reads ⌊i L / L'⌋.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[[0.0, 4.0]]])
    >>> F.interpolate(x, scale_factor=2)
    tensor([[[0., 0., 4., 4.]]])
    >>> F.interpolate(x, size=5, mode="linear", align_corners=True)
    tensor([[[0., 1., 2., 3., 4.]]])
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
    return make_contiguous(UPSAMPLE[mode, n].record(input, maps=maps, over=None, first=False, fill=0))


def target_size(
    shape: tuple[int, ...], size: Any, scale_factor: Any, recompute_scale_factor: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the spatial shape of the result and the scales for positions (None for the ratio of the sizes)."""
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


@with_descriptions
def upsample(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Scales | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resize a tensor by interpolation. Deprecated in favour of `interpolate`.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …) with one to three further dimensions, floating point.
    {resized}
    mode : str, default: "nearest"
        As in `interpolate`.
    {align_corners}

    Returns
    -------
    Tensor
        Shape (N, C, …) with the requested lengths.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        As in `interpolate`.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     y = F.upsample(gl.ones(1, 1, 2), 4)
    >>> len(caught), y.shape
    (1, gradlab.Size([1, 1, 4]))
    """
    return warn_and_interpolate("upsample", input, size, scale_factor, mode, align_corners)


@with_descriptions
def upsample_nearest(input: Tensor, size: Sizes | None = None, scale_factor: Scales | None = None) -> Tensor:
    """Resize a tensor by nearest-neighbour interpolation. Deprecated in favour of `interpolate`.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, …) with one to three further dimensions, floating point.
    {resized}

    Returns
    -------
    Tensor
        Shape (N, C, …) with the requested lengths.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        As in `interpolate`.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     y = F.upsample_nearest(gl.tensor([[[1.0, 2.0]]]), 4)
    >>> y
    tensor([[[1., 1., 2., 2.]]])
    """
    return warn_and_interpolate("upsample_nearest", input, size, scale_factor, "nearest", None)


@with_descriptions
def upsample_bilinear(input: Tensor, size: Sizes | None = None, scale_factor: Scales | None = None) -> Tensor:
    """Resize images by bilinear interpolation with `align_corners=True`. Deprecated in favour of `interpolate`.

    Parameters
    ----------
    input : Tensor
        The images, (N, C, H, W), floating point.
    {resized}

    Returns
    -------
    Tensor
        Shape (N, C, …) with the requested lengths.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        As in `interpolate`.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     y = F.upsample_bilinear(gl.tensor([[[[0.0, 2.0]]]]), (1, 3))
    >>> y
    tensor([[[[0., 1., 2.]]]])
    """
    return warn_and_interpolate("upsample_bilinear", input, size, scale_factor, "bilinear", True)


def warn_and_interpolate(name: str, input: Tensor, size: Any, scale_factor: Any, mode: str, align_corners: bool | None) -> Tensor:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=3)
    return interpolate(input, size, scale_factor, mode, align_corners)
