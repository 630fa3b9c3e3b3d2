"""Tensors filled with one value, uninitialised tensors, and `eye`."""

from __future__ import annotations

import builtins
from math import isfinite
from typing import Any

import numpy as np

from gradlab.core.dtypes import DTYPE_OF_NUMPY, default
from gradlab.core.errors import wrong_type
from gradlab.core.layout import to_memory_format
from gradlab.core.tensor import Tensor
from gradlab.ops.creation_arguments import Device, factory, factory_like, parse_size

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
    """Return a tensor of zeros.

    Parameters
    ----------
    shape : int or sequence of int
        Shape, as one sequence ``(2, 3)`` or as separate integers.
    size : sequence of int, optional
        Shape as a keyword.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Zeros of the given shape.

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
    return xp.zeros(parse_size("zeros", shape, size), default.float if dtype is None else dtype)


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
    """Return a tensor of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Shape, as one sequence ``(2, 3)`` or as separate integers.
    size : sequence of int, optional
        Shape as a keyword.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Ones of the given shape.

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
    return xp.ones(parse_size("ones", shape, size), default.float if dtype is None else dtype)


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
    """Return an uninitialised tensor.

    Parameters
    ----------
    shape : int or sequence of int
        Shape, as one sequence ``(2, 3)`` or as separate integers.
    size : sequence of int, optional
        Shape as a keyword.
    {memory_format}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape with arbitrary values.

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
    return to_memory_format(xp.empty(parse_size("empty", shape, size), default.float if dtype is None else dtype), memory_format)


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
    """Return an uninitialised tensor with the given strides.

    Parameters
    ----------
    size : sequence of int
        Shape.
    stride : sequence of int
        Distance in elements between neighbours along each dimension.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape with arbitrary values.

    Raises
    ------
    RuntimeError
        If the lengths of `size` and `stride` differ, or one of their values is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = parse_size("empty_strided", (size,)), tuple(stride)
    if len(shape) != len(steps):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(steps)} and {len(shape)}.")
    if min((0, *shape, *steps)) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}. Use non-negative values."
        )
    wanted = default.float if dtype is None else dtype
    memory = xp.empty(1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if 0 not in shape else 0, wanted)
    return xp.lib.stride_tricks.as_strided(memory, shape, tuple(s * memory.itemsize for s in steps))


def fill_value_of(name: str, value: Any, position: int) -> Any:
    """Return a fill value, a number or 0-d tensor, as a number."""
    if isinstance(value, Tensor) and not value.array.ndim and value.node is None:
        return value.array.item()
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, (builtins.bool, int, float)):
        raise wrong_type(name, "fill_value", position, "Number", value)
    return value


def require_representable(value: Any, wanted: np.dtype) -> Any:
    """Return the number as the dtype holds it, or raise PyTorch's error if it does not fit."""
    if wanted.kind == "f" and isinstance(value, float) and isfinite(value) and abs(value) > float(np.finfo(wanted).max):
        raise RuntimeError(
            f"value cannot be converted to type {'at::Half' if wanted.itemsize == 2 else 'float'} without "
            f"overflow. Got {value:g}."
        )
    if wanted.kind in "iu":
        wraps = wanted.kind == "u" and isinstance(value, int)  # in torch -1 becomes 255, but -1.0 raises
        if not isfinite(value) or not np.iinfo(wanted).min - 255 * wraps <= value <= np.iinfo(wanted).max:
            raise RuntimeError(
                f"value cannot be converted to type {DTYPE_OF_NUMPY[wanted].name}_t without overflow. Got {value}."
            )
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
    """Return a tensor filled with one value.

    Parameters
    ----------
    size : sequence of int
        Shape.
    fill_value : number or Tensor
        Number, or 0-d tensor that does not require a gradient.
    {created_out}
    dtype : dtype, optional
        Dtype of the result. Default: bool, int64 or the default dtype, by the type of the value.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape filled with the value.

    Raises
    ------
    TypeError
        If `size` is not a sequence, or `fill_value` is not a number.
    RuntimeError
        If a size is negative, or the dtype cannot hold the value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if not isinstance(size, (tuple, list)):
        raise wrong_type("full", "size", 1, "tuple of ints", size)
    value = fill_value_of("full", fill_value, 2)
    if dtype is None:
        dtype = np.dtype(bool) if isinstance(value, bool) else np.dtype(np.int64) if isinstance(value, int) else default.float
    return xp.full(parse_size("full", (size,)), require_representable(value, dtype), dtype)


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
    """Return a tensor of zeros with the shape of `input`.

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
        Same shape as `input`.

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
    """Return a tensor of ones with the shape of `input`.

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
        Same shape as `input`.

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
    """Return an uninitialised tensor with the shape of `input`.

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
        Same shape as `input`, with arbitrary values.

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
    """Return a tensor filled with one value, with the shape of `input`.

    Parameters
    ----------
    {input}
    fill_value : number or Tensor
        Number, or 0-d tensor that does not require a gradient.
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    {no_tensor}
    RuntimeError
        If the dtype cannot hold the value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.full_like(gl.tensor([1., 2.]), 3)
    tensor([3., 3.])
    """
    return xp.full_like(input, require_representable(fill_value_of("full_like", fill_value, 2), dtype), dtype)


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
    """Return a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        Number of rows.
    m : int, optional
        Number of columns. Default: `n`.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Matrix of shape (n, m).

    Raises
    ------
    TypeError
        If a size is not an integer.
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
            raise wrong_type("eye", name, position, "int", count)
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    return xp.eye(n, m, dtype=default.float if dtype is None else dtype)
