"""Functions that run when a module is imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType


class _After(importlib.abc.MetaPathFinder):
    """A finder that calls a function with a module once it has been imported."""

    def __init__(self, name: str, function: Callable[[ModuleType], None]) -> None:
        self.name, self.function = name, function

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.function(module)

        spec.loader.exec_module = exec_module
        return spec


class _Provider(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """A finder of a module that isn't installed, which it makes. While Keras is imported it doesn't find it."""

    def __init__(self, name: str, make: Callable[[], ModuleType]) -> None:
        self.name, self.make, self.making = name, make, False

    def find_spec(self, name, path=None, target=None):
        if name != self.name or self.making or _is_being_imported("keras"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        self.making = True
        try:
            return self.make()
        finally:
            self.making = False

    def exec_module(self, module):
        pass


def _is_being_imported(name: str) -> bool:
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


def after_import(name: str, function: Callable[[ModuleType], None]) -> None:
    sys.meta_path.insert(0, _After(name, function))


def provide(name: str, make: Callable[[], ModuleType]) -> None:
    sys.meta_path.insert(0, _Provider(name, make))
