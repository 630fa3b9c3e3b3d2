"""Gradients of one loss that the step of another loss uses."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case, cell_line, learner_names
from gradlab.explore.doctor.context.code_edits import before
from gradlab.explore.doctor.context.events import quote
from gradlab.explore.doctor.context.loss_table import RELATIVE_TOLERANCE, Leak, LossTracker, step_receiver
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check


@check("accumulated")
def find_leaked_gradients(case: Case) -> Iterable[Finding]:
    """Find a loss that reaches the parameters of two optimizers, although only one of them should step on it.

    The other optimizer adds the gradient of its own loss and steps on the sum. An example is the gradient of the loss of a
    generator in the parameters of the discriminator.
    """
    if case.trace is None or len({event.whose for event in case.steps}) < 2:
        return
    tracker = LossTracker(case.trace)
    for (left, then, _), leak in tracker.leaks.items():
        unchanged = math.isclose(leak.entry.before or 0.0, _gradient_norm(leak), rel_tol=RELATIVE_TOLERANCE)
        if leak.keys & tracker.never_cleared or not unchanged:  # find_accumulated_gradients reports those never cleared
            continue
        whose = next((one.name for one in case.optimizers if one.whose == leak.used.whose and one.name), "")
        name = whose or step_receiver(leak.used)
        known = [one for key, one in case.learners.items() if key in leak.keys]
        what = learner_names(known) if known else f"{len(leak.keys)} parameters"
        place = tracker.losses[then].place
        call = place.statement or place.source if place is not None else ""
        code = before(f"{name}.zero_grad()", call) if name != leak.used.optimizer else ""
        yield Finding(
            "accumulated",
            f"{quote(tracker.losses[left].place)} also leaves its gradient in {what}, which `{name}` holds, and nothing clears "
            f"it: in {len(leak.rounds)} of {tracker.sweeps[then]} calls {quote(place)} added to it, and the step of "
            f"`{name}` used both. At the last one, ‖.grad‖ of `{leak.entry.name}` went from {leak.entry.before:.3g} to "
            f"{leak.entry.after:.3g}; this call contributed {leak.entry.arrived:.3g}.",
            cell_line(place),
            fix=f"Clear it first, which changes the steps: {code}." if code else f"Call zero_grad() of `{name}` before that.",
            evidence={
                "of": leak.entry.name,
                "calls": len(leak.rounds),
                "parameters": len(leak.keys),
                "before": leak.entry.before,
                "after": leak.entry.after,
                "arrived": leak.entry.arrived,
            },
            remark=True,
            worth=0.9,
            lines=tuple(line for line in (cell_line(tracker.losses[left].place), cell_line(leak.used.place)) if line is not None),
        )


def _gradient_norm(leak: Leak) -> float:
    """Return ‖.grad‖ of the leaf after the first of the two sweeps."""
    return next((entry.after or 0.0 for entry in leak.left.entries if entry.key == leak.entry.key), 0.0)
