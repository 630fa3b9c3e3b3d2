"""torch.compile set aside: what a script compiles runs as it is written, line by line, so that there is something to be seen.

What is compiled knows no lines, and the hooks that see modules and operations would break it into pieces.
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


class Eagerly:
    """Runs what torch would compile as it is written.

    Attributes
    ----------
    asked : bool
        Whether the script has asked torch to compile anything.
    """

    def __init__(self) -> None:
        self.asked = False
        self._undo: list[Callable[[], Any]] = []
        self._torch: Any = None

    def arrived(self) -> None:
        """To be called when torch or its compiler may have been imported."""
        torch = sys.modules.get("torch")
        if self._torch is None and hasattr(torch, "compile"):
            self._torch = torch
            replace(torch, "compile", self._counted)
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
        """Let torch compile again."""
        if self._torch is not None:
            give_back(self._torch, "compile", self._counted)
            self._torch = None
        while self._undo:
            self._undo[-1]()
            self._undo.pop()

    def _counted(self, compile_: Any) -> Any:
        @wraps(compile_)
        def compiles(*args: Any, **kwargs: Any) -> Any:
            self.asked = True
            return compile_(*args, **kwargs)

        return compiles


@contextmanager
def eagerly() -> Iterator[Eagerly]:
    """Yields what is to be told when torch or its compiler may have been imported; afterwards torch compiles again."""
    eager = Eagerly()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using `torch.compile.* when there are global hooks")  # they are ours
        with scope_guard(eager.arrived, eager.undo):
            yield eager
