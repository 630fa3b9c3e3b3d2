"""Max pooling with indices, and unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.windows import (
    OutputSizes,
    Sizes,
    adaptive,
    adaptive_single,
    check_tensor,
    not_implemented_error,
    one_per_axis,
    pooled_length,
    pooled_shape,
    single,
    window,
    with_extra_axis,
)
from gradlab.ops.copies import make_contiguous
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules.indexing import element_positions, masked_fill, put_along
from gradlab.rules.pooling import argmax_positions, max_pool
from gradlab.rules.resampling import AxisMap, window_map
from gradlab.rules.shapes import reshape

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
]

MAX = {2: max_pool, 3: max_pool.with_node("MaxPool3DWithIndicesBackward0")}
ADAPTIVE_MAX = max_pool.with_node("AdaptiveMaxPool2DBackward0")
UNPOOLED = reshape.with_node("MaxUnpool2DBackward0", view=False)


# ------------------------------------------------------------------------------------------------------------------ maxima
@with_descriptions
def max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum of each window of the last dimension.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N, floating point.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of elements (-∞) added at both ends; at most half of the kernel size.
    {dilation}
    {ceil_mode}
    {return_indices}

    Returns
    -------
    Tensor or tuple of Tensors
        Shape (N, C, L'), or without N; with `return_indices` also the indices of the maxima, int64.

    Raises
    ------
    {window_raises}
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1. The first of equal maxima receives the gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[1.0, 3.0, 2.0, 2.0]], requires_grad=True)
    >>> F.max_pool1d(x, 2).sum().backward()
    >>> x.grad
    tensor([[0., 1., 1., 0.]])
    """
    check_tensor("max_pool1d", input)
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(input.array.shape)}. Use unsqueeze to add an axis."
        )
    k, s, p, d = (
        single(name, value)
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
            ("dilation", dilation),
        )
    )
    for name, value in (("kernel_size", k), ("stride", s)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}")
    if d <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {d}")
    if (out := pooled_length(input.array.shape[-1], k, s, p, d, ceil_mode)) <= 0:
        raise RuntimeError(
            f"max_pool1d() Invalid computed output size: {out}. The kernel does not fit into the input, of length "
            f"{input.array.shape[-1]}."
        )
    if input.array.dtype.kind != "f":
        raise not_implemented_error("max_pool1d_impl", input)
    return with_extra_axis(lambda x: max_pool2d(x, (1, k), (1, s), (0, p), (1, d), ceil_mode, return_indices), input)


