"""Softmax, log-softmax and log-sum-exp. `axis` is a tuple with one negative axis, or with several for log-sum-exp."""

from __future__ import annotations

from gradlab.core.primitive import primitive
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Axes, Namespace
from gradlab.rules.reductions import largest, restore_axes, total


def subtract_maximum(xp: Namespace, x: Array, axis: Axes) -> Array:
    """Return x minus its maximum along the axis, as an array even if x is 0-d."""
    return xp.asarray(x - largest(x, axis, True)) if x.size else x.copy()


def softmax_forward(xp: Namespace, x: Array, *, axis: Axes) -> Array:
    e = subtract_maximum(xp, x, axis)
    xp.exp(e, out=e)
    e /= total(xp, e, axis, True)
    return e


softmax = primitive(
    "softmax",
    softmax_forward,
    tex=r"\mathrm{{softmax}}({x})",
    reads="axes",
    formula=r"\bar{x} = y\,\bigl(\bar{y} - \textstyle\sum \bar{y}\,y\bigr)",  # a symmetric Jacobian
    vjp={"x": lambda xp, g, out, axis: out * (g - total(xp, g * out, axis, True))},
    jvp={"x": lambda xp, t, out, axis: out * (t - total(xp, t * out, axis, True))},
    promote="single",
    properties=Properties(low=0, high=1, ignores_minus_inf=True),
)


def log_softmax_forward(xp: Namespace, x: Array, *, axis: Axes) -> Array:
    logs = subtract_maximum(xp, x, axis)
    logs -= xp.log(total(xp, xp.exp(logs), axis, True))
    return logs


log_softmax = primitive(
    "log_softmax",
    log_softmax_forward,
    tex=r"\log\mathrm{{softmax}}({x})",
    reads="axes",
    formula=r"\bar{x} = \bar{y} - e^{y} \textstyle\sum \bar{y}",
    vjp={"x": lambda xp, g, out, axis: g - xp.exp(out) * total(xp, g, axis, True)},
    jvp={"x": lambda xp, t, out, axis: t - total(xp, xp.exp(out) * t, axis, True)},
    promote="single",
    properties=Properties(high=0, ignores_minus_inf=True, short_name="log_softmax"),
)


def logsumexp_forward(xp: Namespace, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    """Compute log Σ exp(x), with the maximum subtracted before and added after if it is finite."""
    top = largest(x, axis, True) if x.size else total(xp, x, axis, True)
    top = xp.where(xp.absolute(top) == xp.inf, 0, top)
    out = xp.log(total(xp, xp.exp(x - top), axis, True)) + top
    return out if keepdims or not axis else out.squeeze(axis)


logsumexp = primitive(
    "logsumexp",
    logsumexp_forward,
    tex=r"\log \sum e^{{{x}}}",
    reads="axes",
    promote="float",
    formula=r"\bar{x} = \bar{y}\,e^{x - y}",
    vjp={
        "x": lambda xp, g, x, out, axis, keepdims: (
            restore_axes(xp, g, axis, keepdims) * xp.exp(x - restore_axes(xp, out, axis, keepdims))
        )
    },
    jvp={
        "x": lambda xp, t, x, out, axis, keepdims: total(
            xp, t * xp.exp(x - restore_axes(xp, out, axis, keepdims)), axis, keepdims
        )
    },
    properties=Properties(poles=True, ignores_minus_inf=True, reduces="logsumexp"),
)
