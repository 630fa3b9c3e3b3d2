"""The function doctor."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gradlab.explore.doctor.after_run import LEFT
from gradlab.explore.doctor.checks.final_state import cleared
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.examine import CHECKS_OF_ERRORS, CHECKS_OF_RUNS, CHECKS_OF_STATES, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.registry import require_kinds
from gradlab.explore.doctor.session import NOTEBOOK, trace_of_run
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_model, is_optimizer, names_in
from gradlab.explore.report import Subject, differentiate
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.saved_values import SavedReader


def doctor(
    out: Any = None, *, params: Any = None, optimizer: Any = None, loss: Any = None, ignore: str | Iterable[str] = ()
) -> Diagnosis:
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
    ignore : str or iterable of str, optional
        The kinds of findings to silence, as they are printed in brackets after a finding: `ignore=["double-softmax"]`. A comment
        `# gradlab: ignore[double-softmax]` silences a kind on its line.

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
    ValueError
        If `ignore` names an unknown kind.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([4.0, 0.0], requires_grad=True)
    >>> len(gl.doctor((w.log() * w).sum(), params=w).findings)
    1
    """
    frame = sys._getframe(1)
    space = {**frame.f_globals, **frame.f_locals}
    silenced = require_kinds(ignore)
    if all(one is None for one in (out, params, optimizer, loss)):
        return NOTEBOOK.tell(space, silenced)
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
            return examine(_case(root, space, first, meant)).without(silenced)
        return _whole(model, optimizers, root, space, first, meant).without(silenced)
    except Exception as failed:  # noqa: BLE001  (it never raises for what it looks at)
        return Diagnosis(unseen=(f"This could not be looked at: {type(failed).__name__}: {failed}.",))


def _whole(
    model: Any, optimizers: list[Any], root: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None
) -> Diagnosis:
    """What is found of a model and its optimizers as they are now, and of a tensor's graph where that is still whole."""
    swept, unseen = Diagnosis(), []
    states = CHECKS_OF_STATES
    if root is not None:
        try:
            swept = examine(_case(root, space, first, meant), CHECKS_OF_RUNS)
            states = tuple(one for one in states if one.kinds != ("no-gradient",))  # the graph shows why
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
    left = examine(case, (*CHECKS_OF_ERRORS, *states))
    known = {finding.kind for finding in swept.findings}
    unseen += [*swept.unseen, *left.unseen]
    if root is None:
        empty = cleared(case)
        unseen += [*([empty] if empty else []), LEFT]
    findings = [*swept.findings, *swept.remarks, *(one for one in (*left.findings, *left.remarks) if one.kind not in known)]
    return swept.with_parts(findings, unseen, [left])


def _case(out: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None) -> Case:
    """A tensor's graph, by a sweep of our own, and the namespace."""
    library = library_of(out)
    assert library is not None
    names = names_in(space, first=first)
    recorder = SavedReader(lambda: space)
    if not out.requires_grad:
        recorder.meet_libraries()
        recorder.close()
        severed, root = trace_of_run(recorder, out)
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
