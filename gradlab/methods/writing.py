"""Writing into a tensor's memory. Every `name_` is the operation `name`, its result stored in place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core import inplace
from gradlab.core.errors import advice, broadcast_mismatch, expected, invalid_combination
from gradlab.core.modes import mode
from gradlab.core.ports import hold
from gradlab.core.primitive import Primitive
from gradlab.core.silence import quietly
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED, writing
from gradlab.creation.factories import sizes as as_sizes
from gradlab.creation.filled import fits
from gradlab.ops import indexing
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
    if WATCHED or not is_writable(x.array):
        return False
    x.array.fill(value)
    wrote(x)
    return True


class Writing:
    """Whole tensors overwritten."""

    array: Any
    node: Any

    def zero_(self) -> Tensor:
        """Every element 0, in place."""
        return self if filled_directly(self, 0) else inplace.in_place(el.zero, self, value=0)

    def fill_(self, value: Any) -> Tensor:
        """Every element `value`, in place."""
        if isinstance(value, Tensor):
            if value.array.ndim:
                raise RuntimeError(
                    f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
                )
            if value.node is not None or (WATCHED and self.array.dtype.kind == "f"):
                indexing.write(self, indexing.EVERYTHING, value, indexing.FILL)
                return self
            value = value.array.item()
        if not isinstance(value, (bool, int, float, np.generic)):
            raise invalid_combination("fill_", (value,), "(Tensor value)", "(Number value)")
        value = fits(value, self.array.dtype)
        return self if filled_directly(self, value) else inplace.in_place(el.fill, self, value=value)

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Tensor:
        """The elements of `other`, broadcast and cast, in place."""
        if not isinstance(other, Tensor):
            raise expected("copy_", "other", 1, "Tensor", other)
        have, new = self.array.shape, other.array.shape
        if (
            have == new
            and not WATCHED
            and (not mode.grad or self.node is other.node is None)
            and is_writable(self.array)
            and (type(self.array) is type(other.array))
        ):
            inplace.check_writable(self)
            quietly(self.array.__setitem__, ..., other.array)
            wrote(self)
            return self
        if len(new) > len(have):
            raise broadcast_mismatch(have, new) or RuntimeError(
                f"output with shape {list(have)} doesn't match the broadcast shape {list(new)}. A copy keeps its shape."
            )
        indexing.write(self, indexing.EVERYTHING, other, indexing.COPY)
        return self

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Every element replaced by what a Python function makes of it, in place. Slow; for tensors without gradients."""
        self._for_functions("apply_")
        return self.copy_(
            constant(np.array([callable(x) for x in self.array.ravel().tolist()], self.array.dtype).reshape(self.array.shape))
        )

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Every element replaced by what a Python function makes of it and of the other tensor's, in place."""
        self._for_functions("map_")
        pairs = zip(self.array.ravel().tolist(), np.broadcast_to(tensor.array, self.array.shape).ravel().tolist(), strict=True)
        return self.copy_(constant(np.array([callable(x, y) for x, y in pairs], self.array.dtype).reshape(self.array.shape)))

    def _for_functions(self, name: str) -> None:
        if self.requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
        if self.is_cuda:
            raise TypeError(f"{name} is only implemented on CPU tensors. Call .cpu() first.")

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Another shape in place: the elements in order, more of them unset, fewer left out. For tensors without gradients."""
        if WATCHED:
            writing(self)
        if self.requires_grad and not mode.inference:
            raise RuntimeError("cannot resize variables that require grad. Use reshape, which makes a new tensor.")
        shape = as_sizes("resize_", sizes)
        if shape == self.array.shape:
            return self
        self._without_tangent("resize")
        flat, count = self.array.reshape(-1), prod(shape)
        if count > flat.size:
            longer = namespace_of[type(flat)].empty(count, dtype=flat.dtype)
            longer[: flat.size] = flat
            flat = longer
        self._hold(flat[:count].reshape(shape))
        return self

    def set_(self, source: Tensor | None = None) -> Tensor:
        """Let this tensor hold the memory of `source` in place of its own; no memory, of shape [0], if there is none. Its views
        keep the memory that they see."""
        if source is None:
            source = constant(self.array.reshape(-1)[:0].copy())
        if not isinstance(source, Tensor):
            raise expected("set_", "source", 1, "Tensor", source)
        inplace.check_writable(self)
        if source.array.dtype != self.array.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.c_name} to a tensor of type {self.dtype.c_name}. "
                + advice(f"Convert it first: source.to({self.dtype}).")
            )
        if self.requires_grad and mode.grad:
            raise RuntimeError(
                "set_ is supported for tensors without gradients only. "
                + advice("Call it inside `with gradlab.no_grad():`, or copy_ the values.")
            )
        self._without_tangent("set_")
        self._hold(source.array)
        return self

    def _hold(self, array: Any) -> None:
        hold(self, array)
        wrote(self)

    def _without_tangent(self, what: str) -> None:
        if getattr(self, "_tangent", None) is not None:
            raise RuntimeError(f"cannot {what} variables that has a forward grad. Do it to a detached copy.")

    def resize_as_(self, the_template: Tensor) -> Tensor:
        """The shape of another tensor, in place; see resize_."""
        return self.resize_(the_template.array.shape)
