"""Detection of calls that clip gradients in this thread, in gradlab and PyTorch, before the gradients change."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.replacing import give_back, replace

NORM = ("_clip_grads_with_norm_", "clip_grads_with_norm_")  # `clip_grad_norm_` calls these, however the program has imported it
VALUE = "clip_grad_value_"


class ClippingCalls:
    """Detection of calls of `clip_grad_norm_`, `clip_grads_with_norm_` and `clip_grad_value_`.

    Parameters
    ----------
    report : callable
        Called with the parameters of each call, as they were given, before it clips.
    faults : Faults
        Collects errors of ours.
    """

    def __init__(self, report: Callable[[Any], None], faults: Faults) -> None:
        self._report, self._faults, self._thread = report, faults, threading.get_ident()
        self._replaced: list[tuple[Any, str]] = []

    def open(self) -> None:
        """Start reporting."""
        for owner, name in _functions():
            replace(owner, name, self._reporting)
            self._replaced.append((owner, name))

    def close(self) -> None:
        """Stop reporting."""
        while self._replaced:
            owner, name = self._replaced.pop()
            give_back(owner, name, self._reporting)

    def _reporting(self, original: Any) -> Any:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                with self._faults:
                    self._report(parameters)
            return original(parameters, *args, **kwargs)

        return outside_compiler(clip)


def _functions() -> Iterator[tuple[Any, str]]:
    """Yield the module and the name of each function to replace, for the libraries that have been imported."""
    for library in ("gradlab", "torch"):
        public, inner = (sys.modules.get(f"{library}.nn.utils{part}") for part in ("", ".clip_grad"))
        if public is None or inner is None:
            continue
        names = (*NORM, VALUE) if any(hasattr(inner, name) for name in NORM) else ("clip_grad_norm_", VALUE)
        for owner in (public, inner):
            yield from ((owner, name) for name in names if hasattr(owner, name))
