"""Reductions over axes. `axis` is a tuple of negative axes, sorted, so that leading batch axes never shift them."""
from __future__ import annotations

from math import prod

from gradlab.core.primitive import linear, primitive


def negative(axis, ndim):
    """Axes counted from the right and sorted; None is all of them."""
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(sorted(a - ndim if a >= 0 else a for a in axes))


def restore(xp, g, axis, keepdims):
    """Put reduced axes back with length 1. `axis` is negative and sorted: from the left, each insertion is final."""
    return g if keepdims or not axis else xp.expand_dims(g, axis)


def count(x_shape, axis):
    """How many elements are reduced into one."""
    return prod([x_shape[i] for i in axis])


sum_ = linear("sum", lambda x, *, axis, keepdims: x.sum(axis=axis, keepdims=keepdims), reads="axes", promote="sum",
              node="SumBackward1", tex=r"\sum {x}",
              x=lambda xp, g, lead, x_shape, axis, keepdims: xp.broadcast_to(restore(xp, g, axis, keepdims), lead + x_shape))
sum_all = sum_.named("SumBackward0")

mean = linear("mean", lambda x, *, axis, keepdims: x.mean(axis=axis, keepdims=keepdims), reads="axes",
              node="MeanBackward1", tex=r"\tfrac{{1}}{{n}} \sum {x}",
              x=lambda xp, g, lead, x_shape, axis, keepdims: xp.broadcast_to(
                  restore(xp, g, axis, keepdims) / count(x_shape, axis), lead + x_shape))
mean_all = mean.named("MeanBackward0")


def variance(xp, x, *, axis, keepdims, correction):
    """The sum of squared distances from the mean, over n - correction; inf or nan where that is not positive."""
    centred = x - x.mean(axis=axis, keepdims=True)
    return (centred * centred).sum(axis=axis, keepdims=keepdims) / max(count(x.shape, axis) - correction, 0)


def deviation(xp, x, *, axis, keepdims, correction):
    return xp.sqrt(variance(xp, x, axis=axis, keepdims=keepdims, correction=correction))


def centred(xp, x, axis):
    return x - xp.mean(x, axis=axis, keepdims=True)


def var_vjp(xp, g, x, x_shape, axis, keepdims, correction):
    degrees = count(x_shape, axis) - correction
    return restore(xp, g, axis, keepdims) * (2 / degrees if degrees > 0 else float("nan")) * centred(xp, x, axis)


def var_jvp(xp, t, x, x_shape, axis, keepdims, correction):
    degrees = count(x_shape, axis) - correction
    return xp.sum(t * centred(xp, x, axis), axis=axis, keepdims=keepdims) * (2 / degrees if degrees > 0 else float("nan"))


def half_slope(xp, out):
    """d sqrt(v) / dv = 1 / (2 sqrt(v)), taken as 0 where the deviation itself is 0, as PyTorch does."""
    return xp.where(out == 0, 0, 0.5 / xp.where(out == 0, 1, out))


var = primitive("var", variance, reads="axes", tex=r"\mathrm{{var}}({x})",
                formula=r"\bar{x} = \frac{2}{n - c}\,\bar{y}\,(x - \mathrm{mean}\,x)",
                vjp={"x": var_vjp}, jvp={"x": var_jvp})
std = primitive("std", deviation, reads="axes", tex=r"\mathrm{{std}}({x})",
                formula=r"\bar{x} = \frac{1}{n - c}\,\frac{\bar{y}}{y}\,(x - \mathrm{mean}\,x)",
                vjp={"x": lambda xp, g, x, out, x_shape, axis, keepdims, correction: var_vjp(
                    xp, g * half_slope(xp, out), x, x_shape, axis, keepdims, correction)},
                jvp={"x": lambda xp, t, x, out, x_shape, axis, keepdims, correction: half_slope(xp, out) * var_jvp(
                    xp, t, x, x_shape, axis, keepdims, correction)})


def direction(xp, x, out, axis, keepdims):
    """x / |x|, and 0 where the norm is 0: the subgradient that PyTorch takes."""
    length = restore(xp, out, axis, keepdims)
    return xp.where(length == 0, 0, x / xp.where(length == 0, 1, length))


vector_norm = primitive("vector_norm", lambda xp, x, *, axis, keepdims: xp.sqrt((x * x).sum(axis=axis, keepdims=keepdims)),
                        reads="axes", node="LinalgVectorNormBackward0", tex=r"\lVert {x} \rVert",
                        formula=r"\bar{x} = \bar{y}\,\frac{x}{y}",
                        vjp={"x": lambda xp, g, x, out, axis, keepdims: restore(xp, g, axis, keepdims) * direction(
                            xp, x, out, axis, keepdims)},
                        jvp={"x": lambda xp, t, x, out, axis, keepdims: xp.sum(
                            t * direction(xp, x, out, axis, keepdims), axis=axis, keepdims=keepdims)})


def share(xp, g, x, extreme, axis):
    """g where x is the extreme value, divided evenly among ties (PyTorch's rule for reductions without `dim`). An extreme
    that is NaN is shared by the NaNs."""
    mask = (x == extreme) | ((x != x) & (extreme != extreme))
    return xp.where(mask, g, 0) / xp.sum(xp.astype(mask, extreme.dtype), axis=axis, keepdims=True)


def extreme_rules(name, node, function):
    return primitive(
        name, lambda x, *, axis, keepdims: function(x, axis, keepdims), reads="axes", node=node,
        tex=rf"\{name.removeprefix('a')} {{x}}",
        formula=r"\bar{x} = \bar{y}\,[x = y] \,/\, \#[x = y]",
        vjp={"x": lambda xp, g, x, out, axis, keepdims: share(
            xp, restore(xp, g, axis, keepdims), x, restore(xp, out, axis, keepdims), axis)},
        jvp={"x": lambda xp, t, x, out, axis, keepdims: xp.sum(
            share(xp, t, x, restore(xp, out, axis, keepdims), axis), axis=axis, keepdims=keepdims)})


amax = extreme_rules("amax", "AmaxBackward0", lambda x, axis, keepdims: x.max(axis=axis, keepdims=keepdims))
amin = extreme_rules("amin", "AminBackward0", lambda x, axis, keepdims: x.min(axis=axis, keepdims=keepdims))
max_all, min_all = amax.named("MaxBackward1"), amin.named("MinBackward1")
