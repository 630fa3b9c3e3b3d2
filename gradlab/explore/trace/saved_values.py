"""Read the results of operations from the tensors that other operations saved, for graphs that were not recorded."""

from __future__ import annotations

from typing import Any

from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.sweep import RecordedSweep


class SavedReader(Recorder):
    """A recorder for an existing graph. Before each sweep it reads the tensors that the nodes have saved, unless they were
    freed."""

    def begin(self, *args: Any, **kwargs: Any) -> RecordedSweep | None:
        """Begin a sweep."""
        sweep = super().begin(*args, **kwargs)
        if sweep is not None:
            library = sweep.library
            values: dict[Any, Any] = {}
            for node in sweep.nodes:
                for maker, value in library.values_saved(node):
                    values.setdefault(library.whole(maker), value)
            self._found = dict(zip(values, library.values(list(values.values())), strict=True))
        return sweep

    def end(self, error: BaseException | None) -> None:
        """End the sweep."""
        running = self._running[-1]
        if running is not None:
            running.seen.values = {**self._found, **running.seen.values}
        super().end(error)
