"""Diagnose the cells of a notebook, or the trainings of a script, one after the other."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.explore.doctor.after_run import Snapshot, diagnose_after_run, explain_no_rule, last_error
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.earlier_cells import Past, remember
from gradlab.explore.doctor.examine import CHECKS_OF_EACH_LOSS, CHECKS_OF_RUNS, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries import library_of
from gradlab.explore.names import with_held
from gradlab.explore.trace.data import RAN_UNCOMPILED, Trace
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import Training

NOTHING = "No %%grad cell has run yet, and `gl.doctor(loss)` was not given a tensor to check."


@dataclass
class Session:
    """Diagnoses cells, and remembers of each what the next one needs: no tensor, and less than 1 MB.

    Attributes
    ----------
    past : Past
        The gradients that earlier cells have left.
    last : Diagnosis
        Of the last cell.
    snapshot : Snapshot or None
        Of the namespace at the end of that cell.
    error : int
        The identity of the error that ended that cell.
    lock : RLock
        Cells may end in several threads at the same time.
    """

    past: Past = field(default_factory=Past)
    last: Diagnosis = field(default_factory=lambda: Diagnosis(unseen=(NOTHING,)))
    snapshot: Snapshot | None = None
    error: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

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
        """Return the findings on a cell that has ended.

        Parameters
        ----------
        recorder : Recorder
            It recorded the cell.
        namespace : mapping of str to object
            The user's names now.
        trace : Trace, optional
            Of its last sweep, if there is one already.
        value : Tensor, optional
            The tensor to differentiate, if the cell did not call backward().
        error : BaseException, optional
            The error with which the cell failed.
        ignore : frozenset of str, optional
            The kinds that are silenced.
        """
        case: Case | None = None
        with self.lock:
            try:
                recorder.settle_journal()
                root = ""
                if trace is None:
                    trace, root = trace_of_run(recorder, value)
                shown = recorder.shown_sweep
                case = Case(trace, with_held(namespace), error, self.past, root=root, ignore=ignore)
                if shown is not None and shown.training is not None:
                    case.first, case.overflow = shown.training.first_trace_for(trace), shown.training.overflow
                own = examine(case)
                if len(recorder.trainings.known) > 1 and shown is not None and shown.training is not None:
                    own = _without_others_sums(own, case, shown.training)
                if shown is not None and shown.training is not None and error is None:
                    traces = [recorder.trace(one) for one in shown.training.other_losses]
                    own = _with_losses(own, shown.training, traces, case)
                found = _with_other_models(recorder, own)
                found = found if found.findings else replace(found, unseen=(*found.unseen, *explain_no_rule(case)))
                self.last = replace(found, unseen=(*found.unseen, RAN_UNCOMPILED)) if recorder.ran_uncompiled else found
                remember(self.past, case)
                self.snapshot, self.error = Snapshot(namespace), id(error)
            except Exception as failed:  # noqa: BLE001  (an error of the doctor must not make the user's cell fail)
                self.last = Diagnosis(unseen=(f"The cell could not be checked: {type(failed).__name__}: {failed}.",))
            finally:
                if case is not None:
                    case.release()
            return self.last

    def keep(self, diagnosis: Diagnosis, namespace: Mapping[str, Any]) -> None:
        """Take a diagnosis as that of the last cell."""
        with self.lock:
            self.last, self.snapshot, self.error = diagnosis, Snapshot(namespace), id(None)

    def of_training(self, training: Training, namespace: Mapping[str, Any], ignore: frozenset[str] = frozenset()) -> Diagnosis:
        """Return the findings on a training that has ended while its program continues, or that is not the one shown.

        Parameters
        ----------
        training : Training
            It has a trace.
        namespace : mapping of str to object
            The user's names now. The names that the training had take precedence.
        ignore : frozenset of str, optional
            The kinds that are silenced.
        """
        with self.lock:
            try:
                space = with_held({**namespace, **training.owners})
                trace = training.trace
                first, overflow = training.first_trace_for(trace), training.overflow
                case = Case(trace, space, None, self.past, ignore=ignore, first=first, overflow=overflow)
                try:
                    own = _without_others_sums(examine(case), case, training)
                    return _with_losses(own, training, [one.trace for one in training.other_losses], case)
                finally:
                    case.release()
            except Exception as failed:  # noqa: BLE001  (an error of the doctor must not make the user's cell fail)
                return Diagnosis(unseen=(f"A model could not be checked: {type(failed).__name__}: {failed}.",))

    def report(self, namespace: Mapping[str, Any], ignore: frozenset[str] = frozenset()) -> Diagnosis:
        """Return the findings on the last recorded cell or, if anything has happened since, on the state of the namespace."""
        try:
            error, older = last_error()
            with self.lock:
                own = error is None or id(error) == self.error
                if self.snapshot is not None and own and self.snapshot.is_current(namespace):
                    return self.last.without(ignore)
            return diagnose_after_run(namespace, error, older, ignore)
        except Exception as failed:  # noqa: BLE001  (a diagnosis never raises)
            return Diagnosis(unseen=(f"The run could not be checked: {type(failed).__name__}: {failed}.",))

    def keep_current(self, namespace: Mapping[str, Any]) -> None:
        """Take the present state of the namespace as that of the last cell, after more of it was read for its report."""
        with self.lock:
            if self.snapshot is not None:
                self.snapshot = Snapshot(namespace)

    def forget(self) -> None:
        """Forget all cells."""
        self.past, self.last, self.snapshot = Past(), Diagnosis(unseen=(NOTHING,)), None


NOTEBOOK = Session()


def _without_others_sums(own: Diagnosis, case: Case, training: Training) -> Diagnosis:
    """Return the findings on a training without gradients that add up in the sweeps of other models alone."""
    trace = case.trace
    if trace is None or not any(one.kind == "accumulated" for one in (*own.findings, *own.remarks)):
        return own
    swept = tuple(one for one in trace.journal if any(entry.key in training.keys for entry in one.entries))
    if not swept or len(swept) == len(trace.journal):
        return own
    theirs = Case(replace(trace, journal=swept), case.namespace, past=case.past, ignore=case.ignore, first=case.first)
    sums = examine(theirs, [one for one in CHECKS_OF_RUNS if "accumulated" in one.kinds])
    theirs.release()
    kept = [one for one in (*own.findings, *own.remarks) if one.kind != "accumulated"]
    return own.with_parts([*kept, *sums.findings, *sums.remarks], own.unseen, ())


def _with_losses(own: Diagnosis, training: Training, traces: Sequence[Trace | None], case: Case) -> Diagnosis:
    """Return the findings on a training, and on the graphs of its other losses."""
    if training.nonfinite_sweep is not None or not traces:
        return own
    found = [*own.findings, *own.remarks]
    others = [examine(Case(trace, case.namespace, ignore=case.ignore), CHECKS_OF_EACH_LOSS) for trace in traces]
    for other in others:
        found += [replace(one, node=None) for one in (*other.findings, *other.remarks)]
    return own.with_parts(found, own.unseen, others)


def _with_other_models(recorder: Recorder, own: Diagnosis) -> Diagnosis:
    """Return the findings on all models that a program trained: on the one that is shown, and on the others."""
    known, shown = recorder.trainings.known, recorder.shown_sweep
    if len(known) < 2 or shown is None:
        return own
    found, unseen, parts = [], [*own.unseen], []
    for training, label in zip(known, recorder.trainings.labels(), strict=True):
        if training is shown.training:
            training.diagnosis = own
        elif not training.over:
            recorder.end_training(training)
        said = training.diagnosis if isinstance(training.diagnosis, Diagnosis) else Diagnosis()
        parts += [said] if said is not own else []
        found += [
            replace(one, model=label, node=one.node if said is own else None)  # nodes are those of the graph that is shown
            for one in (*said.findings, *said.remarks)
        ]
        unseen += [sentence for sentence in said.unseen if sentence not in unseen]
    return own.with_parts(found, unseen, parts)


def trace_of_run(recorder: Recorder, value: Any) -> tuple[Trace, str]:
    """Return the trace of a cell and, if backward() was called on a tensor without history, the name of that tensor."""
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
