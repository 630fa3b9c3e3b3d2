"""Standard deviations, variances, covariances and correlations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import many_dims, not_a_tensor, over_dims
from gradlab.ops.permutation import t
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules

__all__ = ["corrcoef", "cov", "std", "std_mean", "var", "var_mean"]


def spread_arguments(name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any) -> tuple[tuple[int, ...], float]:
    """The axes of a variance and what is subtracted from n; `x.std(False)` means unbiased=False."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    x = input.array
    if x.dtype.kind != "f":
        raise RuntimeError(
            f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes. Call .float() first."
        )
    axis = many_dims(dim, x.ndim)
    if (rules.count(x.shape, axis) if x.size else 0) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    return axis, correction


@composed()
@over_dims
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""The standard deviation, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {unbiased}
    {keepdim}
    {correction}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If there are no more elements than `correction`: the result is infinite or NaN.

    Notes
    -----
    Of n elements with mean m, with `correction` c:

    .. math:: \sqrt{\frac{1}{n - c} \sum_i (x_i - m)^2}

    Where all elements are equal, the square root has no derivative; the gradient is taken as 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([2., 4., 4., 6.])
    >>> gl.std(x), gl.std(x, correction=0)
    (tensor(1.6330), tensor(1.4142))
    """
    axis, less = spread_arguments("std", input, dim, unbiased, correction)
    return rules.std.record(input, axis=axis, keepdims=keepdim, correction=less)


@composed()
@over_dims
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""The variance, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {unbiased}
    {keepdim}
    {correction}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If there are no more elements than `correction`: the result is infinite or NaN.

    Notes
    -----
    Of n elements with mean m, with `correction` c:

    .. math:: \frac{1}{n - c} \sum_i (x_i - m)^2

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([2., 4., 4., 6.])
    >>> gl.var(x), gl.var(x, correction=0)
    (tensor(2.6667), tensor(2.))
    """
    axis, less = spread_arguments("var", input, dim, unbiased, correction)
    return rules.var.record(input, axis=axis, keepdims=keepdim, correction=less)


@composed(method=False)
@over_dims
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {unbiased}
    {keepdim}
    {correction}
    {outs}

    Returns
    -------
    std : Tensor
        The shape of `input` without the reduced axes, of its dtype.
    mean : Tensor
        The mean over the same axes.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If there are no more elements than `correction`: the result is infinite or NaN.

    Notes
    -----
    They are what `std` and `mean` return, of one node.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.std_mean(gl.tensor([2., 4., 4., 6.]), correction=0)
    (tensor(1.4142), tensor(4.))
    """
    axis, less = spread_arguments("std_mean", input, dim, unbiased, correction)
    std, mean = rules.std_mean.primitives
    return rules.std_mean(
        std.record(input, axis=axis, keepdims=keepdim, correction=less), mean.record(input, axis=axis, keepdims=keepdim)
    )


@composed(method=False)
@over_dims
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance and the mean, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {unbiased}
    {keepdim}
    {correction}
    {outs}

    Returns
    -------
    var : Tensor
        The shape of `input` without the reduced axes, of its dtype.
    mean : Tensor
        The mean over the same axes.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If there are no more elements than `correction`: the result is infinite or NaN.

    Notes
    -----
    They are what `var` and `mean` return, of one node.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.var_mean(gl.tensor([2., 4., 4., 6.]), correction=0)
    (tensor(2.), tensor(4.))
    """
    axis, less = spread_arguments("var_mean", input, dim, unbiased, correction)
    var, mean = rules.var_mean.primitives
    return rules.var_mean(
        var.record(input, axis=axis, keepdims=keepdim, correction=less), mean.record(input, axis=axis, keepdims=keepdim)
    )


# ----------------------------------------------------------------------------------------------------------- covariances
@composed()
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    r"""The covariances of variables, each a row, over observations, each a column.

    Parameters
    ----------
    input : Tensor
        The observations, of shape (variables, observations), or (observations,) of one variable.
    {correction}
    fweights : Tensor, optional
        How often each observation was made: integers of shape (observations,).
    aweights : Tensor, optional
        How much each observation weighs: floating point, of shape (observations,).

    Returns
    -------
    Tensor
        The shape (variables, variables), floating point; of one variable its variance, a 0-d tensor.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `input` has more than two axes or holds bools, or weights have another shape, another kind of dtype, or are negative.

    Warns
    -----
    UserWarning
        If there are no more observations than `correction`.

    Notes
    -----
    With the means :math:`m_i` of the rows, n observations and `correction` c, without weights:

    .. math:: C_{ij} = \frac{1}{n - c} \sum_k (x_{ik} - m_i)(x_{jk} - m_j)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cov(gl.tensor([[1., 2., 3.], [6., 4., 2.]]))
    tensor([[ 1., -2.],
            [-2.,  4.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("cov", input)
    if input.array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.array.ndim} dimensions"
        )
    if input.array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.array.ndim < 2 else input
    n = x.array.shape[1]
    weights = None
    for name, w, kinds, what in (("fweights", fweights, "iu", "integral"), ("aweights", aweights, "f", "floating point")):
        if w is None:
            continue
        if w.array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.array.ndim} dimensions"
            )
        if w.array.dtype.kind not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {what} dtype but got {name} with {w.dtype.word} dtype")
        if w.array.size != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{w.array.size} != {n}"
            )
        if n and bool((w.array < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = w if weights is None else weights * w
    total = n if weights is None else weights.sum()
    mean = (x if weights is None else x * weights).sum(1) / total
    if weights is not None and aweights is not None and correction:
        square = (weights * aweights).sum()
        factor = total - correction * square / total
    else:
        factor = total - correction
    if isinstance(factor, Tensor):
        factor = el.where.record(constant(factor.array > 0), factor, constant(np.zeros((), factor.array.dtype)))
    else:
        factor = max(factor, 0)
    if not (factor > 0 if isinstance(factor, (int, float)) else bool(factor.array > 0)):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=2,
        )
    centred = x - unsqueeze(mean, 1)
    products = centred @ t(centred if weights is None else centred * weights)
    return squeeze(products / factor)


CLIPPED = el.clone.named("ClampBackward1")


@composed()
def corrcoef(input: Tensor) -> Tensor:
    r"""The correlations of variables, each a row, over observations, each a column.

    Parameters
    ----------
    input : Tensor
        The observations, of shape (variables, observations), or (observations,) of one variable.

    Returns
    -------
    Tensor
        The shape (variables, variables), floating point, each between -1 and 1; of one variable a 0-d tensor.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `input` has more than two axes or holds bools.

    Notes
    -----
    With the covariances C of `cov`:

    .. math:: R_{ij} = \frac{C_{ij}}{\sqrt{C_{ii} C_{jj}}}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.corrcoef(gl.tensor([[1., 2., 3.], [6., 4., 2.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("corrcoef", input)
    if input.array.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.array.ndim} dimensions"
        )
    c = cov(input)
    if not c.array.ndim:
        return c / c
    deviation = c.diagonal().sqrt()
    c = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0)
    return c.clamp(-1, 1)
