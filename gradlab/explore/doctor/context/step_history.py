"""How the steps of a run changed the weights and the loss, and the code that makes optimizers and inputs."""

from __future__ import annotations

import ast

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import after, grouped
from gradlab.explore.doctor.context.definitions import maker
from gradlab.explore.doctor.context.flow import Flow, root_mean_square
from gradlab.explore.trace.data import Event, Operand
from gradlab.explore.trace.journal import Swept

LARGE = 30.0  # root mean square of inputs that were not standardised; pixels from 0 to 255 have 150


def is_changed(case: Case, key: int) -> bool:
    """Whether the steps of the cell have made a leaf three times as large or as small as it was at the first sweep."""
    norms = [entry.weight for _, entry in case.timelines.get(key, ())]
    return len(norms) > 1 and not (norms[0] / 3 <= norms[-1] <= 3 * norms[0])


def runs(case: Case) -> list[list[Swept]]:
    """The sweeps of one loss after the other: same name, same operation, none unseen in between."""
    assert case.trace is not None
    by_leaves: dict[tuple[str, str, frozenset[int]], list[Swept]] = {}
    for swept in case.trace.journal:
        if swept.loss is not None and swept.entries:
            by_leaves.setdefault((swept.root, swept.operation, frozenset(e.key for e in swept.entries)), []).append(swept)
    return list(by_leaves.values())


def has_gained(case: Case, swept: Swept) -> bool:
    """Whether the loss of a sweep has fallen since: what was moved so far was next to nothing before, as small numbers drawn
    for the start of a bias are."""
    run = next((run for run in runs(case) if swept in run), [])
    return len(run) > 1 and run[-1] is not swept and (run[-1].loss or 0.0) < (swept.loss or 0.0)


def _next_loss(case: Case, swept: Swept) -> float | None:
    run = next((run for run in runs(case) if swept in run), [])
    following = [other for other in run if other.number > swept.number]
    return following[0].loss if following else None


def rate(event: Event) -> str:
    """ " (lr=0.1)" of a step whose rates are known."""
    return f" (lr={', '.join(f'{one:g}' for one in event.rates)})" if event.rates else ""


def large_operand(flow: Flow, i: int) -> Operand | None:
    """What a layer is given that was not standardised: numbers far above 1."""
    for operand in flow.nodes[i].operands:
        value = operand.value
        if operand.kind != "input" or value is None or value.odd:
            continue
        if value.dtype.startswith(("float", "bfloat")) and root_mean_square(value) >= LARGE:
            return operand
    return None


def input_name(flow: Flow, i: int, operand: Operand) -> str:
    """ "`X`", or "The input of `model(xb)`"."""
    return f"`{operand.text}`" if operand.text else f"The input of {flow.code(i)}"


def standardised(flow: Flow, operand: Operand) -> str:
    """How to standardise an input: where it is made, if that is one statement outside of loops and functions."""
    made = maker(flow.case, operand.text)
    own = grouped(operand.text)
    code = f"{operand.text} = ({own} - {own}.mean()) / {own}.std()"
    if made is None:
        return "Standardise the inputs: subtract their mean and divide by their standard deviation, both of the training data."
    return (
        f"Standardise `{operand.text}`: {after(code, ast.unparse(made))}. This changes the loss, which is then that of the "
        "standardised inputs."
    )


def optimizer_call(case: Case, name: str) -> ast.Call | None:
    """Return the call of its class that makes an optimizer of the namespace: `optim.SGD(net.parameters(), lr=0.1)`."""
    made = maker(case, name) if name else None
    if not isinstance(made, ast.Assign) or not isinstance(made.value, ast.Call):
        return None
    kind = type(case.namespace.get(name)).__name__
    return made.value if ast.unparse(made.value.func).rpartition(".")[2] == kind else None
