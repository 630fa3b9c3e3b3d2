"""Sums, means, products and logical reductions over dimensions.

The decorator `takes_axis` adds `out=` and NumPy's names for `dim` and `keepdim`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, negative_dims, takes_axis
from gradlab.ops.copies import cast
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "mean",
    "nanmean",
    "nansum",
    "prod",
    "sum",
]


# ------------------------------------------------------------------------------------------------- sums, means, products
@composite()
@takes_axis
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the sum of the elements, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. For bools and integers, int64.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([[1., 2.], [3., 4.]], requires_grad=True)
    >>> gl.sum(x, dim=1).tolist()
    [3.0, 7.0]
    >>> gl.sum(x).backward()
    >>> x.grad
    tensor([[1., 1.],
            [1., 1.]])
    """
    if dtype is not None or input.array.dtype.kind != "f":
        wanted = as_numpy_dtype(dtype)
        if wanted is None or wanted.kind != "f":
            return integer_sum(input, dim, keepdim, wanted)
        input = cast(input, dtype)
    op = rules.sum_all if dim is None else rules.sum_
    return op.record(input, axis=negative_dims(dim, input.array.ndim), keepdims=keepdim)


def integer_sum(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """Compute a sum of integer dtype. For bools, `count_nonzero` is ten times as fast as summing."""
    x = input.array
    if x.dtype.kind == "f" and input.node is not None:
        raise RuntimeError(f"Autograd not support dtype: {constant(x.astype(dtype)).dtype.word}. Call .detach() first.")
    if x.dtype.kind == "b" and dim is None and dtype is None:
        return constant(
            np.asarray(np.count_nonzero(x), np.int64) if type(x) is np.ndarray else namespace_of[type(x)].count_nonzero(x)
        )
    if dtype is not None and x.dtype != dtype:
        x = call_quietly(x.astype, dtype)
    return constant(wrap(x.sum(axis=negative_dims(dim, x.ndim), keepdims=keepdim, dtype=dtype or np.int64)))


def mean_dtype_error(name: str, input: Tensor) -> RuntimeError:
    return RuntimeError(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        f"Got: {input.dtype.word}. Call .float() first."
        if name == "mean"
        else f"{name}(): expected input to have floating point or complex dtype but got {input.dtype.word}. Call .float() first."
    )


@composite()
@takes_axis
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the mean of the elements, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. The mean of no elements is NaN.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is boolean or integer and `dtype` is not floating point.

    Notes
    -----
    The gradient of each of n elements is 1/n of the gradient of their mean.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1., 2., 3., 6.], requires_grad=True)
    >>> gl.mean(x).backward()
    >>> x.grad
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dtype is not None:
        input = cast(input, dtype)
    if input.array.dtype.kind != "f":
        raise mean_dtype_error("mean", input)
    op = rules.mean_all if dim is None else rules.mean
    return op.record(input, axis=negative_dims(dim, input.array.ndim), keepdims=keepdim)


@composite()
@takes_axis
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the sum of the elements that are not NaN, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. For bools and integers, int64. If all elements are NaN,
        the sum is 0.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nansum(gl.tensor([1., float("nan"), 3.]))
    tensor(4.)
    """
    if input.array.dtype.kind != "f":
        return sum(input, dim, keepdim, dtype=dtype)
    return rules.nansum.record(cast(input, dtype), axis=negative_dims(dim, input.array.ndim), keepdims=keepdim)


@composite()
@takes_axis
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the mean of the elements that are not NaN, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. If all elements are NaN, the mean is NaN.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nanmean(gl.tensor([1., float("nan"), 3.]))
    tensor(2.)
    """
    if input.array.dtype.kind != "f":
        raise mean_dtype_error("nanmean", input)
    numbers = constant(wrap(input.array == input.array))
    return el.div.record(nansum(input, dim, keepdim, dtype=dtype), sum(numbers, dim, keepdim))


@composite()
@takes_axis
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """Compute the product of all elements, or of the elements along one dimension.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. For bools and integers, int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    The gradient of an element is the product of the others. It is computed without division, so it is also correct if elements
    are 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0., 2., 3.], requires_grad=True)
    >>> gl.prod(x).backward()
    >>> x.grad
    tensor([6., 0., 0.])
    """
    if dtype is not None:
        input = cast(input, dtype)
        if input.array.dtype.kind != "f":
            product = input.array.prod(axis=None if dim is None else negative_dims(dim, input.array.ndim), keepdims=keepdim)
            return constant(wrap(product.astype(input.array.dtype)))
    ndim = input.array.ndim
    if dim is None:
        return rules.product_all.record(input, axis=tuple(range(-ndim, 0)), keepdims=False)
    return rules.product.record(input, axis=(negative_dim(dim, ndim),) if ndim else (), keepdims=keepdim)


def sum_to_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Sum a tensor to a smaller shape: the transpose of broadcasting from that shape."""
    have, more = input.array.shape, input.array.ndim - len(size)
    if more < 0 or [n for n, m in zip(size, have[more:], strict=True) if n not in (1, m)]:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(have)}}}.")
    axes = [i for i, n in enumerate(have) if i < more or size[i - more] != n]
    if not size:
        return sum(input)
    total = sum(input, axes, keepdim=True) if axes else input
    return reshape(total, size) if more else total


# ---------------------------------------------------------------------------------------------------- logical reductions
def _reduce_logical(name: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    x = input.array
    answers = getattr(x, name)(axis=() if dim == () else negative_dims(dim, x.ndim), keepdims=keepdim)
    return constant(wrap(answers.astype(np.uint8) if x.dtype == np.uint8 else answers))


@composite()
@takes_axis
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Test whether all elements are nonzero, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, bool. For uint8, uint8. For no elements, the result is True.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.all(gl.tensor([[1, 2], [0, 3]]), dim=1)
    tensor([ True, False])
    """
    return _reduce_logical("all", input, dim, keepdim)


@composite()
@takes_axis
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Test whether any element is nonzero, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, bool. For uint8, uint8. For no elements, the result is False.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.any(gl.tensor([[0, 0], [0, 3]]), dim=1)
    tensor([False,  True])
    """
    return _reduce_logical("any", input, dim, keepdim)


@composite()
@takes_axis
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Count the nonzero elements, over all dimensions or those in `dim`.

    Parameters
    ----------
    {input}
    {dim}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, int64.

    Raises
    ------
    {no_tensor}
    {no_axes}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.count_nonzero(gl.tensor([[0, 2, 0], [1, 0, 3]]), dim=1)
    tensor([1, 2])
    """
    x = input.array
    return constant(wrap((x != 0).sum(axis=negative_dims(dim, x.ndim), dtype=np.int64)))
