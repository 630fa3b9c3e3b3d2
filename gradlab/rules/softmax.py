"""Softmax and what is fused with it for stability. `axis` is one negative axis, in a tuple as elsewhere."""
from __future__ import annotations

import numpy as np

from gradlab.core.primitive import linear, primitive


def softmax_forward(xp, x, *, axis):
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    e /= e.sum(axis=axis, keepdims=True)
    return e


softmax = primitive("softmax", softmax_forward, tex=r"\mathrm{{softmax}}({x})", reads="axes", promote="float",
                    formula=r"\bar{x} = y\,\bigl(\bar{y} - \textstyle\sum \bar{y}\,y\bigr)",            # a symmetric Jacobian
                    vjp={"x": lambda xp, g, out, axis: out * (g - xp.sum(g * out, axis=axis, keepdims=True))},
                    jvp={"x": lambda xp, t, out, axis: out * (t - xp.sum(t * out, axis=axis, keepdims=True))})


def log_softmax_forward(xp, x, *, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    shifted -= xp.log(xp.exp(shifted).sum(axis=axis, keepdims=True))
    return shifted


log_softmax = primitive("log_softmax", log_softmax_forward, tex=r"\log\mathrm{{softmax}}({x})", reads="axes",
                        promote="float", formula=r"\bar{x} = \bar{y} - e^{y} \textstyle\sum \bar{y}",
                        vjp={"x": lambda xp, g, out, axis: g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)},
                        jvp={"x": lambda xp, t, out, axis: t - xp.sum(xp.exp(out) * t, axis=axis, keepdims=True)})


def picked_loss(xp, x, *, rows, classes, weights, total):
    """-Σ weights · x[row, class] / total over the picked entries of a (rows, classes) matrix."""
    return -(x[..., rows, classes] * weights).sum(axis=-1) / total


def placed_entries(xp, scale, *, shape, rows, classes, weights, total):
    """Transpose of `picked_loss`; `scale` holds nothing but batch axes."""
    xbar = xp.zeros(scale.shape + shape, dtype=weights.dtype)
    xbar[..., rows, classes] = scale[..., None] * (weights / -total)
    return xbar


def picked_entries(arg, x_shape, out_shape, meta):
    """Every picked entry is read, no other (see core.sparsity): -1 for what goes nowhere."""
    groups = np.full(x_shape, -1)
    groups[..., meta["rows"], meta["classes"]] = 0
    return groups, np.zeros(out_shape, int)


nll_loss = linear("nll_loss", picked_loss, reads=picked_entries, tex=r"-\tfrac{{1}}{{n}} \sum {x}_{{i, y_i}}",
                  x=lambda g, x_shape, rows, classes, weights, total: nll_entries(
                      g, shape=x_shape, rows=rows, classes=classes, weights=weights, total=total))
nll_entries = linear("nll_entries", placed_entries, reads="all", tex=r"\mathrm{{scatter}}({scale})",
                     scale=lambda g, rows, classes, weights, total: nll_loss(
                         g, rows=rows, classes=classes, weights=weights, total=total))
