"""`gl.doctor`: the findings on the last run, on the graph of a tensor, or on a model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gradlab.explore.doctor.after_run import LEFT
from gradlab.explore.doctor.checks.final_state import describe_cleared_gradients
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.examine import CHECKS_OF_ERRORS, CHECKS_OF_RUNS, CHECKS_OF_STATES, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.registry import require_kinds
from gradlab.explore.doctor.session import NOTEBOOK, trace_of_run
from gradlab.explore.libraries import library_of
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import is_optimizer, names_in
from gradlab.explore.report import Subject, differentiate
from gradlab.explore.sources import sources_of
from gradlab.explore.trace.saved_values import SavedReader


def doctor(
    out: Any = None, *, params: Any = None, optimizer: Any = None, loss: Any = None, ignore: str | Iterable[str] = ()
) -> Diagnosis:
    """Report what is wrong with gradients and why: with those of the last run, of a tensor, or of a model.

    Parameters
    ----------
    out : Tensor or module, optional
        A tensor of gradlab or PyTorch, of any shape, to differentiate. No `.grad` is written. Lines are known for graphs
        that were recorded under `record_sites()` or in a `%%grad` cell.
        Or a model; then `loss` is differentiated. Without `loss`, or after `backward()` was called on it, the gradients and
        weights of the model are checked as they are.
        Default: report on the last `%%grad` or `%%doctor` cell, also if it failed. If anything was computed since, or no such
        cell has run, report on the error that ended the last run and on the state that it left in the namespace.
    params : iterable of Tensor, or a module, optional
        The tensors that are meant to learn. Default: the parameters of the optimizers in the namespace, or every leaf if there is
        no optimizer.
    optimizer : Optimizer, or several, optional
        Its parameters are meant to learn.
    loss : Tensor, optional
        The tensor to differentiate.
    ignore : str or iterable of str, optional
        The kinds of findings to silence, as they are printed in brackets after a finding: `ignore=["double-softmax"]`. A comment
        `# gradlab: ignore[double-softmax]` silences a kind on its line.

    Returns
    -------
    Diagnosis
        Its `findings` are Problems and its `remarks` are Notes, the most important first. `unseen` says what could not be
        checked. It prints as text.

    Raises
    ------
    TypeError
        If `out` is not a tensor or a module, `params` are not tensors or a module, `optimizer` is not an optimizer, `loss` is not
        a tensor, or both `out` and `loss` are tensors.
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
        return NOTEBOOK.report(space, silenced)
    model = out if is_model(out) else None
    if model is None and library_of(out) is None and (out is not None or (optimizer is None and loss is None)):
        raise TypeError(
            f"doctor(out) takes a tensor that was computed from others, or a model, and got {type(out).__name__}: {out!r:.80}. "
            "Without arguments, doctor() reports on the last run."
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
        return _diagnose_model(model, optimizers, root, space, first, meant).without(silenced)
    except Exception as failed:  # noqa: BLE001  (a diagnosis never raises)
        return Diagnosis(unseen=(f"This could not be checked: {type(failed).__name__}: {failed}.",))


def _diagnose_model(
    model: Any, optimizers: list[Any], root: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None
) -> Diagnosis:
    """Return the findings on a model and its optimizers as they are now, and on the graph of the loss if it was not freed."""
    swept, unseen = Diagnosis(), []
    states = CHECKS_OF_STATES
    if root is not None:
        try:
            swept = examine(_case(root, space, first, meant), CHECKS_OF_RUNS)
            states = tuple(one for one in states if one.kinds != ("no-gradient",))  # the graph shows why
        except RuntimeError as failed:
            if "second time" not in str(failed) and "freed" not in str(failed):
                raise
            unseen.append("The graph of the loss was freed by its backward(), so the gradient of each operation was not checked.")
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
        empty = describe_cleared_gradients(case)
        unseen += [*([empty] if empty else []), LEFT]
    findings = [*swept.findings, *swept.remarks, *(one for one in (*left.findings, *left.remarks) if one.kind not in known)]
    return swept.with_parts(findings, unseen, [left])


def _case(out: Any, space: dict[str, Any], first: Mapping[str, Any], meant: frozenset[int] | None) -> Case:
    """Return the case of a tensor, which is differentiated here without writing any `.grad`."""
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
    """Return one optimizer, or several, as a list."""
    optimizers = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
    for one in optimizers:
        if not is_optimizer(one):
            hint = " Give the optimizer, not its class." if isinstance(one, type) else ""
            raise TypeError(
                f"doctor(optimizer=…) takes an optimizer, or a list of them, and got {type(one).__name__}: {one!r:.80}.{hint}"
            )
    return optimizers


def _keys(params: Any) -> list[int]:
    """Return the identities of tensors, or of a module's parameters."""
    if callable(getattr(params, "parameters", None)):
        return [id(one) for one in params.parameters()]
    tensors: Any = params
    tensors = [tensors] if library_of(tensors) is not None else tensors.values() if isinstance(tensors, Mapping) else tensors
    tensors_listed = list(tensors) if isinstance(tensors, Iterable) else [tensors]
    for one in tensors_listed:
        if library_of(one) is None:
            raise TypeError(f"params must be tensors or a module, and got {type(one).__name__}: {one!r:.80}.")
    return [id(one) for one in tensors_listed]
