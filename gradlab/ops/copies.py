"""Copies of tensors, optionally with another memory layout or dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import as_numpy_dtype, float16, float32
from gradlab.core.layout import contiguous_format, has_memory_format, memory_format, to_memory_format
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.rules import elementwise as el
from gradlab.rules import shapes as rules

__all__ = [
    "clone",
]


def make_contiguous(x: Tensor) -> Tensor:
    """Make a new result contiguous, as PyTorch lays out indexed and joined elements, so that `view` works."""
    if not x.array.flags.c_contiguous:
        x.array = namespace_of[type(x.array)].ascontiguousarray(x.array)
    return x


@composite()
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Return a copy that gradients pass through.

    Parameters
    ----------
    {input}
    memory_format : memory_format, optional
        Memory layout of the copy. Default: that of `input`.

    Returns
    -------
    Tensor
        Same shape and dtype as `input`, in its own memory.

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
        result.array = to_memory_format(result.array, memory_format)
    return result


@composite(top=False)
def contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """Return a tensor with the same elements, contiguous in memory.

    Parameters
    ----------
    memory_format : memory_format, default: gradlab.contiguous_format
        Memory layout.

    Returns
    -------
    Tensor
        This tensor if it already has this layout, otherwise a copy.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.zeros(2, 3).t()
    >>> x.is_contiguous(), x.contiguous().is_contiguous()
    (False, True)
    """
    if has_memory_format(self.array, memory_format) if memory_format is not contiguous_format else self.array.flags.c_contiguous:
        return self
    result = rules.contiguous.record(self)
    result.array = to_memory_format(result.array, memory_format)
    return result


def cast(input: Tensor, dtype: Any) -> Tensor:
    """Convert to another dtype; return the tensor itself if it has this dtype."""
    wanted = as_numpy_dtype(dtype)
    if wanted is None or input.array.dtype == wanted:
        return input
    if wanted.kind == "f":
        return rules.astype.record(input, dtype=wanted)
    result = constant(call_quietly(input.array.astype, wanted))
    if OBSERVERS:
        notify_detach(result, input, "cast")
    return result


def compute_in_float32(function: Callable[..., Tensor], *args: Any) -> Tensor:
    """Run a function of several operations on float16 tensors in float32, and round once.

    PyTorch has a single kernel for such a function.
    """
    wide = [cast(x, float32) if isinstance(x, Tensor) and x.array.dtype.char == "e" else x for x in args]
    return cast(function(*wide), float16)
