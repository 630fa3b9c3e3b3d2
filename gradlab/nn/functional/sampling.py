"""Sample images at positions between their pixels: `grid_sample`, and the grids of affine maps (Jaderberg et al. 2015).

A coordinate is -1 at the left (upper, front) border and 1 at the right one. The border is the centre of the outermost pixel with
`align_corners`, otherwise the edge of the image. The functions are composed of recorded operations (a gather for each neighbour,
times its weight), so image and grid have gradients of any order. The slope is 0 where padding moves a coordinate into the image,
including the border itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.copies import compute_in_float32
from gradlab.ops.permutation import transpose
from gradlab.ops.shapes import unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import indexing, shapes
from gradlab.rules.matrix import matmul
from gradlab.rules.zero_derivative import zero_derivative

__all__ = ["affine_grid", "grid_sample"]

FULL = slice(None)
SAMPLED = {n: shapes.contiguous.with_node(f"GridSampler{n}DBackward0") for n in (2, 3)}
GRID = shapes.reshape.with_node("AffineGridGeneratorBackward0", view=False)
CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)
CUBIC = -0.75  # the free coefficient of cubic convolution (Keys 1981)


# ------------------------------------------------------------------------------------------------------------------- places
def to_pixels(place: Tensor, n: int, align_corners: bool) -> Tensor:
    """Convert coordinates from -1 … 1 to pixels of an axis of length n. The centre of the first pixel is 0."""
    return (place + 1) * ((n - 1) / 2) if align_corners else ((place + 1) * n - 1) / 2


def reflect_pixels(xp: Any, x: Any, n: int, align_corners: bool) -> tuple[Any, Any]:
    """Reflect coordinates at the borders until they are between them. Return them and the slope."""
    low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
    if not span:
        return xp.zeros_like(x), xp.zeros_like(x)
    from_low = xp.absolute(x - low)
    flips = xp.floor(from_low / span)
    rest, even = from_low - flips * span, flips % 2 == 0
    slope = xp.where((x < low) == even, -1, 1).astype(x.dtype)
    return xp.where(even, rest, span - rest) + low, slope


def clip_pixels(xp: Any, x: Any, n: int) -> tuple[Any, Any]:
    """Clip coordinates, and NaN, to the image. Return them and the slope."""
    inside = (x > 0) & (x < n - 1)
    return xp.where(inside, x, xp.where(x > 0, n - 1, 0)).astype(x.dtype), inside.astype(x.dtype)


def pad_pixels(xp: Any, x: Any, n: int, padding_mode: str, align_corners: bool) -> tuple[Any, Any]:
    """Apply the padding mode to coordinates. Return them and the slope."""
    if padding_mode == "zeros":
        return x, xp.ones_like(x)
    slope: Any = 1
    if padding_mode == "reflection":
        x, slope = reflect_pixels(xp, x, n, align_corners)
    x, inside = clip_pixels(xp, x, n)
    return x, slope * inside


def with_values(x: Tensor, values: Any, slope: Any) -> Tensor:
    """Return a function of x with these values and this slope at x."""
    return el.where.record(constant(slope != 0), (x - constant(x.array)) * constant(slope) + constant(values), constant(values))


def to_indices(xp: Any, x: Any, rounded: Any) -> Any:
    """Convert rounded coordinates to integers. NaN and coordinates too large for an integer are outside the image."""
    near = xp.absolute(x) < 2**30
    return xp.where(near, rounded(xp.where(near, x, 0)), -100).astype(np.int64)


def gather_pixels(image: Tensor, at: Sequence[Any]) -> Tensor:
    """Return the pixels (N, …, C) of an image (N, C, …) at indices (N, …), one array for each axis; 0 outside."""
    xp, sizes = namespace_of[type(image.array)], image.array.shape[2:]
    inside: Any = True
    held = []
    for i, n in zip(at, sizes, strict=True):
        inside = inside & (i >= 0) & (i < n)
        held.append(xp.clip(i, 0, n - 1))
    count = xp.arange(image.array.shape[0]).reshape(-1, *(1,) * (held[0].ndim - 1))
    pixels = indexing.getitem.record(image, index=(count, FULL, *held), skip=0)
    return el.where.record(constant(inside[..., None]), pixels, 0.0)


def nearest_weights(t: Tensor) -> list[Tensor]:
    """Return the weight of the nearest pixel, as a function of t with slope 0."""
    return [zero_derivative.record(constant(namespace_of[type(t.array)].ones_like(t.array)), t)]


def linear_weights(t: Tensor) -> list[Tensor]:
    """Return the weights of the two pixels around a position, at distance t after the first."""
    return [1 - t, t]


def cubic_weights(t: Tensor) -> list[Tensor]:
    """Return the weights of cubic convolution for the four pixels around a position, at distance t after the second."""

    def inner(d: Tensor) -> Tensor:
        return (d * (CUBIC + 2) - (CUBIC + 3)) * d * d + 1

    def outer(d: Tensor) -> Tensor:
        return ((d * CUBIC - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC

    return [outer(t + 1), inner(t), inner(1 - t), outer(2 - t)]


WEIGHTS = {"nearest": nearest_weights, "bilinear": linear_weights, "bicubic": cubic_weights}


# ----------------------------------------------------------------------------------------------------------------- sampling
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample images or volumes at the positions of a grid, by interpolating between pixels.

    Parameters
    ----------
    input : Tensor
        The images, (N, C, H, W), or volumes, (N, C, D, H, W), floating point.
    grid : Tensor
        The positions, (N, H', W', 2) or (N, D', H', W', 3), from -1 to 1 inside the image. The last dimension holds x (width)
        first, then y, then z.
    mode : {"bilinear", "nearest", "bicubic"}, default: "bilinear"
        Interpolation. "bilinear" is trilinear in a volume; "bicubic" is for images only.
    padding_mode : {"zeros", "border", "reflection"}, default: "zeros"
        Values outside the image: 0, the nearest pixel, or a mirror image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels instead of the edges of the image. If omitted, False, with a
        warning.

    Returns
    -------
    Tensor
        Shape (N, C, H', W') or (N, C, D', H', W').

    Raises
    ------
    ValueError
        If `mode` or `padding_mode` is not one of the three.
    TypeError, ValueError, RuntimeError, NotImplementedError
        If an argument is not a Tensor, the shapes or dtypes do not fit, or they hold integers or bools.

    Notes
    -----
    Jaderberg et al. (2015). The image and the grid have gradients.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> image = gl.tensor([[[[0.0, 10.0]]]])
    >>> F.grid_sample(image, gl.tensor([[[[0.0, 0.0]]]]), align_corners=True)
    tensor([[[[5.]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(CHANGED, UserWarning, stacklevel=2)
    check_samples(input, grid, mode)
    if input.array.dtype.char == "e":
        return compute_in_float32(grid_sample, input, grid, mode, padding_mode, bool(align_corners))
    return sample_image(input, grid, mode, padding_mode, bool(align_corners))


def sample_image(image: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    xp, sizes = namespace_of[type(image.array)], image.array.shape[2:]
    rank = len(sizes)
    places = [to_pixels(grid[..., rank - 1 - k], n, align_corners) for k, n in enumerate(sizes)]
    offsets = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}[mode]
    if mode != "bicubic":
        places = [
            with_values(x, *pad_pixels(xp, x.array, n, padding_mode, align_corners)) if padding_mode != "zeros" else x
            for x, n in zip(places, sizes, strict=True)
        ]
    first = [to_indices(xp, x.array, xp.rint if mode == "nearest" else xp.floor) for x in places]
    behind = [x - constant(i.astype(x.array.dtype)) for x, i in zip(places, first, strict=True)]
    weights = [WEIGHTS[mode](t) for t in behind]
    total = None
    for steps in product(range(len(offsets)), repeat=rank):
        at = [i + offsets[k] for i, k in zip(first, steps, strict=True)]
        if mode == "bicubic":
            at = [
                pad_pixels(xp, i.astype(image.array.dtype), n, padding_mode, align_corners)[0].astype(np.int64)
                for i, n in zip(at, sizes, strict=True)
            ]
        weight = weights[0][steps[0]]
        for axis in range(1, rank):
            weight = weight * weights[axis][steps[axis]]
        part = gather_pixels(image, at) * unsqueeze(weight, -1)
        total = part if total is None else total + part
    assert total is not None
    return SAMPLED[rank].record(channels_first(total))


def channels_first(x: Tensor) -> Tensor:
    return shapes.permute.record(x, axes=(-x.array.ndim, -1, *range(1 - x.array.ndim, -1)))


def check_samples(input: Tensor, grid: Tensor, mode: str) -> None:
    """Raise PyTorch's errors for arguments that do not fit."""
    for at, (what, x) in enumerate((("input", input), ("grid", grid)), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("grid_sampler", x, what, at)
    shape, grid_shape = input.array.shape, grid.array.shape
    both = f"but got input with sizes {list(shape)} and grid with sizes {list(grid_shape)}"
    if shape[:1] != grid_shape[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {both}")
    if grid_shape[-1:] != (len(shape) - 2,):
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got grid with sizes "
            f"{list(grid_shape)}"
        )
    if len(shape) not in (4, 5) or len(grid_shape) != len(shape):
        wanted = f"{len(shape)}D" if len(shape) in (4, 5) else "4D or 5D"
        raise RuntimeError(f"grid_sampler(): expected {wanted} input and grid with same number of dimensions, {both}")
    for axis, n in enumerate(shape[2:], start=2):
        if not n:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )
    if mode == "bicubic" and len(shape) == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.array.dtype.kind != "f":
        raise NotImplementedError(
            f"\"grid_sampler_{len(shape) - 2}d_cpu_kernel_impl\" not implemented for '{input.dtype.word}'. Call .float() first."
        )
    if input.array.dtype != grid.array.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.word} but found {grid.dtype.word}. Convert one of them.")


