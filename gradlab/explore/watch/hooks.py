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


def has_closure(args: Any, kwargs: Any) -> bool:
    return kwargs.get("closure") is not None or bool(args and callable(args[0]))
