"""A sum over the batch where the size of the steps is made for a mean.

Neither is wrong by itself: a sum with a small enough step is a mean with a larger one. It is told of where both hold: the loss is
a sum over many rows, and plain steps of gradient descent threw the weights about, or the loss grew.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import expression, instead
from gradlab.explore.doctor.context.flow import Flow, figure, key, numbers_known
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.names import is_optimizer

ROWS = 32  # of fewer the factor between sum and mean is one that a step size bears: rates of use span 1e-4 to 1e-1
# A step as long as the weights themselves leaves nothing of them; usual steps are a thousandth (Karpathy, CS231n).
FAR = 1.0
GROWN = 10.0  # times the first loss, which no noise of batches makes
BOUNDED = frozenset(["L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropyWithLogits"])  # of slope 1 at most, by element


declare(
    "sum-for-mean",
    meaning="a sum over the batch where the step size is made for a mean",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("sum-for-mean")
def find_sums(case: Case) -> Iterable[Finding]:
    """A sum that should be a mean."""
    if not numbers_known(case.trace):
        return
    flow = Flow(case)
    summed = _summed(flow)
    told = _thrown(case)
    if summed is None or told is None:
        return
    at, n, what = summed
    how, evidence = told
    yield Finding(
        "sum-for-mean",
        f"{flow.code(at)}{flow.place(at)} is a sum over {n} {what}, so its gradient is {n} times that of the mean, and {how}.",
        flow.line(at),
        at,
        _mean_of(flow, at, n),
        {"n": n, "at": at} | evidence,
        worth=8.0,
    )


def _mean_of(flow: Flow, at: int, n: int) -> str:
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    tree = expression(source)
    if isinstance(tree, ast.Call) or (isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult)):
        return f"Take the mean: {instead(f'{source} / {n}', source)}. This changes the loss, which is then {n} times smaller."
    return f"Take the mean: divide the sum by {n}, or the learning rate."


def _summed(flow: Flow) -> tuple[int, int, str] | None:
    """The node of the loss that is a sum over a batch, and of how many rows."""
    outputs = flow.trace.outputs
    if len(outputs) != 1:
        return None
    i = flow.given[outputs[0]][0].source
    while flow.words[i] == "Neg":
        i = flow.given[i][0].source
    node = flow.nodes[i]
    if node.kind != "operation" or math.prod(node.shape or ()) != 1 or not flow.given[i]:
        return None
    edge = flow.given[i][0]
    shape = flow.nodes[edge.source].shape or ()
    if flow.words[i] in ("Sum", "Dot"):  # r @ r is the sum of its squares
        return (i, shape[0], "rows") if shape and shape[0] >= ROWS else None
    if flow.words[i] == "Add":
        return _added(flow, i)
    if not shape or shape[0] < ROWS or edge.gradient is None or node.gradient is None or node.value is None:
        return None
    largest, arrived, handed = edge.gradient.largest, node.gradient.largest, flow.handed[key(edge)]
    if not (0 < arrived < math.inf and math.isfinite(largest)):
        return None
    size = math.prod(shape)
    if flow.words[i] == "NllLoss":  # -1 at each target of a sum, -1 / n of a mean
        return (i, shape[0], "rows") if largest > 0.5 * arrived else None
    if flow.words[i] == "MseLoss":  # 2 (x - t) of a sum
        alike = math.isclose(handed**2, 4 * node.value.largest * arrived**2, rel_tol=1e-2)
        return (i, shape[0], "rows") if alike else None
    if flow.words[i] in BOUNDED:
        return (i, shape[0], "rows") if largest * size > 1.5 * arrived else None
    return None


def _added(flow: Flow, i: int) -> tuple[int, int, str] | None:
    """A chain of additions that one line made."""
    place, n, top = flow.nodes[i].place, 0, i
    while flow.words[i] == "Add" and flow.nodes[i].place == place:
        n += 1
        i = flow.given[i][0].source
    return (top, n, "terms") if n >= ROWS else None


def _thrown(case: Case) -> tuple[str, dict[str, Any]] | None:
    """What the steps did, where they are plain and too long."""
    swept: Any = getattr(case.trace, "journal", ())
    optimizers = [value for value in case.namespace.values() if is_optimizer(value)]
    if any(type(value).__name__ not in ("SGD", "ASGD") for value in optimizers):
        return None  # steps that do not grow with the gradient
    worst = max(
        ((entry.moved / entry.weight, entry) for sweep in swept for entry in sweep.entries if entry.moved and entry.weight),
        key=lambda pair: pair[0],
        default=None,
    )
    values = [sweep.loss for sweep in swept if sweep.loss is not None]
    grown = len(values) >= 2 and math.isfinite(values[0]) and not values[-1] <= GROWN * abs(values[0])
    if grown:
        return f"the loss went from {figure(values[0])} to {figure(values[-1])}", {"first": values[0], "last": values[-1]}
    if worst is not None and worst[0] > FAR:
        ratio, entry = worst
        name = f"`{entry.name}`" if entry.name else "a leaf"
        return (
            f"a step moved {name} by {figure(ratio)} times its own norm",
            {"ratio": ratio, "moved": entry.moved, "weight": entry.weight},
        )
    return None
