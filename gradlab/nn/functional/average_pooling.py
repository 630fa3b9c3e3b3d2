"""Average pooling and p-norm pooling. Adaptive pooling to size 1 is a mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf, prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.max_pooling import max_pool1d, max_pool2d
from gradlab.nn.functional.windows import (
    OutputSizes,
    Sizes,
    adaptive,
    adaptive_single,
    check_tensor,
    not_implemented_error,
    one_per_axis,
    pooled_shape,
    single,
    window,
    with_extra_axis,
)
from gradlab.ops import abs, mul, relu, sign
from gradlab.ops.copies import make_contiguous
from gradlab.ops.reductions import mean
from gradlab.rules.resampling import remap, window_map

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
]

AVERAGE = {n: remap.with_node(f"AvgPool{n}DBackward0") for n in (2, 3)}
ADAPTIVE_AVERAGE = {n: remap.with_node(f"AdaptiveAvgPool{n}DBackward0") for n in (2, 3)}
for _op in (*AVERAGE.values(), *ADAPTIVE_AVERAGE.values()):
    _op.tex = r"\mathrm{{avgpool}}({x})"


# ---------------------------------------------------------------------------------------------------------------- averages
@with_descriptions
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Compute the mean of each window of the last dimension.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of zeros added at both ends; at most half of the kernel size.
    {ceil_mode}
    count_include_pad : bool, default: True
        Include the zeros of the padding in the mean.

    Returns
    -------
    Tensor
        Shape (N, C, L'), or without N. Means of integers are rounded towards 0.

    Raises
    ------
    {window_raises}
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Each length becomes (L + 2 padding - K) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.avg_pool1d(gl.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    check_tensor("avg_pool1d", input)
    if input.array.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.array.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for avg_pool1d)"
        )
    k, s, p = (
        single(name, value, "avg_pool1d")
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
        )
    )
    return with_extra_axis(lambda x: avg_pool2d(x, (1, k), (1, s), (0, p), ceil_mode, count_include_pad), input)


@with_descriptions
def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Compute the mean of each window of the last two dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of zeros added at both ends; at most half of the kernel size.
    {ceil_mode}
    count_include_pad : bool, default: True
        Include the zeros of the padding in the mean.
    divisor_override : int, optional
        Divisor of the sums, in place of the window size.

    Returns
    -------
    Tensor
        Shape (N, C, H', W'), or without N. Means of integers are rounded towards 0.

    Raises
    ------
    {window_raises}
    IndexError
        If `input` has too few dimensions.
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Each length becomes (L + 2 padding - K) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.avg_pool2d(gl.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return mean_over_windows(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@with_descriptions
def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Compute the mean of each window of the last three dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, D, H, W), or without N.
    {kernel_size}
    {pool_stride}
    padding : int or tuple of ints, default: 0
        Number of zeros added at both ends; at most half of the kernel size.
    {ceil_mode}
    count_include_pad : bool, default: True
        Include the zeros of the padding in the mean.
    divisor_override : int, optional
        Divisor of the sums, in place of the window size.

    Returns
    -------
    Tensor
        Shape (N, C, D', H', W'), or without N. Means of integers are rounded towards 0.

    Raises
    ------
    {window_raises}
    IndexError
        If `input` has too few dimensions.
    NotImplementedError
        If `input` holds bools.

    Notes
    -----
    Each length becomes (L + 2 padding - K) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.avg_pool3d(gl.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return mean_over_windows(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def mean_over_windows(
    n: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    name = f"avg_pool{n}d"
    check_tensor(name, input)
    shape = input.array.shape
    k, s, p = window(name, n, kernel_size, stride, padding)
    if input.array.ndim <= n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(len(shape), 1)}, "
            f"{max(len(shape), 1) - 1}], but got {-n - 1}). The input needs {n + 1} axes, or {n + 2} with a batch; "
            "use unsqueeze to add one."
        )
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if input.array.dtype.kind == "b":
        raise not_implemented_error(name, input)
    out = pooled_shape(input, n, k, s, p, (1,) * n, ceil_mode)
    maps = tuple([window_map(*axis) for axis in zip(shape[-n:], out, k, s, p, strict=True)])
    over = (
        float(divisor_override)
        if divisor_override is not None
        else divisors([window_lengths(*axis, count_include_pad) for axis in zip(shape[-n:], out, k, s, p, strict=True)])
    )
    if input.array.dtype.kind in "ui":  # as in torch, averages of integers are rounded towards 0
        sums = AVERAGE[n].record(input, maps=maps, over=None, first=False, fill=0).array
        xp = namespace_of[type(sums)]
        return constant(xp.trunc(sums / xp.asarray(over)).astype(sums.dtype))
    return make_contiguous(AVERAGE[n].record(input, maps=maps, over=over, first=False, fill=0))


def window_lengths(length: int, out: int, k: int, s: int, p: int, count_include_pad: bool) -> np.ndarray:
    """Return the number of elements that each window averages along an axis."""
    starts = np.arange(out) * s - p
    stops = np.minimum(starts + k, length + p)
    return stops - starts if count_include_pad else np.minimum(stops, length) - np.maximum(starts, 0)


def divisors(lengths: list[np.ndarray]) -> Any:
    """Return the product of the lengths of the windows along the axes, as one number if all are equal."""
    if all((row == row[0]).all() for row in lengths if row.size):
        return float(prod([int(row[0]) for row in lengths if row.size]))
    return reduce(np.multiply, np.ix_(*lengths)).astype(float)


@with_descriptions
def adaptive_avg_pool1d(input: Tensor, output_size: OutputSizes) -> Tensor:
    """Average windows of the last dimension, to a given output size.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N, floating point.
    {output_size_1}

    Returns
    -------
    Tensor
        The given size in the last dimension.

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
    >>> F.adaptive_avg_pool1d(gl.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 2)
    tensor([[2., 4.]])
    """
    size = adaptive_single("adaptive_avg_pool1d", input, output_size)
    return with_extra_axis(lambda x: adaptive_avg_pool2d(x, (1, size)), input)


@with_descriptions
def adaptive_avg_pool2d(input: Tensor, output_size: OutputSizes) -> Tensor:
    """Average windows of the last two dimensions, to a given output size.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N, floating point.
    {output_size_2}

    Returns
    -------
    Tensor
        The given size in the last two dimensions.

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
    >>> F.adaptive_avg_pool2d(gl.arange(16.0).reshape(1, 4, 4), (1, 2))
    tensor([[[6.5000, 8.5000]]])
    """
    return adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)


@with_descriptions
def adaptive_avg_pool3d(input: Tensor, output_size: OutputSizes) -> Tensor:
    """Average windows of the last three dimensions, to a given output size.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, D, H, W), or without N, floating point.
    {output_size_3}

    Returns
    -------
    Tensor
        The given size in the last three dimensions.

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
    >>> F.adaptive_avg_pool3d(gl.ones(1, 4, 6, 5), (None, 3, 1)).shape
    gradlab.Size([1, 4, 3, 1])
    """
    return adaptive_mean("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_mean(name: str, n: int, input: Tensor, output_size: Any) -> Tensor:
    maps, lengths = adaptive(name, n, input, output_size)
    if all(m.index.shape[1] == 1 for m in maps):
        return mean(input, tuple(range(-n, 0)), True)
    return make_contiguous(ADAPTIVE_AVERAGE[n].record(input, maps=maps, over=divisors(lengths), first=False, fill=0))


@with_descriptions
def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    r"""Compute the p-norm of each window of the last dimension.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N.
    norm_type : float
        The order p. Infinity returns the largest absolute value.
    {kernel_size}
    {pool_stride}
    {ceil_mode}

    Returns
    -------
    Tensor
        Shape (N, C, L'), or without N.

    Raises
    ------
    {window_raises}

    Notes
    -----
    .. math:: y = \left(\sum x^p\right)^{1 / p}

    For finite p, powers of x are summed, not of |x|. The result is NaN if the sum is negative, except for p = 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.lp_pool1d(gl.tensor([[3.0, 4.0, 6.0, 8.0]]), 2, 2)
    tensor([[ 5., 10.]])
    """
    k = single("kernel_size", kernel_size, "lp_pool1d")
    if norm_type in (inf, -inf):
        return extreme_pool(max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)
    powers = avg_pool1d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return mul(mul(sign(powers), relu(abs(powers))), k) ** (1.0 / norm_type)


@with_descriptions
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    r"""Compute the p-norm of each window of the last two dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N.
    norm_type : float
        The order p. Infinity returns the largest absolute value.
    {kernel_size}
    {pool_stride}
    {ceil_mode}

    Returns
    -------
    Tensor
        Shape (N, C, H', W'), or without N.

    Raises
    ------
    {window_raises}
    IndexError
        If `input` has too few dimensions.

    Notes
    -----
    .. math:: y = \left(\sum x^p\right)^{1 / p}

    For finite p, powers of x are summed, not of |x|. The result is NaN if the sum is negative, except for p = 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.lp_pool2d(gl.ones(1, 2, 2), 1, 2)
    tensor([[[4.]]])
    """
    k = one_per_axis("lp_pool2d", "kernel_size", kernel_size, 2)
    if norm_type in (inf, -inf):
        return extreme_pool(max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)
    powers = avg_pool2d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return mul(mul(sign(powers), relu(abs(powers))), prod(k)) ** (1.0 / norm_type)


def extreme_pool(
    pool: Callable[..., Any], input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    """Return the largest absolute value in each window for the norm ∞, the smallest for -∞."""
    if norm_type > 0:
        return pool(abs(input), kernel_size, stride, 0, 1, ceil_mode)
    return -pool(-abs(input), kernel_size, stride, 0, 1, ceil_mode)
