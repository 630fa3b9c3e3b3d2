"""Maxima and minima over dimensions or along one dimension, and their indices.

`max` and `min` along a dimension find the indices on the array and pick the elements there (`ValuesAndIndices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gradlab.backend.namespaces import wrap
from gradlab.backend.sizes import as_long
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, negative_dims, takes_axis
from gradlab.ops.declared import maximum, minimum
from gradlab.ops.results import Result, ValuesAndIndices, result_type
from gradlab.rules import reductions as rules

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


def empty_reduction_error(name: str, shape: tuple[int, ...], axis: tuple[int, ...] | None) -> Exception | None:
    """Return PyTorch's error for an extreme of no elements, or None. `axis=None` means the whole tensor."""
    if axis is None:
        return (
            None
            if prod(shape)
            else (IndexError if name.startswith("arg") else RuntimeError)(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                "'dim' argument."
            )
        )
    for a in axis:
        if not shape[a]:
            return IndexError(f"{name}(): Expected reduction dim {a + len(shape)} to have non-zero size.")
    return None


@composite()
@takes_axis
def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the maximum over all dimensions, or over the dimensions in `dim`.

    The gradient is distributed evenly among equal maxima.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. NaN if any of the elements is NaN.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError, IndexError
        If there are no elements to reduce.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([5., 1., 5.], requires_grad=True)
    >>> gl.amax(x).backward()
    >>> x.grad
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _extreme_over(rules.amax, input, dim, keepdim)


@composite()
@takes_axis
def amin(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the minimum over all dimensions, or over the dimensions in `dim`.

    The gradient is distributed evenly among equal minima.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        Shape of `input` without the reduced dimensions, same dtype. NaN if any of the elements is NaN.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError, IndexError
        If there are no elements to reduce.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1., 5., 1.], requires_grad=True)
    >>> gl.amin(x).backward()
    >>> x.grad
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _extreme_over(rules.amin, input, dim, keepdim)


def _extreme_over(op: Any, input: Tensor, dim: Any, keepdim: bool) -> Tensor:
    shape = input.array.shape
    axis = negative_dims(dim, len(shape))
    if not input.array.size:
        if dim == () and (error := empty_reduction_error(op.name, shape, None)):
            raise error
        for d in dim if isinstance(dim, (tuple, list)) else (dim,):
            if not shape[d]:
                raise IndexError(f"{op.name}(): Expected reduction dim {d} to have non-zero size.")
    return op.record(input, axis=axis, keepdims=keepdim)


AMINMAX = result_type("aminmax", "min", "max")


@composite()
@takes_axis
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """Return the minimum and the maximum of all elements, or along a dimension.

    Each gradient is distributed evenly among equal elements.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to reduce. Default: all of them. `axis` is an alias.
    {keepdim}
    {outs}

    Returns
    -------
    min : Tensor
        0-d, or the shape of `input` without the dimension; same dtype.
    max : Tensor
        Same shape and dtype as `min`.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If there are no elements to reduce.

    Examples
    --------
    >>> import gradlab as gl
    >>> low, high = gl.aminmax(gl.tensor([3., 1., 2.]))
    >>> low, high
    (tensor(1.), tensor(3.))
    """
    shape = input.array.shape
    if dim is None and not input.array.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    axis = negative_dims(None if dim is None else negative_dim(dim, len(shape)), len(shape))
    if error := empty_reduction_error("aminmax", shape, axis):
        raise IndexError(str(error).replace("()", "", 1))
    least, most = rules.aminmax.primitives
    return AMINMAX(
        rules.aminmax(least.record(input, axis=axis, keepdims=keepdim), most.record(input, axis=axis, keepdims=keepdim))
    )


def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool, other: Tensor | None) -> Any:
    everything, position, pairwise, picking = EXTREMES[name]
    x = input.array
    if dim is None and other is None:
        if not x.size and (error := empty_reduction_error(name, x.shape, None)):
            raise error
        return everything.record(input, axis=tuple(range(-x.ndim, 0)), keepdims=False)
    if isinstance(dim, Tensor) or other is not None:
        return pairwise(input, dim if other is None else other)
    axis = negative_dim(dim, x.ndim)
    if not x.ndim:
        return picking.of_scalar(input)
    if error := empty_reduction_error(name, x.shape, (axis,)):
        raise error
    return picking(input, axis, getattr(x, position)(axis=axis, keepdims=True), keepdim)


# For each: the reduction of all elements, the array method for indices, the function of pairs, and the pick along an axis.
EXTREMES = {
    "max": (rules.max_all, "argmax", maximum, ValuesAndIndices("max", "MaxBackward0")),
    "min": (rules.min_all, "argmin", minimum, ValuesAndIndices("min", "MinBackward0")),
}


