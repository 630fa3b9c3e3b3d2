"""Standard deviations, variances, covariances and correlations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dims, not_a_tensor, takes_axis
from gradlab.ops.permutation import t
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules

__all__ = ["corrcoef", "cov", "std", "std_mean", "var", "var_mean"]


def spread_arguments(name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any) -> tuple[tuple[int, ...], float]:
    """Return the axes of a variance, and the correction that is subtracted from n. `x.std(False)` means unbiased=False."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    x = input.array
    if x.dtype.kind != "f":
        raise RuntimeError(
            f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes. Call .float() first."
        )
    axis = negative_dims(dim, x.ndim)
    if (rules.count_reduced(x.shape, axis) if x.size else 0) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    return axis, correction


@composite()
@takes_axis
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""Compute the standard deviation, over all dimensions or those in `dim`.

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
        Shape of `input` without the reduced dimensions, same dtype.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If the number of elements is not greater than `correction`. The result is then infinite or NaN.

    Notes
    -----
    For n elements with mean m, and with `correction` c:

    .. math:: \sqrt{\frac{1}{n - c} \sum_i (x_i - m)^2}

    If all elements are equal, the square root has no derivative, and the gradient is taken as 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([2., 4., 4., 6.])
    >>> gl.std(x), gl.std(x, correction=0)
    (tensor(1.6330), tensor(1.4142))
    """
    axis, correction = spread_arguments("std", input, dim, unbiased, correction)
    return rules.std.record(input, axis=axis, keepdims=keepdim, correction=correction)


@composite()
@takes_axis
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""Compute the variance, over all dimensions or those in `dim`.

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
        Shape of `input` without the reduced dimensions, same dtype.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If the number of elements is not greater than `correction`. The result is then infinite or NaN.

    Notes
    -----
    For n elements with mean m, and with `correction` c:

    .. math:: \frac{1}{n - c} \sum_i (x_i - m)^2

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([2., 4., 4., 6.])
    >>> gl.var(x), gl.var(x, correction=0)
    (tensor(2.6667), tensor(2.))
    """
    axis, correction = spread_arguments("var", input, dim, unbiased, correction)
    return rules.var.record(input, axis=axis, keepdims=keepdim, correction=correction)


@composite(method=False)
@takes_axis
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the standard deviation and the mean, over all dimensions or those in `dim`.

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
        Shape of `input` without the reduced dimensions, same dtype.
    mean : Tensor
        Mean over the same dimensions.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If the number of elements is not greater than `correction`. The standard deviation is then infinite or NaN.

    Notes
    -----
    The results are those of `std` and `mean`, but come from one node.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.std_mean(gl.tensor([2., 4., 4., 6.]), correction=0)
    (tensor(1.4142), tensor(4.))
    """
    axis, correction = spread_arguments("std_mean", input, dim, unbiased, correction)
    std, mean = rules.std_mean.primitives
    return rules.std_mean(
        std.record(input, axis=axis, keepdims=keepdim, correction=correction), mean.record(input, axis=axis, keepdims=keepdim)
    )


@composite(method=False)
@takes_axis
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the variance and the mean, over all dimensions or those in `dim`.

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
        Shape of `input` without the reduced dimensions, same dtype.
    mean : Tensor
        Mean over the same dimensions.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Warns
    -----
    UserWarning
        If the number of elements is not greater than `correction`. The variance is then infinite or NaN.

    Notes
    -----
    The results are those of `var` and `mean`, but come from one node.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.var_mean(gl.tensor([2., 4., 4., 6.]), correction=0)
    (tensor(2.), tensor(4.))
    """
    axis, correction = spread_arguments("var_mean", input, dim, unbiased, correction)
    var, mean = rules.var_mean.primitives
    return rules.var_mean(
        var.record(input, axis=axis, keepdims=keepdim, correction=correction), mean.record(input, axis=axis, keepdims=keepdim)
    )


# ----------------------------------------------------------------------------------------------------------- covariances
@composite()
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    r"""Estimate the covariance matrix of variables (rows) from observations (columns).

    Parameters
    ----------
    input : Tensor
        Observations, of shape (variables, observations), or (observations,) for one variable.
    {correction}
    fweights : Tensor, optional
        Number of times each observation was made: integers of shape (observations,).
    aweights : Tensor, optional
        Weight of each observation: floating point, of shape (observations,).

    Returns
    -------
    Tensor
        Shape (variables, variables), floating point. For one variable, its variance as a 0-d tensor.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `input` has more than two dimensions or is boolean, or if weights have the wrong shape or dtype, or are negative.

    Warns
    -----
    UserWarning
        If the number of observations is not greater than `correction`.

    Notes
    -----
    Without weights, for n observations with the row means :math:`m_i`, and with `correction` c:

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


@composite()
def corrcoef(input: Tensor) -> Tensor:
    r"""Estimate the correlation matrix of variables (rows) from observations (columns).

    Parameters
    ----------
    input : Tensor
        Observations, of shape (variables, observations), or (observations,) for one variable.

    Returns
    -------
    Tensor
        Shape (variables, variables), floating point, with values between -1 and 1. For one variable, a 0-d tensor.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If `input` has more than two dimensions or is boolean.

    Notes
    -----
    With the covariance matrix C from `cov`:

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
