"""The trace of what a `Recorder` has seen: of one of its sweeps, or of a program without one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from gradlab.diagnose.source_locations import cells
from gradlab.explore.libraries import Library
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import ModuleCall, Trace
from gradlab.explore.trace.happenings import Happenings
from gradlab.explore.trace.journal import Journal, Swept
from gradlab.explore.trace.notes import Called, Frame, Severed, cell_source
from gradlab.explore.trace.reading import Names, Reader, Root, read
from gradlab.explore.trace.sweep import RecordedSweep, leaves_of

MOST = 50_000  # nodes of a graph that are read


class Seen(Protocol):
    """What a recorder has seen, as far as a trace tells of it."""

    sweeps: int
    calls: deque[Called]
    cuts: deque[Severed]
    events: Happenings
    journal: Journal
    reborn: WeakKeyDictionary[Any, Sequence[Severed]]

    def names_at(self, library: Library, frames: Sequence[Frame]) -> Names: ...


def trace_of_sweep(recorder: Seen, sweep: RecordedSweep) -> Trace:
    """The trace of a sweep whose graph is still there."""
    reader, trace = _graph_of(recorder, sweep)
    for node, leaf in sweep.leaves.items():
        if node in reader.index:
            reader.reached(leaf.losses, reader.index[node])
    for node, cuts in list(recorder.reborn.items()):
        if node in reader.index and node not in sweep.leaves:
            reader.reached(cuts, reader.index[node])
    return replace(
        trace,
        calls=_calls(recorder, reader, trace),
        cuts=tuple(reader.severed(cut) for cut in _cuts(recorder, reader) if cut.time < sweep.time),  # it knows no later ones
        events=tuple(map(reader.event, recorder.events)),
        journal=tuple(_journal(recorder)),
    )


def trace_of_first_sweep(recorder: Seen, sweep: RecordedSweep) -> Trace:
    """The same without cuts, events and journal, and with one call of each module that made nodes of the graph."""
    reader, trace = _graph_of(recorder, sweep)
    missing = {path for node in trace.nodes for path in prefixes(node.module)}
    calls = []
    for call in recorder.calls:
        path = reader.path(call)
        if path in missing:
            missing.remove(path)
            calls.append(ModuleCall(path, call.kind, call.depth, call.graded, reader.lines.line(call.site)))
    return replace(trace, calls=tuple(calls))


def _graph_of(recorder: Seen, sweep: RecordedSweep) -> tuple[Reader, Trace]:
    """The graph of a sweep with its leaves, and its reader."""
    reader = Reader(sweep.library, sweep.names, sweep.seen)
    trace = read(reader, sweep.roots, most=MOST)
    training = sweep.training
    return reader, replace(
        trace,
        leaves=leaves_of(sweep, trace),
        sweep=sweep.number,
        sweeps=recorder.sweeps if training is None else training.sweeps,
        source=cell_source(),
        program=cells.called,
        freed=not sweep.retains,
    )


def trace_of_attempt(recorder: Seen, losses: Sequence[Severed] | None, library: Library, site: Any) -> Trace:
    """What was seen where no sweep was: of one that was asked for and could not be, or of a tensor with these losses. The trace
    has no nodes."""
    reader = Reader(library, recorder.names_at(library, ()))
    reader.reached(losses or (), -1)
    trace = Trace(library.name, (), ())
    cuts = _cuts(recorder, reader)
    return replace(
        trace,
        calls=_calls(recorder, reader, trace),
        cuts=tuple(reader.severed(cut) for cut in cuts),
        events=tuple(map(reader.event, recorder.events)),
        source=cell_source(),
        program=cells.called,
        recorded=True,
        losses=tuple(i for i, cut in enumerate(cuts) if any(cut is loss for loss in losses or ())),
        asked=reader.lines.line(site),
    )


def trace_of_unfinished(recorder: Seen, library: Library, outputs: Sequence[Any]) -> tuple[Trace, Names]:
    """The graph behind tensors of a program that failed before it called backward, and the names at that moment. The last nodes
    are the outputs, one for each tensor."""
    names = recorder.names_at(library, ())
    reader = Reader(library, names)
    roots = [Root(library.node(one), tuple(one.shape), names.by_id.get(id(one), "")) for one in outputs]
    trace = read(reader, roots, most=MOST)
    return replace(trace, calls=_calls(recorder, reader, trace), source=cell_source(), program=cells.called), names


def _journal(recorder: Seen) -> Iterator[Swept]:
    """The sweeps in the journal whose events are still known, with the places of these among them."""
    for swept in recorder.journal.sweeps:
        if swept.event > recorder.events.forgotten:
            yield replace(swept, event=swept.event - recorder.events.forgotten)


def _cuts(recorder: Seen, reader: Reader) -> list[Severed]:
    """The cuts in their order, then those at which a tensor was made of numbers and reached the graph."""
    known = {id(cut) for cut in recorder.cuts}
    return [*recorder.cuts, *(cut for cut in reader.reaching if id(cut) not in known)]


def _calls(recorder: Seen, reader: Reader, trace: Trace) -> tuple[ModuleCall, ...]:
    operations: Counter[str] = Counter()
    for node in trace.nodes:
        operations.update(prefixes(node.module))
    return tuple(
        ModuleCall(
            *(path, call.kind, call.depth, call.graded, reader.lines.line(call.site), operations[path], call.training),
            in_graph=call in reader.calls or call.outer in reader.calls,
        )
        for call in recorder.calls
        for path in (reader.path(call),)
    )
