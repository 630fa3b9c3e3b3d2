"""What is set for the whole process, once the first tensor of gradlab's own is made.

A program that uses the explorers on another library's tensors alone keeps its allocator and its warning filters as they are. The
first tensor is seen by an observer, which then leaves: later ones cost nothing more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gradlab.backend.memory import keep_freed_memory
from gradlab.core.numpy_warnings import ignore_ours
from gradlab.core.observers import EVERYWHERE, OBSERVERS, Observer


class FirstTensor(Observer):
    """Sees the first tensor that is made, in whichever thread."""

    def on_create(self, result: Any) -> None:
        """Set what is set for a process, and see no more."""
        keep_freed_memory()
        ignore_ours()
        for observers in (EVERYWHERE, OBSERVERS):
            with suppress(ValueError):  # another thread has made a first tensor at the same moment
                observers.remove(self)


FIRST = FirstTensor()
EVERYWHERE.append(FIRST)
OBSERVERS.append(FIRST)
