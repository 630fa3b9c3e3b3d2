"""Writing into a tensor's memory. Every `name_` is the operation `name`, its result stored in place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core import inplace
from gradlab.core.errors import advice, broadcast_mismatch, expected, invalid_combination
from gradlab.core.layout import memory_format
from gradlab.core.modes import mode
from gradlab.core.numpy_warnings import quietly
from gradlab.core.observers import OBSERVERS, notify_before_write
from gradlab.core.operator import composed
from gradlab.core.ports import hold
from gradlab.core.primitive import Primitive
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import indexing
from gradlab.ops.creation import fits
from gradlab.ops.creation_arguments import sizes as as_sizes
from gradlab.rules import elementwise as el


def twin(operation: Any) -> Callable[..., Tensor]:
    """The in-place twin of a primitive or of a function of tensors: the same, stored into its first argument's memory."""
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
    method.__doc__ = f"`{name.rstrip('_')}`, written into this tensor's memory."
    return method


def answer(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The in-place twin of a function whose result has no history: the answers replace the numbers, and no gradient passes."""
    node = f"{function.__name__.title().replace('_', '')}Backward"
    by_number, by_tensor = el.replace.named(f"{node}0"), el.replace.named(f"{node}1")

    def method(self: Any, *other: Any) -> Tensor:
        return inplace.in_place(
            by_tensor if other and isinstance(other[0], Tensor) else by_number, self, value=function(self, *other).array
        )

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__doc__ = f"`{function.__name__}`, written into this tensor's memory."
    return method


def filled_directly(x: Tensor, value: Any) -> bool:
    """Write a number to every element where no history is wanted. Whether it was done."""
    if mode.grad:
        inplace.check_writable(x)
        if x.node is not None:
            return False
    if OBSERVERS or not is_writable(x.array):
        return False
    x.array.fill(value)
    wrote(x)
    return True


@composed(top=False)
def zero_(input: Tensor) -> Tensor:
    """Every element 0, in place.

    Parameters
    ----------
    input : Tensor
        The tensor that is overwritten.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If it is a leaf that requires a gradient, or its elements share places in memory.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).zero_()
    tensor([0., 0.])
    """
    if not isinstance(input, Tensor):
        raise expected("zero_", "input", 1, "Tensor", input)
    return input if filled_directly(input, 0) else inplace.in_place(el.zero, input, value=0)


@composed(top=False)
def fill_(input: Tensor, value: float | Tensor) -> Tensor:
    """Every element one number, in place.

    Parameters
    ----------
    input : Tensor
        The tensor that is overwritten.
    value : number or 0-d Tensor
        The number, which is cast to the dtype. A tensor's gradient is the sum of those of all elements.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    TypeError
        If `value` is neither a number nor a tensor.
    RuntimeError
        If `value` has dimensions or does not fit into the dtype, or the tensor is a leaf that requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    if not isinstance(input, Tensor):
        raise expected("fill_", "input", 1, "Tensor", input)
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions.")
        if value.node is not None or (OBSERVERS and input.array.dtype.kind == "f"):
            indexing.write(input, indexing.EVERYTHING, value, indexing.FILL)
            return input
        value = value.array.item()
    if not isinstance(value, (bool, int, float, np.generic)):
        raise invalid_combination("fill_", (value,), "(Tensor value)", "(Number value)")
    value = fits(value, input.array.dtype)
    return input if filled_directly(input, value) else inplace.in_place(el.fill, input, value=value)


