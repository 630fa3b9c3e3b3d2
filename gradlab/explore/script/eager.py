"""torch.compile set aside: what a script compiles runs as it is written, line by line, so that there is something to be seen.

What is compiled knows no lines, and the hooks that see modules and operations would break it into pieces.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradlab.core.scopes import scoped

COMPILER = "torch._dynamo"


@contextmanager
def eagerly() -> Iterator[Callable[[], None]]:
    """Yields what is to be called when torch's compiler may have been imported; afterwards it compiles again."""
    undo: list[Callable[[], Any]] = []

    def arrived() -> None:
        compiler = sys.modules.get(COMPILER)
        if compiler is None or undo:
            return
        set_stance = getattr(sys.modules["torch"].compiler, "set_stance", None)
        if set_stance is not None:
            stance = set_stance("force_eager")
            undo.append(lambda: stance.__exit__(None, None, None))
        else:  # before torch 2.6
            before = compiler.config.disable
            undo.append(lambda: setattr(compiler.config, "disable", before))
            compiler.config.disable = True

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using `torch.compile.* when there are global hooks")  # they are ours
        with scoped(arrived, lambda: _undone(undo)):
            yield arrived


def _undone(undo: list[Callable[[], Any]]) -> None:
    while undo:
        undo[-1]()
        undo.pop()
