"""Softmax, its logarithm, and the logarithm of a sum of powers of e."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import many_dims, one_dim, over_dims
from gradlab.ops.shapes import cast
from gradlab.rules import softmax as rules

__all__ = ["log_softmax", "logsumexp", "softmax"]


def _normalised(op: Any, input: Tensor, dim: int, dtype: Dtype | None) -> Tensor:
    if dtype is not None:
        input = cast(input, dtype)
    ndim = input.array.ndim
    axis = one_dim(dim, ndim)
    if input.array.dtype.kind != "f":
        if not input.array.size:
            return constant(input.array.copy())
        raise NotImplementedError(
            f'"{op.name}_{"lastdim_" * (axis == -1)}kernel_impl" not implemented for '
            f"'{input.dtype.word}'. Call .float() first, or give dtype=."
        )
    return op.record(input, axis=(axis,) if ndim else ())


@composed()
@over_dims
def softmax(input: Tensor, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Positive numbers that sum to 1 along an axis, in the proportions of the powers of e.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` holds bools or integers and no floating point `dtype` is given.

    Notes
    -----
    .. math:: y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}

    The largest element is subtracted first: no power overflows.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.softmax(gl.tensor([[0., 0.], [1., 3.]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """
    return _normalised(rules.softmax, input, dim, dtype)


@composed()
@over_dims
def log_softmax(input: Tensor, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""The logarithm of `softmax` along an axis.

    Parameters
    ----------
    {input}
    {one_dim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        The shape of `input`, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    NotImplementedError
        If `input` holds bools or integers and no floating point `dtype` is given.

    Notes
    -----
    .. math:: y_i = x_i - \log \sum_j e^{x_j}

    The largest element is subtracted first: no power overflows.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.log_softmax(gl.tensor([0., 1000.]), dim=0)
    tensor([-1000.,     0.])
    """
    return _normalised(rules.log_softmax, input, dim, dtype)


@composed()
@over_dims
def logsumexp(input: Tensor, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    r"""The logarithm of the sum of the powers of e, over the axes `dim`.

    Parameters
    ----------
    {input}
    dim : int or tuple of ints
        The axes that are reduced. `axis` means the same.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, floating point.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Notes
    -----
    .. math:: y = \log \sum_i e^{x_i}

    The largest element is subtracted first: no power overflows. The gradient is the softmax of `input`.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0., 0., 1000.], requires_grad=True)
    >>> gl.logsumexp(x, dim=0).backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """
    return rules.logsumexp.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)
