"""Reports of the other models that a program trained, and of its other losses, from the traces in a `Recorder`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradlab.explore.markup import code, say
from gradlab.explore.report.builder import report_of
from gradlab.explore.report.models import OtherModels, calls_said
from gradlab.explore.report.report import Bounds, Report
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.sweep import RecordedSweep
from gradlab.explore.trace.trainings import Training


def others_of(
    recorder: Recorder, found: Sequence[Any] = (), *, bounds: Bounds | None = None, with_graph: bool = True
) -> OtherModels | None:
    """Return the reports of the other models and losses of a program, after all have been examined; None if there are none.

    Parameters
    ----------
    recorder : Recorder
        The recorder of the program.
    found : sequence of object
        All findings in the program.
    bounds : Bounds, optional
        How much the reports of the others show.
    with_graph : bool, default True
        Draw their graphs.
    """
    known, shown = recorder.trainings.known, recorder.shown_sweep
    own = shown.training if shown is not None else None
    if shown is None or own is None:
        return None
    trainings = list(zip(known, recorder.trainings.labels(), strict=True)) if own in known else [(own, "")]
    sweeps = [(sweep, label) for training, model in trainings for sweep, label in _losses(recorder, training, model)]
    if len(sweeps) < 2:
        return None
    mine = (*own.diagnosis.findings, *own.diagnosis.remarks) if own.diagnosis else tuple(found)
    lines = _lines(recorder.trace(shown))
    others = []
    for sweep, label in sweeps:
        if sweep is shown:
            continue
        trace = recorder.trace(sweep)
        if sweep.training is own:
            elsewhere = _lines(trace) - lines
            theirs = tuple(one for one in mine if one.line in elsewhere)
            mine = tuple(one for one in mine if one not in theirs)
        else:
            said = sweep.training.diagnosis
            theirs = (*said.findings, *said.remarks) if said is not None else ()
        others.append(_report(sweep, trace, label, recorder.sweeps, theirs, bounds, with_graph))
    place = next(i for i, (sweep, _) in enumerate(sweeps) if sweep is shown)
    noun = ("loss", "losses") if len(trainings) == 1 else ("model", "models")
    return OtherModels(sweeps[place][1], tuple(others), place, recorder.trainings.left_out, mine, *noun)


def _losses(recorder: Recorder, training: Training, model: str) -> Iterator[tuple[RecordedSweep, str]]:
    """Yield the last sweep of each line that called backward for a model, and its label. The sweep that is shown comes last."""
    shown = training.shown_sweep
    if shown is None or (shown.trace is None and shown is not recorder.shown_sweep):
        return
    losses = [*(training.other_losses if training.nonfinite_sweep is None and shown is recorder.shown_sweep else []), shown]
    names = [_name(recorder.trace(one)) for one in losses] if len(losses) > 1 else [""]
    clear = len(set(names)) == len(names) and all(names)
    for i, one in enumerate(losses, start=1):
        loss = "" if len(losses) == 1 else names[i - 1] if clear else f"backward, {i} of {len(losses)}"
        yield one, ", ".join(filter(None, (model, loss)))


def _name(trace: Trace) -> str:
    """Return the name of the loss, or "" if there are several."""
    return trace.nodes[trace.outputs[0]].name if len(trace.outputs) == 1 else ""


def _lines(trace: Trace) -> set[int]:
    """Return the lines of the cell that have operations in the graph."""
    places = (place for node in trace.nodes for place in (node.cell, node.place))
    return {place.line for place in places if place is not None and place.in_cell}


def _report(
    sweep: RecordedSweep,
    trace: Trace,
    label: str,
    total: int,
    found: Sequence[Any],
    bounds: Bounds | None,
    with_graph: bool,
) -> Report:
    who = say(trace.program[:1].upper() + trace.program[1:], " called ", code("backward()"))
    report = report_of(
        trace,
        calls_said(who, trace, total, label, odd=sweep is sweep.training.nonfinite_sweep, held=False),
        bounds=bounds,
        with_graph=with_graph,
        matrices=[(f"{name}.grad", matrix) for name, matrix in sweep.named_maps],
        backward_calls=trace.sweeps,
        findings=tuple(one for one in found if not one.remark),
        remarks=tuple(one for one in found if one.remark),
    )
    return replace(report, other_models=OtherModels(label, own=tuple(found)))
