"""Tensors of one value, and of ones on a diagonal."""

from __future__ import annotations

import builtins
from math import isfinite
from typing import Any

import numpy as np

from gradlab.core.dtypes import OF_NUMPY, default
from gradlab.core.errors import expected
from gradlab.core.layout import arranged
from gradlab.core.tensor import Tensor
from gradlab.ops.creation_arguments import Device, factory, factory_like, sizes

__all__ = [
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


@factory
def zeros(
    *shape: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        The shape: ``(2, 3)`` as one sequence, or as integers one after the other.
    size : sequence of int, optional
        The shape, by its name.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Zeros, of this shape.

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return xp.zeros(sizes("zeros", shape, size), default.float if dtype is None else dtype)


@factory
def ones(
    *shape: Any,
    size: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor of ones.

    Parameters
    ----------
    shape : int or sequence of int
        The shape: ``(2, 3)`` as one sequence, or as integers one after the other.
    size : sequence of int, optional
        The shape, by its name.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Ones, of this shape.

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(3, requires_grad=True)
    tensor([1., 1., 1.], requires_grad=True)
    """
    return xp.ones(sizes("ones", shape, size), default.float if dtype is None else dtype)


@factory
def empty(
    *shape: Any,
    size: Any = None,
    memory_format: Any = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor whose elements are not set: they are what the memory held.

    Parameters
    ----------
    shape : int or sequence of int
        The shape: ``(2, 3)`` as one sequence, or as integers one after the other.
    size : sequence of int, optional
        The shape, by its name.
    {memory_format}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        A tensor of this shape.

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.empty(2, 3).shape
    gradlab.Size([2, 3])
    """
    return arranged(xp.empty(sizes("empty", shape, size), default.float if dtype is None else dtype), memory_format)


@factory
def empty_strided(
    size: Any,
    stride: Any,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor with given strides, whose elements are not set.

    Parameters
    ----------
    size : sequence of int
        The shape.
    stride : sequence of int
        How many elements apart the neighbours along each axis lie.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        A tensor of this shape.

    Raises
    ------
    RuntimeError
        If there are not as many strides as sizes, or one is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = sizes("empty_strided", (size,)), tuple(stride)
    if len(shape) != len(steps):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(steps)} and {len(shape)}.")
    if min((0, *shape, *steps)) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}. None may be negative."
        )
    wanted = default.float if dtype is None else dtype
    memory = xp.empty(1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if 0 not in shape else 0, wanted)
    return xp.lib.stride_tricks.as_strided(memory, shape, tuple(s * memory.itemsize for s in steps))


def value_of(name: str, value: Any, position: int) -> Any:
    """A number, or the one in a 0-d tensor."""
    if isinstance(value, Tensor) and not value.array.ndim and value.node is None:
        return value.array.item()
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, (builtins.bool, int, float)):
        raise expected(name, "fill_value", position, "Number", value)
    return value


def fits(value: Any, wanted: np.dtype) -> Any:
    """The number, if the dtype has it."""
    if wanted.kind == "f" and isinstance(value, float) and isfinite(value) and abs(value) > float(np.finfo(wanted).max):
        raise RuntimeError(
            f"value cannot be converted to type {'at::Half' if wanted.itemsize == 2 else 'float'} without "
            f"overflow. It is {value:g}."
        )
    if wanted.kind in "iu":
        wraps = wanted.kind == "u" and isinstance(value, int)  # torch lets -1 be 255, not -1.0
        if not isfinite(value) or not np.iinfo(wanted).min - 255 * wraps <= value <= np.iinfo(wanted).max:
            raise RuntimeError(f"value cannot be converted to type {OF_NUMPY[wanted].name}_t without overflow. It is {value}.")
        return int(value) % 256 if wanted.kind == "u" else int(value)
    return value


@factory
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor of one value.

    Parameters
    ----------
    size : sequence of int
        The shape.
    fill_value : number or Tensor
        The value: a number, or a 0-d tensor without history.
    {created_out}
    dtype : dtype, optional
        The dtype of the result; that of the value's type if it is left out.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The value, in this shape.

    Raises
    ------
    TypeError
        If `size` is no sequence, or `fill_value` no number.
    RuntimeError
        If a size is negative, or the dtype does not hold the value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if not isinstance(size, (tuple, list)):
        raise expected("full", "size", 1, "tuple of ints", size)
    value = value_of("full", fill_value, 2)
    if dtype is None:
        dtype = np.dtype(bool) if isinstance(value, bool) else np.dtype(np.int64) if isinstance(value, int) else default.float
    return xp.full(sizes("full", (size,)), fits(value, dtype), dtype)


@factory_like
def zeros_like(
    input: Any,
    *,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Zeros in the shape of a tensor.

    Parameters
    ----------
    {input}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Zeros, of the shape of `input`.

    Raises
    ------
    {no_tensor}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros_like(gl.tensor([1, 2]))
    tensor([0, 0])
    """
    return xp.zeros_like(input, dtype)


@factory_like
def ones_like(
    input: Any,
    *,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Ones in the shape of a tensor.

    Parameters
    ----------
    {input}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Ones, of the shape of `input`.

    Raises
    ------
    {no_tensor}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones_like(gl.tensor([1., 2.]))
    tensor([1., 1.])
    """
    return xp.ones_like(input, dtype)


@factory_like
def empty_like(
    input: Any,
    *,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A tensor in the shape of another, whose elements are not set.

    Parameters
    ----------
    {input}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        A tensor of the shape of `input`.

    Raises
    ------
    {no_tensor}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.empty_like(gl.tensor([1., 2.])).shape
    gradlab.Size([2])
    """
    return xp.empty_like(input, dtype)


@factory_like
def full_like(
    input: Any,
    fill_value: Any,
    *,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """One value in the shape of a tensor.

    Parameters
    ----------
    {input}
    fill_value : number or Tensor
        The value: a number, or a 0-d tensor without history.
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        The value, in the shape of `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If the dtype does not hold the value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.full_like(gl.tensor([1., 2.]), 3)
    tensor([3., 3.])
    """
    return xp.full_like(input, fits(value_of("full_like", fill_value, 2), dtype), dtype)


@factory
def eye(
    n: Any,
    m: Any = None,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """A matrix with ones on its diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        The number of rows.
    m : int, optional
        The number of columns; n if it is left out.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The matrix, of shape (n, m).

    Raises
    ------
    TypeError
        If a size is no integer.
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for position, (name, count) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        if not isinstance(count, (int, np.integer)):
            raise expected("eye", name, position, "int", count)
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    return xp.eye(n, m, dtype=default.float if dtype is None else dtype)
