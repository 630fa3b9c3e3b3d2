"""Special functions of a tensor and an integer. The other special functions are declared in `gradlab.rules.special`."""

from __future__ import annotations

import numpy as np

from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.rules import special as sp

__all__ = ["mvlgamma", "polygamma"]


@composite(method=False, special="polygamma")
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        Order of the derivative. 0 is the digamma function itself.
    {input}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `n` is not an integer, or `input` is not a Tensor.
    RuntimeError
        If `n` is negative.

    Notes
    -----
    The method takes only the order: ``x.polygamma(n)``. See the NIST Digital Library of Mathematical Functions, 5.15.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.polygamma(1, gl.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}.")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return sp.polygamma.record(input, n=int(n), out=out)


@composite(inplace="method", special="multigammaln")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    r"""Compute the logarithm of the multivariate gamma function.

    Parameters
    ----------
    {input}
    p : int
        Dimension, at least 1.
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `p` is less than 1.

    Notes
    -----
    .. math:: \log \Gamma_p(x) = \tfrac{p (p - 1)}{4} \log \pi + \sum_{j=0}^{p-1} \log \Gamma(x - j / 2)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.mvlgamma(gl.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1. It is the dimension of the matrices.")
    return sp.mvlgamma.record(input, p=p, out=out)
