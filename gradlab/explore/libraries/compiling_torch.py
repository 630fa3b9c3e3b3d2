"""Functions compiled by `torch.compile` in a recorded thread. Imported once the user has imported torch.

Dynamo compiles a function together with active modes and global hooks. Ours would cause graph breaks, warnings, and
recompilations where they come or go. So either the functions run as they are written (`UncompiledCalls`), with their lines and
modules, or a recording is suspended while compiled code runs (`CompiledCalls`), and the code is the same as without it.

Dynamo has no public API to detect its calls. The wrapper around a compiled function calls `_maybe_set_eval_frame` with its
compiler before the function runs, and again when it has ended; `OptimizedModule.__call__` warns about global hooks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.outside_compiler import DYNAMO, disable_waiting
from gradlab.explore.libraries.replacing import give_back, replace

WRAPPER = "compile_wrapper"  # the name of the function around a compiled one; `torch.compiler.disable` makes others
is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", lambda: False)  # since 2.3; Dynamo knows its result


class _Calls:
    """Base of the wrappers around what compiles functions and calls compiled ones, in one thread."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._thread = threading.get_ident()

    def open(self) -> None:
        """Start. May be called repeatedly; so may `close`."""
        if hasattr(torch, "compile"):
            replace(torch, "compile", self._compile)
            self._replace_in_dynamo()

    def close(self) -> None:
        """Stop."""
        for owner, name, make in (*self._of_dynamo(), (torch, "compile", self._compile)):
            give_back(owner, name, make)

    def _replace_in_dynamo(self) -> None:
        """Replace Dynamo's attributes if it is loaded; the first call of `torch.compile` loads it."""
        for owner, name, make in self._of_dynamo():
            replace(owner, name, make)
        if DYNAMO in sys.modules:
            self._on_load()

    def _on_load(self) -> None:
        """Handle that Dynamo is loaded. May be called several times."""

    def _of_dynamo(self) -> list[tuple[Any, str, Any]]:
        """Return the attributes to replace once Dynamo is loaded, as far as this version has them."""
        dynamo = sys.modules.get(DYNAMO)
        module = getattr(dynamo, "OptimizedModule", None)
        wanted = ((dynamo, "_maybe_set_eval_frame", self._set_eval_frame), (module, "__call__", self._call))
        return [(owner, name, make) for owner, name, make in wanted if hasattr(owner, name)]

    @property
    def _is_other_thread(self) -> bool:
        return threading.get_ident() != self._thread

    def _compile(self, original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            compiled = original(*args, **kwargs)
            with self._faults:
                self._replace_in_dynamo()
                disable_waiting()
                self._on_compile()
            return compiled

        return compile

    def _on_compile(self) -> None:
        """Handle a call of `torch.compile`, which does not compile yet."""

    def _set_eval_frame(self, original: Any) -> Any:
        raise NotImplementedError

    def _call(self, original: Any) -> Any:
        raise NotImplementedError


class CompiledCalls(_Calls):
    """Detection of compiled functions in one thread.

    Parameters
    ----------
    begins, ended : callable
        Called before and after compiled code runs. Each may be called several times in a row.
    faults : Faults
        Collects errors of ours.
    """

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None], faults: Faults) -> None:
        super().__init__(faults)
        self._begins, self._ended = begins, ended
        self._running: list[tuple[Any, bool]] = []  # frames of the running wrappers, and whether they compile

    def close(self) -> None:
        """Stop detecting calls."""
        super().close()
        self._running.clear()

    @property
    def _is_compiling(self) -> bool:
        return any(compiles for _, compiles in self._running)

    def _set_eval_frame(self, original: Any) -> Any:
        def set_eval_frame(callback: Any) -> Any:
            if self._is_other_thread:
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
            if self._is_other_thread:
                return original(module, *args, **kwargs)
            self._begins()
            try:
                return original(module, *args, **kwargs)
            finally:
                if not self._is_compiling:
                    self._ended()

        return call


class UncompiledCalls(_Calls):
    """Make compiled functions run as they are written, in all threads.

    Parameters
    ----------
    report : callable
        Called when this thread compiles or calls one.
    faults : Faults
        Collects errors of ours.
    """

    def __init__(self, report: Callable[[], None], faults: Faults) -> None:
        super().__init__(faults)
        self._report = report
        self._undo: Callable[[], None] | None = None

    def close(self) -> None:
        """Enable the compiler again."""
        super().close()
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _on_load(self) -> None:
        if self._undo is not None:
            return
        if hasattr(torch.compiler, "set_stance"):
            stance = torch.compiler.set_stance("force_eager")
            self._undo = lambda: stance.__exit__(None, None, None)
        else:  # before torch 2.6
            config = sys.modules["torch._dynamo"].config
            before = config.disable
            self._undo = lambda: setattr(config, "disable", before)
            config.disable = True

    def _on_compile(self) -> None:
        if not self._is_other_thread:
            self._report()

    def _set_eval_frame(self, original: Any) -> Any:
        def set_eval_frame(callback: Any) -> Any:
            if not self._is_other_thread and _caller().f_code.co_name == WRAPPER:
                self._report()
            return original(None if callable(callback) else callback)  # the program may have set another stance

        return set_eval_frame

    def _call(self, original: Any) -> Any:
        """Call the module inside one that `torch.compile` made, which would warn about our hooks."""

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_other_thread:
                return original(module, *args, **kwargs)
            self._report()
            return module.get_submodule("_orig_mod")(*args, **kwargs)

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
