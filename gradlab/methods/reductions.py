"""Reductions, and softmax along an axis."""

from __future__ import annotations

from gradlab.linalg import toplevel
from gradlab.methods.writing import twin
from gradlab.ops import reductions as functions


class Reductions:
    """Sums, means, extremes, norms."""

    sum, mean, prod, nansum, nanmean = functions.sum, functions.mean, functions.prod, functions.nansum, functions.nanmean
    std, var, norm, dist, renorm = functions.std, functions.var, toplevel.norm, functions.dist, functions.renorm
    max, min, amax, amin, aminmax = functions.max, functions.min, functions.amax, functions.amin, functions.aminmax
    argmax, argmin, all, any = functions.argmax, functions.argmin, functions.all, functions.any
    count_nonzero, softmax, log_softmax = functions.count_nonzero, functions.softmax, functions.log_softmax
    logsumexp, renorm_ = functions.logsumexp, twin(functions.renorm)
