"""Tensors with as many dimensions as are wanted at least: missing ones have length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor
from gradlab.ops.shapes import several_tensors, unsqueeze
from gradlab.rules import shapes as rules

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d"]


@composed(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with one dimension at least.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        The tensors, one by one or as one list.

    Returns
    -------
    Tensor or tuple of Tensor
        Views in which missing dimensions have length 1. Of one tensor that was given by itself, the one view.

    Raises
    ------
    TypeError
        If one is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_1d(gl.tensor(5.))
    tensor([5.])
    """
    return at_least(1, tensors)


@composed(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with two dimensions at least.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        The tensors, one by one or as one list.

    Returns
    -------
    Tensor or tuple of Tensor
        Views in which missing dimensions have length 1; a 1-d tensor is a row. Of one tensor that was given by itself, the
        one view.

    Raises
    ------
    TypeError
        If one is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_2d(gl.tensor([1., 2.]))
    tensor([[1., 2.]])
    """
    return at_least(2, tensors)


@composed(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Each tensor with three dimensions at least.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        The tensors, one by one or as one list.

    Returns
    -------
    Tensor or tuple of Tensor
        Views in which missing dimensions have length 1; a vector of n elements has the shape [1, n, 1], a matrix one more at
        its end. Of one tensor that was given by itself, the one view.

    Raises
    ------
    TypeError
        If one is no tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.atleast_3d(gl.tensor([1., 2.])).shape
    gradlab.Size([1, 2, 1])
    """
    return at_least(3, tensors)


def at_least(n: int, tensors: tuple[Any, ...]) -> Any:
    several = tuple(with_axes(x, n) for x in several_tensors(f"atleast_{n}d", tensors))
    return several[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else several


def with_axes(x: Tensor, n: int) -> Tensor:
    ndim = x.array.ndim
    if ndim >= n:
        return x
    if not ndim:
        return rules.reshape.record(x, shape=(1,) * n)
    return unsqueeze(unsqueeze(x, 0) if ndim == 1 else x, -1) if n == 3 else unsqueeze(x, 0)
