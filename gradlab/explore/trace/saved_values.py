"""What operations computed, read from what others saved of it: where nobody recorded, the graph itself still knows much."""

from __future__ import annotations

from typing import Any

from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.sweep import RecordedSweep


class SavedReader(Recorder):
    """A recorder for a graph that is there already: of each sweep it reads, before it runs, what the nodes have saved, while a
    backward has freed none of it."""

    def begin(self, *args: Any, **kwargs: Any) -> RecordedSweep | None:
        """A sweep starts."""
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
        """The sweep is over."""
        running = self._running[-1]
        if running is not None:
            running.seen.values = {**self._found, **running.seen.values}
        super().end(error)
