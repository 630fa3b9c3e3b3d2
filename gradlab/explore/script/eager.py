"""Disable torch.compile while a script runs, so that what it compiles runs as it is written.

Compiled code has no lines, and hooks on modules and operations would break it into pieces.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from gradlab.core.scopes import scope_guard
from gradlab.explore.libraries.replacing import give_back, replace

COMPILER = "torch._dynamo"


class EagerMode:
    """Run functions that torch would compile as ordinary Python code.

    Attributes
    ----------
    compile_called : bool
        Whether the script has called `torch.compile`.
    """

    def __init__(self) -> None:
        self.compile_called = False
        self._undo: list[Callable[[], Any]] = []
        self._torch: Any = None

    def update(self) -> None:
        """Disable the compiler if it has been imported. Call this after each import of torch or its compiler."""
        torch = sys.modules.get("torch")
        if self._torch is None and hasattr(torch, "compile"):
            self._torch = torch
            replace(torch, "compile", self._count)
        compiler = sys.modules.get(COMPILER)
        if compiler is None or self._undo:
            return
        set_stance = getattr(sys.modules["torch"].compiler, "set_stance", None)
        if set_stance is not None:
            stance = set_stance("force_eager")
            self._undo.append(lambda: stance.__exit__(None, None, None))
        else:  # before torch 2.6
            before = compiler.config.disable
            self._undo.append(lambda: setattr(compiler.config, "disable", before))
            compiler.config.disable = True

    def undo(self) -> None:
        """Enable the compiler again."""
        if self._torch is not None:
            give_back(self._torch, "compile", self._count)
            self._torch = None
        while self._undo:
            self._undo[-1]()
            self._undo.pop()

    def _count(self, compile_: Any) -> Any:
        @wraps(compile_)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.compile_called = True
            return compile_(*args, **kwargs)

        return call


@contextmanager
def disable_compiler() -> Iterator[EagerMode]:
    """Disable torch.compile in a `with` block. Yield the `EagerMode` to update after imports."""
    eager = EagerMode()
    with warnings.catch_warnings():
        # The global hooks are those of the recorder.
        warnings.filterwarnings("ignore", message="Using `torch.compile.* when there are global hooks")
        with scope_guard(eager.update, eager.undo):
            yield eager
