"""Cumulative sums, products and log-sum-exps along one axis. `axis` is a tuple with one negative axis, as in other modules.

The rules of `cumprod` and `logcumsumexp` are one recurrence, r[i] = g[i] + a[i] r[i+1] (`solve_recurrence`). It does not
divide, so zeros need no special case, and every factor of a log-sum-exp is at most 1. On NumPy it is a loop over the steps if
each step has many elements. Otherwise, and on a GPU, it takes log n steps of whole arrays.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradlab.core.primitive import Primitive, linear, primitive
from gradlab.core.properties import Properties
from gradlab.rules.arguments import MIN_STEPWISE_SIZE, Array, Axes, Namespace

MIN_CONTIGUOUS_ELEMENTS = 16  # contiguous elements per step, from which whole rows are added at a time


def slice_along(x: Array, axis: Axes, start: int, stop: int | None) -> Array:
    """Return x[..., start:stop, ...] along the negative axis."""
    return x[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis[0] - 1)]


def solve_recurrence(xp: Namespace, g: Array, a: Array, axis: Axes, forward: bool) -> Array:
    """Solve r[i] = g[i] + a[i] r[i+1] or, with `forward`, r[i] = g[i] + a[i-1] r[i-1].

    `a` has one element less than `g` along the axis, and `g` may have batch axes in front. The stride s doubles at each step:
    r[i] is then the sum of s terms, and `a` holds products of s factors.
    """
    n, s = g.shape[axis[0]], 1
    if n > 1 and type(g) is np.ndarray is type(a) and g.size >= MIN_STEPWISE_SIZE * n:
        return solve_stepwise(g, a, axis, forward)
    while s < n:
        early, late = slice_along(g, axis, 0, n - s), slice_along(g, axis, s, None)
        g = xp.concatenate(
            [slice_along(g, axis, 0, s), late + a * early] if forward else [early + a * late, slice_along(g, axis, n - s, None)],
            axis=axis[0],
        )
        a = slice_along(a, axis, 0, max(n - 2 * s, 0)) * slice_along(a, axis, s, None)
        s *= 2
    return g


def solve_stepwise(g: Array, a: Array, axis: Axes, forward: bool) -> Array:
    """Solve the recurrence in a loop along the axis: 2 operations per element instead of 3 log n."""
    terms, factors = np.moveaxis(g, axis[0], 0), np.moveaxis(a, axis[0], 0)
    if axis[0] == -1:  # steps would be columns, with each element in another cache line
        factors = factors.copy(order="C")
    r = terms.astype(np.result_type(g, a), order="C")
    part = np.empty_like(r[0])
    for i in range(1, len(r)) if forward else range(len(r) - 2, -1, -1):
        np.multiply(factors[i - 1] if forward else factors[i], r[i - 1] if forward else r[i + 1], out=part)
        r[i] += part
    return np.ascontiguousarray(np.moveaxis(r, 0, axis[0]))


def products_before(xp: Namespace, out: Array, axis: Axes) -> Array:
    """Return the product of all earlier elements for each: `out` shifted by one, with 1 in front."""
    return xp.concatenate(
        [xp.ones_like(slice_along(out, axis, 0, 1)), slice_along(out, axis, 0, max(out.shape[axis[0]] - 1, 0))], axis=axis[0]
    )


def accumulate_along(xp: Namespace, name: str, x: Array, axis: int) -> Array:
    """Return `xp.<name>.accumulate(x, axis)` for a negative axis. Only NumPy has it; others double the stride at each step."""
    ufunc = getattr(xp, name)
    if xp is np:
        return ufunc.accumulate(x, axis)
    n, s, at = x.shape[axis], 1, (axis,)
    while s < n:
        x = xp.concatenate(
            [slice_along(x, at, 0, s), ufunc(slice_along(x, at, s, None), slice_along(x, at, 0, n - s))], axis=axis
        )
        s *= 2
    return x


def running_totals(xp: Namespace, ufunc: np.ufunc, x: Array, axis: Axes, backwards: bool = False) -> Array:
    """Return running sums or products, from the end if `backwards`. Floats add up in float64, as in PyTorch on the CPU."""
    at, wide = axis[0], np.dtype(np.float64) if x.dtype.kind == "f" else x.dtype
    if xp is not np:
        totals = (xp.cumsum if ufunc is np.add else xp.cumprod)(xp.flip(x, axis=at) if backwards else x, axis=at, dtype=wide)
        totals = totals.astype(x.dtype, copy=False)
        return xp.flip(totals, axis=at) if backwards else totals
    out = np.empty(x.shape, x.dtype)
    if (
        at < -1 and prod(x.shape[at + 1 :]) >= MIN_CONTIGUOUS_ELEMENTS and x.size >= MIN_STEPWISE_SIZE * x.shape[at]
    ):  # add whole rows at a time
        rows, totals = np.moveaxis(x, at, 0), np.moveaxis(out, at, 0)
        order = range(len(rows) - 1, -1, -1) if backwards else range(len(rows))
        total: Array | None = None
        for i in order:
            total = rows[i].astype(wide) if total is None else ufunc(total, rows[i], out=total)
            totals[i] = total
        return out
    values, totals = (
        x.astype(wide, copy=False),
        out if wide == x.dtype else np.empty(x.shape, wide),
    )  # quicker than a cast inside `accumulate`
    if backwards:
        ufunc.accumulate(np.flip(values, at), at, out=np.flip(totals, at))
    else:
        ufunc.accumulate(values, at, out=totals)
    if totals is not out:
        out[...] = totals
    return out


def running_sum(xp: Namespace, x: Array, *, axis: Axes, backwards: bool) -> Array:
    return running_totals(xp, np.add, x, axis, backwards) if axis else x.copy()


cumsum: Primitive = linear(
    "cumsum",
    running_sum,
    reads="axes",
    promote="sum",
    tex=r"\mathrm{{cumsum}}({x})",
    x=lambda g, axis, backwards: cumsum(g, axis=axis, backwards=not backwards),
    properties=Properties(keeps_sign=True),
)


def cumprod_vjp(xp: Namespace, g: Array, x: Array, out: Array, axis: Axes) -> Array:
    return products_before(xp, out, axis) * solve_recurrence(xp, g, slice_along(x, axis, 1, None), axis, False) if axis else g


def cumprod_jvp(xp: Namespace, t: Array, x: Array, out: Array, axis: Axes) -> Array:
    return solve_recurrence(xp, products_before(xp, out, axis) * t, slice_along(x, axis, 1, None), axis, True) if axis else t


cumprod = primitive(
    "cumprod",
    lambda xp, x, *, axis: running_totals(xp, np.multiply, x, axis) if axis else x.copy(),
    reads="axes",
    promote="sum",
    piecewise=True,
    tex=r"\mathrm{{cumprod}}({x})",
    formula=r"\bar{x}_i = \sum_{k \geq i} \bar{y}_k \prod_{j \leq k,\, j \neq i} x_j",
    vjp={"x": cumprod_vjp},
    jvp={"x": cumprod_jvp},
    properties=Properties(poles=True),
)


def decay_factors(xp: Namespace, out: Array, axis: Axes) -> Array:
    """Return exp(out[i-1] - out[i]), which is at most 1: the share of the earlier terms in a running log-sum-exp."""
    return xp.exp(slice_along(out, axis, 0, max(out.shape[axis[0]] - 1, 0)) - slice_along(out, axis, 1, None))


def logcumsumexp_vjp(xp: Namespace, g: Array, x: Array, out: Array, axis: Axes) -> Array:
    return xp.exp(x - out) * solve_recurrence(xp, g, decay_factors(xp, out, axis), axis, False) if axis else g


def logcumsumexp_jvp(xp: Namespace, t: Array, x: Array, out: Array, axis: Axes) -> Array:
    return solve_recurrence(xp, xp.exp(x - out) * t, decay_factors(xp, out, axis), axis, True) if axis else t


logcumsumexp = primitive(
    "logcumsumexp",
    lambda xp, x, *, axis: accumulate_along(xp, "logaddexp", x, axis[0]) if axis else x.copy(),
    reads="axes",
    piecewise=True,
    tex=r"\log\mathrm{{cumsum}}(e^{{{x}}})",
    formula=r"\bar{x}_i = \sum_{k \geq i} \bar{y}_k\,e^{x_i - y_k}",
    vjp={"x": logcumsumexp_vjp},
    jvp={"x": logcumsumexp_jvp},
    promote="single",
    properties=Properties(poles=True, ignores_minus_inf=True),
)
