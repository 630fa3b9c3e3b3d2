"""Running sums, products, extremes along one axis. `axis` is one negative axis, in a tuple as elsewhere.

The rules of products and of log-sum-exps are one recurrence, r[i] = g[i] + a[i] r[i+1], run in log n steps of whole arrays
(`recurrence`): nothing is divided, so zeros are as good as any number, and every factor of a log-sum-exp is at most 1.
"""

from __future__ import annotations

import numpy as np

from gradlab.core.primitive import Primitive, linear, primitive
from gradlab.rules.arguments import Array, Axes, Namespace


def part(x: Array, axis: Axes, start: int, stop: int | None) -> Array:
    """x[..., start:stop, ...] on the one negative axis."""
    return x[(Ellipsis, slice(start, stop)) + (slice(None),) * (-axis[0] - 1)]


def recurrence(xp: Namespace, g: Array, a: Array, axis: Axes, forward: bool) -> Array:
    """r[i] = g[i] + a[i] r[i+1], where a holds what lies between neighbours; forward, r[i] = g[i] + a[i-1] r[i-1]. By doubling:
    at stride s, r[i] holds s terms and a the products of s factors. `g` may have batch axes in front."""
    n, s = g.shape[axis[0]], 1
    while s < n:
        early, late = part(g, axis, 0, n - s), part(g, axis, s, None)
        g = xp.concatenate(
            [part(g, axis, 0, s), late + a * early] if forward else [early + a * late, part(g, axis, n - s, None)], axis=axis[0]
        )
        a = part(a, axis, 0, max(n - 2 * s, 0)) * part(a, axis, s, None)
        s *= 2
    return g


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


def running(xp: Namespace, ufunc: np.ufunc, x: Array, axis: Axes) -> Array:
    """Running sums or products. Floats are added up in double, as torch does it on the CPU."""
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    totals = (
        ufunc.accumulate(x, axis[0], wide)
        if xp is np
        else (xp.cumsum if ufunc is np.add else xp.cumprod)(x, axis=axis[0], dtype=wide)
    )
    return totals.astype(x.dtype, copy=False)


def running_sum(xp: Namespace, x: Array, *, axis: Axes, backwards: bool) -> Array:
    if not axis:
        return x.copy()
    totals = running(xp, np.add, xp.flip(x, axis=axis[0]) if backwards else x, axis)
    return xp.flip(totals, axis=axis[0]) if backwards else totals


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
