"""Who is told of calls of `backward` in this thread, and of nothing else: it costs operations nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from gradlab.core.watching import Sweep, Watcher, times, unwatch, watch
from gradlab.explore.libraries.protocol import Recording

Tell = Callable[[Any], None]  # of each tensor that `backward` is called on, before it runs


class GradlabBackwardCalls(Watcher):
    """Sweeps of gradlab's own that write `.grad`."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def begin(self, sweep: Sweep) -> None:
        if sweep.accumulates and not sweep.lead and len(sweep.outputs) == 1:
            self._tell(sweep.outputs[0])


class BackwardCalls(Recording):
    """Calls of `backward` on gradlab's tensors and on PyTorch's, as far as the user has imported it."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._thread = tell, threading.get_ident()
        self._ours = GradlabBackwardCalls(tell)
        self._original: Any = None

    def open(self) -> None:
        if times(self._ours) == 0:
            watch(self._ours)
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None and self._original is None:
            self._original = tensor.backward
            tensor.backward = self._telling(tensor.backward)

    def close(self) -> None:
        unwatch(self._ours)
        if self._original is not None:
            sys.modules["torch"].Tensor.backward = self._original  # type: ignore[method-assign]
            self._original = None

    def _telling(self, original: Any) -> Any:
        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                self._tell(tensor)
            return original(tensor, *args, **kwargs)

        return wraps(original)(backward)
