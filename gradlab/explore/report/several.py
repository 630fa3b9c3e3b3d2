"""The reports of the models that one program trained, from what a `Recorder` has kept of each."""

from __future__ import annotations

from dataclasses import replace

from gradlab.explore.markup import code, say
from gradlab.explore.report.builder import report_of
from gradlab.explore.report.models import Beside, calls_said
from gradlab.explore.report.report import Bounds, Report
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import Training


def others_of(recorder: Recorder, *, bounds: Bounds | None = None, with_graph: bool = True) -> Beside | None:
    """What the report of the model that is shown is told of the others, once all of them have been looked at; None if there are
    none.

    Parameters
    ----------
    recorder : Recorder
        What saw the program.
    bounds : Bounds, optional
        How much the others' reports show.
    with_graph : bool, default True
        Whether their graphs are drawn.
    """
    known, shown = recorder.trainings.known, recorder.shown
    own = shown.training if shown is not None else None
    if len(known) < 2 or own not in known:
        return None
    called = recorder.trainings.labels()
    others = [
        _report(training, label, recorder.sweeps, bounds, with_graph)
        for training, label in zip(known, called, strict=True)
        if training is not own and training.trace is not None
    ]
    place = sum(training.trace is not None for training in known[: known.index(own)])
    label, left_out = called[known.index(own)], recorder.trainings.left_out
    return Beside(label, tuple(others), place, left_out, (*own.said.findings, *own.said.remarks) if own.said else ())


def _report(training: Training, label: str, total: int, bounds: Bounds | None, with_graph: bool) -> Report:
    assert training.trace is not None
    who = say(training.trace.program[:1].upper() + training.trace.program[1:], " called ", code("backward()"))
    said, sweep = training.said, training.shown
    report = report_of(
        training.trace,
        calls_said(who, training.trace, total, label, odd=training.spoilt is not None, held=False),
        bounds=bounds,
        with_graph=with_graph,
        matrices=[] if sweep is None else [(f"{name}.grad", matrix) for name, matrix in sweep.maps if name],
        backward_calls=training.sweeps,
        findings=getattr(said, "findings", ()),
        remarks=getattr(said, "remarks", ()),
    )
    return replace(report, beside=Beside(label, own=(*report.findings, *report.remarks)))
