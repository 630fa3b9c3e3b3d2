"""Detection of when functions compiled by `torch.compile` start and end in a thread. Imported once the user has imported torch.

Dynamo compiles a function together with active modes and global hooks. Ours would cause graph breaks, warnings, and
recompilations where they come or go. So a recording is suspended while compiled code runs, and the compiled code is the same as
without it. Dynamo has no public API for this. The wrapper around a compiled function calls `_maybe_set_eval_frame` with its
compiler before the function runs, and again when it has ended; `OptimizedModule.__call__` warns about global hooks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.replacing import give_back, replace

DYNAMO = "torch._dynamo.eval_frame"
is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", lambda: False)  # since 2.3; Dynamo knows its result


class CompiledCalls:
    """Detection of compiled functions in one thread.

    Parameters
    ----------
    begins, ended : callable
        Called before and after compiled code runs. Each may be called several times in a row.
    faults : Faults
        Collects errors of ours.
    """

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None], faults: Faults) -> None:
        self._begins, self._ended, self._faults = begins, ended, faults
        self._thread = threading.get_ident()
        self._running: list[tuple[Any, bool]] = []  # frames of the running wrappers, and whether they compile

    def open(self) -> None:
        """Start detecting calls."""
        if hasattr(torch, "compile"):
            replace(torch, "compile", self._compile)
            self._replace_in_dynamo()

    def close(self) -> None:
        """Stop detecting calls."""
        for owner, name, make in (*self._of_dynamo(), (torch, "compile", self._compile)):
            give_back(owner, name, make)
        self._running.clear()

    def _of_dynamo(self) -> list[tuple[Any, str, Any]]:
        """Return the attributes to replace once Dynamo is loaded, as far as this version has them."""
        dynamo = sys.modules.get(DYNAMO)
        module = getattr(dynamo, "OptimizedModule", None)
        wanted = ((dynamo, "_maybe_set_eval_frame", self._set_eval_frame), (module, "__call__", self._call))
        return [(owner, name, make) for owner, name, make in wanted if hasattr(owner, name)]

    def _replace_in_dynamo(self) -> None:
        """Replace Dynamo's attributes if it is loaded; the first call of `torch.compile` loads it."""
        for owner, name, make in self._of_dynamo():
            replace(owner, name, make)

    @property
    def _is_compiling(self) -> bool:
        return any(compiles for _, compiles in self._running)

    def _compile(self, original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            compiled = original(*args, **kwargs)
            with self._faults:
                self._replace_in_dynamo()
            return compiled

        return compile

    def _set_eval_frame(self, original: Any) -> Any:
        def set_eval_frame(callback: Any) -> Any:
            if threading.get_ident() != self._thread:
                return original(callback)
            wrapper = _caller()
            if self._running and self._running[-1][0] is wrapper:  # the wrapper's second call
                self._running.pop()
                before = original(callback)
                if not self._is_compiling:
                    self._ended()
                return before
            self._running.append((wrapper, callable(callback)))  # the wrappers of `torch.compiler.disable` call it with None
            if callable(callback):
                self._begins()
            return original(callback)

        return set_eval_frame

    def _call(self, original: Any) -> Any:
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:
                return original(module, *args, **kwargs)
            self._begins()
            try:
                return original(module, *args, **kwargs)
            finally:
                if not self._is_compiling:
                    self._ended()

        return call


def not_compiled(hook: Callable[..., None]) -> Callable[..., None]:
    """Return a hook that Dynamo compiles to nothing. (It inlines the hooks that a module has when it is compiled.)"""

    def call(*args: Any) -> None:
        if not is_compiling():
            hook(*args)

    return call


def _caller() -> Any:
    """Return Dynamo's frame that calls the replaced function."""
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("gradlab."):
        frame = frame.f_back
    return frame