# -------------------------------------------------------------------------------------------------------------------- grids
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid of affine maps, for `grid_sample`.

    Parameters
    ----------
    theta : Tensor
        The maps, (N, 2, 3) for images or (N, 3, 4) for volumes, floating point.
    size : sequence of ints
        The shape of the images, (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool, optional
        As in `grid_sample`.

    Returns
    -------
    Tensor
        Shape (N, H, W, 2), or (N, D, H, W, 3).

    Raises
    ------
    TypeError
        If `theta` is not a Tensor.
    ValueError
        If `theta` is not floating point or has another shape, or a size is less than 1.
    NotImplementedError
        If `size` has neither four nor five numbers.
    RuntimeError
        If the number of maps is not the number of samples.

    Notes
    -----
    The position (x, y) of the result is sampled at θ (x, y, 1)ᵀ.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> theta = gl.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> F.affine_grid(theta, (1, 1, 2, 2), align_corners=True)[0, 0]
    tensor([[-1., -1.],
            [ 1., -1.]])
    """
    if align_corners is None:
        warnings.warn(CHANGED, UserWarning, stacklevel=2)
    if not isinstance(theta, Tensor):
        raise not_a_tensor("affine_grid_generator", theta, "theta")
    if theta.array.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size, rank = tuple(size), len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if theta.array.ndim != 3 or theta.array.shape[1:] != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. Got {theta.shape}."
        )
    sizes = size[2:]
    if align_corners and min(sizes) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            UserWarning,
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if theta.array.shape[0] != size[0]:
        raise RuntimeError(f"Expected {size[0]} affine matrices for size {size}, one for each sample. Got {theta.shape}.")
    xp, dtype = namespace_of[type(theta.array)], theta.array.dtype
    base = xp.ones((*sizes, rank + 1), dtype=dtype)
    for k, n in enumerate(sizes):
        line = xp.linspace(-1, 1, n) if n > 1 else xp.zeros(1)
        line = line if align_corners else line * ((n - 1) / n)
        base[..., rank - 1 - k] = line.reshape(-1, *(1,) * (rank - 1 - k))
    grid = matmul.record(constant(base.reshape(prod(sizes), rank + 1)), transpose(theta, 1, 2))
    return GRID.record(grid, shape=(size[0], *sizes, rank))
