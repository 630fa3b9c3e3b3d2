"""Events of a run: the steps, writes and backward calls between sweeps, and their descriptions in messages."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case, cell_line, join_names, learner_names
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import Entry, SweepEntry


def events_after(case: Case, swept: SweepEntry) -> list[Event]:
    """Return the events between a sweep and the next backward call."""
    assert case.trace is not None
    events = case.trace.events[swept.event :]
    stop = next((i for i, event in enumerate(events) if event.kind == "backward"), len(events))
    return list(events[:stop])


def sweep_call(case: Case, swept: SweepEntry) -> Event | None:
    """Return the backward call that ran a sweep; None if it was not in the user's code."""
    assert case.trace is not None
    event = case.trace.events[swept.event - 1] if 0 < swept.event <= len(case.trace.events) else None
    return event if event is not None and event.place is not None else None


def sweep_place(case: Case, swept: SweepEntry) -> Line | None:
    """Return the place of the backward call that ran a sweep; None if it was not in the user's code."""
    event = sweep_call(case, swept)
    return None if event is None else event.place


def event_line(event: Event | None) -> int | None:
    """Return the line of the cell on which an event happened, or whose call led to it."""
    return None if event is None else cell_line(event.place) or cell_line(event.cell)


def event_place(event: Event | None) -> Line | None:
    """Return the place of an event, or None."""
    return None if event is None else event.place


def write_after(case: Case, swept: SweepEntry, keys: Iterable[int]) -> Event | None:
    """Return the first event after a sweep that wrote to one of some leaves: a step of its optimizer, or a write in place."""
    wanted = set(keys)
    for event in events_after(case, swept):
        if event.kind in ("step", "write") and wanted & {*event.keys, *event.held}:
            return event
    return None


def entry_names(case: Case, entries: Iterable[Entry]) -> str:
    """Return the names of leaves, for a sentence."""
    learners, others = [], []
    for entry in {entry.key: entry for entry in entries}.values():
        learner = case.learners.get(entry.key)
        if learner is not None:
            learners.append(learner)
        elif entry.name:
            others.append(entry.name)
    return learner_names(learners) if learners else join_names(others) or "leaves without a name"


def quote(place: Line | None) -> str:
    """Return the statement at a place, with its line, for a sentence."""
    if place is None:
        return "the step"
    where = f" on line {place.line}" if place.in_cell else f" at {place.where}"
    return f"`{place.statement or place.source}`{where}" if place.statement or place.source else f"the step{where}"
