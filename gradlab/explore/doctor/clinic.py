"""`doctor`: what was found in the last `%%grad` cell, or is found in the graph of a tensor, in a model, or in what a run left."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.explore.doctor.aftermath import FAMILIES, LEFT, Marks, aftermath, last_error, unexplained
from gradlab.explore.doctor.case import Case
from gradlab.explore.doctor.examine import OTHER_LOSSES, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.history import Past, remembered
from gradlab.explore.doctor.state import cleared, standing
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_model, is_optimizer, names_in, with_held
from gradlab.explore.report import Subject, differentiate
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.saved_values import SavedReader
from gradlab.explore.trace.trainings import Training

NOTHING = "No %%grad cell has run yet, and `gl.doctor(loss)` was not given anything to look at."


@dataclass
class Clinic:
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
            With which the cell failed.
        """
        with self.turn:
            try:
                recorder.settle_journal()
                root = ""
                if trace is None:
                    trace, root = _seen(recorder, value)
                case = Case(trace, with_held(namespace), error, self.past, root=root)
                shown = recorder.shown
                own = examine(case)
                if shown is not None and shown.training is not None and error is None:
                    traces = [recorder.trace(one) for one in shown.training.other_losses]
                    own = _with_losses(own, shown.training, traces, case.namespace)
                found = _of_all(recorder, own)
                self.last = found if found.findings else replace(found, unseen=(*found.unseen, *unexplained(case)))
                remembered(self.past, case)
                self.marks, self.ended = Marks(namespace), id(error)
            except Exception as failed:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
                self.last = Diagnosis(unseen=(f"The cell could not be looked at: {type(failed).__name__}: {failed}.",))
            return self.last

    def of_training(self, training: Training, namespace: Mapping[str, Any]) -> Diagnosis:
        """What is found in a training that is over while its program goes on, or that is not the one that is shown.

        Parameters
        ----------
        training : Training
            Of which there is a trace.
        namespace : mapping of str to object
            The user's names now; those that the training had come before them.
        """
        with self.turn:
            try:
                space = with_held({**namespace, **training.owners})
                own = examine(Case(training.trace, space, None, self.past))
                return _with_losses(own, training, [one.trace for one in training.other_losses], space)
            except Exception as failed:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
                return Diagnosis(unseen=(f"A model could not be looked at: {type(failed).__name__}: {failed}.",))

    def tell(self, namespace: Mapping[str, Any]) -> Diagnosis:
        """What was found in the last cell that was seen, or, if anything has happened since, in what is left of it."""
        try:
            error, older = last_error()
            with self.turn:
                ours = error is None or id(error) == self.ended
                if self.marks is not None and ours and self.marks.still(namespace):
                    return self.last
            return aftermath(namespace, error, older)
        except Exception as failed:  # noqa: BLE001  (it never raises for what it looks at)
            return Diagnosis(unseen=(f"This could not be looked at: {type(failed).__name__}: {failed}.",))

    def forget(self) -> None:
        """Begin anew."""
        self.past, self.last, self.marks = Past(), Diagnosis(unseen=(NOTHING,)), None


HOUSE = Clinic()  # of the notebook


def _with_losses(own: Diagnosis, training: Training, traces: Sequence[Trace | None], namespace: Mapping[str, Any]) -> Diagnosis:
    """What is found of a training, and in the graphs of its other losses."""
    if training.spoilt is not None or not traces:
        return own
    found = [*own.findings, *own.remarks]
    for trace in traces:
        elsewhere = examine(Case(trace, namespace), OTHER_LOSSES)
        found += [replace(one, node=None) for one in (*elsewhere.findings, *elsewhere.remarks)]
    return Diagnosis.of(found, own.unseen)


def _of_all(recorder: Recorder, own: Diagnosis) -> Diagnosis:
    """What is found of all models that a program trained: of the one that is shown, and of the others."""
    known, shown = recorder.trainings.known, recorder.shown
    if len(known) < 2 or shown is None:
        return own
    found, unseen = [], [*own.unseen]
    for training, label in zip(known, recorder.trainings.labels(), strict=True):
        if training is shown.training:
            training.said = own
        elif not training.over:
            recorder.end_training(training)
        said = training.said if isinstance(training.said, Diagnosis) else Diagnosis()
        found += [
            replace(one, model=label, node=one.node if said is own else None)  # a node is one of the graph that is shown
            for one in (*said.findings, *said.remarks)
        ]
        unseen += [sentence for sentence in said.unseen if sentence not in unseen]
    return Diagnosis.of(found, unseen)


def _seen(recorder: Recorder, value: Any) -> tuple[Trace, str]:
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


