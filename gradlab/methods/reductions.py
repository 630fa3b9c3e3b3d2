"""Reductions, and softmax along an axis."""
from __future__ import annotations

from gradlab.functions import reductions as functions


class Reductions:
    """Sums, means, extremes, norms."""

    sum, mean, std, var, max, min = (functions.sum, functions.mean, functions.std, functions.var, functions.max,
                                     functions.min)
    argmax, argmin, all, any, norm = functions.argmax, functions.argmin, functions.all, functions.any, functions.norm
    softmax, log_softmax = functions.softmax, functions.log_softmax
