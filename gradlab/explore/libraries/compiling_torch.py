"""When what `torch.compile` has made begins to run in a thread, and when it has ended. Loaded once the user has imported torch.

Dynamo compiles a function together with the modes and the global hooks that it finds: ours would break it into pieces, be warned
of, and compile it anew where they come or go. So a recording steps aside while compiled code runs, and what was compiled is the
same as without it. Dynamo has no public way to be told. The wrapper around a compiled function calls `_maybe_set_eval_frame` with
what it compiles by before the function runs, and once more when it has ended; `OptimizedModule.__call__` warns of global hooks.
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


class CompiledCalls:
    """Of one thread.

    Parameters
    ----------
    begins, ended : callable
        Called before and after. Each may be called again in between.
    faults : Faults
        Where an error of ours ends.
    """

    def __init__(self, begins: Callable[[], None], ended: Callable[[], None], faults: Faults) -> None:
        self._begins, self._ended, self._faults = begins, ended, faults
        self._thread = threading.get_ident()
        self._running: list[tuple[Any, bool]] = []  # the frames of the wrappers that run, and whether they compile

    def open(self) -> None:
        """From here on."""
        if hasattr(torch, "compile"):
            replace(torch, "compile", self._compile)
            self._arrived()

    def close(self) -> None:
        """No more."""
        for owner, name, make in (*self._of_dynamo(), (torch, "compile", self._compile)):
            give_back(owner, name, make)
        self._running.clear()

    def _of_dynamo(self) -> list[tuple[Any, str, Any]]:
        """What is replaced once Dynamo is loaded, as far as this version has it."""
        dynamo = sys.modules.get(DYNAMO)
        module = getattr(dynamo, "OptimizedModule", None)
        wanted = ((dynamo, "_maybe_set_eval_frame", self._set_eval_frame), (module, "__call__", self._call))
        return [(owner, name, make) for owner, name, make in wanted if hasattr(owner, name)]

    def _arrived(self) -> None:
        """Dynamo may be loaded: the first call of `torch.compile` does it."""
        for owner, name, make in self._of_dynamo():
            replace(owner, name, make)

    @property
    def _compiled(self) -> bool:
        return any(compiles for _, compiles in self._running)

    def _compile(self, original: Any) -> Any:
        def compile(*args: Any, **kwargs: Any) -> Any:
            compiled = original(*args, **kwargs)
            with self._faults:
                self._arrived()
            return compiled

        return compile

    def _set_eval_frame(self, original: Any) -> Any:
        def set_eval_frame(callback: Any) -> Any:
            if threading.get_ident() != self._thread:
                return original(callback)
            wrapper = _caller()
            if self._running and self._running[-1][0] is wrapper:  # its second call
                self._running.pop()
                before = original(callback)
                if not self._compiled:
                    self._ended()
                return before
            self._running.append((wrapper, callable(callback)))  # those of `torch.compiler.disable` call it with None
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
                if not self._compiled:
                    self._ended()

        return call


def _caller() -> Any:
    """The frame of Dynamo's that calls what is replaced."""
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("gradlab."):
        frame = frame.f_back
    return frame
