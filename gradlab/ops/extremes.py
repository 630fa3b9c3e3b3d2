"""The largest and the smallest elements, over axes or along one, and where they stand.

`max` and `min` along an axis find the places on the array and pick the elements there (`Picking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from gradlab.backend.namespaces import wrap
from gradlab.backend.sizes import as_long
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import many_dims, one_dim, over_dims
from gradlab.ops.declared import maximum, minimum
from gradlab.ops.results import Result, ValuesAndIndices, result_type
from gradlab.rules import reductions as rules

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


def empty_reduction(name: str, shape: tuple[int, ...], axis: tuple[int, ...] | None) -> Exception | None:
    """Torch's errors for an extreme of nothing, or None where there is something. `axis` None: the whole tensor."""
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


@composed()
@over_dims
def amax(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The largest element, over all dimensions or those of `dim`. A gradient is shared evenly among equals.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype. A NaN is the largest of what contains it.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError, IndexError
        If there is no element to choose from.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([5., 1., 5.], requires_grad=True)
    >>> gl.amax(x).backward()
    >>> x.grad
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _extreme_over(rules.amax, input, dim, keepdim)


@composed()
@over_dims
def amin(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The smallest element, over all dimensions or those of `dim`. A gradient is shared evenly among equals.

    Parameters
    ----------
    {input}
    {dim}
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype. A NaN is the smallest of what contains it.

    Raises
    ------
    {no_tensor}
    {no_axes}
    RuntimeError, IndexError
        If there is no element to choose from.

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
    axis = many_dims(dim, len(shape))
    if not input.array.size:
        if dim == () and (error := empty_reduction(op.name, shape, None)):
            raise error
        for d in dim if isinstance(dim, (tuple, list)) else (dim,):
            if not shape[d]:
                raise IndexError(f"{op.name}(): Expected reduction dim {d} to have non-zero size.")
    return op.record(input, axis=axis, keepdims=keepdim)


AMINMAX = result_type("aminmax", "min", "max")


@composed()
@over_dims
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
    """The smallest and the largest element, of all or along one axis. Each gradient is shared evenly among equals.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is reduced; by default all are. `axis` means the same.
    {keepdim}
    {outs}

    Returns
    -------
    min : Tensor
        A 0-d tensor, or the shape of `input` without the axis, of its dtype.
    max : Tensor
        The same.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If there is no element to choose from.

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
    axis = many_dims(None if dim is None else one_dim(dim, len(shape)), len(shape))
    if error := empty_reduction("aminmax", shape, axis):
        raise IndexError(str(error).replace("()", "", 1))
    least, most = rules.aminmax.primitives
    return AMINMAX(
        rules.aminmax(least.record(input, axis=axis, keepdims=keepdim), most.record(input, axis=axis, keepdims=keepdim))
    )


def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool, other: Tensor | None) -> Any:
    everything, position, pairwise, picking = EXTREMES[name]
    x = input.array
    if dim is None and other is None:
        if not x.size and (error := empty_reduction(name, x.shape, None)):
            raise error
        return everything.record(input, axis=tuple(range(-x.ndim, 0)), keepdims=False)
    if isinstance(dim, Tensor) or other is not None:
        return pairwise(input, dim if other is None else other)
    axis = one_dim(dim, x.ndim)
    if not x.ndim:
        return picking.of_scalar(input)
    if error := empty_reduction(name, x.shape, (axis,)):
        raise error
    return picking(input, axis, getattr(x, position)(axis=axis, keepdims=True), keepdim)


# For each: of everything, where it stands, of pairs, and how it is picked.
EXTREMES = {
    "max": (rules.max_all, "argmax", maximum, ValuesAndIndices("max", "MaxBackward0")),
    "min": (rules.min_all, "argmin", minimum, ValuesAndIndices("min", "MinBackward0")),
}


@composed()
@over_dims
def max(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """The largest element, of all or along one axis; with a second tensor, the largest of each pair.

    Parameters
    ----------
    {input}
    dim : int or Tensor, optional
        The axis that is reduced (`axis` means the same), or a second tensor, as `other`.
    {keepdim}
    other : Tensor, optional
        The second operand, of a shape that broadcasts with that of `input`: `gradlab.maximum`.
    out : Tensor or tuple of Tensor, optional
        Where the result is written: values and indices, if an axis is named. It is refused while a gradient is wanted.

    Returns
    -------
    Tensor or Result
        Of all elements, a 0-d tensor; of pairs, the shape that they broadcast to; along an axis, (values, indices), each of
        the shape of `input` without it, the indices int64. A NaN is the largest of what contains it.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError, IndexError
        If there is no element to choose from.

    Notes
    -----
    Of all elements, a gradient is shared evenly among those that equal the largest. Along an axis it goes to the one that the
    index names, the first of them.

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


@composed()
@over_dims
def min(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
    out: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Any:
    """The smallest element, of all or along one axis; with a second tensor, the smallest of each pair.

    Parameters
    ----------
    {input}
    dim : int or Tensor, optional
        The axis that is reduced (`axis` means the same), or a second tensor, as `other`.
    {keepdim}
    other : Tensor, optional
        The second operand, of a shape that broadcasts with that of `input`: `gradlab.minimum`.
    out : Tensor or tuple of Tensor, optional
        Where the result is written: values and indices, if an axis is named. It is refused while a gradient is wanted.

    Returns
    -------
    Tensor or Result
        Of all elements, a 0-d tensor; of pairs, the shape that they broadcast to; along an axis, (values, indices), each of
        the shape of `input` without it, the indices int64. A NaN is the smallest of what contains it.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError, IndexError
        If there is no element to choose from.

    Notes
    -----
    Of all elements, a gradient is shared evenly among those that equal the smallest. Along an axis it goes to the one that the
    index names, the first of them.

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


@composed()
@over_dims
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the largest element stands, in the flattened tensor or along one axis: the first of equals.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is searched; by default the tensor is read as one row. `axis` means the same.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        A 0-d tensor, or the shape of `input` without the axis, int64. It has no history: no gradient passes through an index.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis, or there is no element to choose from.
    RuntimeError
        If `input` holds bools.

    Notes
    -----
    A NaN comes before all numbers.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argmax(gl.tensor([[1., 5., 2.], [7., 0., 3.]]), dim=1)
    tensor([1, 0])
    """
    return _position("argmax", input, dim, keepdim)


@composed()
@over_dims
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Where the smallest element stands, in the flattened tensor or along one axis: the first of equals.

    Parameters
    ----------
    {input}
    dim : int, optional
        The axis that is searched; by default the tensor is read as one row. `axis` means the same.
    {keepdim}
    {out}

    Returns
    -------
    Tensor
        A 0-d tensor, or the shape of `input` without the axis, int64. It has no history: no gradient passes through an index.

    Raises
    ------
    {no_tensor}
    IndexError
        If `input` has no such axis, or there is no element to choose from.
    RuntimeError
        If `input` holds bools.

    Notes
    -----
    A NaN comes before all numbers.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.argmin(gl.tensor([[1., 5., 2.], [7., 0., 3.]]), dim=1)
    tensor([0, 1])
    """
    return _position("argmin", input, dim, keepdim)


def _position(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = input.array
    axis = None if dim is None else one_dim(dim, x.ndim)
    if x.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input. Call .int() first.")
    if (axis is None or x.ndim) and (error := empty_reduction(name, x.shape, None if axis is None else (axis,))):
        raise error
    places = constant(as_long(wrap(getattr(x, name)(axis=axis if x.ndim else None, keepdims=keepdim))))
    if OBSERVERS:
        notify_detach(places, input, "position")
    return places
