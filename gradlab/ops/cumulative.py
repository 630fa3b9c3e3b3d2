"""Cumulative sums, products and extremes along a dimension, finite differences and numerical integrals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, not_a_tensor, takes_axis
from gradlab.ops.copies import cast
from gradlab.ops.joins import cat
from gradlab.ops.results import Result, ValuesAndIndices
from gradlab.rules import cumulative as rules
from gradlab.rules import elementwise as el
from gradlab.rules.cumulative import slice_along

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diff",
    "gradient",
    "logcumsumexp",
    "trapezoid",
    "trapz",
]


def axis_tuple(dim: int, ndim: int) -> tuple[int, ...]:
    """Return the axis as the rules expect it: (axis,), or () for a 0-d tensor."""
    axis = negative_dim(dim, ndim)
    return (axis,) if ndim else ()


def integer_totals(ufunc: Any, input: Tensor, dim: int, dtype: Any) -> Tensor | None:
    """Compute cumulative totals in a requested integer dtype. Return None if no integer dtype is requested."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or wanted.kind == "f":
        return None
    x, axis = call_quietly(input.array.astype, wanted), axis_tuple(dim, input.array.ndim)
    return constant(rules.running_totals(namespace_of[type(x)], ufunc, x, axis) if axis else x)


@composite(inplace="method")
@takes_axis
def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Compute the cumulative sum of elements along a dimension.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype; int64 for bools and integers.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    The gradient of `input` is the cumulative sum of the result's gradient from the other end.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cumsum(gl.tensor([1., 2., 3.]), dim=0)
    tensor([1., 3., 6.])
    >>> x = gl.tensor([1., 2., 3.], requires_grad=True)
    >>> gl.cumsum(x, dim=0).sum().backward()
    >>> x.grad
    tensor([3., 2., 1.])
    """
    if dtype is not None and (totals := integer_totals(np.add, input, dim, dtype)) is not None:
        return totals
    return rules.cumsum.record(cast(input, dtype), axis=axis_tuple(dim, input.array.ndim), backwards=False)


@composite(inplace="method")
@takes_axis
def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """Compute the cumulative product of elements along a dimension.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype; int64 for bools and integers.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    The gradient is computed without division, so it is also correct for elements equal to 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cumprod(gl.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    if dtype is not None and (totals := integer_totals(np.multiply, input, dim, dtype)) is not None:
        return totals
    return rules.cumprod.record(cast(input, dtype), axis=axis_tuple(dim, input.array.ndim))


@composite()
@takes_axis
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    r"""Compute the logarithm of the cumulative sum of exponentials along a dimension.

    Parameters
    ----------
    {input}
    {one_dim}
    {out}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` is not floating point.

    Notes
    -----
    .. math:: y_i = \log \sum_{j \le i} e^{x_j}

    The exponentials do not overflow.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logcumsumexp(gl.tensor([0., 0., 0.]), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    if input.array.dtype.kind != "f":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{input.dtype.word}'. Call .float() first.")
    return rules.logcumsumexp.record(input, axis=axis_tuple(dim, input.array.ndim))


def _running_extreme(picking: ValuesAndIndices, name: str, ufunc: str, input: Tensor, dim: int) -> Result:
    x = input.array
    if not x.ndim:
        if dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        return picking.of_scalar(input)
    axis, xp = negative_dim(dim, x.ndim), namespace_of[type(x)]
    reached = (x == rules.accumulate_along(xp, ufunc, x, axis)) | (x != x)
    at = xp.arange(x.shape[axis]).reshape((-1,) + (1,) * (-axis - 1))
    return picking(input, axis, rules.accumulate_along(xp, "maximum", xp.where(reached, at, 0), axis), True)


CUMMAX = ValuesAndIndices("cummax", "CummaxBackward0")


@composite()
@takes_axis
def cummax(input: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """Return the cumulative maximum along a dimension, with its indices.

    Parameters
    ----------
    {input}
    {one_dim}
    {outs}

    Returns
    -------
    values : Tensor
        Same shape and dtype as `input`.
    indices : Tensor
        Indices of the values along the dimension, the last of equal ones: same shape as `input`, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    From the first NaN on, all values are NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.cummax(gl.tensor([1., 3., 2., 3.]), dim=0)
    >>> indices
    tensor([0, 1, 1, 3])
    """
    return _running_extreme(CUMMAX, "cummax", "maximum", input, dim)


CUMMIN = ValuesAndIndices("cummin", "CumminBackward0")


@composite()
@takes_axis
def cummin(input: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """Return the cumulative minimum along a dimension, with its indices.

    Parameters
    ----------
    {input}
    {one_dim}
    {outs}

    Returns
    -------
    values : Tensor
        Same shape and dtype as `input`.
    indices : Tensor
        Indices of the values along the dimension, the last of equal ones: same shape as `input`, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    From the first NaN on, all values are NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.cummin(gl.tensor([3., 1., 2., 1.]), dim=0)
    >>> indices
    tensor([0, 1, 1, 3])
    """
    return _running_extreme(CUMMIN, "cummin", "minimum", input, dim)


# ------------------------------------------------------------------------------------------- differences and integrals
def slice_axis(x: Tensor, axis: int, start: int, stop: int | None) -> Tensor:
    """Return x[..., start:stop, ...] along one negative axis."""
    return slice_along(x, (axis,), start, stop)


CLONE = el.clone.with_node("CopyBackwards")


@composite()
@takes_axis
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the n-th forward difference along a dimension.

    Parameters
    ----------
    input : Tensor
        Input tensor with at least one dimension.
    n : int, default: 1
        Number of times to take differences.
    {last_dim}
    prepend, append : Tensor, optional
        Values to insert before and after `input` along the dimension first. Their other sizes must match those of `input`.
    {out}

    Returns
    -------
    Tensor
        `n` elements fewer than `input` along the dimension, same dtype. For bools, True if neighbours differ.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is 0-d, `n` is negative, or a shape does not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1., 2., 4., 8.])
    >>> gl.diff(x)
    tensor([1., 2., 4.])
    >>> gl.diff(x, n=2)
    tensor([1., 2.])
    """
    if not input.array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional. Call .reshape(-1) first.")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = negative_dim(dim, input.array.ndim)
    for extra in (prepend, append):
        if extra is None:
            continue
        if extra.array.ndim != input.array.ndim:
            raise RuntimeError(
                "diff expects prepend or append to be the same dimension as input. Got "
                f"{extra.array.ndim} and {input.array.ndim} dimensions."
            )
        for a, (have, got) in enumerate(zip(input.array.shape, extra.array.shape, strict=True)):
            if have != got and a != axis + input.array.ndim:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                    f"dimension; input.size({a}) = {have}, but got tensor.size({a}) = {got}"
                )
    if n and (prepend is not None or append is not None):
        input = cat([x for x in (prepend, input, append) if x is not None], axis)
    if not n:
        return CLONE.record(input)
    for _ in range(min(n, input.array.shape[axis])):
        late, early = slice_axis(input, axis, 1, None), slice_axis(input, axis, 0, max(input.array.shape[axis] - 1, 0))
        input = constant(late.array ^ early.array) if input.array.dtype.kind == "b" else el.sub.record(late, early)
    return input


