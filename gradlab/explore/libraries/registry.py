"""Which tensor library a value belongs to.

A library is registered by the name of its module, with a function that makes its adapter. The function is called once the user
has imported that module, and never before: an explorer loads nothing that the user does not use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gradlab.explore.libraries.library_gradlab import GRADLAB
from gradlab.explore.libraries.protocol import Library

_MAKERS: dict[str, Callable[[], Library]] = {}
_ADAPTERS: dict[str, Library] = {}


def register(module: str, adapter: Callable[[], Library]) -> None:
    """Let the explorers read the tensors of another library.

    Parameters
    ----------
    module : str
        The name of the library's module: the adapter is made when it has been imported.
    adapter : callable
        Makes the `Library`, and may import what it needs for it. Called once.

    Raises
    ------
    TypeError
        `adapter` cannot be called: it is to be the class, not an instance.
    """
    if not callable(adapter):
        raise TypeError(
            f"register({module!r}, …): the adapter is {type(adapter).__name__}, and should be a function or a class "
            "that makes a Library."
        )
    _MAKERS[module] = adapter
    _ADAPTERS.pop(module, None)


def awaited() -> frozenset[str]:
    """The modules of libraries that have not been imported yet."""
    return frozenset(module for module in _MAKERS if not _is_there(module))


def _is_there(module: str) -> bool:
    """Whether a library has been imported. (Under `as_torch` it is gradlab that has torch's name.)"""
    loaded = sys.modules.get(module)
    return loaded is not None and getattr(loaded, "__name__", module) == module


def library_of(value: Any) -> Library | None:
    """The library whose tensor `value` is, or None."""
    if GRADLAB.is_tensor(value):
        return GRADLAB
    for module, make in _MAKERS.items():
        if _is_there(module):
            library = _ADAPTERS.get(module)
            if library is None:
                library = _ADAPTERS[module] = make()
            if library.is_tensor(value):
                return library
    return None


def adapters() -> list[Library]:
    """The libraries that the user has imported, gradlab's own first."""
    libraries: list[Library] = [GRADLAB]
    for module, make in _MAKERS.items():
        if _is_there(module):
            if module not in _ADAPTERS:
                _ADAPTERS[module] = make()
            libraries.append(_ADAPTERS[module])
    return libraries


def _torch() -> Library:
    from gradlab.explore.libraries.library_torch import TORCH

    return TORCH


register("torch", _torch)
