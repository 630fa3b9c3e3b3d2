"""Methods that write into a tensor's memory. `name_` is the operation `name` with its result stored in place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core import inplace
from gradlab.core.errors import advice, broadcast_mismatch, invalid_combination, wrong_type
from gradlab.core.layout import memory_format
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.observers import OBSERVERS, notify_before_write
from gradlab.core.operator import composite
from gradlab.core.ports import replace_array
from gradlab.core.primitive import Primitive
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import indexing
from gradlab.ops.creation import require_representable
from gradlab.ops.creation_arguments import parse_size as as_sizes
from gradlab.rules import elementwise as el


def twin(operation: Any) -> Callable[..., Tensor]:
    """Return the in-place version of a primitive or function of tensors, which writes to its first argument."""
    if isinstance(operation, Primitive):
        if operation.args == ["a", "b"] and not operation.meta:

            def method(self: Tensor, other: Any) -> Tensor:
                return inplace.in_place(operation, self, other)
        else:

            def method(self: Tensor, *others: Any, **meta: Any) -> Tensor:
                return inplace.in_place(operation, self, *others, **meta)
    else:

        def method(self: Tensor, *others: Any, **meta: Any) -> Tensor:
            return inplace.composed_in_place(operation, self, *others, **meta)

        functools.update_wrapper(method, operation)
    name = f"{operation.__name__ if callable(operation) and not isinstance(operation, Primitive) else operation.name}_"
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place version of `{name.rstrip('_')}`."
    return method


def twin_without_gradient(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the in-place version of a function without a gradient. The overwritten values get a gradient of 0."""
    node = f"{function.__name__.title().replace('_', '')}Backward"
    by_number, by_tensor = el.replace.with_node(f"{node}0"), el.replace.with_node(f"{node}1")

    def method(self: Any, *other: Any) -> Tensor:
        return inplace.in_place(
            by_tensor if other and isinstance(other[0], Tensor) else by_number, self, value=function(self, *other).array
        )

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"In-place version of `{function.__name__}`."
    return method


def fill_directly(x: Tensor, value: Any) -> bool:
    """Write a number to every element if nothing has to be recorded. Return True if it was written."""
    if mode.grad:
        inplace.check_writable(x)
        if x.node is not None:
            return False
    if OBSERVERS or not is_writable(x.array):
        return False
    x.array.fill(value)
    mark_written(x)
    return True


@composite(top=False)
def zero_(input: Tensor) -> Tensor:
    """Fill the tensor with zeros, in place.

    Parameters
    ----------
    input : Tensor
        The tensor to overwrite.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If the tensor is a leaf that requires a gradient or its elements share memory.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).zero_()
    tensor([0., 0.])
    """
    if not isinstance(input, Tensor):
        raise wrong_type("zero_", "input", 1, "Tensor", input)
    return input if fill_directly(input, 0) else inplace.in_place(el.zero, input, value=0)


@composite(top=False)
def fill_(input: Tensor, value: float | Tensor) -> Tensor:
    """Fill the tensor with one value, in place.

    Parameters
    ----------
    input : Tensor
        The tensor to overwrite.
    value : number or 0-d Tensor
        The value, which is cast to the dtype of `input`. If it is a tensor, its gradient is the sum over all elements.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    TypeError
        If `value` is neither a number nor a tensor.
    RuntimeError
        If `value` is not 0-d, the dtype cannot represent it, or the tensor is a leaf that requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if not isinstance(input, Tensor):
        raise wrong_type("fill_", "input", 1, "Tensor", input)
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions.")
        if value.node is not None or (OBSERVERS and input.array.dtype.kind == "f"):
            indexing.write(input, indexing.WHOLE_TENSOR, value, indexing.FILL)
            return input
        value = value.array.item()
    if not isinstance(value, (bool, int, float, np.generic)):
        raise invalid_combination("fill_", (value,), "(Tensor value)", "(Number value)")
    value = require_representable(value, input.array.dtype)
    return input if fill_directly(input, value) else inplace.in_place(el.fill, input, value=value)


@composite(top=False)
def copy_(input: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy the elements of another tensor into this tensor.

    Parameters
    ----------
    other : Tensor
        The source, broadcastable to the shape of this tensor. It is converted to this tensor's dtype and device.
    non_blocking : bool, default: False
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        This tensor. Gradients go to `other`.

    Raises
    ------
    TypeError
        If `other` is not a Tensor.
    RuntimeError
        If `other` cannot be broadcast to the shape of this tensor, or this tensor is a leaf that requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2, 2).copy_(gl.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if not isinstance(other, Tensor):
        raise wrong_type("copy_", "other", 1, "Tensor", other)
    have, new = input.array.shape, other.array.shape
    if (
        have == new
        and not OBSERVERS
        and (not mode.grad or input.node is other.node is None)
        and is_writable(input.array)
        and (type(input.array) is type(other.array))
    ):
        inplace.check_writable(input)
        call_quietly(input.array.__setitem__, ..., other.array)
        mark_written(input)
        return input
    if len(new) > len(have):
        raise broadcast_mismatch(have, new) or RuntimeError(
            f"output with shape {list(have)} doesn't match the broadcast shape {list(new)}. copy_ does not change the shape."
        )
    indexing.write(input, indexing.WHOLE_TENSOR, other, indexing.COPY)
    return input


@composite(top=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element x by ``callable(x)``, in place. Slow, since it calls a Python function for each element.

    Parameters
    ----------
    callable : function of a number
        The function.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient.
    TypeError
        If this tensor is on a GPU.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).apply_(lambda x: 10 * x)
    tensor([10., 20.])
    """
    _check_takes_callable(input, "apply_")
    return copy_(
        input,
        constant(np.array([callable(x) for x in input.array.ravel().tolist()], input.array.dtype).reshape(input.array.shape)),
    )