def point_distances(name: str, y: Tensor, x: Tensor | None, axis: int) -> Tensor | None:
    """Return the distances between the points `x` along the axis of `y`, or raise PyTorch's errors."""
    if y.array.dtype.kind == "b" or (x is not None and x.array.dtype.kind == "b"):
        raise RuntimeError(f"{name}: received a bool input for `{'y' if x is None else 'x` or `y'}`, but bool is not supported")
    if x is None or x.array.ndim != 1:
        return None if x is None else diff(x, dim=axis)
    if x.array.shape[0] != y.array.shape[axis]:
        raise RuntimeError(
            f"{name}: There must be one `x` value for each sample point. Got {x.array.shape[0]} for {y.array.shape[axis]} points."
        )
    return diff(x).reshape(-1, *(1,) * (-axis - 1))


HALVE, SCALE = el.div.with_node("DivBackward1"), el.mul.with_node("MulBackward1")


@composite(aliases="trapz", method=False)
@takes_axis
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    r"""Integrate along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values of the function, with at least one dimension.
    x : Tensor, optional
        Points of the values: one-dimensional with one point for each value, or of a shape that broadcasts with that of `y`.
    dx : number, default: 1
        Distance between neighbouring points if `x` is not given.
    {last_dim}

    Returns
    -------
    Tensor
        Shape of `y` without the dimension.

    Raises
    ------
    IndexError
        If the dimension is out of range for `y`.
    RuntimeError
        If `x` or `y` is boolean, or the number of points differs from the number of values.

    Notes
    -----
    .. math:: \sum_i \frac{y_i + y_{i+1}}{2} (x_{i+1} - x_i)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.trapezoid(gl.tensor([0., 1., 4.]), x=gl.tensor([0., 1., 3.]))
    tensor(5.5000)
    """
    axis = negative_dim(dim, y.array.ndim)
    between, n = point_distances("trapezoid", y, x, axis), y.array.shape[axis]
    if not n:
        return constant(namespace_of[type(y.array)].zeros(y.array.shape[:axis] + y.array.shape[axis:][1:], dtype=y.array.dtype))
    if between is not None:
        return HALVE.record((between * (slice_axis(y, axis, 1, None) + slice_axis(y, axis, 0, n - 1))).sum(axis), 2.0)
    ends = slice_axis(y, axis, 0, 1) + slice_axis(y, axis, n - 1, None)
    return SCALE.record(y.sum(axis) - (ends * 0.5).squeeze(axis), dx)


trapz = trapezoid


