"""Change process-wide settings when gradlab's first tensor is created, not on import.

A program that uses the explorers only on another library's tensors keeps its allocator and warning filters. An observer detects
the first tensor and then removes itself, so that later tensors have no extra cost.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gradlab.backend.memory import keep_freed_memory
from gradlab.core.numpy_warnings import ignore_own_warnings
from gradlab.core.observers import GLOBAL_OBSERVERS, OBSERVERS, Observer


class FirstTensor(Observer):
    """Observer of the first tensor created in any thread."""

    def on_create(self, result: Any) -> None:
        """Change the settings and stop observing."""
        keep_freed_memory()
        ignore_own_warnings()
        for observers in (GLOBAL_OBSERVERS, OBSERVERS):
            with suppress(ValueError):  # another thread created a first tensor at the same time
                observers.remove(self)


FIRST_TENSOR = FirstTensor()
GLOBAL_OBSERVERS.append(FIRST_TENSOR)
OBSERVERS.append(FIRST_TENSOR)
