"""`doctor`: what was found in the last `%%grad` cell, or is found in the graph of a tensor, in a model, or in what a run left."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.explore.doctor.after_run import Marks, aftermath, last_error, unexplained
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.earlier_cells import Past, remembered
from gradlab.explore.doctor.examine import CHECKS_OF_EACH_LOSS, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries import library_of
from gradlab.explore.names import with_held
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import Training

NOTHING = "No %%grad cell has run yet, and `gl.doctor(loss)` was not given anything to look at."


@dataclass
class Session:
    """Looks at one cell after the other, and remembers what the next one needs of it: no tensor, and less than 1 MB."""

    past: Past = field(default_factory=Past)
    last: Diagnosis = field(default_factory=lambda: Diagnosis(unseen=(NOTHING,)))
    marks: Marks | None = None  # of when that was said
    ended: int = 0  # what tells the error of that cell from others
    turn: threading.RLock = field(default_factory=threading.RLock, repr=False)  # cells may end in several threads at once

    def look(
        self,
        recorder: Recorder,
        namespace: Mapping[str, Any],
        *,
        trace: Trace | None = None,
        value: Any = None,
        error: BaseException | None = None,
        ignore: frozenset[str] = frozenset(),
    ) -> Diagnosis:
        """What is found in a cell that has ended.

        Parameters
        ----------
        recorder : Recorder
            What saw the cell.
        namespace : mapping of str to object
            The user's names now.
        trace : Trace, optional
            Of its last sweep, if somebody has made it already.
        value : Tensor, optional
            What was to be differentiated, where nobody did.
        error : BaseException, optional
            The error with which the cell failed.
        ignore : frozenset of str, optional
            The kinds that are silenced.
        """
        with self.turn:
            try:
                recorder.settle_journal()
                root = ""
                if trace is None:
                    trace, root = trace_of_run(recorder, value)
                case = Case(trace, with_held(namespace), error, self.past, root=root, ignore=ignore)
                shown = recorder.shown
                own = examine(case)
                if shown is not None and shown.training is not None and error is None:
                    traces = [recorder.trace(one) for one in shown.training.other_losses]
                    own = _with_losses(own, shown.training, traces, case)
                found = _of_all(recorder, own)
                self.last = found if found.findings else replace(found, unseen=(*found.unseen, *unexplained(case)))
                remembered(self.past, case)
                self.marks, self.ended = Marks(namespace), id(error)
            except Exception as failed:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
                self.last = Diagnosis(unseen=(f"The cell could not be looked at: {type(failed).__name__}: {failed}.",))
            return self.last

    def of_training(self, training: Training, namespace: Mapping[str, Any], ignore: frozenset[str] = frozenset()) -> Diagnosis:
        """What is found in a training that is over while its program goes on, or that is not the one that is shown.

        Parameters
        ----------
        training : Training
            Of which there is a trace.
        namespace : mapping of str to object
            The user's names now; those that the training had come before them.
        ignore : frozenset of str, optional
            The kinds that are silenced.
        """
        with self.turn:
            try:
                space = with_held({**namespace, **training.owners})
                case = Case(training.trace, space, None, self.past, ignore=ignore)
                return _with_losses(examine(case), training, [one.trace for one in training.other_losses], case)
            except Exception as failed:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
                return Diagnosis(unseen=(f"A model could not be looked at: {type(failed).__name__}: {failed}.",))

    def tell(self, namespace: Mapping[str, Any], ignore: frozenset[str] = frozenset()) -> Diagnosis:
        """What was found in the last cell that was seen, or, if anything has happened since, in what is left of it."""
        try:
            error, older = last_error()
            with self.turn:
                ours = error is None or id(error) == self.ended
                if self.marks is not None and ours and self.marks.still(namespace):
                    return self.last.without(ignore)
            return aftermath(namespace, error, older, ignore)
        except Exception as failed:  # noqa: BLE001  (it never raises for what it looks at)
            return Diagnosis(unseen=(f"This could not be looked at: {type(failed).__name__}: {failed}.",))

    def forget(self) -> None:
        """Begin anew."""
        self.past, self.last, self.marks = Past(), Diagnosis(unseen=(NOTHING,)), None


NOTEBOOK = Session()  # of the notebook


def _with_losses(own: Diagnosis, training: Training, traces: Sequence[Trace | None], case: Case) -> Diagnosis:
    """What is found of a training, and in the graphs of its other losses."""
    if training.spoilt is not None or not traces:
        return own
    found = [*own.findings, *own.remarks]
    others = [examine(Case(trace, case.namespace, ignore=case.ignore), CHECKS_OF_EACH_LOSS) for trace in traces]
    for other in others:
        found += [replace(one, node=None) for one in (*other.findings, *other.remarks)]
    return own.with_parts(found, own.unseen, others)


def _of_all(recorder: Recorder, own: Diagnosis) -> Diagnosis:
    """What is found of all models that a program trained: of the one that is shown, and of the others."""
    known, shown = recorder.trainings.known, recorder.shown
    if len(known) < 2 or shown is None:
        return own
    found, unseen, parts = [], [*own.unseen], []
    for training, label in zip(known, recorder.trainings.labels(), strict=True):
        if training is shown.training:
            training.said = own
        elif not training.over:
            recorder.end_training(training)
        said = training.said if isinstance(training.said, Diagnosis) else Diagnosis()
        parts += [said] if said is not own else []
        found += [
            replace(one, model=label, node=one.node if said is own else None)  # a node is one of the graph that is shown
            for one in (*said.findings, *said.remarks)
        ]
        unseen += [sentence for sentence in said.unseen if sentence not in unseen]
    return own.with_parts(found, unseen, parts)


def trace_of_run(recorder: Recorder, value: Any) -> tuple[Trace, str]:
    """What was seen of a cell, and the name of what had no history where that was asked for."""
    if recorder.last is not None and recorder.last.error is None:
        return recorder.trace(), ""
    library = library_of(value) if recorder.last is None else None
    if library is not None and value.requires_grad:
        recorder.see(library, value)
        return recorder.trace(), ""
    if library is not None:
        trace = recorder.attempt(recorder.losses_of(library, value), library)
        return trace, next((name for name, other in recorder.namespace().items() if other is value), "") or "the result"
    trace = recorder.attempt()
    if recorder.refused:
        output = recorder.refused[-1][1]()
        name = next((name for name, other in recorder.namespace().items() if other is output and name[:1] != "_"), "")
        return trace, name or "the result"
    return trace, ""
