"""Reductions over axes. `axis` is a sorted tuple of negative axes, so that leading batch axes do not shift them.

Forwards call the ufunc's `reduce` on NumPy arrays, because the array method spends most of its time on the way to it. Equal
extreme values share the cotangent. Maxima and minima along one axis, which select one element, use `gather` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan, prod
from typing import Any

import numpy as np

from gradlab.backend.sums import is_large, sum_large
from gradlab.core.joint import Joint
from gradlab.core.primitive import Primitive, linear, primitive
from gradlab.core.properties import Properties
from gradlab.rules.arguments import MIN_STEPWISE_SIZE, Array, Axes, Namespace, Shape


def negative_axes(axis: int | Sequence[int] | None, ndim: int) -> Axes:
    """Return the axes as sorted negative numbers; None means all axes."""
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(a - ndim if a >= 0 else a for a in axes))


def restore_axes(xp: Namespace, g: Array, axis: Axes, keepdims: bool) -> Array:
    """Insert the reduced axes with length 1. `axis` is negative and sorted."""
    return g if keepdims or not axis else xp.expand_dims(g, axis)


def count_reduced(x_shape: Shape, axis: Axes) -> int:
    """Return the number of elements that are reduced to one."""
    return prod([x_shape[i] for i in axis])


def reduce_rows(ufunc: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    """Return `ufunc.reduce(x, axis)`.

    NumPy has an overhead for each row that it reduces. Many short rows are therefore reduced as the long columns of a transposed
    copy: a softmax over ten classes takes half the time, and a fifth for a thousand samples.
    """
    if axis == (-1,) and x.ndim == 2 and x.shape[1] <= 32 <= x.shape[0]:
        out = ufunc.reduce(x.T.copy(), 0)
        return out[:, None] if keepdims else out
    return ufunc.reduce(x, axis, None, None, keepdims)


def total(xp: Namespace, x: Array, axis: Axes, keepdims: bool = False) -> Array:
    """Return the sum of an array or Tensor."""
    if xp is not np:
        return xp.sum(x, axis=axis, keepdims=keepdims)
    return sum_large(x, axis, keepdims) if axis and is_large(x) else reduce_rows(np.add, x, axis, keepdims)


def average(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return total(xp, x, axis, keepdims) / count_reduced(x.shape, axis)


def largest(x: Array, axis: Axes, keepdims: bool) -> Array:
    return reduce_rows(np.maximum, x, axis, keepdims) if type(x) is np.ndarray else x.max(axis=axis, keepdims=keepdims)


def smallest(x: Array, axis: Axes, keepdims: bool) -> Array:
    return reduce_rows(np.minimum, x, axis, keepdims) if type(x) is np.ndarray else x.min(axis=axis, keepdims=keepdims)


sum_ = linear(
    "sum",
    lambda xp, x, *, axis, keepdims: total(xp, x, axis, keepdims),
    reads="axes",
    promote="sum",
    node="SumBackward1",
    tex=r"\sum {x}",
    x=lambda xp, g, lead, x_shape, axis, keepdims: xp.broadcast_to(restore_axes(xp, g, axis, keepdims), lead + x_shape),
    properties=Properties(keeps_sign=True, reduces="sum"),
)
sum_all = sum_.with_node("SumBackward0")

mean = linear(
    "mean",
    average,
    reads="axes",
    node="MeanBackward1",
    tex=r"\tfrac{{1}}{{n}} \sum {x}",
    x=lambda xp, g, lead, x_shape, axis, keepdims: xp.broadcast_to(
        restore_axes(xp, g, axis, keepdims) / count_reduced(x_shape, axis), lead + x_shape
    ),
    promote="single",
    properties=Properties(keeps_sign=True, reduces="mean"),
)
mean_all = mean.with_node("MeanBackward0")


def ones_where(xp: Namespace, mask: Array, dtype: Any) -> Array:
    """Return 1 where the mask is True, and 0 elsewhere. (`np.astype` in NumPy 2.0 does not accept the mask of a scalar.)"""
    return mask.astype(dtype) if isinstance(mask, np.generic) else xp.astype(mask, dtype)


def is_number(xp: Namespace, x: Array) -> Array:
    """Return 1 where x is a number, and 0 where it is NaN."""
    return ones_where(xp, x == x, x.dtype)


nansum = primitive(
    "nansum",
    lambda xp, x, *, axis, keepdims: total(xp, xp.where(x != x, 0, x), axis, keepdims),
    reads="axes",
    piecewise=True,
    tex=r"\sum [x = x]\,{x}",
    formula=r"\bar{x} = \bar{y}\,[x = x]",
    vjp={"x": lambda xp, g, x, axis, keepdims: restore_axes(xp, g, axis, keepdims) * is_number(xp, x)},
    jvp={"x": lambda xp, t, x, axis, keepdims: total(xp, t * is_number(xp, x), axis, keepdims)},
    promote="single",
    properties=Properties(keeps_sign=True, reduces="nansum"),
)


# ------------------------------------------------------------------------------------------------------------- products
def running_product(xp: Namespace, x: Array, axis: int) -> Array:
    """Return the product of the elements up to each, along one negative axis."""
    return np.multiply.accumulate(x, axis) if xp is np else xp.cumprod(x, axis=axis)


def products_of_others(xp: Namespace, x: Array, axis: Axes) -> Array:
    """Return, for each element, the product of all others: of those before it and those after it.

    There is no division, so zeros need no special case, and the derivatives are right at zeros too.
    """
    if not axis:
        return xp.ones_like(x)
    if len(axis) > 1:
        return products_of_others(xp, x.reshape((-1,)), (-1,)).reshape(x.shape)
    at, rest = axis[0], (slice(None),) * (-axis[0] - 1)
    if not x.shape[at]:
        return x
    if type(x) is np.ndarray and x.size >= MIN_STEPWISE_SIZE * x.shape[at]:
        return products_of_others_stepwise(x, at)
    one = xp.ones_like(x[(Ellipsis, slice(0, 1), *rest)])
    earlier, later = x[(Ellipsis, slice(0, x.shape[at] - 1), *rest)], xp.flip(x[(Ellipsis, slice(1, None), *rest)], axis=at)
    before = running_product(xp, xp.concatenate([one, earlier], axis=at), at)
    behind = running_product(xp, xp.concatenate([one, later], axis=at), at)
    return before * xp.flip(behind, axis=at)


def products_of_others_stepwise(x: Array, at: int) -> Array:
    """Compute `products_of_others` on NumPy in a loop along the axis, for steps of many elements."""
    rows = np.moveaxis(x, at, 0)
    if at == -1:  # steps would be columns, with each element in another cache line
        rows = rows.copy(order="C")
    products = np.empty(rows.shape, x.dtype)
    products[0] = 1
    for i in range(1, len(rows)):
        np.multiply(products[i - 1], rows[i - 1], out=products[i])
    behind = rows[-1].copy()
    for i in range(len(rows) - 2, -1, -1):
        products[i] *= behind
        behind *= rows[i]
    return np.ascontiguousarray(np.moveaxis(products, 0, at))


def prod_forward(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    multiply: Any = np.multiply  # its type does not allow None as a positional argument
    return multiply.reduce(x, axis, None, None, keepdims) if type(x) is np.ndarray else x.prod(axis=axis, keepdims=keepdims)


product = primitive(
    "prod",
    prod_forward,
    reads="axes",
    promote="sum",
    piecewise=True,
    node="ProdBackward1",
    tex=r"\prod {x}",
    formula=r"\bar{x}_i = \bar{y}\,\prod_{j \neq i} x_j",
    vjp={"x": lambda xp, g, x, axis, keepdims: restore_axes(xp, g, axis, keepdims) * products_of_others(xp, x, axis)},
    jvp={"x": lambda xp, t, x, axis, keepdims: total(xp, t * products_of_others(xp, x, axis), axis, keepdims)},
    properties=Properties(poles=True, reduces="product"),
)
product_all = product.with_node("ProdBackward0")


# -------------------------------------------------------------------------------------------------------------- spreads
def variance(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool, correction: float) -> Array:
    """Return the sum of squared deviations from the mean over n - correction; inf or nan if that is not positive."""
    centred = x - average(xp, x, axis=axis, keepdims=True)
    if centred.ndim:
        centred *= centred  # in place
    else:
        centred = centred * centred
    return total(xp, centred, axis, keepdims) / max(count_reduced(x.shape, axis) - correction, 0)


def deviation(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool, correction: float) -> Array:
    return xp.sqrt(variance(xp, x, axis=axis, keepdims=keepdims, correction=correction))


def variance_slope(xp: Namespace, x: Array, axis: Axes, degrees: float) -> Array:
    """Return d var / dx, which is infinite if there are no degrees of freedom, as in PyTorch."""
    centred = x - total(xp, x, axis, True) / count_reduced(x.shape, axis)
    if degrees <= 0 and len(axis) == len(x.shape):
        return xp.where(centred == 0, nan, xp.zeros_like(x) + inf)
    return (2 / degrees if degrees > 0 else inf) * centred


def var_vjp(xp: Namespace, g: Array, x: Array, x_shape: Shape, axis: Axes, keepdims: bool, correction: float) -> Array:
    return restore_axes(xp, g, axis, keepdims) * variance_slope(xp, x, axis, count_reduced(x_shape, axis) - correction)


def var_jvp(xp: Namespace, t: Array, x: Array, x_shape: Shape, axis: Axes, keepdims: bool, correction: float) -> Array:
    return total(xp, t * variance_slope(xp, x, axis, count_reduced(x_shape, axis) - correction), axis, keepdims)


def sqrt_cotangent(xp: Namespace, g: Array, out: Array) -> Array:
    """Compute g · d sqrt(v) / dv = g / (2 sqrt(v)), and 0 where the deviation is 0, as in PyTorch."""
    return xp.where(out == 0, 0, g / (2 * out))


var = primitive(
    "var",
    variance,
    reads="axes",
    piecewise=True,
    tex=r"\mathrm{{var}}({x})",
    formula=r"\bar{x} = \frac{2}{n - c}\,\bar{y}\,(x - \mathrm{mean}\,x)",
    vjp={"x": var_vjp},
    jvp={"x": var_jvp},
    promote="single",
    properties=Properties(poles=True, low=0, reduces="spread"),
)
std = primitive(
    "std",
    deviation,
    reads="axes",
    tex=r"\mathrm{{std}}({x})",
    formula=r"\bar{x} = \frac{1}{n - c}\,\frac{\bar{y}}{y}\,(x - \mathrm{mean}\,x)",
    vjp={
        "x": lambda xp, g, x, out, x_shape, axis, keepdims, correction: var_vjp(
            xp, sqrt_cotangent(xp, g, out), x, x_shape, axis, keepdims, correction
        )
    },
    jvp={
        "x": lambda xp, t, x, out, x_shape, axis, keepdims, correction: sqrt_cotangent(
            xp, var_jvp(xp, t, x, x_shape, axis, keepdims, correction), out
        )
    },
    promote="single",
    properties=Properties(poles=True, low=0, reduces="spread"),
)
var_mean = Joint(
    "VarMeanBackward0",
    var,
    mean,
    tex=r"(\mathrm{{var}}({x}),\ \mathrm{{mean}}\,{x})",
    formula=r"\bar{x} = \frac{2}{n - c}\,\bar{y}_0\,(x - \mathrm{mean}\,x) + \tfrac{1}{n}\,\bar{y}_1",
)
std_mean = Joint(
    "StdMeanBackward0",
    std,
    mean,
    tex=r"(\mathrm{{std}}({x}),\ \mathrm{{mean}}\,{x})",
    formula=r"\bar{x} = \frac{1}{n - c}\,\frac{\bar{y}_0}{y_0}\,(x - \mathrm{mean}\,x) + \tfrac{1}{n}\,\bar{y}_1",
)


# ---------------------------------------------------------------------------------------------------------------- norms
def norm_forward(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool, order: float) -> Array:
    """Compute (Σ |x|ᵖ)^(1/p): for p = 0 the number of nonzeros, for p = ±∞ the largest or smallest magnitude."""
    if order == 2:
        return xp.sqrt(total(xp, x * x, axis, keepdims))
    if order == 0:
        return total(xp, ones_where(xp, x != 0, x.dtype), axis, keepdims)
    sizes = xp.absolute(x)
    if order == 1:
        return total(xp, sizes, axis, keepdims)
    if order in (inf, -inf):
        sizes = xp.asarray(sizes)
        return largest(sizes, axis, keepdims) if order > 0 else smallest(sizes, axis, keepdims)
    return total(xp, sizes**order, axis, keepdims) ** (1 / order)


def norm_cotangent(xp: Namespace, g: Array, x: Array, norm: Array, axis: Axes, order: float) -> Array:
    """Compute g · d |x| / dx with PyTorch's subgradients: 0 where x or the norm is 0; equal extremes share the cotangent."""
    if order == 0:
        return xp.zeros_like(g * x)
    if order == 1:
        return g * xp.sign(x)
    if order == 2:
        return g * xp.where(norm == 0, 0, x / norm)
    size = xp.absolute(x)
    if order in (inf, -inf):
        tied = (size == norm) | ((size != size) & (norm != norm))
        return g * xp.where(tied, xp.sign(x), 0) / total(xp, ones_where(xp, tied, norm.dtype), axis, True)
    if order < 1:
        return xp.where(x == 0, 0, xp.sign(x) * size ** (order - 1)) * (g * norm ** (1 - order))
    scaled = xp.sign(x) * size ** (order - 1) if order < 2 else x * size ** (order - 2)
    return scaled * xp.where(norm == 0, 0, g / norm ** (order - 1))


