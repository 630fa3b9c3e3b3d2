"""Call a function after each import of some modules, wherever the script imports them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults


class ImportListener(MetaPathFinder):
    """Finder that asks the other finders, and calls a function when a module has been loaded in this thread."""

    def __init__(self, names: Collection[str], callback: Callable[[], None]) -> None:
        self.names, self.callback, self.thread = names, callback, threading.get_ident()
        self._loaders: list[Any] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.names or threading.get_ident() != self.thread:
            return None
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                self._wrap(spec.loader)
                return spec
        return None

    def _wrap(self, loader: Any) -> None:
        """Call the callback after the loader has executed a module."""
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def load_and_notify(module: ModuleType) -> None:
            load(module)
            with Faults("met a library that was imported"):
                self.callback()

        try:
            loader.exec_module = load_and_notify
        except AttributeError:  # the loader's class has no instance attributes
            return
        self._loaders.append(loader)

    def remove(self) -> None:
        """Stop listening, and restore the loaders."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        while self._loaders:
            vars(self._loaders[-1]).pop("exec_module", None)
            self._loaders.pop()


@contextmanager
def listen_to_imports(names: Collection[str], callback: Callable[[], None]) -> Iterator[None]:
    """Call `callback` after each import of a module with one of these names in this thread, in a `with` block."""
    listener = ImportListener(names, callback)
    with scope_guard(lambda: sys.meta_path.insert(0, listener), listener.remove):
        yield