@composed(top=False)
def copy_(input: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor:
    """The elements of another tensor, in place.

    Parameters
    ----------
    other : Tensor
        The other tensor, of a shape that broadcasts to that of this one. It is cast, and carried to this one's device.
    non_blocking : bool, default False
        Taken as torch takes it, and without effect.

    Returns
    -------
    Tensor
        This tensor. Gradients go to `other`.

    Raises
    ------
    TypeError
        If `other` is no tensor.
    RuntimeError
        If the shape does not broadcast to this one, or this tensor is a leaf that requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.zeros(2, 2).copy_(gl.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    if not isinstance(other, Tensor):
        raise expected("copy_", "other", 1, "Tensor", other)
    have, new = input.array.shape, other.array.shape
    if (
        have == new
        and not OBSERVERS
        and (not mode.grad or input.node is other.node is None)
        and is_writable(input.array)
        and (type(input.array) is type(other.array))
    ):
        inplace.check_writable(input)
        quietly(input.array.__setitem__, ..., other.array)
        wrote(input)
        return input
    if len(new) > len(have):
        raise broadcast_mismatch(have, new) or RuntimeError(
            f"output with shape {list(have)} doesn't match the broadcast shape {list(new)}. A copy keeps its shape."
        )
    indexing.write(input, indexing.EVERYTHING, other, indexing.COPY)
    return input


@composed(top=False)
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Every element replaced by what a Python function makes of it, in place. Slow.

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
        If this tensor requires a gradient: none would pass.
    TypeError
        If it is on a GPU.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).apply_(lambda x: 10 * x)
    tensor([10., 20.])
    """
    _for_functions(input, "apply_")
    return copy_(
        input,
        constant(np.array([callable(x) for x in input.array.ravel().tolist()], input.array.dtype).reshape(input.array.shape)),
    )


@composed(top=False)
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Every element replaced by what a Python function makes of it and of another tensor's, in place. Slow.

    Parameters
    ----------
    tensor : Tensor
        The other tensor, of a shape that broadcasts to that of this one.
    callable : function of two numbers
        The function.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient: none would pass.
    TypeError
        If it is on a GPU.
    ValueError
        If the shape does not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).map_(gl.tensor([3., 4.]), lambda x, y: 10 * x + y)
    tensor([13., 24.])
    """
    _for_functions(input, "map_")
    if not isinstance(tensor, Tensor):
        raise expected("map_", "tensor", 1, "Tensor", tensor)
    pairs = zip(input.array.ravel().tolist(), np.broadcast_to(tensor.array, input.array.shape).ravel().tolist(), strict=True)
    return copy_(input, constant(np.array([callable(x, y) for x, y in pairs], input.array.dtype).reshape(input.array.shape)))


def _for_functions(input: Tensor, name: str) -> None:
    if input.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if input.is_cuda:
        raise TypeError(f"{name} is only implemented on CPU tensors. Call .cpu() first.")


@composed(top=False)
def resize_(input: Tensor, *sizes: int | Sequence[int], memory_format: memory_format | None = None) -> Tensor:
    """Another shape in place, also of another number of elements.

    Parameters
    ----------
    *sizes : ints, or a sequence of ints
        The new shape: `x.resize_(2, 3)` or `x.resize_((2, 3))`. Elements keep their order; those beyond the new number are left
        out, and what is new is not set.
    memory_format : memory_format, optional
        Taken as torch takes it, and without effect.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient, or carries a tangent.

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
    _without_tangent(input, "resize")
    flat, count = input.array.reshape(-1), prod(shape)
    if count > flat.size:
        longer = namespace_of[type(flat)].empty(count, dtype=flat.dtype)
        longer[: flat.size] = flat
        flat = longer
    _hold(input, flat[:count].reshape(shape))
    return input


@composed(top=False)
def set_(input: Tensor, source: Tensor | None = None) -> Tensor:
    """The memory of another tensor in place of this one's own.

    Parameters
    ----------
    source : Tensor, optional
        The other tensor, of the same dtype; without it there is no memory, and the shape is [0].

    Returns
    -------
    Tensor
        This tensor. Its views keep the memory that they see.

    Raises
    ------
    TypeError
        If `source` is no tensor.
    RuntimeError
        If the dtypes differ, or this tensor requires a gradient.

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
        raise expected("set_", "source", 1, "Tensor", source)
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
    _without_tangent(input, "set_")
    _hold(input, source.array)
    return input


def _hold(input: Tensor, array: Any) -> None:
    hold(input, array)
    wrote(input)


def _without_tangent(input: Tensor, what: str) -> None:
    if getattr(input, "_tangent", None) is not None:
        raise RuntimeError(f"cannot {what} variables that has a forward grad. Do it to a detached copy.")


@composed(top=False)
def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """The shape of another tensor, in place: see `resize_`.

    Parameters
    ----------
    the_template : Tensor
        The tensor whose shape it is.

    Returns
    -------
    Tensor
        This tensor.

    Raises
    ------
    RuntimeError
        If this tensor requires a gradient, or carries a tangent.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2., 3.]).resize_as_(gl.zeros(1, 2))
    tensor([[1., 2.]])
    """
    if not isinstance(the_template, Tensor):
        raise expected("resize_as_", "the_template", 1, "Tensor", the_template)
    return resize_(input, the_template.array.shape)
