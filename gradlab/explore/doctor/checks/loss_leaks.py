"""A loss whose gradient is left in the parameters of another loss's optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case, called, cell_line
from gradlab.explore.doctor.context.code_edits import before
from gradlab.explore.doctor.context.events import statement
from gradlab.explore.doctor.context.loss_table import SAME, Course, Leak, step_receiver
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check


@check("accumulated")
def find_leaked_gradients(case: Case) -> Iterable[Finding]:
    """A loss that reaches the parameters of two optimizers, one of which steps on it, while the other adds its own loss to the
    gradient that is left and steps on both: the discriminator's gradient of the generator's loss, say."""
    if case.trace is None or len({event.whose for event in case.steps}) < 2:
        return
    course = Course(case.trace)
    for (left, then, _), leak in course.leaks.items():
        if leak.keys & course.never_cleared or not math.isclose(leak.entry.before or 0.0, _after(leak), rel_tol=SAME):
            continue  # `accumulated` is about these; or something else has written to them
        whose = next((one.name for one in case.optimizers if one.whose == leak.used.whose and one.name), "")
        name = whose or step_receiver(leak.used)
        known = [one for key, one in case.learners.items() if key in leak.keys]
        what = called(known) if known else f"{len(leak.keys)} parameters"
        place = course.losses[then].place
        call = place.statement or place.source if place is not None else ""
        code = before(f"{name}.zero_grad()", call) if name != leak.used.optimizer else ""
        yield Finding(
            "accumulated",
            f"{statement(course.losses[left].place)} leaves its gradient in {what} too, which `{name}` holds, and nothing clears "
            f"it: in {len(leak.rounds)} of {course.sweeps[then]} calls {statement(place)} added to it, and "
            f"`{name}` stepped on both. At the last, ‖.grad‖ of `{leak.entry.name}` went from {leak.entry.before:.3g} to "
            f"{leak.entry.after:.3g}, of which this call brought {leak.entry.arrived:.3g}.",
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
            lines=tuple(line for line in (cell_line(course.losses[left].place), cell_line(leak.used.place)) if line is not None),
        )


def _after(leak: Leak) -> float:
    """‖.grad‖ that the first of the two sweeps left in the leaf."""
    return next((entry.after or 0.0 for entry in leak.left.entries if entry.key == leak.entry.key), 0.0)