vector_norm = primitive(
    "vector_norm",
    norm_forward,
    reads="axes",
    node="LinalgVectorNormBackward0",
    tex=r"\lVert {x} \rVert_{{{order}}}",
    formula=r"\bar{x} = \bar{y}\,\mathrm{sgn}(x)\,\bigl(\tfrac{|x|}{y}\bigr)^{p-1}",
    vjp={
        "x": lambda xp, g, x, out, axis, keepdims, order: norm_cotangent(
            xp, restore_axes(xp, g, axis, keepdims), x, restore_axes(xp, out, axis, keepdims), axis, order
        )
    },
    jvp={
        "x": lambda xp, t, x, out, axis, keepdims, order: total(
            xp, norm_cotangent(xp, t, x, restore_axes(xp, out, axis, keepdims), axis, order), axis, keepdims
        )
    },
    promote="single",
    properties=Properties(poles=True, still=True, low=0, reduces="norm"),
)
distance = vector_norm.with_node("DistBackward0")


# ------------------------------------------------------------------------------------------------------------- extremes
MAXIMUM = Properties(keeps_sign=True, ignores_minus_inf=True, reduces="extreme")
MINIMUM = Properties(keeps_sign=True, reduces="extreme")
RANK = Properties(keeps_sign=True, reduces="rank")


