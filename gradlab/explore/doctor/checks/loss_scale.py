"""Find a GradScaler whose scale keeps falling, with the operation that overflows, and steps that do not use it.

A GradScaler starts with a large scale and halves it at each step that it skips. A few skipped steps at the start are normal, and
so is one in thousands later: gradients overflow in the backward pass, and do not at a smaller scale. `non_finite` leaves that to
the GradScaler (`is_searching`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from gradlab.explore.doctor.checks.non_finite import explain_non_finite
from gradlab.explore.doctor.checks.training import clearing_advice
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, events_after, quote, sweep_call
from gradlab.explore.doctor.context.loss_scale import falling_scale, falling_text
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries.loss_scaling import factor_text

TOLERANCE = 0.02  # of the length of a step, which is rounded to the precision of the weights

declare(
    "falling-scale",
    meaning="A GradScaler skips one step after the other, and its scale keeps falling.",
    why="""
        A GradScaler multiplies the loss by its scale, so that small gradients are not rounded to 0 in float16. It skips a step
        with an infinite gradient and halves the scale. A few skipped steps at the start are normal. If there are more, the scale
        is not the cause: an operation overflows float16, or computes NaN, at any scale. Its steps are missing, and a scale near
        0 rounds all other gradients to 0.
    """,
    remedy="""
        Compute the operation that overflows in float32, or train in bfloat16, which has the range of float32 and needs no
        GradScaler.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        scaler = torch.amp.GradScaler("cpu")
        x, y = torch.randn(64, 8), torch.rand(64, 1)
        for step in range(12):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                energy = (100 * model(x)) ** 3  #!
                loss = (energy - y).abs().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    """,
    healthy={"energy = (100 * model(x)) ** 3": "energy = (model(x)) ** 3"},
    libraries=("torch",),
)

declare(
    "scaled-step",
    meaning="An optimizer makes a step with gradients that still contain the scale of a GradScaler.",
    why="""
        `scaler.scale(loss).backward()` computes gradients that are thousands of times too large. `scaler.step(optimizer)` divides
        them before it calls `optimizer.step()`. Called directly, `optimizer.step()` makes a step that is as many times too long.
    """,
    remedy="""
        Call `scaler.step(optimizer)` and `scaler.update()`. Without a GradScaler, as in bfloat16, call `loss.backward()` itself.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x, y = torch.randn(64, 8), torch.randn(64, 1)
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            optimizer.step()  #!
    """,
    healthy={"optimizer.step()": "scaler.step(optimizer)\n    scaler.update()"},
    libraries=("torch",),
)


@check("falling-scale")
def find_falling_scale(case: Case) -> Iterable[Finding]:
    """Find steps that a GradScaler keeps skipping, and the first operation that overflows."""
    falling = falling_scale(case)
    if falling is None:
        return
    first, last = falling.skips[0], falling.skips[-1]
    text = falling_text(quote(last.place), falling.steps, first.scale, last.scale)
    evidence: dict[str, object] = {
        "skipped": falling.steps.skipped,
        "steps": falling.steps.made + falling.steps.skipped,
        "scale": last.scale,
    }
    cause = _uncleared_gradients(case) or next(iter(_causes(case)), None)
    if cause is None:
        message = f"{text}, because gradients were not finite."
        yield Finding("falling-scale", message, event_line(last), evidence=evidence, worth=10.0, place=last.place)
        return
    yield replace(
        cause,
        kind="falling-scale",
        message=f"{cause.message} Therefore {text}.",
        evidence={**cause.evidence, **evidence},
        worth=max(cause.worth, 10.0),
        remark=False,
    )


def _causes(case: Case) -> Iterable[Finding]:
    """Yield the findings on the last recorded sweep whose step was skipped."""
    if case.trace is None:
        return
    shown = list(explain_non_finite(case))
    if shown or case.overflow is None:
        yield from shown
        return
    of_overflow = Case(case.overflow, case.namespace, past=case.past)
    for one in explain_non_finite(of_overflow):
        yield replace(one, node=None, place=one.place_in(case.overflow))


def _uncleared_gradients(case: Case) -> Finding | None:
    """Return a finding on gradients that contain the infinities of an earlier step, because they were not cleared."""
    if case.trace is None or not case.trace.journal:
        return None
    swept = case.trace.journal[-1]
    before = [one for one in swept.entries if one.before is not None and not math.isfinite(one.before)]
    odd = [one for one in before if math.isfinite(one.arrived)]
    call = sweep_call(case, swept)
    if not odd or call is None:
        return None
    return Finding(
        "falling-scale",
        f"When {quote(call.place)} ran, `.grad` of {entry_names(case, odd)} still contained the infinities or NaN of a step that "
        "had been skipped: it is not cleared.",
        event_line(call),
        fix=clearing_advice(case, [one.key for one in odd], call.place),
        place=call.place,
    )


@check("scaled-step")
def find_scaled_steps(case: Case) -> Iterable[Finding]:
    """Find steps of SGD that are as many times too long as the loss was multiplied. (The steps of Adam have the same length.)"""
    for swept in case.trace.journal if case.trace is not None else ():
        after = events_after(case, swept)
        step = next((event for event in after if event.kind == "step"), None)
        if swept.scale == 1.0 or step is None or step.scale or step.optimizer != "SGD" or len(step.rates) != 1:
            continue
        entries = [one for one in swept.entries if one.key in step.held and one.before in (None, 0.0)]
        entries = [one for one in entries if 0 < one.arrived < math.inf and 0 < (one.moved or 0.0) < math.inf]
        lengths = [(one.moved or 0.0) / one.arrived for one in entries]
        if not lengths or not all(math.isclose(one, swept.scale * step.rates[0], rel_tol=TOLERANCE) for one in lengths):
            continue
        place, call = event_place(step), event_place(sweep_call(case, swept))
        scaler = re.search(r"([\w.]+)\.scale\(", (call.statement or "") if call is not None else "")
        name = next((one.name for one in case.optimizers if one.whose == step.whose and one.name), "")
        old = "" if place is None else place.statement or place.source
        new = f"{scaler[1]}.step({name}); {scaler[1]}.update()" if scaler is not None and name else ""
        yield Finding(
            "scaled-step",
            f"{quote(place)} uses gradients that a GradScaler had multiplied by {factor_text(swept.scale)}: the step of "
            f"{entry_names(case, entries)} is as many times too long.",
            event_line(step),
            fix=f"Let the GradScaler divide them and make the step: {instead(new, old)}."
            if new and old
            else "Let the GradScaler divide them and make the step: call its step(optimizer) and update().",
            evidence={"scale": swept.scale, "since": swept.number},
            worth=10.5,
            place=place,
        )
        return
