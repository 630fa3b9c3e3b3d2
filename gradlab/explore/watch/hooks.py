"""Hooks on the tensors, modules and optimizers of a program."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any


def remove_all(handles: list[Any]) -> None:
    while handles:
        handles[-1].remove()
        handles.pop()


def weakly(method: Any, *more: Any) -> Callable[..., None]:
    """A hook that does not keep the watch whose method it calls, with `more` before what it is given."""
    weak, function = weakref.ref(method.__self__), method.__func__

    def hook(*args: Any) -> None:
        owner = weak()
        if owner is not None:
            function(owner, *more, *args)

    return hook


def has_closure(optimizer: Any, args: Any, kwargs: Any) -> bool:
    """Whether a step was given a closure. PyTorch's hooks get the optimizer among the arguments, gradlab's do not."""
    return callable(kwargs.get("closure")) or any(callable(one) for one in args if one is not optimizer)
