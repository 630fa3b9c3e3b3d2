"""New Problems of a run that goes on, each told once: to a logger, a tracker, or any callable."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradlab import clock
from gradlab.explore.doctor.findings import Finding

APART = 5.0  # seconds between two looks for what the numbers tell
SHARE = 0.001  # of the time, for looking


class Announcer:
    """Tells listeners of the Problems of a watch: once the doctor has examined the first steps, then as they appear in the
    numbers, and at the end.

    Parameters
    ----------
    watch : Watch
        Held weakly.

    Attributes
    ----------
    listeners : list of callable
        Called with each new Problem, a `Finding`.
    """

    def __init__(self, watch: Any) -> None:
        self._watch = weakref.ref(watch)
        self.listeners: list[Callable[[Finding], None]] = []
        self._told: set[tuple[str, int | None]] = set()
        self._kept: Any = None  # the step that was not finite, when this last looked
        self._next = 0.0

    def look(self, *, now: bool = False) -> None:
        """Tell what is new, if it is time to look. `now`: in any case."""
        watch = self._watch()
        if watch is None or not self.listeners or (watch.measuring.is_full and not watch.ended):
            return
        began = clock.now()
        if not now and began < self._next and watch.kept is self._kept:
            return
        self._kept = watch.kept
        for finding in watch.findings.findings:
            key = finding.kind, finding.line
            if key not in self._told:
                self._told.add(key)
                for listener in self.listeners:
                    with watch.safely():
                        listener(finding)
        took = clock.now() - began
        self._next = began + max(APART, took / SHARE)
        watch.spent(took)
