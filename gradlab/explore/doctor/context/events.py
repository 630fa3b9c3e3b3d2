"""Events of a run: the steps, writes and backward calls between sweeps, and the words for them."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case, called, cell_line, listed
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import Entry, Swept


def after(case: Case, swept: Swept) -> list[Event]:
    """What happened between a sweep and the next one."""
    assert case.trace is not None
    events = case.trace.events[swept.event :]
    stop = next((i for i, event in enumerate(events) if event.kind == "backward"), len(events))
    return list(events[:stop])


def asked_by(case: Case, swept: Swept) -> Event | None:
    """The call that asked for a sweep; None of one that was called for the user."""
    assert case.trace is not None
    event = case.trace.events[swept.event - 1] if 0 < swept.event <= len(case.trace.events) else None
    return event if event is not None and event.place is not None else None


def asked_at(case: Case, swept: Swept) -> Line | None:
    """Where a sweep was asked for; None of one that was called for the user."""
    event = asked_by(case, swept)
    return None if event is None else event.place


def event_line(event: Event | None) -> int | None:
    """The line of the cell on which something happened, or that called what did it."""
    return None if event is None else cell_line(event.place) or cell_line(event.cell)


def write_after(case: Case, swept: Swept, keys: Iterable[int]) -> Event | None:
    """What wrote to some leaves after a sweep: a step of an optimizer that holds one, or a line of the user's."""
    wanted = set(keys)
    for event in after(case, swept):
        if event.kind in ("step", "write") and wanted & {*event.keys, *event.held}:
            return event
    return None


def names(case: Case, entries: Iterable[Entry]) -> str:
    """Leaves in a sentence."""
    learners, others = [], []
    for entry in {entry.key: entry for entry in entries}.values():
        learner = case.learners.get(entry.key)
        if learner is not None:
            learners.append(learner)
        elif entry.name:
            others.append(entry.name)
    return called(learners) if learners else listed(others) or "leaves without a name"


def statement(place: Line | None) -> str:
    """The code of a place in a sentence, with its line."""
    if place is None:
        return "the step"
    where = f" on line {place.line}" if place.in_cell else f" at {place.where}"
    return f"`{place.statement or place.source}`{where}" if place.statement or place.source else f"the step{where}"
