"""Find a sum over the batch if the steps are sized for a mean.

A sum is not wrong by itself: with a smaller learning rate it is the same as a mean. So it is only reported if the loss is a sum
over many rows, and steps of SGD changed the weights by more than their norm, or the loss increased many times.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, parse_expression
from gradlab.explore.doctor.context.flow import Flow, digits, edge_key, flow_of, has_gradients
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.names import is_optimizer

MIN_ROWS = 32  # usual learning rates span 1e-4 to 1e-1, so a smaller factor between sum and mean does not matter
# Ratio of a step and the norm of the weights. A usual value is 1e-3 (Karpathy, CS231n); at 1 nothing of the weights is left.
MAX_RATIO = 1.0
GROWTH = 10.0  # times the first loss, more than different batches cause


declare(
    "sum-for-mean",
    meaning="A loss is a sum over the batch, and the steps are sized for a mean.",
    why="""
        The gradient of a sum over n examples is n times that of their mean. A learning rate that suits a mean is then n times too
        large, and the loss increases or becomes NaN. The size of the steps also changes with the size of the batch.
    """,
    remedy='Use the mean: `.mean()`, or `reduction="mean"`. Or divide the learning rate by the number of examples.',
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(256, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = ((x @ w - y) ** 2).sum()  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={"loss = ((x @ w - y) ** 2).sum()": "loss = ((x @ w - y) ** 2).mean()"},
)


@check("sum-for-mean")
def find_sums(case: Case) -> Iterable[Finding]:
    """Find a sum that should be a mean."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    found = _find_sum(flow)
    outcome = _describe_steps(case)
    if found is None or outcome is None:
        return
    at, n, what = found
    effect, evidence = outcome
    yield Finding(
        "sum-for-mean",
        f"{flow.code(at)}{flow.place(at)} is a sum over {n} {what}, so its gradient is {n} times that of the mean, and {effect}.",
        flow.line(at),
        at,
        _advise_mean(flow, at, n),
        {"n": n, "at": at} | evidence,
        worth=8.0,
    )


def _advise_mean(flow: Flow, at: int, n: int) -> str:
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    tree = parse_expression(source)
    if isinstance(tree, ast.Call) or (isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult)):
        return f"Use the mean: {instead(f'{source} / {n}', source)}. This changes the loss, which is then {n} times smaller."
    return f"Use the mean: divide the sum by {n}, or the learning rate."


def _find_sum(flow: Flow) -> tuple[int, int, str] | None:
    """Return the node of the loss if it is a sum over a batch, the number of terms, and "rows" or "terms"."""
    outputs = flow.trace.outputs
    if len(outputs) != 1:
        return None
    i = flow.inputs[outputs[0]][0].source
    while flow.ops[i] == "Neg":
        i = flow.inputs[i][0].source
    node = flow.nodes[i]
    if node.kind != "operation" or math.prod(node.shape or ()) != 1 or not flow.inputs[i]:
        return None
    edge = flow.inputs[i][0]
    shape = flow.nodes[edge.source].shape or ()
    if flow.ops[i] in ("Sum", "Dot"):  # r @ r is the sum of its squares
        return (i, shape[0], "rows") if shape and shape[0] >= MIN_ROWS else None
    if flow.ops[i] == "Add":
        return _find_additions(flow, i)
    if not shape or shape[0] < MIN_ROWS or edge.gradient is None or node.gradient is None or node.value is None:
        return None
    largest, arrived, passed = edge.gradient.largest, node.gradient.largest, flow.edge_norms[edge_key(edge)]
    if not (0 < arrived < math.inf and math.isfinite(largest)):
        return None
    size = math.prod(shape)
    if flow.ops[i] == "NllLoss":  # -1 at each target of a sum, -1 / n of a mean
        return (i, shape[0], "rows") if largest > 0.5 * arrived else None
    if flow.ops[i] == "MseLoss":  # 2 (x - t) of a sum
        is_sum = math.isclose(passed**2, 4 * node.value.largest * arrived**2, rel_tol=1e-2)
        return (i, shape[0], "rows") if is_sum else None
    loss = flow.properties[i].loss
    if loss is not None and loss.bounded_slope and loss.takes in ("values", "logits"):  # these have a term for each element
        return (i, shape[0], "rows") if largest * size > 1.5 * arrived else None
    return None


def _find_additions(flow: Flow, i: int) -> tuple[int, int, str] | None:
    """Return the same for a chain of additions of one line."""
    place, n, top = flow.nodes[i].place, 0, i
    while flow.ops[i] == "Add" and flow.nodes[i].place == place:
        n += 1
        i = flow.inputs[i][0].source
    return (top, n, "terms") if n >= MIN_ROWS else None


def _describe_steps(case: Case) -> tuple[str, dict[str, Any]] | None:
    """Return what too long steps of SGD did, and the numbers; None if the steps are of another optimizer, or short enough."""
    journal: Any = getattr(case.trace, "journal", ())
    optimizers = [value for value in case.namespace.values() if is_optimizer(value)]
    if any(type(value).__name__ not in ("SGD", "ASGD") for value in optimizers):
        return None  # steps that do not grow with the gradient
    worst = max(
        ((entry.moved / entry.weight, entry) for sweep in journal for entry in sweep.entries if entry.moved and entry.weight),
        key=lambda pair: pair[0],
        default=None,
    )
    values = [sweep.loss for sweep in journal if sweep.loss is not None]
    grown = len(values) >= 2 and math.isfinite(values[0]) and not values[-1] <= GROWTH * abs(values[0])
    if grown:
        return f"the loss went from {digits(values[0])} to {digits(values[-1])}", {"first": values[0], "last": values[-1]}
    improved = len(values) >= 2 and values[-1] < values[0]  # then steps are long next to weights that started near 0
    if worst is not None and worst[0] > MAX_RATIO and not improved:
        ratio, entry = worst
        name = f"`{entry.name}`" if entry.name else "a leaf"
        return (
            f"a step moved {name} by {digits(ratio)} times its own norm",
            {"ratio": ratio, "moved": entry.moved, "weight": entry.weight},
        )
    return None
