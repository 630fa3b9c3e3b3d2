"""Build a trace from a `Recorder`, for one of its sweeps or for a program without a sweep."""

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
from gradlab.explore.trace.event_log import EventLog
from gradlab.explore.trace.frozen import FrozenParts
from gradlab.explore.trace.journal import Journal, SweepEntry
from gradlab.explore.trace.notes import Frame, RecordedCall, RecordedCut, cell_source
from gradlab.explore.trace.reading import Names, Reader, Root, read
from gradlab.explore.trace.sweep import RecordedSweep, leaves_of

MAX_NODES = 50_000  # nodes of a graph that are read


class RecordedProgram(Protocol):
    """The parts of a recorder that a trace is built from."""

    sweeps: int
    calls: deque[RecordedCall]
    cuts: deque[RecordedCut]
    events: EventLog
    frozen: FrozenParts
    journal: Journal
    leaves_from_cuts: WeakKeyDictionary[Any, Sequence[RecordedCut]]
    ran_uncompiled: bool

    def names_at(self, library: Library, frames: Sequence[Frame]) -> Names: ...


def trace_of_sweep(recorder: RecordedProgram, sweep: RecordedSweep) -> Trace:
    """Return the trace of a sweep whose graph still exists."""
    reader, trace = _graph_of(recorder, sweep)
    for node, leaf in sweep.leaves.items():
        if node in reader.index:
            reader.mark_reached(leaf.losses, reader.index[node])
    for node, cuts in list(recorder.leaves_from_cuts.items()):
        if node in reader.index and node not in sweep.leaves:
            reader.mark_reached(cuts, reader.index[node])
    return replace(
        trace,
        calls=_calls(recorder, reader, trace),
        cuts=tuple(reader.describe_cut(cut) for cut in _cuts(recorder, reader) if cut.time < sweep.time),
        events=tuple(map(reader.event, recorder.events)),
        journal=tuple(_journal(recorder)),
        moved_statistics=recorder.frozen.moved_statistics(reader.path, reader.lines),
        moved_leaves=recorder.frozen.moved_leaves(reader.lines),
    )


def trace_of_first_sweep(recorder: RecordedProgram, sweep: RecordedSweep) -> Trace:
    """Return the trace of a sweep without cuts, events and journal, and with one call for each module in the graph."""
    reader, trace = _graph_of(recorder, sweep)
    missing = {path for node in trace.nodes for path in prefixes(node.module)}
    calls = []
    for call in recorder.calls:
        path = reader.path(call)
        if path in missing:
            missing.remove(path)
            calls.append(ModuleCall(path, call.kind, call.depth, call.graded, reader.lines.line(call.site)))
    return replace(trace, calls=tuple(calls))


def _graph_of(recorder: RecordedProgram, sweep: RecordedSweep) -> tuple[Reader, Trace]:
    """Return the reader of a sweep's graph, and the graph with its leaves."""
    reader = Reader(sweep.library, sweep.names, sweep.seen)
    trace = read(reader, sweep.roots, most=MAX_NODES)
    training = sweep.training
    return reader, replace(
        trace,
        leaves=leaves_of(sweep, trace),
        sweep=sweep.number,
        sweeps=recorder.sweeps if training is None else training.sweeps,
        source=cell_source(),
        program=cells.called,
        freed=not sweep.retains,
        scale=sweep.scale,
        uncompiled=recorder.ran_uncompiled,
    )


def trace_of_attempt(recorder: RecordedProgram, losses: Sequence[RecordedCut] | None, library: Library, site: Any) -> Trace:
    """Return a trace without nodes for a backward that failed for lack of a graph, or for a tensor that lost its history at the
    cuts `losses`."""
    reader = Reader(library, recorder.names_at(library, ()))
    reader.mark_reached(losses or (), -1)
    trace = Trace(library.name, (), ())
    cuts = _cuts(recorder, reader)
    return replace(
        trace,
        calls=_calls(recorder, reader, trace),
        cuts=tuple(reader.describe_cut(cut) for cut in cuts),
        events=tuple(map(reader.event, recorder.events)),
        source=cell_source(),
        program=cells.called,
        recorded=True,
        losses=tuple(i for i, cut in enumerate(cuts) if any(cut is loss for loss in losses or ())),
        asked=reader.lines.line(site),
    )


def trace_of_unfinished(recorder: RecordedProgram, library: Library, outputs: Sequence[Any]) -> tuple[Trace, Names]:
    """Return the graph behind tensors of a program that failed before it called backward, and the names at that time. The last
    nodes are the outputs, one for each tensor."""
    names = recorder.names_at(library, ())
    reader = Reader(library, names)
    roots = [Root(library.node(one), tuple(one.shape), names.by_id.get(id(one), "")) for one in outputs]
    trace = read(reader, roots, most=MAX_NODES)
    return replace(trace, calls=_calls(recorder, reader, trace), source=cell_source(), program=cells.called), names


def _journal(recorder: RecordedProgram) -> Iterator[SweepEntry]:
    """Yield the sweeps of the journal whose events are still known, with the positions of these events."""
    for swept in recorder.journal.sweeps:
        if swept.event > recorder.events.forgotten:
            yield replace(swept, event=swept.event - recorder.events.forgotten)


def _cuts(recorder: RecordedProgram, reader: Reader) -> list[RecordedCut]:
    """Return the cuts in order, then tensors created from numbers that reached the graph."""
    known = {id(cut) for cut in recorder.cuts}
    return [*recorder.cuts, *(cut for cut in reader.reaching if id(cut) not in known)]


def _calls(recorder: RecordedProgram, reader: Reader, trace: Trace) -> tuple[ModuleCall, ...]:
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