def share_among_ties(xp: Namespace, g: Array, x: Array, extreme: Array, axis: Axes, nans: bool) -> Array:
    """Return g where x is the extreme value, divided evenly among ties, and 0 elsewhere.

    With `nans`, NaNs share the cotangent of an extreme value that is NaN. Without it, 0 / 0 makes all elements NaN, as in PyTorch
    for reductions with `dim`.
    """
    mask = x == extreme
    if nans:
        mask = mask | ((x != x) & (extreme != extreme))
    return xp.where(mask, g, 0) / total(xp, ones_where(xp, mask, extreme.dtype), axis, True)


def extreme_primitive(
    name: str, node: str, function: Callable[..., Array], tex: str, nans: bool, properties: Properties
) -> Primitive:
    return primitive(
        name,
        function,
        reads="axes",
        piecewise=True,
        node=node,
        tex=rf"{tex} {{x}}",
        formula=r"\bar{x} = \bar{y}\,[x = y] \,/\, \#[x = y]",
        vjp={
            "x": lambda xp, g, x, out, axis, keepdims: share_among_ties(
                xp, restore_axes(xp, g, axis, keepdims), x, restore_axes(xp, out, axis, keepdims), axis, nans
            )
        },
        jvp={
            "x": lambda xp, t, x, out, axis, keepdims: total(
                xp, share_among_ties(xp, t, x, restore_axes(xp, out, axis, keepdims), axis, nans), axis, keepdims
            )
        },
        properties=properties,
    )


