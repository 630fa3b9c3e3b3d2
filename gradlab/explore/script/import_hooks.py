"""Modules that a script imports are known from then on: `import torch` is seen when it is over, wherever it stands."""

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


class Arrivals(MetaPathFinder):
    """Finds no module itself: it asks the others, and says when one that is awaited has been loaded in this thread."""

    def __init__(self, awaited: Collection[str], arrived: Callable[[], None]) -> None:
        self.awaited, self.arrived, self.thread = awaited, arrived, threading.get_ident()
        self._marked: list[Any] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self.awaited or threading.get_ident() != self.thread:
            return None
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                self._mark(spec.loader)
                return spec
        return None

    def _mark(self, loader: Any) -> None:
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def loaded(module: ModuleType) -> None:
            load(module)
            with Faults("met a library that was imported"):
                self.arrived()

        try:
            loader.exec_module = loaded
        except AttributeError:  # a loader that takes no attributes
            return
        self._marked.append(loader)

    def leave(self) -> None:
        """Find no more; every loader is as it was."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        while self._marked:
            vars(self._marked[-1]).pop("exec_module", None)
            self._marked.pop()


@contextmanager
def arrivals(awaited: Collection[str], arrived: Callable[[], None]) -> Iterator[None]:
    """Call `arrived` after each import of a module of these names in this thread."""
    finder = Arrivals(awaited, arrived)
    with scope_guard(lambda: sys.meta_path.insert(0, finder), finder.leave):
        yield
