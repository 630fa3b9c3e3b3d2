"""`.grad`: how what a sweep found for a tensor is kept there, so that it shares memory with nothing else that a user has.

A first gradient is taken over where the sweep owns its memory, else copied, as its tensor's axes lie. Further ones are added
in place, or out of place where the sweep is recorded: the old `.grad` may be part of a graph by then. A recorded gradient is
never taken over, for the graph may have saved it: `.grad` is a copy of it, with its history. A tensor that retains its gradient
gets a copy each time. (All of it as torch does.)
"""

from __future__ import annotations

import threading
from typing import Any

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.registry import used
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant

_adding = threading.RLock()  # threads may sweep over graphs that share leaves


def add_to_grad(tensor: Tensor, g: Any, traced: bool, borrowed: bool) -> None:
    """Add a cotangent, an array or (`traced`) a Tensor, to a leaf's `.grad`; if it is borrowed, its memory is another's."""
    with _adding:
        held = tensor.grad_slot
        if held is None:
            tensor.grad_slot = copied(g, tensor) if traced else constant(_laid_out(wrap(g), tensor.array, borrowed))
        elif traced:
            tensor.grad_slot = held + g
        else:
            held.array[...] += g
            wrote(held)


def retained(tensor: Tensor, g: Any, traced: bool) -> None:
    """Add a cotangent to the `.grad` of a tensor that is no leaf."""
    with _adding:
        held = tensor.grad_slot
        if traced:
            tensor.grad_slot = _clone(g) if held is None else held + g
        else:
            tensor.grad_slot = constant(wrap(g).copy() if held is None else held.array + g)


def copied(g: Tensor, like: Tensor) -> Tensor:
    """A copy of a recorded gradient, as its tensor's axes lie."""
    copy: Tensor = used.copy.record(constant(like.array), g)
    return copy


def _clone(g: Tensor) -> Tensor:
    copy: Tensor = used.clone.record(g)
    return copy


def _laid_out(g: Any, like: Any, borrowed: bool) -> Any:
    """A first gradient, in memory of its own whose axes lie as its tensor's do."""
    if g.shape == like.shape and (g.ndim < 2 or (g.flags.c_contiguous and like.flags.c_contiguous)):
        return g.copy() if borrowed else g
    copy = namespace_of[type(g)].empty_like(like, dtype=g.dtype)
    copy[...] = g
    return copy
