"""Leaves whose gradient is exactly 0 or only rounding errors, and the nodes where it was lost.

A cotangent is lost on an edge if it is not zero and the operation passes zero; at a node if contributions that are not zero add
up to zero; or in an operation whose Jacobian has the cotangent in its null space (the gradients of a softmax and of a
normalisation are 0 for a constant cotangent). A leaf has no gradient if the cotangent is lost on all paths to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gradlab.explore.doctor.context.flow import LOSS_REDUCTIONS, Flow, edge_key, is_positive
from gradlab.explore.trace.data import GraphEdge
from gradlab.explore.trace.values import Value

# A sum of n numbers is off by at most (n - 1) ε Σ|x|, in the mean by √n ε Σ|x| (Higham, Accuracy and Stability, 2nd ed., 4.2
# and 2.8); the factor 8 is for the rounding errors of the terms.
ROUNDING = 8.0
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
MAX_CAUSES = 6  # of one node


@dataclass(frozen=True)
class Cause:
    """A place where a cotangent was lost.

    Attributes
    ----------
    at : int
        The node.
    source : int or None
        The input of the node that got zero; None if contributions to the node cancel.
    how : str
        "edge", "sum" (cancels), "constant" (in the null space) or "bias" (sums to 0 over rows).
    """

    at: int
    source: int | None
    how: str


@dataclass
class LostGradients:
    """The leaves whose gradient was lost.

    Attributes
    ----------
    by_node : dict of int to list of Cause
        By the node where it was lost.
    leaves : dict of int to list of int
        The leaves without a gradient, by the same nodes.
    others_learn : bool
        Whether another leaf has a gradient.
    """

    by_node: dict[int, list[Cause]] = field(default_factory=dict)
    leaves: dict[int, list[int]] = field(default_factory=dict)
    others_learn: bool = False


def find_lost_gradients(flow: Flow) -> LostGradients:
    """Find the leaves whose gradient was lost, in one pass from the outputs to the leaves."""
    causes: list[tuple[Cause, ...] | None] = [None] * len(flow.nodes)
    lost_gradients = LostGradients()
    for i in reversed(range(len(flow.nodes))):
        uses = flow.uses[i]
        if not uses or flow.norms[i] is None or not math.isfinite(flow.norms[i] or 0.0):
            continue
        lost: list[Cause] = []
        remaining: list[GraphEdge] = []
        for edge in uses:
            above = causes[edge.target]
            cause = None if above is not None else _cause_on(flow, edge)
            if above is not None:
                lost += above
            elif cause is not None:
                lost.append(cause)
            else:
                remaining.append(edge)
        if remaining and len(uses) > 1 and _cancels(flow, i, uses):
            causes[i] = (*lost, Cause(i, None, "sum"))[-MAX_CAUSES:]
        elif not remaining and lost:
            causes[i] = tuple(dict.fromkeys(lost))[:MAX_CAUSES]
    for i, node in enumerate(flow.nodes):
        if node.kind != "leaf":
            continue
        own = causes[i]
        if own is None:
            lost_gradients.others_learn |= is_positive(flow.norms[i])
            continue
        for cause in own:
            lost_gradients.by_node.setdefault(cause.at, []).append(cause)
            leaves = lost_gradients.leaves.setdefault(cause.at, [])
            if i not in leaves:
                leaves.append(i)
    for at, group in lost_gradients.by_node.items():
        lost_gradients.by_node[at] = list(dict.fromkeys(group))
    return lost_gradients


def _cause_on(flow: Flow, edge: GraphEdge) -> Cause | None:
    """Return the cause if an operation passes zero, or only rounding errors, to one of its inputs."""
    t, s = edge.target, edge.source
    arrived, contribution = flow.nodes[t].gradient, edge.gradient
    if (
        flow.nodes[t].kind == "output"
        or arrived is None
        or contribution is None
        or not is_positive(flow.norms[t])
        or not contribution.size
    ):
        return None
    norm_passed = flow.edge_norms[edge_key(edge)]
    if norm_passed == 0:
        return Cause(t, s, "bias" if _is_bias(flow, t, s) else "edge")
    if not math.isfinite(norm_passed):
        return None
    norm, epsilon = arrived.norm, EPSILON.get(contribution.dtype, 0.0)
    if _is_bias(flow, t, s):
        rows = arrived.size / max(contribution.size, 1)
        return Cause(t, s, "bias") if norm_passed <= ROUNDING * epsilon * math.sqrt(rows) * norm else None
    if flow.ops[t] == "Softmax" and is_constant(arrived):
        value, length = flow.nodes[t].value, (flow.nodes[t].shape or (1,))[-1]
        if value is not None and value.size:
            typical = value.norm / math.sqrt(value.size)
            return Cause(t, s, "constant") if norm_passed <= ROUNDING * epsilon * math.sqrt(length) * norm * typical else None
    if not flow.properties[t].normalises or not is_constant(arrived):
        return None
    if s == flow.inputs[t][0].source and _has_equal_weights(flow, t):
        bound = ROUNDING * epsilon * math.sqrt(arrived.size) * norm * _slope(flow, t)
        return Cause(t, s, "constant") if norm_passed <= bound else None
    return None


def _is_bias(flow: Flow, t: int, s: int) -> bool:
    """Return whether a leaf is added to rows: it has fewer axes than the sum, and its gradient is a sum over the others."""
    shape, own = flow.nodes[t].shape, flow.nodes[s].shape
    if flow.nodes[s].kind != "leaf" or shape is None or own is None or not len(own) <= 1 < len(shape):
        return False
    properties = flow.properties[t]
    return properties.adds or any(edge.source == s and edge.argument == properties.addend for edge in flow.inputs[t])


def _has_equal_weights(flow: Flow, t: int) -> bool:
    """Return whether the weights of a normalisation are equal, so that it maps a constant to a constant."""
    weights = [flow.nodes[e.source].value for e in flow.inputs[t][1:2]]
    return all(value is not None and is_constant(value) for value in weights)


def _slope(flow: Flow, t: int) -> float:
    """Return a lower bound of weight / σ of a normalisation, the scale of the rounding errors in its gradient."""
    operand, result = flow.nodes[flow.inputs[t][0].source].value, flow.nodes[t].value
    if operand is None or result is None or not is_positive(operand.norm):
        return 1.0
    return max(result.norm / operand.norm, 1.0)


def _cancels(flow: Flow, i: int, uses: list[GraphEdge]) -> bool:
    """Return whether the contributions to a node cancel up to rounding errors."""
    if flow.is_split(i):
        return False  # they belong to different outputs
    parts = [flow.edge_norms.get(edge_key(edge)) for edge in uses]
    total, node = flow.norms[i], flow.nodes[i]
    if total is None or any(part is None or not math.isfinite(part) for part in parts):
        return False
    known = [part for part in parts if part is not None]
    if sum(part > 0 for part in known) < 2:
        return False
    epsilon = EPSILON.get(node.gradient.dtype if node.gradient is not None else "", 0.0)
    size = max(math.prod(node.shape or ()), 1)
    terms = sum(max(math.prod(flow.nodes[e.target].shape or ()) / size, 1.0) for e in uses)
    return total <= ROUNDING * epsilon * math.sqrt(terms) * sum(known)


def is_constant(value: Value) -> bool:
    """Return whether all elements are the same number."""
    if value.numbers is not None:
        return bool(value.numbers) and all(x == value.numbers[0] for x in value.numbers)
    statistics = value.statistics
    return not statistics.nans and not statistics.infs and statistics.minimum == statistics.maximum


def constant_source(flow: Flow, i: int) -> int:
    """Return the sum or mean that made the cotangent at a node constant, else the node."""
    at = i
    while True:
        gradient, edge = flow.nodes[at].gradient, flow.main_edges[at]
        if gradient is None or not is_constant(gradient) or edge is None or flow.nodes[edge.target].kind == "output":
            return i
        at = edge.target
        properties = flow.properties[at]
        if properties.reduces in LOSS_REDUCTIONS:
            return at
        if not (flow.is_reshape_or_cast(at) or properties.adds or properties.multiplies or flow.ops[at] == "Neg"):
            return i
