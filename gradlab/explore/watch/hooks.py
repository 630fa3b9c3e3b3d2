"""Hooks on the tensors, modules and optimizers of a program."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


def remove_all(handles: list[Any]) -> None:
    while handles:
        handles[-1].remove()
        handles.pop()


def weakly(method: Any, *first: Any) -> Callable[..., None]:
    """Return a hook that calls a method, with `first` before its own arguments, and holds the object of the method weakly."""
    weak, function = weakref.ref(method.__self__), method.__func__

    def hook(*args: Any) -> None:
        owner = weak()
        if owner is not None:
            function(owner, *first, *args)

    return hook


def has_closure(optimizer: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a step has a closure. PyTorch's hooks get the optimizer as an argument, gradlab's do not."""
    return callable(kwargs.get("closure")) or any(callable(one) for one in args if one is not optimizer)
