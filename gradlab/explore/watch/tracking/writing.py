"""Writing a run to trackers while it goes on, at a bounded cost.

The steps are divided into windows, which get longer where a write takes more than its share of a step's time. Of each window
those steps are written that have gradients, updates, units and histograms: one, where all were measured in the same step. At most
one write is made between two steps of the program, so that a tracker that counts its rows, as W&B does, never counts ahead of the
program.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.diagnose.faults import Faults
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.watch.histograms import Moment, Spread
from gradlab.explore.watch.pace import Pace
from gradlab.explore.watch.tracking.adapters import trackers_for
from gradlab.explore.watch.tracking.series import Series

SCALARS, HISTOGRAMS = 0.008, 0.002  # shares of the program's own time
APART = 10  # steps between two histograms at least
RECENT = 31  # measurements whose median is the usual gradient norm
LEAST = 10  # measurements before a norm can be a spike
SPIKE = 10.0  # times the usual norm
SPIKES = 20  # that are written at most


class TrackerFaults(Faults):
    """The errors of one tracker."""

    def describe(self, error: Exception) -> str:
        return f"gl.watch writes nothing more to {self.what}, which raised {type(error).__name__}: {error}"


class Spikes:
    """The search for steps whose gradient norm is far above the usual one, or not finite."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._count, self._within = 0, False

    def find(self, norm: float) -> str:
        """Take the norm of the next measured step. Return a description of the spike that begins there, or ""."""
        usual = float(np.median(self._recent)) if len(self._recent) >= LEAST else np.inf
        self._recent.append(norm)
        before, self._within = self._within, not np.isfinite(norm) or norm > SPIKE * usual
        if not self._within or before or self._count >= SPIKES:
            return ""
        self._count += 1
        if not np.isfinite(norm):
            return "The gradient norm is not finite."
        return f"The gradient norm is {norm:.4g}, {norm / usual:.3g} times the median of the last {len(self._recent) - 1} checks."


class Tracking:
    """The writer of the numbers, histograms and findings of a watch to trackers.

    Parameters
    ----------
    watch : Watch
        Held weakly.
    to : object, or list of objects, or None
        The trackers; see `gl.watch`.

    Attributes
    ----------
    first_step : int
        The number of steps that were made before the watch began, in a run that is resumed. It is added to the steps.
    queue : deque of callable
        The writes that wait.
    """

    def __init__(self, watch: Any, to: Any) -> None:
        self._trackers = [(tracker, TrackerFaults(tracker.name)) for tracker in trackers_for(to)]
        self.first_step = 0
        self.queue: deque[Callable[[], None]] = deque()
        if not self._trackers:
            return
        self._watch = weakref.ref(watch)
        self._series = Series(watch.target, watch.measuring.layout)
        self._layers = [i for i in self._series.layers.first if i < len(watch.measuring.histograms.parameters)]
        self._pace, self._moments = Pace(SCALARS), Pace(HISTOGRAMS, APART)
        self._spikes = Spikes()
        self._window: dict[int, tuple[int, np.ndarray, Moment | None]] = {}  # the first step with each set of parts measured
        self._until = 0  # where the window ends
        watch.on_rows.append(self.add_rows)
        watch.announcer.listeners.append(self.add_finding)

    # ----------------------------------------------------------------------------------------------------- what to write
    def add_rows(self, steps: np.ndarray, rows: np.ndarray) -> None:
        """Choose what to write of new steps, counted from 0."""
        watch = self._watch()
        if watch is None or not self._trackers:
            return
        norms, measured = self._series.total_norms(rows).tolist(), self._series.measured_parts(rows).tolist()
        moments = {moment.step: moment for moment in watch.measuring.histograms.moments}
        for step, row, norm, parts in zip(steps.tolist(), rows, norms, measured, strict=True):
            if norm == norm and (unusual := self._spikes.find(norm)):
                self._add_spike(step, row, unusual)
            moment = moments.get(step) if self._moments.due(step) else None
            if not self._window:
                self._until = (step // self._pace.stride + 1) * self._pace.stride
            have = parts << 1 | (moment is not None)
            if have not in self._window:
                self._window[have] = step, row.copy(), moment
            if step + 1 >= self._until:
                self._close_window()

    def _close_window(self) -> None:
        """Put the fewest steps of a window that have all that was measured in it into the queue."""
        chosen: dict[int, tuple[np.ndarray, Moment | None]] = {}
        covered = 0
        for parts in sorted(self._window, key=int.bit_count, reverse=True):
            if not chosen or parts & ~covered:
                covered |= parts
                step, row, moment = self._window[parts]
                chosen[step] = row, moment
        self._window = {}
        for step in sorted(chosen):
            self.queue.append(partial(self._write_row, step, *chosen[step], len(chosen)))

    def _add_spike(self, step: int, row: np.ndarray, unusual: str) -> None:
        number = self._number(step)
        title = f"Step {number}. {unusual}"
        self.queue.append(partial(self._write, "write_spike", number, title, self._series.table(row)))

    def add_finding(self, finding: Finding) -> None:
        """Write a finding after this step."""
        watch = self._watch()
        if watch is not None and self._trackers:
            step, text = max(watch.steps, 1) + self.first_step, f"{finding} [{finding.kind}]"
            self.queue.append(partial(self._write, "write_finding", step, text))

    # ----------------------------------------------------------------------------------------------------------- writing
    def write_next(self) -> None:
        """Write what comes next, between two steps of the program."""
        watch, began = self._watch(), clock.now()
        self.queue.popleft()()
        if watch is not None:
            watch.add_cost(clock.now() - began)

    def close(self) -> None:
        """Write all that waits, and release the trackers. They stay open."""
        if self._trackers:
            self._close_window()
            while self.queue:
                self.write_next()
            self._write("flush")
            self._trackers = []

    def _write_row(self, step: int, row: np.ndarray, moment: Moment | None, rows: int) -> None:
        began, watch = clock.now(), self._watch()
        self._write("write_step", self._number(step), self._series.scalars(row), self._histograms(moment))
        pace = self._pace if moment is None else self._moments
        pace.add_cost(step, rows * (clock.now() - began))
        if watch is not None:
            pace.set_step_time(watch.measuring.step_time)

    def _histograms(self, moment: Moment | None) -> dict[str, Spread]:
        kinds = (("gradients", moment.gradients), ("weights", moment.weights)) if moment is not None else ()
        spreads = {f"{kind}/{self._series.paths[i]}": of[i] for kind, of in kinds for i in self._layers}
        return {name: spread for name, spread in spreads.items() if spread is not None}

    def _number(self, step: int) -> int:
        return step + 1 + self.first_step

    def _write(self, method: str, *args: Any) -> None:
        """Call a method of each tracker. One that raises gets nothing more."""
        for tracker, faults in list(self._trackers):
            with faults:
                getattr(tracker, method)(*args)
            if faults.first:
                self._trackers = [one for one in self._trackers if one[0] is not tracker]
                if not self._trackers:
                    self.queue.clear()
                watch = self._watch()
                if watch is not None:
                    watch.trouble = watch.trouble or faults.first
