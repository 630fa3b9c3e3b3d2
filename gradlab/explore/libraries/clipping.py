"""Calls that clip gradients in this thread, gradlab's and PyTorch's: told before the gradients are changed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.replacing import give_back, replace

NORM = ("_clip_grads_with_norm_", "clip_grads_with_norm_")  # which `clip_grad_norm_` calls, however the program has imported that
VALUE = "clip_grad_value_"


class ClippingCalls:
    """Calls of `clip_grad_norm_`, `clip_grads_with_norm_` and `clip_grad_value_`.

    Parameters
    ----------
    tell : callable
        Called with the parameters of each, as the call was given them, before it clips.
    faults : Faults
        Where an error of ours ends.
    """

    def __init__(self, tell: Callable[[Any], None], faults: Faults) -> None:
        self._tell, self._faults, self._thread = tell, faults, threading.get_ident()
        self._replaced: list[tuple[Any, str]] = []

    def open(self) -> None:
        """Begin to tell."""
        for owner, name in _functions():
            replace(owner, name, self._telling)
            self._replaced.append((owner, name))

    def close(self) -> None:
        """Tell no more."""
        while self._replaced:
            owner, name = self._replaced.pop()
            give_back(owner, name, self._telling)

    def _telling(self, original: Any) -> Any:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                with self._faults:
                    self._tell(parameters)
            return original(parameters, *args, **kwargs)

        return clip


def _functions() -> Iterator[tuple[Any, str]]:
    """The module and the name of each function that is replaced, of the libraries that have been imported."""
    for library in ("gradlab", "torch"):
        public, inner = (sys.modules.get(f"{library}.nn.utils{part}") for part in ("", ".clip_grad"))
        if public is None or inner is None:
            continue
        names = (*NORM, VALUE) if any(hasattr(inner, name) for name in NORM) else ("clip_grad_norm_", VALUE)
        for owner in (public, inner):
            yield from ((owner, name) for name in names if hasattr(owner, name))
