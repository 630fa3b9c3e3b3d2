"""Special functions under the names that torch has at its top and as methods; `gradlab.special` has them all."""

from __future__ import annotations

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.rules import special as sp

__all__ = ["digamma", "erf", "erfc", "erfinv", "i0", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma"]

erf, erfc, erfinv, lgamma, digamma, i0, igamma, igammac = (
    op.record for op in (sp.erf, sp.erfc, sp.erfinv, sp.lgamma, sp.digamma, sp.i0, sp.igamma, sp.igammac)
)


def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of the digamma function."""
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}.")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return sp.polygamma.record(input, n=int(n), out=out)


def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1. It is the dimension of the matrices.")
    return sp.mvlgamma.record(input, p=p, out=out)
