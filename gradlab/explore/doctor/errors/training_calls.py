"""Explain errors of a GradScaler that is updated without a step, and of gradients that are clipped before there are any."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import before
from gradlab.explore.doctor.context.training_source import CLIPPING, SCALER, Source, call_of, method_of, role_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check

NO_STEP = "No inf checks were recorded prior to update"
NO_TENSORS = "nested_tensorlist[0].empty()"  # PyTorch's functions for lists of tensors refuse an empty one


@check("nothing-learns", looks_at=ERROR)
def explain_scaler_updates(case: Case) -> Iterable[Finding]:
    """Explain `scaler.update()` without `scaler.step(optimizer)` before it."""
    if not isinstance(case.error, AssertionError) or NO_STEP not in str(case.error) or case.scene is None:
        return
    source = Source(case.scene.program)
    node = source.program.statement_at(case.scene.place.line)
    scaler, method = method_of(node) if node is not None else ("", "")
    if node is None or method != "update" or call_of(node) is None or role_of(case, source, scaler) not in (SCALER, ""):
        return
    names = [one.name for one in case.optimizers if one.name]
    optimizer = names[0] if len(names) == 1 else "optimizer"
    code = before(f"{scaler}.step({optimizer})", source.text(node)) if len(names) == 1 else ""
    yield Finding(
        "nothing-learns",
        f"`{source.text(node)}` fails because `{scaler}` has made no step: `{scaler}.step({optimizer})` was not called, so no "
        "parameter changes.",
        case.scene.line,
        fix=f"Call it: {code}." if code else f"Call `{scaler}.step({optimizer})` first.",
        worth=9.0,
    )


@check("idle-clipping", looks_at=ERROR)
def explain_clipping_without_gradients(case: Case) -> Iterable[Finding]:
    """Explain `clip_grad_value_` before any gradient was computed."""
    if case.error is None or NO_TENSORS not in str(case.error) or case.scene is None:
        return
    source = Source(case.scene.program)
    node = source.program.statement_at(case.scene.place.line)
    if node is None or method_of(node)[1] not in CLIPPING:
        return
    yield Finding(
        "idle-clipping",
        f"`{source.text(node)}` fails because no parameter has a gradient: backward() has not been called since the "
        "gradients were cleared.",
        case.scene.line,
        fix="Clip the gradients between backward() and the step.",
        worth=9.0,
    )
