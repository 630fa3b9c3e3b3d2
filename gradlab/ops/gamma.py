"""Special functions that take a whole number beside the tensor. (The others are declared in `gradlab.rules.special`.)"""

from __future__ import annotations

import numpy as np

from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor
from gradlab.rules import special as sp

__all__ = ["mvlgamma", "polygamma"]


@composed(method=False, special="polygamma")
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        The order, 0 for the digamma function itself.
    {input}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, floating point.

    Raises
    ------
    TypeError
        If `n` is no integer or `input` no tensor.
    RuntimeError
        If `n` is negative.

    Notes
    -----
    The method takes the order alone: ``x.polygamma(n)``. NIST Digital Library of Mathematical Functions, 5.15.

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


@composed(inplace="method", special="multigammaln")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    r"""The logarithm of the multivariate gamma function.

    Parameters
    ----------
    {input}
    p : int
        The dimension, at least 1.
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is no tensor.
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
