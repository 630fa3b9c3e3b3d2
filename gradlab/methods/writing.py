"""Writing into a tensor's memory. Every `name_` is the operation `name`, its result stored in place."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradlab import indexing
from gradlab.core import inplace
from gradlab.core.primitive import Primitive
from gradlab.core.tensor import Tensor
from gradlab.rules import elementwise as el


def twin(operation: Any) -> Callable[..., Tensor]:
    """The in-place twin of a primitive or of a function of tensors: the same, stored into its first argument's memory."""
    if isinstance(operation, Primitive):
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


class Writing:
    """Whole tensors overwritten."""

    array: Any

    def zero_(self) -> Tensor:
        """Every element 0, in place."""
        return inplace.in_place(el.zero, self, value=0)

    def fill_(self, value: Any) -> Tensor:
        """Every element `value`, in place."""
        if isinstance(value, Tensor):
            if value.array.ndim:
                raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                                   f"{value.array.ndim} dimensions.")
            if value.node is not None:
                indexing.write(self, indexing.EVERYTHING, value, indexing.FILL)
                return self
            value = value.array.item()
        return inplace.in_place(el.fill, self, value=value)

    def copy_(self, src: Tensor) -> Tensor:
        """The elements of `src`, broadcast and cast, in place."""
        if not isinstance(src, Tensor):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {src.__class__.__name__}")
        if len(src.array.shape) > len(self.array.shape):
            raise RuntimeError(f"output with shape {list(self.array.shape)} doesn't match the broadcast shape "
                               f"{list(src.array.shape)}")
        indexing.write(self, indexing.EVERYTHING, src, indexing.COPY)
        return self
