"""Softmax, its logarithm, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, negative_dims, takes_axis
from gradlab.ops.copies import cast
from gradlab.rules import softmax as rules

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _normalize(op: Any, input: Tensor, dim: int, dtype: Dtype | None) -> Tensor:
    if dtype is not None:
        input = cast(input, dtype)
    ndim = input.array.ndim
    axis = negative_dim(dim, ndim)
    if input.array.dtype.kind != "f":
        if not input.array.size:
            return constant(input.array.copy())
        raise NotImplementedError(
            f'"{op.name}_{"lastdim_" * (axis == -1)}kernel_impl" not implemented for '
            f"'{input.dtype.word}'. Call .float() first, or give dtype=."
        )
    return op.record(input, axis=(axis,) if ndim else ())


@composite()
@takes_axis
def softmax(input: Tensor, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Compute the softmax along a dimension: positive numbers that sum to 1.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` is boolean or integer and `dtype` is not floating point.

    Notes
    -----
    .. math:: y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    The largest element is subtracted first, so that no exponential overflows.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.softmax(gl.tensor([[0., 0.], [1., 3.]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """
    return _normalize(rules.softmax, input, dim, dtype)


@composite()
@takes_axis
def log_softmax(input: Tensor, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Compute the logarithm of the softmax along a dimension.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, same dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` is boolean or integer and `dtype` is not floating point.

    Notes
    -----
    .. math:: y_i = x_i - \log \sum_j e^{x_j}

    The largest element is subtracted first, so that no exponential overflows.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.log_softmax(gl.tensor([0., 1000.]), dim=0)
    tensor([-1000.,     0.])
    """
    return _normalize(rules.log_softmax, input, dim, dtype)


@composite()
@takes_axis
def logsumexp(input: Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    r"""Compute the logarithm of the sum of exponentials over the dimensions in `dim`.

    Parameters
    ----------
    {input}
    dim : int or tuple of ints
        Dimensions to reduce. `axis` is an alias.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, floating point.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Notes
    -----
    .. math:: y = \log \sum_i e^{x_i}

    The largest element is subtracted first, so that no exponential overflows. The gradient is the softmax of `input`.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0., 0., 1000.], requires_grad=True)
    >>> gl.logsumexp(x, dim=0).backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """
    return rules.logsumexp.record(input, axis=negative_dims(dim, input.array.ndim), keepdims=keepdim)
