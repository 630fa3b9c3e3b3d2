"""Registry of tensor libraries.

A library is registered by the name of its module, with a function that creates its adapter. The function is called once the user
has imported that module, and never before: explorers import nothing that the user does not use.
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
    """Add a library whose tensors the explorers can read.

    Parameters
    ----------
    module : str
        The name of the library's module. The adapter is created once the module has been imported.
    adapter : callable
        Creates the `Library`, and may import what it needs for it. Called once.

    Raises
    ------
    TypeError
        If `adapter` cannot be called. Pass the class, not an instance.
    """
    if not callable(adapter):
        raise TypeError(
            f"register({module!r}, …): expected a function or a class that makes a Library, got {type(adapter).__name__}."
        )
    _MAKERS[module] = adapter
    _ADAPTERS.pop(module, None)


def libraries_not_imported() -> frozenset[str]:
    """Return the modules of libraries that have not been imported yet."""
    return frozenset(module for module in _MAKERS if not _is_there(module))


def _is_there(module: str) -> bool:
    """Return whether a library has been imported. (Under `as_torch`, gradlab has torch's name.)"""
    loaded = sys.modules.get(module)
    return loaded is not None and getattr(loaded, "__name__", module) == module


def library_of(value: Any) -> Library | None:
    """Return the library of a tensor; None if `value` is not a tensor."""
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
    """Return the libraries that the user has imported, gradlab's own first."""
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
