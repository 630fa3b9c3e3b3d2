"""Running sums, products and extremes along an axis; differences and integrals made of sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.numpy_warnings import quietly
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor, one_dim, over_dims
from gradlab.ops.copies import cast
from gradlab.ops.joins import cat
from gradlab.ops.results import Result, ValuesAndIndices
from gradlab.rules import cumulative as rules
from gradlab.rules import elementwise as el
from gradlab.rules.cumulative import part

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


def one_axis(dim: int, ndim: int) -> tuple[int, ...]:
    """One axis as the rules take it: none, where there is none."""
    axis = one_dim(dim, ndim)
    return (axis,) if ndim else ()


def whole(ufunc: Any, input: Tensor, dim: int, dtype: Any) -> Tensor | None:
    """Running totals in an integer dtype that was asked for; None where none was."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or wanted.kind == "f":
        return None
    x, axis = quietly(input.array.astype, wanted), one_axis(dim, input.array.ndim)
    return constant(rules.running(namespace_of[type(x)], ufunc, x, axis) if axis else x)


@composed(inplace="method")
@over_dims
def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The sums of all elements up to each, along one axis.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype; of bools and integers int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    The gradient is the running sum of the cotangents from the other end.

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
    if dtype is not None and (totals := whole(np.add, input, dim, dtype)) is not None:
        return totals
    return rules.cumsum.record(cast(input, dtype), axis=one_axis(dim, input.array.ndim), backwards=False)


