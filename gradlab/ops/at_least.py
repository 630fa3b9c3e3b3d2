"""Views with at least one, two or three dimensions; added dimensions have size 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.ops.shapes import collect_tensors, unsqueeze
from gradlab.rules import shapes as rules

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d"]


@composite(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return a view of each tensor with at least one dimension.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor
        Tensors, as separate arguments or as one sequence.

    Returns
    -------
    Tensor or tuple of Tensor
        Views with dimensions of size 1 added. A single view if one Tensor is passed, otherwise a tuple.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_1d(gl.tensor(5.))
    tensor([5.])
    """
    return atleast_nd(1, tensors)


@composite(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return a view of each tensor with at least two dimensions.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor
        Tensors, as separate arguments or as one sequence.

    Returns
    -------
    Tensor or tuple of Tensor
        Views with dimensions of size 1 added in front: a 1-d tensor becomes a row. A single view if one Tensor is passed,
        otherwise a tuple.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_2d(gl.tensor([1., 2.]))
    tensor([[1., 2.]])
    """
    return atleast_nd(2, tensors)


@composite(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return a view of each tensor with at least three dimensions.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor
        Tensors, as separate arguments or as one sequence.

    Returns
    -------
    Tensor or tuple of Tensor
        Views with dimensions of size 1 added. A vector of n elements gets the shape [1, n, 1], and a matrix gets a dimension
        at the end. A single view if one Tensor is passed, otherwise a tuple.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_3d(gl.tensor([1., 2.])).shape
    gradlab.Size([1, 2, 1])
    """
    return atleast_nd(3, tensors)


def atleast_nd(n: int, tensors: tuple[Any, ...]) -> Any:
    several = tuple(add_axes(x, n) for x in collect_tensors(f"atleast_{n}d", tensors))
    return several[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else several


def add_axes(x: Tensor, n: int) -> Tensor:
    ndim = x.array.ndim
    if ndim >= n:
        return x
    if not ndim:
        return rules.reshape.record(x, shape=(1,) * n)
    return unsqueeze(unsqueeze(x, 0) if ndim == 1 else x, -1) if n == 3 else unsqueeze(x, 0)