@composite(top=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element x by ``callable(x, y)``, where y is the element of `tensor`, in place. Slow.

    Parameters
    ----------
    tensor : Tensor
        The other tensor, broadcastable to the shape of this tensor.
    callable : function of two numbers
        The function.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient.
    TypeError
        If this tensor is on a GPU.
    ValueError
        If `tensor` cannot be broadcast to the shape of this tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).map_(gl.tensor([3., 4.]), lambda x, y: 10 * x + y)
    tensor([13., 24.])
    """
    _check_takes_callable(input, "map_")
    if not isinstance(tensor, Tensor):
        raise wrong_type("map_", "tensor", 1, "Tensor", tensor)
    pairs = zip(input.array.ravel().tolist(), np.broadcast_to(tensor.array, input.array.shape).ravel().tolist(), strict=True)
    return copy_(input, constant(np.array([callable(x, y) for x, y in pairs], input.array.dtype).reshape(input.array.shape)))


def _check_takes_callable(input: Tensor, name: str) -> None:
    if input.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if input.is_cuda:
        raise TypeError(f"{name} is only implemented on CPU tensors. Call .cpu() first.")


@composite(top=False)
def resize_(input: Tensor, *sizes: int | Sequence[int], memory_format: memory_format | None = None) -> Tensor:
    """Resize the tensor to the given shape, in place. The number of elements may change.

    Parameters
    ----------
    *sizes : ints, or a sequence of ints
        The new shape: `x.resize_(2, 3)` or `x.resize_((2, 3))`. Elements keep their order. Surplus elements are dropped, and new
        elements are uninitialized.
    memory_format : memory_format, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient or has a tangent.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2., 3.]).resize_(1, 2)
    tensor([[1., 2.]])
    """
    if OBSERVERS:
        notify_before_write(input)
    if input.requires_grad and not mode.inference:
        raise RuntimeError("cannot resize variables that require grad. Use reshape, which makes a new tensor.")
    shape = as_sizes("resize_", sizes)
    if shape == input.array.shape:
        return input
    _check_no_tangent(input, "resize")
    flat, count = input.array.reshape(-1), prod(shape)
    if count > flat.size:
        longer = namespace_of[type(flat)].empty(count, dtype=flat.dtype)
        longer[: flat.size] = flat
        flat = longer
    _replace_array(input, flat[:count].reshape(shape))
    return input


@composite(top=False)
def set_(input: Tensor, source: Tensor | None = None) -> Tensor:
    """Make this tensor use the memory of another tensor.

    Parameters
    ----------
    source : Tensor, optional
        The other tensor, which must have the same dtype. If omitted, this tensor becomes empty, with shape [0].

    Returns
    -------
    Tensor
        This tensor. Existing views keep the previous memory.

    Raises
    ------
    TypeError
        If `source` is not a Tensor.
    RuntimeError
        If the dtypes differ or this tensor requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> x, y = gl.zeros(2), gl.tensor([1., 2., 3.])
    >>> x.set_(y)
    tensor([1., 2., 3.])
    """
    if source is None:
        source = constant(input.array.reshape(-1)[:0].copy())
    if not isinstance(source, Tensor):
        raise wrong_type("set_", "source", 1, "Tensor", source)
    inplace.check_writable(input)
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {source.dtype.c_name} to a tensor of type {input.dtype.c_name}. "
            + advice(f"Convert it first: source.to({input.dtype}).")
        )
    if input.requires_grad and mode.grad:
        raise RuntimeError(
            "set_ is supported for tensors without gradients only. "
            + advice("Call it inside `with gradlab.no_grad():`, or copy_ the values.")
        )
    _check_no_tangent(input, "set_")
    _replace_array(input, source.array)
    return input


def _replace_array(input: Tensor, array: Any) -> None:
    replace_array(input, array)
    mark_written(input)


def _check_no_tangent(input: Tensor, what: str) -> None:
    if getattr(input, "_tangent", None) is not None:
        raise RuntimeError(f"cannot {what} variables that has a forward grad. Use a detached copy.")


@composite(top=False)
def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """Resize the tensor to the shape of another tensor, in place. See `resize_`.

    Parameters
    ----------
    the_template : Tensor
        The tensor with the desired shape.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient or has a tangent.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2., 3.]).resize_as_(gl.zeros(1, 2))
    tensor([[1., 2.]])
    """
    if not isinstance(the_template, Tensor):
        raise wrong_type("resize_as_", "the_template", 1, "Tensor", the_template)
    return resize_(input, the_template.array.shape)