@composed(inplace="method")
@over_dims
def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The products of all elements up to each, along one axis.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype; of bools and integers int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    For the gradient nothing is divided: it is right where elements are 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cumprod(gl.tensor([1., 2., 3.]), dim=0)
    tensor([1., 2., 6.])
    """
    if dtype is not None and (totals := whole(np.multiply, input, dim, dtype)) is not None:
        return totals
    return rules.cumprod.record(cast(input, dtype), axis=one_axis(dim, input.array.ndim))


@composed()
@over_dims
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    r"""The logarithms of the running sums of the powers of e, along one axis.

    Parameters
    ----------
    {input}
    {one_dim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` is not floating point.

    Notes
    -----
    .. math:: y_i = \log \sum_{j \le i} e^{x_j}

    No power overflows.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logcumsumexp(gl.tensor([0., 0., 0.]), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    if input.array.dtype.kind != "f":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{input.dtype.word}'. Call .float() first.")
    return rules.logcumsumexp.record(input, axis=one_axis(dim, input.array.ndim))


def _running_extreme(picking: ValuesAndIndices, name: str, ufunc: str, input: Tensor, dim: int) -> Result:
    x = input.array
    if not x.ndim:
        if dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        return picking.of_scalar(input)
    axis, xp = one_dim(dim, x.ndim), namespace_of[type(x)]
    reached = (x == rules.accumulated(xp, ufunc, x, axis)) | (x != x)
    at = xp.arange(x.shape[axis]).reshape((-1,) + (1,) * (-axis - 1))
    return picking(input, axis, rules.accumulated(xp, "maximum", xp.where(reached, at, 0), axis), True)


CUMMAX = ValuesAndIndices("cummax", "CummaxBackward0")


@composed()
@over_dims
def cummax(input: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """The largest element so far, along one axis, and where it stands.

    Parameters
    ----------
    {input}
    {one_dim}
    {outs}

    Returns
    -------
    values : Tensor
        The shape and the dtype of `input`.
    indices : Tensor
        Where they stand along the axis, the last of equals: the shape of `input`, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    From a NaN on, all values are NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.cummax(gl.tensor([1., 3., 2., 3.]), dim=0)
    >>> indices
    tensor([0, 1, 1, 3])
    """
    return _running_extreme(CUMMAX, "cummax", "maximum", input, dim)


CUMMIN = ValuesAndIndices("cummin", "CumminBackward0")


@composed()
@over_dims
def cummin(input: Tensor, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """The smallest element so far, along one axis, and where it stands.

    Parameters
    ----------
    {input}
    {one_dim}
    {outs}

    Returns
    -------
    values : Tensor
        The shape and the dtype of `input`.
    indices : Tensor
        Where they stand along the axis, the last of equals: the shape of `input`, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    From a NaN on, all values are NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> values, indices = gl.cummin(gl.tensor([3., 1., 2., 1.]), dim=0)
    >>> indices
    tensor([0, 1, 1, 3])
    """
    return _running_extreme(CUMMIN, "cummin", "minimum", input, dim)


# ------------------------------------------------------------------------------------------- differences and integrals
def cut(x: Tensor, axis: int, start: int, stop: int | None) -> Tensor:
    """x[..., start:stop, ...] on one negative axis."""
    return part(x, (axis,), start, stop)


COPIED = el.clone.named("CopyBackwards")


@composed()
@over_dims
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, taken `n` times.

    Parameters
    ----------
    input : Tensor
        The tensor, of at least one axis.
    n : int, default 1
        How many times differences are taken.
    {last_dim}
    prepend, append : Tensor, optional
        What is put before and behind `input` along the axis first; of its shape but for that axis.
    {out}

    Returns
    -------
    Tensor
        The shape of `input` with `n` elements fewer along the axis, of its dtype; of bools, whether neighbours differ.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` has no axis, `n` is negative, or a shape does not fit.

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
    axis = one_dim(dim, input.array.ndim)
    for extra in (prepend, append):
        if extra is None:
            continue
        if extra.array.ndim != input.array.ndim:
            raise RuntimeError(
                "diff expects prepend or append to be the same dimension as input. They have "
                f"{extra.array.ndim} and {input.array.ndim}."
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
        return COPIED.record(input)
    for _ in range(min(n, input.array.shape[axis])):
        late, early = cut(input, axis, 1, None), cut(input, axis, 0, max(input.array.shape[axis] - 1, 0))
        input = constant(late.array ^ early.array) if input.array.dtype.kind == "b" else el.sub.record(late, early)
    return input


def steps(name: str, y: Tensor, x: Tensor | None, axis: int) -> Tensor | None:
    """The distances between the points of `x` along `y`'s axis, with torch's checks."""
    if y.array.dtype.kind == "b" or (x is not None and x.array.dtype.kind == "b"):
        raise RuntimeError(f"{name}: received a bool input for `{'y' if x is None else 'x` or `y'}`, but bool is not supported")
    if x is None or x.array.ndim != 1:
        return None if x is None else diff(x, dim=axis)
    if x.array.shape[0] != y.array.shape[axis]:
        raise RuntimeError(
            f"{name}: There must be one `x` value for each sample point. They are {x.array.shape[0]} and {y.array.shape[axis]}."
        )
    return diff(x).reshape(-1, *(1,) * (-axis - 1))


HALVED, SCALED = el.div.named("DivBackward1"), el.mul.named("MulBackward1")


@composed(aliases="trapz", method=False)
@over_dims
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    r"""The integral along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values of the function, of at least one axis.
    x : Tensor, optional
        The points where it has them: of one axis as long as that of `y`, or of a shape that broadcasts with that of `y`.
    dx : number, default 1
        The distance of neighbouring points, if `x` is not given.
    {last_dim}

    Returns
    -------
    Tensor
        The shape of `y` without the axis.

    Raises
    ------
    IndexError
        If `y` has no such axis.
    RuntimeError
        If `x` or `y` holds bools, or there is not one `x` for each element along the axis.

    Notes
    -----
    .. math:: \sum_i \frac{y_i + y_{i+1}}{2} (x_{i+1} - x_i)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.trapezoid(gl.tensor([0., 1., 4.]), x=gl.tensor([0., 1., 3.]))
    tensor(5.5000)
    """
    axis = one_dim(dim, y.array.ndim)
    between, n = steps("trapezoid", y, x, axis), y.array.shape[axis]
    if not n:
        return constant(namespace_of[type(y.array)].zeros(y.array.shape[:axis] + y.array.shape[axis:][1:], dtype=y.array.dtype))
    if between is not None:
        return HALVED.record((between * (cut(y, axis, 1, None) + cut(y, axis, 0, n - 1))).sum(axis), 2.0)
    ends = cut(y, axis, 0, 1) + cut(y, axis, n - 1, None)
    return SCALED.record(y.sum(axis) - (ends * 0.5).squeeze(axis), dx)


trapz = trapezoid


@composed(method=False)
@over_dims
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral up to each point along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values of the function, of at least one axis.
    x : Tensor, optional
        The points where it has them: of one axis as long as that of `y`, or of a shape that broadcasts with that of `y`.
    dx : number, default 1
        The distance of neighbouring points, if `x` is not given.
    {last_dim}

    Returns
    -------
    Tensor
        The shape of `y` with one element fewer along the axis.

    Raises
    ------
    IndexError
        If `y` has no such axis.
    RuntimeError
        If `x` or `y` holds bools, or there is not one `x` for each element along the axis.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cumulative_trapezoid(gl.tensor([0., 1., 4.]), dx=2)
    tensor([1., 6.])
    """
    if not y.array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = one_dim(dim, y.array.ndim)
    between = steps("cumulative_trapezoid", y, x, axis)
    sums = cut(y, axis, 1, None) + cut(y, axis, 0, max(y.array.shape[axis] - 1, 0))
    return cumsum(sums * (dx / 2), axis) if between is None else HALVED.record(cumsum(between * sums, axis), 2.0)


@composed(method=False)
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    r"""The slope of samples along axes: central differences inside, one-sided ones at the ends.

    Parameters
    ----------
    input : Tensor
        The samples.
    spacing : number, or sequence of numbers or of Tensor, default 1
        The distance of neighbours, the same for all axes or one for each; or for each axis the points themselves, a 1-D tensor.
    dim : int or sequence of ints, optional
        The axes, all by default.
    edge_order : int, default 1
        The order of the differences at the ends, 1 or 2.

    Returns
    -------
    tuple of Tensor
        For each axis a tensor of the shape of `input`.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis.
    RuntimeError
        If `edge_order` is neither 1 nor 2, an axis has fewer than edge_order + 1 elements, or `spacing` does not fit `dim`.

    Notes
    -----
    With points at the distances h (before) and k (behind), the central difference is

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
    axes = [one_dim(d, ndim) for d in dims]
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
    """The slope along one axis. With points at distances h (before) and k (behind), the central difference is
    (h² f(x+k) + (k² - h²) f(x) - k² f(x-h)) / (h k (h + k)), as in numpy.gradient."""
    n = x.array.shape[axis]

    def at(start: int, stop: int) -> Tensor:
        return cut(x, axis, start, n + stop if stop <= 0 else stop)

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