@composite()
@takes_axis
def max(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Return the maximum of all elements, along a dimension, or of each pair of two tensors.

    Parameters
    ----------
    {input}
    dim : int or Tensor, optional
        Dimension to reduce (`axis` is an alias), or a second tensor, like `other`.
    {keepdim}
    other : Tensor, optional
        Second operand, as for `gradlab.maximum`. Its shape must broadcast with that of `input`.
    out : Tensor or tuple of Tensor, optional
        Tensor to write the result to; with `dim`, a tuple for values and indices. Not allowed if a gradient is required.

    Returns
    -------
    Tensor or Result
        For all elements, a 0-d tensor. For pairs, the broadcast shape of the operands. Along a dimension, (values, indices),
        both of the shape of `input` without it; the indices are int64. A maximum is NaN if any of the elements is NaN.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError, IndexError
        If there are no elements to reduce.

    Notes
    -----
    The gradient of the maximum of all elements is distributed evenly among equal maxima. Along a dimension it goes to the
    element at the returned index, the first of equal maxima.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([[1., 5., 5.], [3., 2., 0.]], requires_grad=True)
    >>> values, indices = gl.max(x, dim=1)
    >>> indices
    tensor([1, 0])
    >>> gl.max(x).backward()
    >>> x.grad
    tensor([[0.0000, 0.5000, 0.5000],
            [0.0000, 0.0000, 0.0000]])
    """
    return _extreme("max", input, dim, keepdim, other)


@composite()
@takes_axis
def min(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """Return the minimum of all elements, along a dimension, or of each pair of two tensors.

    Parameters
    ----------
    {input}
    dim : int or Tensor, optional
        Dimension to reduce (`axis` is an alias), or a second tensor, like `other`.
    {keepdim}
    other : Tensor, optional
        Second operand, as for `gradlab.minimum`. Its shape must broadcast with that of `input`.
    out : Tensor or tuple of Tensor, optional
        Tensor to write the result to; with `dim`, a tuple for values and indices. Not allowed if a gradient is required.

    Returns
    -------
    Tensor or Result
        For all elements, a 0-d tensor. For pairs, the broadcast shape of the operands. Along a dimension, (values, indices),
        both of the shape of `input` without it; the indices are int64. A minimum is NaN if any of the elements is NaN.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError, IndexError
        If there are no elements to reduce.

    Notes
    -----
    The gradient of the minimum of all elements is distributed evenly among equal minima. Along a dimension it goes to the
    element at the returned index, the first of equal minima.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([[1., 5., 5.], [3., 2., 0.]])
    >>> values, indices = gl.min(x, dim=1)
    >>> indices
    tensor([0, 2])
    >>> gl.min(x)
    tensor(0.)
    """
    return _extreme("min", input, dim, keepdim, other)


@composite()
@takes_axis
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the index of the maximum in the flattened tensor or along a dimension.

    If several elements are equal, the index of the first one is returned.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to search. Default: search the flattened tensor. `axis` is an alias.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        0-d, or the shape of `input` without the dimension; int64. It never requires a gradient.

    Raises
    ------
    {no_tensor}
    IndexError
        If the dimension is out of range for `input`, or there are no elements to search.
    RuntimeError
        If `input` is boolean.

    Notes
    -----
    NaN counts as the maximum.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argmax(gl.tensor([[1., 5., 2.], [7., 0., 3.]]), dim=1)
    tensor([1, 0])
    """
    return _position("argmax", input, dim, keepdim)


@composite()
@takes_axis
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the index of the minimum in the flattened tensor or along a dimension.

    If several elements are equal, the index of the first one is returned.

    Parameters
    ----------
    {input}
    dim : int, optional
        Dimension to search. Default: search the flattened tensor. `axis` is an alias.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        0-d, or the shape of `input` without the dimension; int64. It never requires a gradient.

    Raises
    ------
    {no_tensor}
    IndexError
        If the dimension is out of range for `input`, or there are no elements to search.
    RuntimeError
        If `input` is boolean.

    Notes
    -----
    NaN counts as the minimum.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argmin(gl.tensor([[1., 5., 2.], [7., 0., 3.]]), dim=1)
    tensor([0, 1])
    """
    return _position("argmin", input, dim, keepdim)


def _position(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = input.array
    axis = None if dim is None else negative_dim(dim, x.ndim)
    if x.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input. Call .int() first.")
    if (axis is None or x.ndim) and (error := empty_reduction_error(name, x.shape, None if axis is None else (axis,))):
        raise error
    places = constant(as_long(wrap(getattr(x, name)(axis=axis if x.ndim else None, keepdims=keepdim))))
    if OBSERVERS:
        notify_detach(places, input, "position")
    return places
