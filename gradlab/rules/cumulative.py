"""Running sums, products, extremes along one axis. `axis` is one negative axis, in a tuple as elsewhere.

The rules of products and of log-sum-exps are one recurrence, r[i] = g[i] + a[i] r[i+1] (`recurrence`): nothing is divided, so
zeros are as good as any number, and every factor of a log-sum-exp is at most 1. On NumPy it goes step by step where each step is
of many elements, and else, as on a GPU, in log n steps of whole arrays.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gradlab.core.primitive import Primitive, linear, primitive
from gradlab.rules.arguments import MANY, Array, Axes, Namespace

WIDE = 16  # neighbours in memory among the elements of a step


def part(x: Array, axis: Axes, start: int, stop: int | None) -> Array:
    """x[..., start:stop, ...] on the one negative axis."""
    return x[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis[0] - 1)]


def recurrence(xp: Namespace, g: Array, a: Array, axis: Axes, forward: bool) -> Array:
    """r[i] = g[i] + a[i] r[i+1], where a holds what lies between neighbours; forward, r[i] = g[i] + a[i-1] r[i-1]. By doubling:
    at stride s, r[i] holds s terms and a the products of s factors. `g` may have batch axes in front."""
    n, s = g.shape[axis[0]], 1
    if n > 1 and type(g) is np.ndarray is type(a) and g.size >= MANY * n:
        return stepwise(g, a, axis, forward)
    while s < n:
        early, late = part(g, axis, 0, n - s), part(g, axis, s, None)
        g = xp.concatenate(
            [part(g, axis, 0, s), late + a * early] if forward else [early + a * late, part(g, axis, n - s, None)], axis=axis[0]
        )
        a = part(a, axis, 0, max(n - 2 * s, 0)) * part(a, axis, s, None)
        s *= 2
    return g


def stepwise(g: Array, a: Array, axis: Axes, forward: bool) -> Array:
    """The same one step after the other, with the axis in front: 2 operations an element and not 3 log n."""
    terms, factors = np.moveaxis(g, axis[0], 0), np.moveaxis(a, axis[0], 0)
    if axis[0] == -1:  # steps would be columns: each element in a line of the cache of its own
        factors = factors.copy(order="C")
    r = terms.astype(np.result_type(g, a), order="C")
    part = np.empty_like(r[0])
    for i in range(1, len(r)) if forward else range(len(r) - 2, -1, -1):
        np.multiply(factors[i - 1] if forward else factors[i], r[i - 1] if forward else r[i + 1], out=part)
        r[i] += part
    return np.ascontiguousarray(np.moveaxis(r, 0, axis[0]))


def before(xp: Namespace, out: Array, axis: Axes) -> Array:
    """The running product of what comes earlier: `out` one place later, 1 in the first."""
    return xp.concatenate([xp.ones_like(part(out, axis, 0, 1)), part(out, axis, 0, max(out.shape[axis[0]] - 1, 0))], axis=axis[0])


def accumulated(xp: Namespace, name: str, x: Array, axis: int) -> Array:
    """`xp.<name>.accumulate`, which NumPy alone has, along a negative axis; elsewhere by doubling."""
    ufunc = getattr(xp, name)
    if xp is np:
        return ufunc.accumulate(x, axis)
    n, s, at = x.shape[axis], 1, (axis,)
    while s < n:
        x = xp.concatenate([part(x, at, 0, s), ufunc(part(x, at, s, None), part(x, at, 0, n - s))], axis=axis)
        s *= 2
    return x


def running(xp: Namespace, ufunc: np.ufunc, x: Array, axis: Axes, backwards: bool = False) -> Array:
    """Running sums or products, from the end if `backwards`. Floats are added up in double, as torch does it on the CPU."""
    at, wide = axis[0], np.dtype(np.float64) if x.dtype.kind == "f" else x.dtype
    if xp is not np:
        totals = (xp.cumsum if ufunc is np.add else xp.cumprod)(xp.flip(x, axis=at) if backwards else x, axis=at, dtype=wide)
        totals = totals.astype(x.dtype, copy=False)
        return xp.flip(totals, axis=at) if backwards else totals
    out = np.empty(x.shape, x.dtype)
    if at < -1 and prod(x.shape[at + 1 :]) >= WIDE and x.size >= MANY * x.shape[at]:  # whole rows at a time
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
    )  # quicker than cast on the way
    if backwards:
        ufunc.accumulate(np.flip(values, at), at, out=np.flip(totals, at))
    else:
        ufunc.accumulate(values, at, out=totals)
    if totals is not out:
        out[...] = totals
    return out


def running_sum(xp: Namespace, x: Array, *, axis: Axes, backwards: bool) -> Array:
    return running(xp, np.add, x, axis, backwards) if axis else x.copy()


cumsum: Primitive = linear(
    "cumsum",
    running_sum,
    reads="axes",
    promote="sum",
    tex=r"\mathrm{{cumsum}}({x})",
    x=lambda g, axis, backwards: cumsum(g, axis=axis, backwards=not backwards),
)


def products_vjp(xp: Namespace, g: Array, x: Array, out: Array, axis: Axes) -> Array:
    return before(xp, out, axis) * recurrence(xp, g, part(x, axis, 1, None), axis, False) if axis else g


def products_jvp(xp: Namespace, t: Array, x: Array, out: Array, axis: Axes) -> Array:
    return recurrence(xp, before(xp, out, axis) * t, part(x, axis, 1, None), axis, True) if axis else t


cumprod = primitive(
    "cumprod",
    lambda xp, x, *, axis: running(xp, np.multiply, x, axis) if axis else x.copy(),
    reads="axes",
    promote="sum",
    piecewise=True,
    tex=r"\mathrm{{cumprod}}({x})",
    formula=r"\bar{x}_i = \sum_{k \geq i} \bar{y}_k \prod_{j \leq k,\, j \neq i} x_j",
    vjp={"x": products_vjp},
    jvp={"x": products_jvp},
)


def decay(xp: Namespace, out: Array, axis: Axes) -> Array:
    """exp(out[i-1] - out[i]), at most 1: the share of a running log-sum-exp that was there before."""
    return xp.exp(part(out, axis, 0, max(out.shape[axis[0]] - 1, 0)) - part(out, axis, 1, None))


def logs_vjp(xp: Namespace, g: Array, x: Array, out: Array, axis: Axes) -> Array:
    return xp.exp(x - out) * recurrence(xp, g, decay(xp, out, axis), axis, False) if axis else g


def logs_jvp(xp: Namespace, t: Array, x: Array, out: Array, axis: Axes) -> Array:
    return recurrence(xp, xp.exp(x - out) * t, decay(xp, out, axis), axis, True) if axis else t


logcumsumexp = primitive(
    "logcumsumexp",
    lambda xp, x, *, axis: accumulated(xp, "logaddexp", x, axis[0]) if axis else x.copy(),
    reads="axes",
    piecewise=True,
    tex=r"\log\mathrm{{cumsum}}(e^{{{x}}})",
    formula=r"\bar{x}_i = \sum_{k \geq i} \bar{y}_k\,e^{x_i - y_k}",
    vjp={"x": logs_vjp},
    jvp={"x": logs_jvp},
    promote="single",
)