def doctor(out: Any = None, *, params: Any = None, optimizer: Any = None, loss: Any = None) -> Diagnosis:
    """Say what is wrong with gradients, and where it comes from: those of the last run, of a tensor, or of a model.

    Parameters
    ----------
    out : Tensor or module, optional
        A tensor of gradlab's or PyTorch's, of any shape: what is differentiated. It is looked at by a sweep of our own, which
        writes no `.grad`. Lines are known of graphs that were recorded under `record_sites()` or in a `%%grad` cell.
        Or a model: then `loss` is what is differentiated; without it, or once `backward()` has been called on it, what is there
        is looked at, the gradients and weights by parameter.
        Default: what was found in the last `%%grad` or `%%doctor` cell, one that failed among them. If anything was computed
        since, or none has run: the error with which the last run ended, and what it left in the namespace.
    params : iterable of Tensor, or a module, optional
        What is meant to learn. Default: what the optimizers of the namespace hold; without an optimizer every leaf.
    optimizer : Optimizer, or several, optional
        What moves the parameters. What it holds is meant to learn.
    loss : Tensor, optional
        What is differentiated.

    Returns
    -------
    Diagnosis
        Its `findings` are Problems, its `remarks` Notes, the worthiest first; `unseen` says what could not be looked at. It
        reads as text.

    Raises
    ------
    TypeError
        If `out` is neither a tensor nor a module, `params` neither tensors nor a module, `optimizer` no optimizer, `loss` no
        tensor, or two things are given to be differentiated.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([4.0, 0.0], requires_grad=True)
    >>> len(gl.doctor((w.log() * w).sum(), params=w).findings)
    1
    """
    frame = sys._getframe(1)
    space = {**frame.f_globals, **frame.f_locals}
    if all(one is None for one in (out, params, optimizer, loss)):
        return HOUSE.tell(space)
    model = out if is_model(out) else None
    if model is None and library_of(out) is None and (out is not None or (optimizer is None and loss is None)):
        raise TypeError(
            f"doctor(out) takes a tensor that was computed from others, or a model, and got {type(out).__name__}: {out!r:.80}. "
            "doctor() alone tells of the last run."
        )
    if loss is not None and library_of(loss) is None:
        raise TypeError(f"doctor(loss=…) takes a tensor, and got {type(loss).__name__}: {loss!r:.80}.")
    if loss is not None and out is not None and model is None:
        raise TypeError(
            "doctor(out, loss=…): out is a tensor, and so is loss. Give one of them, or a model: doctor(model, loss=loss)."
        )
    optimizers = _optimizers(optimizer)
    meant = None if params is None else frozenset(_keys(params))
    if meant is None and optimizers:
        meant = frozenset(id(p) for one in optimizers for group in one.param_groups for p in group["params"])
    elif meant is None and model is not None and loss is not None:
        meant = frozenset(_keys(model))
    for argument, usual in ((model, "model"), *((one, "optimizer") for one in optimizers), (loss, "loss")):
        if argument is not None and not any(value is argument for value in space.values()):
            space[usual if usual not in space else f"the_{usual}"] = argument
    root = loss if loss is not None else out if model is None else None
    first = {} if frame.f_locals is frame.f_globals else frame.f_locals
    try:
        if model is None and not optimizers:
            return examine(_case(root, space, first, meant))
        return _whole(model, optimizers, root, space, first, meant)
    except Exception as failed:  # noqa: BLE001  (it never raises for what it looks at)
        return Diagnosis(unseen=(f"This could not be looked at: {type(failed).__name__}: {failed}.",))


def _whole(
    model: Any, optimizers: list[Any], root: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None
) -> Diagnosis:
    """What is found of a model and its optimizers as they are now, and of a tensor's graph where that is still whole."""
    swept, unseen = Diagnosis(), []
    families = [*FAMILIES]
    if root is not None:
        try:
            swept = examine(_case(root, space, first, meant))
            families[-1] = standing
        except RuntimeError as failed:
            if "second time" not in str(failed) and "freed" not in str(failed):
                raise
            unseen.append("The graph of the loss was freed by its backward(): what each operation handed on was not seen.")
    kept = {
        name: value
        for name, value in space.items()
        if not (is_model(value) and model is not None and value is not model)
        and not (is_optimizer(value) and optimizers and not any(value is one for one in optimizers))
    }
    case = Case(None, kept, sys.exc_info()[1], meant=meant)
    left = examine(case, families)
    known = {finding.kind for finding in swept.findings}
    unseen += [*swept.unseen, *left.unseen]
    if root is None:
        empty = cleared(case)
        unseen += [*([empty] if empty else []), LEFT]
    findings = [*swept.findings, *swept.remarks, *(one for one in (*left.findings, *left.remarks) if one.kind not in known)]
    return Diagnosis.of(findings, unseen)


def _case(out: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None) -> Case:
    """A tensor's graph, by a sweep of our own, and the namespace."""
    library = library_of(out)
    assert library is not None
    names = names_in(space, first=first)
    recorder = SavedReader(lambda: space)
    if not out.requires_grad:
        recorder.meet_libraries()
        recorder.close()
        severed, root = _seen(recorder, out)
        return Case(severed, space, meant=meant, root=root)
    subject = Subject(library, library.node(out), tuple(out.shape), "", out)
    trace = differentiate(subject, sources_of(library, [subject.root], names), None, names, recorder)
    return Case(trace, space, meant=meant)


def _optimizers(value: Any) -> list[Any]:
    """One optimizer, or several, as a list."""
    optimizers = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
    for one in optimizers:
        if not is_optimizer(one):
            hint = " Give the optimizer, not its class." if isinstance(one, type) else ""
            raise TypeError(
                f"doctor(optimizer=…) takes an optimizer, or a list of them, and got {type(one).__name__}: {one!r:.80}.{hint}"
            )
    return optimizers


def _keys(params: Any) -> list[int]:
    """What tells some tensors, or a module's parameters, from others."""
    if callable(getattr(params, "parameters", None)):
        return [id(one) for one in params.parameters()]
    tensors: Any = params
    tensors = [tensors] if library_of(tensors) is not None else tensors.values() if isinstance(tensors, Mapping) else tensors
    tensors_listed = list(tensors) if isinstance(tensors, Iterable) else [tensors]
    for one in tensors_listed:
        if library_of(one) is None:
            raise TypeError(f"params must be tensors or a module, and got {type(one).__name__}: {one!r:.80}.")
    return [id(one) for one in tensors_listed]