def lower_median(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    """Return the lower median of all elements; NaN if there is a NaN, or no element."""
    flat = x.reshape(-1)
    if not flat.size:
        return xp.full(x.shape if keepdims else (), nan, x.dtype)
    median = xp.partition(flat, (flat.size - 1) // 2)[(flat.size - 1) // 2]
    if x.dtype.kind == "f":
        median = xp.where((flat != flat).any(), nan, median).astype(x.dtype)
    return median.reshape((1,) * x.ndim) if keepdims else median


def lower_nanmedian(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    """Return the lower median of all elements except NaNs; NaN if there are no others."""
    flat = x.reshape(-1)
    if not flat.size:
        return lower_median(xp, x, axis=axis, keepdims=keepdims)
    at = xp.maximum((flat == flat).sum() - 1, 0) // 2  # NaNs are sorted to the end
    median = xp.sort(flat)[at]
    return median.reshape((1,) * x.ndim) if keepdims else median


def largest_along(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return largest(x, axis, keepdims)


def smallest_along(x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return smallest(x, axis, keepdims)


amax = extreme_primitive("amax", "AmaxBackward0", largest_along, r"\max", False, MAXIMUM)
amin = extreme_primitive("amin", "AminBackward0", smallest_along, r"\min", False, MINIMUM)
max_all = extreme_primitive("max", "MaxBackward1", largest_along, r"\max", True, MAXIMUM)
min_all = extreme_primitive("min", "MinBackward1", smallest_along, r"\min", True, MINIMUM)
median = extreme_primitive("median", "MedianBackward0", lower_median, r"\mathrm{{median}}", True, RANK)
nanmedian = extreme_primitive("nanmedian", "NanmedianBackward0", lower_nanmedian, r"\mathrm{{median}}", True, RANK)
aminmax = Joint(
    "AminmaxBackward0",
    amin,
    amax,
    tex=r"(\min {x},\ \max {x})",
    formula=r"\bar{x} = \bar{y}_0\,\frac{[x = y_0]}{\#[x = y_0]} + \bar{y}_1\,\frac{[x = y_1]}{\#[x = y_1]}",
)