@with_descriptions
def max_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum of each window of the last two dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of elements (-∞) added at both ends; at most half of the kernel size.
    {dilation}
    {ceil_mode}
    {return_indices}

    Returns
    -------
    Tensor or tuple of Tensors
        Shape (N, C, H', W'), or without N; with `return_indices` also the indices of the maxima, int64.

    Raises
    ------
    {window_raises}
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1. The first of equal maxima receives the gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.max_pool2d(gl.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return max_over_windows(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@with_descriptions
def max_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Compute the maximum of each window of the last three dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, D, H, W), or without N.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of elements (-∞) added at both ends; at most half of the kernel size.
    {dilation}
    {ceil_mode}
    {return_indices}

    Returns
    -------
    Tensor or tuple of Tensors
        Shape (N, C, D', H', W'), or without N; with `return_indices` also the indices of the maxima, int64.

    Raises
    ------
    {window_raises}
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1. The first of equal maxima receives the gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.max_pool3d(gl.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return max_over_windows(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_over_windows(
    n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, return_indices: bool
) -> Any:
    name = f"max_pool{n}d"
    check_tensor(name, input)
    shape = input.array.shape
    k, s, p = window(name, n, kernel_size, stride, padding)
    d = one_per_axis(name, "dilation", dilation, n)
    out = pooled_shape(input, n, k, s, p, d, ceil_mode)
    if input.array.dtype.kind == "b":
        raise not_implemented_error(name, input)
    maps = tuple([window_map(*axis) for axis in zip(shape[-n:], out, k, s, p, d, strict=True)])
    return maxima(MAX[n], input, maps, return_indices)


def maxima(op: Any, input: Tensor, maps: tuple[AxisMap, ...], return_indices: bool) -> Any:
    pooled = make_contiguous(op.record(input, maps=maps))
    if not return_indices:
        return pooled
    at = argmax_positions(namespace_of[type(input.array)], input.array, maps)
    return pooled, constant(as_long(at).reshape(pooled.array.shape))


@with_descriptions
def adaptive_max_pool1d(input: Tensor, output_size: OutputSizes, return_indices: bool = False) -> Any:
    """Compute the maxima of windows of the last dimension, to a given output size.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N, floating point.
    {output_size_1}
    {return_indices}

    Returns
    -------
    Tensor or tuple of Tensors
        The given size in the last dimension; with `return_indices` also the indices of the maxima, int64.

    Raises
    ------
    {adaptive_raises}

    Notes
    -----
    Window i of n covers the elements ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ - 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.adaptive_max_pool1d(gl.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    size = adaptive_single("adaptive_max_pool1d", input, output_size)
    return with_extra_axis(lambda x: adaptive_max_pool2d(x, (1, size), return_indices), input)


@with_descriptions
def adaptive_max_pool2d(input: Tensor, output_size: OutputSizes, return_indices: bool = False) -> Any:
    """Compute the maxima of windows of the last two dimensions, to a given output size.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N, floating point.
    {output_size_2}
    {return_indices}

    Returns
    -------
    Tensor or tuple of Tensors
        The given size in the last two dimensions; with `return_indices` also the indices of the maxima, int64.

    Raises
    ------
    {adaptive_raises}

    Notes
    -----
    Window i of n covers the elements ⌊i L / n⌋ to ⌈(i + 1) L / n⌉ - 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.adaptive_max_pool2d(gl.arange(16.0).reshape(1, 4, 4), (1, 2))
    tensor([[[13., 15.]]])
    """
    maps, _ = adaptive("adaptive_max_pool2d", 2, input, output_size)
    return maxima(ADAPTIVE_MAX, input, maps, return_indices)


@with_descriptions
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back where `max_pool1d` found them, with zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        The maxima, (N, C, L'), or without N.
    indices : Tensor
        Their indices, int64, returned by `max_pool1d` with `return_indices=True`.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Padding of the pooling.
    output_size : sequence of ints, optional
        Shape before pooling, as several shapes have the same pooled shape. Only its last dimensions are used.

    Returns
    -------
    Tensor
        Shape (N, C, L), or without N. Each length is (L' - 1) stride - 2 padding + K if no `output_size` is given.

    Raises
    ------
    ValueError
        If pooling a tensor of `output_size` does not give the shape of `input`.
    RuntimeError
        If `indices` is not int64, has another shape, or is out of range.
    TypeError
        If an argument is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> y, places = F.max_pool1d(gl.tensor([[1.0, 3.0, 2.0, 4.0]]), 2, return_indices=True)
    >>> F.max_unpool1d(y, places, 2)
    tensor([[0., 3., 0., 4.]])
    """
    check_unpool(input, indices)
    k, s, p = (
        single(n, v)
        for n, v in (("kernel_size", kernel_size), ("stride", kernel_size if stride is None else stride), ("padding", padding))
    )
    size = unpooled_shape(input.array.shape[-1:], (k,), (s,), (p,), output_size)
    flat = unpool(unsqueeze(input, -2), constant(indices.array[..., None, :]), (1, *size))
    return squeeze(flat, -2)


@with_descriptions
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Put maxima back where `max_pool2d` found them, with zeros elsewhere.

    Parameters
    ----------
    input : Tensor
        The maxima, (N, C, H', W'), or without N.
    indices : Tensor
        Their indices, int64, returned by `max_pool2d` with `return_indices=True`.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Padding of the pooling.
    output_size : sequence of ints, optional
        Shape before pooling, as several shapes have the same pooled shape. Only its last dimensions are used.

    Returns
    -------
    Tensor
        Shape (N, C, H, W), or without N. Each length is (L' - 1) stride - 2 padding + K if no `output_size` is given.

    Raises
    ------
    ValueError
        If pooling a tensor of `output_size` does not give the shape of `input`.
    RuntimeError
        If `indices` is not int64, has another shape, or is out of range.
    TypeError
        If an argument is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> y, places = F.max_pool2d(gl.tensor([[[1.0, 3.0], [2.0, 4.0]]]), 2, return_indices=True)
    >>> F.max_unpool2d(y, places, 2)
    tensor([[[0., 0.],
             [0., 4.]]])
    """
    check_unpool(input, indices)
    k, s, p = (
        one_per_axis("max_unpool2d", name, value, 2)
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
        )
    )
    return unpool(input, indices, unpooled_shape(input.array.shape[-2:], k, s, p, output_size))


def check_unpool(input: Any, indices: Any) -> None:
    check_tensor("max_unpool2d", input)
    check_tensor("max_unpool2d", indices, "indices", 2)


def unpooled_shape(shape: tuple[int, ...], k: Any, s: Any, p: Any, output_size: Any) -> tuple[int, ...]:
    plain = [(n - 1) * step - 2 * pad + kernel for n, kernel, step, pad in zip(shape, k, s, p, strict=True)]
    if output_size is None:
        return tuple(plain)
    size = tuple(output_size)[-len(plain) :]
    for axis, (n, usual, step) in enumerate(zip(size, plain, s, strict=True)):
        if not usual - step < n < usual + step:
            raise ValueError(f'invalid output_size "{size}" (dim {axis} must be between {usual - step} and {usual + step})')
    return tuple([int(n) for n in size])


def unpool(input: Tensor, indices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return zeros of shape `size` with the input at the indices."""
    shape = input.array.shape
    if indices.array.dtype != np.int64:
        raise RuntimeError(
            f"elements in indices should be type int64 but got: {indices.dtype.word}. They are returned by max_pool "
            "with return_indices=True."
        )
    if indices.array.shape != shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices "
            f"tensor with shape: {list(indices.array.shape)}"
        )
    check_bounds(
        "max_unpool",
        indices.array,
        0,
        prod(size) - 1,
        lambda wrong: RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})"
        ),
    )
    front = shape[: -len(size)]
    rows, whole = reshape.record(input, shape=(*front, prod(shape[-len(size) :]))), (*front, prod(size))
    at = indices.array.reshape(rows.array.shape)
    xp, hidden = namespace_of[type(at)], is_overwritten(at, whole)
    if xp is not np or hidden.any():  # (on a GPU without waiting for `hidden`)
        rows = masked_fill.record(rows, mask=hidden, value=0)
    placed = put_along.record(rows, shape=whole, axis=-1, indices=at, keepdims=True)
    return UNPOOLED.record(placed, shape=(*front, *size))


def is_overwritten(at: Any, shape: tuple[int, ...]) -> Any:
    """Return for each write to the indices `at` of an array of `shape` whether a later write goes to the same index."""
    xp = namespace_of[type(at)]
    numbers, last = xp.broadcast_to(xp.arange(at.shape[-1]), at.shape), xp.zeros(shape, dtype=np.int64)
    np.put_along_axis(last, at, numbers, axis=-1) if xp is np else last.put(element_positions(xp, shape, -1, at), numbers)
    return xp.take_along_axis(last, at, axis=-1) != numbers
