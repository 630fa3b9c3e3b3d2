"""Running sums, products and extremes along an axis; differences, integrals and covariances made of sums."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.silence import quietly
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import one_dim, over_dims
from gradlab.ops.copies import cast
from gradlab.ops.joins import cat
from gradlab.ops.permutation import t
from gradlab.ops.results import Picking
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules import cumulative as rules
from gradlab.rules import elementwise as el
from gradlab.rules.cumulative import part

__all__ = [
    "corrcoef",
    "cov",
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


@over_dims
def cumsum(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """The sums of all elements up to each, along `dim`. Bools and integers are summed as int64."""
    if dtype is not None and (made := whole(np.add, input, dim, dtype)) is not None:
        return made
    return rules.cumsum.record(cast(input, dtype), axis=one_axis(dim, input.array.ndim), backwards=False)


@over_dims
def cumprod(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """The products of all elements up to each, along `dim`. Bools and integers are multiplied as int64."""
    if dtype is not None and (made := whole(np.multiply, input, dim, dtype)) is not None:
        return made
    return rules.cumprod.record(cast(input, dtype), axis=one_axis(dim, input.array.ndim))


@over_dims
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """log of the running sum of exp(x) along `dim`, computed without overflow."""
    if input.array.dtype.kind != "f":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{input.dtype.word}'. Call .float() first.")
    return rules.logcumsumexp.record(input, axis=one_axis(dim, input.array.ndim))


def _running_extreme(name: str, ufunc: str, what: str) -> Any:
    picking = Picking(name, f"{name.title()}Backward0")

    def extreme(input: Tensor, dim: int) -> Any:
        x = input.array
        if not x.ndim:
            if dim not in (0, -1):
                raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
            return picking.of_scalar(input)
        axis, xp = one_dim(dim, x.ndim), namespace_of[type(x)]
        reached = (x == rules.accumulated(xp, ufunc, x, axis)) | (x != x)
        at = xp.arange(x.shape[axis]).reshape((-1,) + (1,) * (-axis - 1))
        return picking(input, axis, rules.accumulated(xp, "maximum", xp.where(reached, at, 0), axis), True)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"The {what} element so far along `dim` and where it stands (the last of equals), as (values, indices)."
    return over_dims(extreme)


cummax, cummin = _running_extreme("cummax", "maximum", "largest"), _running_extreme("cummin", "minimum", "smallest")


# ------------------------------------------------------------------------------------------- differences and integrals
def cut(x: Tensor, axis: int, start: int, stop: int | None) -> Tensor:
    """x[..., start:stop, ...] on one negative axis."""
    return part(x, (axis,), start, stop)


COPIED = el.clone.named("CopyBackwards")


@over_dims
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along `dim`, `prepend` and `append` put at its ends first. Of bools, whether they
    differ."""
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


@over_dims
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule, sampled at the points `x` or `dx` apart."""
    axis = one_dim(dim, y.array.ndim)
    between, n = steps("trapezoid", y, x, axis), y.array.shape[axis]
    if not n:
        return constant(namespace_of[type(y.array)].zeros(y.array.shape[:axis] + y.array.shape[axis:][1:], dtype=y.array.dtype))
    if between is not None:
        return HALVED.record((between * (cut(y, axis, 1, None) + cut(y, axis, 0, n - 1))).sum(axis), 2.0)
    ends = cut(y, axis, 0, 1) + cut(y, axis, n - 1, None)
    return SCALED.record(y.sum(axis) - (ends * 0.5).squeeze(axis), dx)


trapz = trapezoid


@over_dims
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = 1, dim: int = -1) -> Tensor:
    """The integral of `y` up to each point along `dim` by the trapezoidal rule; one element fewer than `y`."""
    if not y.array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = one_dim(dim, y.array.ndim)
    between = steps("cumulative_trapezoid", y, x, axis)
    sums = cut(y, axis, 1, None) + cut(y, axis, 0, max(y.array.shape[axis] - 1, 0))
    return cumsum(sums * (dx / 2), axis) if between is None else HALVED.record(cumsum(between * sums, axis), 2.0)


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The slope of `input` along each of the axes `dim` (all by default), by central differences inside and one-sided ones of
    `edge_order` (1 or 2) at the ends. `spacing` is a distance, one for each axis, or 1-D tensors of the points themselves."""
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


# ----------------------------------------------------------------------------------------------------------- covariances
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of the rows (variables) over the columns (observations), which may be weighted by counts (`fweights`) and
    by importance (`aweights`)."""
    if input.array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.array.ndim} dimensions"
        )
    if input.array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.array.ndim < 2 else input
    n = x.array.shape[1]
    weights = None
    for name, w, kinds, what in (("fweights", fweights, "iu", "integral"), ("aweights", aweights, "f", "floating point")):
        if w is None:
            continue
        if w.array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.array.ndim} dimensions"
            )
        if w.array.dtype.kind not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with {w.dtype.word} dtype")
        if w.array.size != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{w.array.size} != {n}"
            )
        if n and bool((w.array < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = w if weights is None else weights * w
    total = n if weights is None else weights.sum()
    mean = (x if weights is None else x * weights).sum(1) / total
    if weights is not None and aweights is not None and correction:
        square = (weights * aweights).sum()
        factor = total - correction * square / total
    else:
        factor = total - correction
    if isinstance(factor, Tensor):
        factor = el.where.record(constant(factor.array > 0), factor, constant(np.zeros((), factor.array.dtype)))
    else:
        factor = max(factor, 0)
    if not (factor > 0 if isinstance(factor, (int, float)) else bool(factor.array > 0)):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=2,
        )
    centred = x - unsqueeze(mean, 1)
    products = centred @ t(centred if weights is None else centred * weights)
    return squeeze(products / factor)


CLIPPED = el.clone.named("ClampBackward1")


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows (variables) over the columns (observations)."""
    if input.array.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.array.ndim} dimensions"
        )
    c = cov(input)
    if not c.array.ndim:
        return c / c
    deviation = c.diagonal().sqrt()
    c = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0)
    return c.clamp(-1, 1)
