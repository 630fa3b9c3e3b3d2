"""Announcement of new Problems during a run, each once, to a logger, a tracker, or any callable."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradlab import clock
from gradlab.explore.doctor.findings import Finding

APART = 5.0  # minimum seconds between two searches for Problems
SHARE = 0.001  # share of the time for searching


class Announcer:
    """Announcer of the Problems of a watch: after the doctor has examined the first steps, then when they appear in the numbers,
    and at the end.

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
        self._announced: set[tuple[str, int | None]] = set()
        self._bad_step: Any = None  # the bad step of the watch at the last search
        self._next = 0.0

    def announce(self, *, now: bool = False) -> None:
        """Announce new Problems, if a search is due or `now` is true."""
        watch = self._watch()
        if watch is None or not self.listeners or (watch.measuring.in_first_steps and not watch.ended):
            return
        began = clock.now()
        if not now and began < self._next and watch.bad_step is self._bad_step:
            return
        self._bad_step = watch.bad_step
        for finding in watch.findings.findings:
            key = finding.kind, finding.line
            if key not in self._announced:
                self._announced.add(key)
                for listener in self.listeners:
                    with watch.safely():
                        listener(finding)
        took = clock.now() - began
        self._next = began + max(APART, took / SHARE)
        watch.add_cost(took)
