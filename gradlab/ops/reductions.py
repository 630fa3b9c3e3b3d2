"""Sums, means, products and quantifiers over axes.

`over_dims` gives each `out=` and NumPy's names for `dim` and `keepdim`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.numpy_warnings import quietly
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import many_dims, one_dim, over_dims
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
@composed()
@over_dims
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of the elements, over all dimensions or those of `dim`.

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
        The shape of `input` without the reduced axes, of its dtype; of bools and integers int64.

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
            return whole_sum(input, dim, keepdim, wanted)
        input = cast(input, dtype)
    op = rules.sum_all if dim is None else rules.sum_
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


def whole_sum(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A sum that is an integer. Of bools, `count_nonzero` makes it ten times as fast."""
    x = input.array
    if x.dtype.kind == "f" and input.node is not None:
        raise RuntimeError(f"Autograd not support dtype: {constant(x.astype(dtype)).dtype.word}. Call .detach() first.")
    if x.dtype.kind == "b" and dim is None and dtype is None:
        return constant(
            np.asarray(np.count_nonzero(x), np.int64) if type(x) is np.ndarray else namespace_of[type(x)].count_nonzero(x)
        )
    if dtype is not None and x.dtype != dtype:
        x = quietly(x.astype, dtype)
    return constant(wrap(x.sum(axis=many_dims(dim, x.ndim), keepdims=keepdim, dtype=dtype or np.int64)))


def no_mean(name: str, input: Tensor) -> RuntimeError:
    return RuntimeError(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        f"Got: {input.dtype.word}. Call .float() first."
        if name == "mean"
        else f"{name}(): expected input to have floating point or complex dtype but got {input.dtype.word}. Call .float() first."
    )


@composed()
@over_dims
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of the elements, over all dimensions or those of `dim`.

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
        The shape of `input` without the reduced axes, of its dtype. Of no elements it is NaN.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError
        If `input` holds bools or integers and no floating point `dtype` is given.

    Notes
    -----
    The gradient of each of n elements is 1/n of the cotangent of their mean.

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
        raise no_mean("mean", input)
    op = rules.mean_all if dim is None else rules.mean
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


@composed()
@over_dims
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum of the elements that are not NaN, over all dimensions or those of `dim`.

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
        The shape of `input` without the reduced axes, of its dtype; of bools and integers int64. Of NaNs alone it is 0.

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
    return rules.nansum.record(cast(input, dtype), axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


@composed()
@over_dims
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of the elements that are not NaN, over all dimensions or those of `dim`.

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
        The shape of `input` without the reduced axes, of its dtype. Of NaNs alone it is NaN.

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
        raise no_mean("nanmean", input)
    numbers = constant(wrap(input.array == input.array))
    return el.div.record(nansum(input, dim, keepdim, dtype=dtype), sum(numbers, dim, keepdim))


@composed()
@over_dims
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """The product of all elements, or of those along one axis.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        A 0-d tensor, or the shape of `input` without the axis, of its dtype; of bools and integers int64.

    Raises
    ------
    {no_tensor}
    {no_axis}

    Notes
    -----
    The gradient of an element is the product of the others. Nothing is divided: it is right where elements are 0.

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
            product = input.array.prod(axis=None if dim is None else many_dims(dim, input.array.ndim), keepdims=keepdim)
            return constant(wrap(product.astype(input.array.dtype)))
    ndim = input.array.ndim
    if dim is None:
        return rules.product_all.record(input, axis=tuple(range(-ndim, 0)), keepdims=False)
    return rules.product.record(input, axis=(one_dim(dim, ndim),) if ndim else (), keepdims=keepdim)


def sum_to_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """The transpose of broadcasting to `input`'s shape."""
    have, more = input.array.shape, input.array.ndim - len(size)
    if more < 0 or [n for n, m in zip(size, have[more:], strict=True) if n not in (1, m)]:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(have)}}}.")
    axes = [i for i, n in enumerate(have) if i < more or size[i - more] != n]
    if not size:
        return sum(input)
    total = sum(input, axes, keepdim=True) if axes else input
    return reshape(total, size) if more else total


# ----------------------------------------------------------------------------------------------------------- quantifiers
def _quantified(name: str, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    x = input.array
    answers = getattr(x, name)(axis=() if dim == () else many_dims(dim, x.ndim), keepdims=keepdim)
    return constant(wrap(answers.astype(np.uint8) if x.dtype == np.uint8 else answers))


@composed()
@over_dims
def all(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether every element is nonzero, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of bools; of uint8, uint8. Of no elements it is True.

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
    return _quantified("all", input, dim, keepdim)


@composed()
@over_dims
def any(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Whether some element is nonzero, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of bools; of uint8, uint8. Of no elements it is False.

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
    return _quantified("any", input, dim, keepdim)


@composed()
@over_dims
def count_nonzero(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """How many elements are not zero, over all dimensions or those of `dim`.

    Parameters
    ----------
    {input}
    {dim}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, int64.

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
    return constant(wrap((x != 0).sum(axis=many_dims(dim, x.ndim), dtype=np.int64)))