@composite(method=False)
@takes_axis
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """Integrate cumulatively along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        Values of the function, with at least one dimension.
    x : Tensor, optional
        Points of the values: one-dimensional with one point for each value, or of a shape that broadcasts with that of `y`.
    dx : number, default: 1
        Distance between neighbouring points if `x` is not given.
    {last_dim}

    Returns
    -------
    Tensor
        One element fewer than `y` along the dimension.

    Raises
    ------
    IndexError
        If the dimension is out of range for `y`.
    RuntimeError
        If `x` or `y` is boolean, or the number of points differs from the number of values.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cumulative_trapezoid(gl.tensor([0., 1., 4.]), dx=2)
    tensor([1., 6.])
    """
    if not y.array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = negative_dim(dim, y.array.ndim)
    between = point_distances("cumulative_trapezoid", y, x, axis)
    sums = slice_axis(y, axis, 1, None) + slice_axis(y, axis, 0, max(y.array.shape[axis] - 1, 0))
    return cumsum(sums * (dx / 2), axis) if between is None else HALVE.record(cumsum(between * sums, axis), 2.0)


@composite(method=False)
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    r"""Estimate the gradient of a sampled function by central differences, one-sided at the ends.

    Parameters
    ----------
    input : Tensor
        Samples of the function.
    spacing : number, or sequence of numbers or of Tensor, default: 1
        Distance between neighbouring samples, for all dimensions or for each; or a 1-d tensor of points for each dimension.
    dim : int or sequence of int, optional
        Dimensions. Default: all of them.
    edge_order : int, default: 1
        Order of the differences at the ends, 1 or 2.

    Returns
    -------
    tuple of Tensor
        One tensor for each dimension, with the shape of `input`.

    Raises
    ------
    {no_tensor}
    IndexError
        If a dimension is out of range for `input`.
    RuntimeError
        If `edge_order` is neither 1 nor 2, a dimension has fewer than edge_order + 1 elements, or `spacing` does not match
        `dim`.

    Notes
    -----
    For neighbours at the distances h (before) and k (after), the central difference is

    .. math:: \frac{h^2 f(x+k) + (k^2 - h^2) f(x) - k^2 f(x-h)}{h k (h + k)}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.gradient(gl.tensor([0., 1., 4., 9.]))
    (tensor([1., 2., 4., 5.]),)
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("gradient", input)
    ndim = input.array.ndim
    dims = range(ndim) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    axes = [negative_dim(d, ndim) for d in dims]
    if edge_order not in (1, 2):
        raise RuntimeError("gradlab.gradient only supports edge_order=1 and edge_order=2.")
    for axis in axes:
        if input.array.shape[axis] < edge_order + 1:
            raise RuntimeError(
                "gradlab.gradient expected each dimension size to be at least edge_order+1. Dimension "
                f"{axis + ndim} has {input.array.shape[axis]} elements."
            )
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)
    if len(spacings) != len(axes):
        raise RuntimeError(
            "gradlab.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{ndim}', since dim argument was not given, but got a list of length {len(spacings)}"
            if dim is None
            else "gradlab.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacings)} and a dim argument of length {len(axes)}."
        )
    for points in spacings:
        if isinstance(points, Tensor) and points.array.ndim > 1:
            raise RuntimeError(
                "gradlab.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{points.array.ndim} dimensions!"
            )
    return tuple(slope(input, axis, one, edge_order) for axis, one in zip(axes, spacings, strict=True))


def slope(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    """Estimate the gradient along one axis, as `numpy.gradient` does. The notes of `gradient` give the formula."""
    n = x.array.shape[axis]

    def at(start: int, stop: int) -> Tensor:
        return slice_axis(x, axis, start, n + stop if stop <= 0 else stop)

    if isinstance(spacing, Tensor) and spacing.array.ndim:
        gaps = diff(spacing).reshape(-1, *(1,) * (-axis - 1))
        h, k = gaps[:-1], gaps[1:]
        inner = at(0, -2) * (-k / (h * (h + k))) + at(1, -1) * ((k - h) / (h * k)) + at(2, 0) * (h / (k * (h + k)))
        first, second, last, last_but_one = gaps[:1], gaps[1:2], gaps[-1:], gaps[-2:-1]
    else:
        inner = (at(2, 0) - at(0, -2)) / (2 * spacing)
        first = second = last = last_but_one = spacing
    if edge_order == 1 or n < 3:
        ends = (at(1, 2) - at(0, 1)) / first, (at(n - 1, 0) - at(n - 2, n - 1)) / last
    else:
        h, k = first, second
        start = at(0, 1) * (-(2 * h + k) / (h * (h + k))) + at(1, 2) * ((h + k) / (h * k)) + at(2, 3) * (-h / (k * (h + k)))
        h, k = last_but_one, last
        stop = (
            at(n - 3, n - 2) * (k / (h * (h + k)))
            + at(n - 2, n - 1) * (-(h + k) / (h * k))
            + at(n - 1, 0) * ((2 * k + h) / (k * (h + k)))
        )
        ends = start, stop
    return cat([ends[0], inner, ends[1]], axis)
