"""The same elements in memory of their own, in another order there or in another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype, float16, float32
from gradlab.core.layout import arranged, contiguous_format, is_arranged, memory_format
from gradlab.core.numpy_warnings import quietly
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.rules import elementwise as el
from gradlab.rules import shapes as rules

__all__ = [
    "clone",
]


def in_order(x: Tensor) -> Tensor:
    """A fresh result with its elements in the order of their indices, as torch lays out picks and joins: `view` then works."""
    if not x.array.flags.c_contiguous:
        x.array = namespace_of[type(x.array)].ascontiguousarray(x.array)
    return x


@composed()
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy that gradients pass through.

    Parameters
    ----------
    {input}
    memory_format : memory_format, optional
        The order of the elements in memory; without it that of `input`.

    Returns
    -------
    Tensor
        A tensor of the same shape and dtype in memory of its own.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1., 2.], requires_grad=True)
    >>> y = x.clone()
    >>> y[0] = 5.0
    >>> y.sum().backward()
    >>> x, x.grad
    (tensor([1., 2.], requires_grad=True), tensor([0., 1.]))
    """
    result = el.clone.record(input)
    if memory_format is not None:
        result.array = arranged(result.array, memory_format)
    return result


@composed(top=False)
def contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The elements in memory in the order of their indices.

    Parameters
    ----------
    memory_format : memory_format, default gradlab.contiguous_format
        Or in this order.

    Returns
    -------
    Tensor
        The tensor itself if they lie so already, else a copy.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.zeros(2, 3).t()
    >>> x.is_contiguous(), x.contiguous().is_contiguous()
    (False, True)
    """
    if is_arranged(self.array, memory_format) if memory_format is not contiguous_format else self.array.flags.c_contiguous:
        return self
    result = rules.contiguous.record(self)
    result.array = arranged(result.array, memory_format)
    return result


def cast(input: Tensor, dtype: Any) -> Tensor:
    """In another dtype; itself if it has it."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or input.array.dtype == wanted:
        return input
    if wanted.kind == "f":
        return rules.astype.record(input, dtype=wanted)
    result = constant(quietly(input.array.astype, wanted))
    if OBSERVERS:
        notify_detach(result, input, "cast")
    return result


def in_single(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """A function of several operations, for which torch has one kernel, of float16: computed in float32 and rounded once."""
    wide = [cast(x, float32) if isinstance(x, Tensor) and x.array.dtype.char == "e" else x for x in args]
    return cast(function(*wide), float16)
