"""Changes of the weights and the loss over the steps of a run, and the code that makes optimizers and inputs."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import after, parenthesize
from gradlab.explore.doctor.context.definitions import find_definition
from gradlab.explore.doctor.context.flow import Flow, root_mean_square
from gradlab.explore.trace.data import Event, Operand
from gradlab.explore.trace.journal import SweepEntry

CONVERGED = 1e3  # times the present gradient; rounding errors vary by less
LARGE = 30.0  # root mean square of inputs that were not standardised; pixels from 0 to 255 have 150


def is_changed(case: Case, key: int) -> bool:
    """Return whether the norm of a leaf has changed by more than a factor of 3 since the first sweep."""
    norms = [entry.weight for _, entry in case.timelines.get(key, ())]
    return len(norms) > 1 and not (norms[0] / 3 <= norms[-1] <= 3 * norms[0])


def sweeps_by_loss(case: Case) -> list[list[SweepEntry]]:
    """Return the sweeps of each loss: sweeps with the same name, the same operation and the same leaves."""
    assert case.trace is not None
    by_leaves: dict[tuple[str, str, frozenset[int]], list[SweepEntry]] = {}
    for swept in case.trace.journal:
        if swept.loss is not None and swept.entries:
            by_leaves.setdefault((swept.root, swept.operation, frozenset(e.key for e in swept.entries)), []).append(swept)
    return list(by_leaves.values())


def has_improved(case: Case, swept: SweepEntry) -> bool:
    """Return whether the loss has decreased since a sweep.

    A step that is long next to the weights may be right, if they were close to 0.
    """
    run = next((run for run in sweeps_by_loss(case) if swept in run), [])
    return len(run) > 1 and run[-1] is not swept and (run[-1].loss or 0.0) < (swept.loss or 0.0)


def step_cosine(sweep: SweepEntry) -> float | None:
    """Return the cosine between the gradient of a sweep and the step after it, over all leaves."""
    if any(entry.moved is None or entry.along is None for entry in sweep.entries):
        return None
    moved = math.hypot(*(entry.moved or 0.0 for entry in sweep.entries))
    arrived = math.hypot(*(entry.arrived for entry in sweep.entries))
    along = math.fsum(entry.along or 0.0 for entry in sweep.entries)
    return along / (moved * arrived) if moved > 0 and arrived > 0 and math.isfinite(moved * arrived) else None


def next_loss(case: Case, swept: SweepEntry) -> float | None:
    """Return the loss of the next sweep of the same loss; None if there is none."""
    run = next((run for run in sweeps_by_loss(case) if swept in run), [])
    following = [other for other in run if other.number > swept.number]
    return following[0].loss if following else None


def has_converged(flow: Flow, leaves: Sequence[int]) -> bool:
    """Return whether each of some leaves got a gradient before that was much larger than now.

    The loss then depends on them, and is at an optimum now. Rounding errors differ by less from one sweep to the next.
    """
    for leaf in leaves:
        arrived = [entry.arrived for _, entry in flow.case.timelines.get(flow.keys.get(leaf, 0), ())]
        if not arrived or max(arrived) <= CONVERGED * arrived[-1]:
            return False
    return bool(leaves)


def rate_text(event: Event) -> str:
    """Return " (lr=0.1)" for a step; "" if its learning rates are not known."""
    return f" (lr={', '.join(f'{one:g}' for one in event.rates)})" if event.rates else ""


def large_operand(flow: Flow, i: int) -> Operand | None:
    """Return the input of a layer that was not standardised: its root mean square is at least `LARGE`."""
    for operand in flow.nodes[i].operands:
        value = operand.value
        if operand.kind != "input" or value is None or value.odd:
            continue
        if value.dtype.startswith(("float", "bfloat")) and root_mean_square(value) >= LARGE:
            return operand
    return None


def input_name(flow: Flow, i: int, operand: Operand) -> str:
    """Return "`X`", or "The input of `model(xb)`"."""
    return f"`{operand.text}`" if operand.text else f"The input of {flow.code(i)}"


def standardising_advice(flow: Flow, operand: Operand) -> str:
    """Return advice to standardise an input, as code if one statement outside loops and functions makes it."""
    definition = find_definition(flow.case, operand.text)
    x = parenthesize(operand.text)
    code = f"{operand.text} = ({x} - {x}.mean()) / {x}.std()"
    if definition is None:
        return "Standardise the inputs: subtract their mean and divide by their standard deviation, both of the training data."
    return (
        f"Standardise `{operand.text}`: {after(code, ast.unparse(definition))}. This changes the loss, which is then that of the "
        "standardised inputs."
    )


def optimizer_call(case: Case, name: str) -> ast.Call | None:
    """Return the call of its class that makes an optimizer of the namespace: `optim.SGD(net.parameters(), lr=0.1)`."""
    definition = find_definition(case, name) if name else None
    if not isinstance(definition, ast.Assign) or not isinstance(definition.value, ast.Call):
        return None
    kind = type(case.namespace.get(name)).__name__
    return definition.value if ast.unparse(definition.value.func).rpartition(".")[2] == kind else None
