"""Write gradients to `.grad`, without sharing memory with any other tensor of the user. All of it follows PyTorch.

- The first gradient becomes `.grad` without a copy if the sweep owns its memory. Otherwise it is copied, to the memory layout of
  the tensor.
- Further gradients are added in place, or out of place if the sweep is recorded, since the old `.grad` may be part of a graph.
- A recorded gradient is always copied, with its history, since the graph may have saved it.
- A non-leaf that retains its gradient gets a new array each time.
"""

from __future__ import annotations

import threading
from typing import Any

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.registry import core_primitives
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant

_lock = threading.RLock()  # sweeps in several threads may share leaves


def add_to_grad(tensor: Tensor, g: Any, traced: bool, borrowed: bool) -> None:
    """Add a cotangent, an array or a Tensor if `traced`, to a leaf's `.grad`. The first one is copied if it is borrowed."""
    with _lock:
        held = tensor.grad_slot
        if held is None:
            tensor.grad_slot = copy_with_layout(g, tensor) if traced else constant(_first_grad(wrap(g), tensor.array, borrowed))
        elif traced:
            tensor.grad_slot = held + g
        else:
            held.array[...] += g
            mark_written(held)


def add_to_retained_grad(tensor: Tensor, g: Any, traced: bool) -> None:
    """Add a cotangent to the `.grad` of a non-leaf."""
    with _lock:
        held = tensor.grad_slot
        if traced:
            tensor.grad_slot = _clone(g) if held is None else held + g
        else:
            tensor.grad_slot = constant(wrap(g).copy() if held is None else held.array + g)


def copy_with_layout(g: Tensor, like: Tensor) -> Tensor:
    """Copy a recorded gradient, with its history, to the memory layout of `like`."""
    copy: Tensor = core_primitives.copy.record(constant(like.array), g)
    return copy


def _clone(g: Tensor) -> Tensor:
    copy: Tensor = core_primitives.clone.record(g)
    return copy


def _first_grad(g: Any, like: Any, borrowed: bool) -> Any:
    """Return a first gradient in the memory layout of `like`, copied if it is borrowed or has another layout."""
    if g.shape == like.shape and (g.ndim < 2 or (g.flags.c_contiguous and like.flags.c_contiguous)):
        return g.copy() if borrowed else g
    copy = namespace_of[type(g)].empty_like(like, dtype=g.dtype)
    copy[...] = g
    return copy
