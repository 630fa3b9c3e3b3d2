"""Softmax and what is fused with it for stability. `axis` is one negative axis, in a tuple as elsewhere."""
from __future__ import annotations

import numpy as np

from gradlab.core.primitive import Primitive, linear, primitive


def softmax_forward(xp, x, *, axis):
    e = xp.exp(x - x.max(axis=axis, keepdims=True))
    e /= e.sum(axis=axis, keepdims=True)
    return e


softmax = primitive("softmax", softmax_forward, tex=r"\mathrm{{softmax}}({x})", reads="axes",
                    formula=r"\bar{x} = y\,\bigl(\bar{y} - \textstyle\sum \bar{y}\,y\bigr)",            # a symmetric Jacobian
                    vjp={"x": lambda xp, g, out, axis: out * (g - xp.sum(g * out, axis=axis, keepdims=True))},
                    jvp={"x": lambda xp, t, out, axis: out * (t - xp.sum(t * out, axis=axis, keepdims=True))})


def log_softmax_forward(xp, x, *, axis):
    shifted = x - x.max(axis=axis, keepdims=True)
    shifted -= xp.log(xp.exp(shifted).sum(axis=axis, keepdims=True))
    return shifted


log_softmax = primitive("log_softmax", log_softmax_forward, tex=r"\log\mathrm{{softmax}}({x})", reads="axes",
                        formula=r"\bar{x} = \bar{y} - e^{y} \textstyle\sum \bar{y}",
                        vjp={"x": lambda xp, g, out, axis: g - xp.exp(out) * xp.sum(g, axis=axis, keepdims=True)},
                        jvp={"x": lambda xp, t, out, axis: t - xp.sum(xp.exp(out) * t, axis=axis, keepdims=True)})


def picked_loss(xp, x, *, index, weights, total):
    """-weights · x[index] / total, summed: `index` has an array of the weights' shape for each of x's own axes. With
    total=None the terms themselves."""
    terms = x[(..., *index)] * -weights
    return terms if total is None else terms.sum(axis=tuple(range(-weights.ndim, 0))) / total


def placed_entries(xp, scale, *, shape, index, weights, total):
    """Transpose of `picked_loss`: zeros of `shape` but for the entries at `index`, each of which comes up once."""
    lead = shape[:len(shape) - len(index)]
    xbar = xp.zeros(shape, dtype=weights.dtype)
    xbar[(..., *index)] = scale * -weights if total is None else scale.reshape(lead + (1,) * weights.ndim) * (weights / -total)
    return xbar


def picked_entries(arg, x_shape, out_shape, meta):
    """Every picked entry is read, no other (see core.sparsity): -1 for what goes nowhere."""
    groups, weights = np.full(x_shape, -1), meta["weights"]
    groups[meta["index"]] = np.arange(weights.size).reshape(weights.shape) if meta["total"] is None else 0
    return groups, np.arange(weights.size).reshape(weights.shape) if meta["total"] is None else np.zeros(out_shape, int)


def placed_reads(arg, scale_shape, out_shape, meta):
    groups = np.arange(meta["weights"].size).reshape(scale_shape) if meta["total"] is None else np.zeros(scale_shape, int)
    source = np.full(out_shape, -1)
    source[meta["index"]] = groups
    return groups, source


nll_loss = linear("nll_loss", picked_loss, reads=picked_entries, tex=r"-\tfrac{{1}}{{n}} \sum {x}_{{i, y_i}}",
                  x=lambda g, lead, x_shape, index, weights, total: nll_entries(
                      g, shape=lead + x_shape, index=index, weights=weights, total=total))
nll_loss_2d = nll_loss.named("NllLoss2DBackward0")
nll_entries: Primitive = linear("nll_entries", placed_entries, reads=placed_reads, tex=r"\mathrm{{scatter}}({scale})",
                     batch=lambda lead, shape, index, weights, total: {
                         "shape": lead + shape, "index": index, "weights": weights, "total": total},
                     scale=lambda g, index, weights, total: nll_loss(g, index=index, weights=weights, total=total))
