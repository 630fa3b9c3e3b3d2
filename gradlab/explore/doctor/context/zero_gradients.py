"""Leaves to which exactly nothing comes, or nothing but rounding errors; and where it is lost.

A cotangent is lost on an edge, where an operation was given something and hands on zero; at a node, where contributions that are
not zero add up to zero; or in an operation whose Jacobian has the very cotangent in its null space (a softmax and a
normalisation do not see a constant). What lies behind is *starved*, and so are the leaves to which all ways are starved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gradlab.explore.doctor.context.flow import CASTS, REDUCTIONS, SEVERAL, SHAPES, Flow, key, positive
from gradlab.explore.trace.data import GraphEdge
from gradlab.explore.trace.values import Value

# A sum of n numbers is off by at most (n - 1) ε Σ|x|, in the mean by √n ε Σ|x| (Higham, Accuracy and Stability, 2nd ed., 4.2
# and 2.8); 8 for the roundings of what was added up.
ROUNDING = 8.0
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
MANY = 6  # causes that are remembered of a node

NORMALISATIONS = frozenset(
    ["NativeLayerNorm", "NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm", "NativeGroupNorm", "FusedRmsNorm"]
)
ADDITIONS = frozenset(
    ["Add", "Sub", "Rsub", "Addmm", "Convolution", "ConvolutionOverrideable", "MkldnnConvolution", "Linear", "Baddbmm"]
)


@dataclass(frozen=True)
class Cause:
    """Where a cotangent was lost: at node `at`, on its way to `source` (None: where its contributions met)."""

    at: int
    source: int | None
    how: str  # "edge", "sum", "constant", "bias"


@dataclass
class Starved:
    """The leaves without a gradient, by the node where it was lost."""

    by_node: dict[int, list[Cause]] = field(default_factory=dict)
    leaves: dict[int, list[int]] = field(default_factory=dict)
    all_leaves: set[int] = field(default_factory=set)
    learns: bool = False  # whether another leaf gets something


def starved(flow: Flow) -> Starved:
    """Walks down from the outputs once."""
    causes: list[tuple[Cause, ...] | None] = [None] * len(flow.nodes)
    starved_nodes = Starved()
    for i in reversed(range(len(flow.nodes))):
        uses = flow.uses[i]
        if not uses or flow.norms[i] is None or not math.isfinite(flow.norms[i] or 0.0):
            continue
        lost: list[Cause] = []
        alive: list[GraphEdge] = []
        for edge in uses:
            above = causes[edge.target]
            cause = None if above is not None else _lost_on(flow, edge)
            if above is not None:
                lost += above
            elif cause is not None:
                lost.append(cause)
            else:
                alive.append(edge)
        if alive and len(uses) > 1 and _cancels(flow, i, uses):
            causes[i] = (*lost, Cause(i, None, "sum"))[-MANY:]
        elif not alive and lost:
            causes[i] = tuple(dict.fromkeys(lost))[:MANY]
    for i, node in enumerate(flow.nodes):
        if node.kind != "leaf":
            continue
        own = causes[i]
        if own is None:
            starved_nodes.learns |= positive(flow.norms[i])
            continue
        starved_nodes.all_leaves.add(i)
        for cause in own:
            starved_nodes.by_node.setdefault(cause.at, []).append(cause)
            leaves = starved_nodes.leaves.setdefault(cause.at, [])
            if i not in leaves:
                leaves.append(i)
    for at, group in starved_nodes.by_node.items():
        starved_nodes.by_node[at] = list(dict.fromkeys(group))
    return starved_nodes


def _lost_on(flow: Flow, edge: GraphEdge) -> Cause | None:
    t, s = edge.target, edge.source
    arrived, handed = flow.nodes[t].gradient, edge.gradient
    if flow.nodes[t].kind == "output" or arrived is None or handed is None or not positive(flow.norms[t]) or not handed.size:
        return None
    passed = flow.handed[key(edge)]
    if passed == 0:
        return Cause(t, s, "bias" if _is_bias(flow, t, s) else "edge")
    if not math.isfinite(passed):
        return None
    norm, epsilon = arrived.norm, EPSILON.get(handed.dtype, 0.0)
    if _is_bias(flow, t, s):
        rows = arrived.size / max(handed.size, 1)
        return Cause(t, s, "bias") if passed <= ROUNDING * epsilon * math.sqrt(rows) * norm else None
    if flow.words[t] == "Softmax" and constant(arrived):
        value, length = flow.nodes[t].value, (flow.nodes[t].shape or (1,))[-1]
        if value is not None and value.size:
            typical = value.norm / math.sqrt(value.size)
            return Cause(t, s, "constant") if passed <= ROUNDING * epsilon * math.sqrt(length) * norm * typical else None
    if flow.words[t] in NORMALISATIONS and constant(arrived) and s == flow.given[t][0].source and _even(flow, t):
        bound = ROUNDING * epsilon * math.sqrt(arrived.size) * norm * _steepness(flow, t)
        return Cause(t, s, "constant") if passed <= bound else None
    return None


def _is_bias(flow: Flow, t: int, s: int) -> bool:
    """Whether a leaf is added to rows: fewer axes than the sum, and so summed over them on the way back."""
    shape, own = flow.nodes[t].shape, flow.nodes[s].shape
    if flow.nodes[s].kind != "leaf" or shape is None or own is None or flow.words[t] not in ADDITIONS:
        return False
    return len(own) <= 1 < len(shape)


def _even(flow: Flow, t: int) -> bool:
    """Whether a normalisation's weights are all alike: then it hands a constant on as a constant."""
    weights = [flow.nodes[e.source].value for e in flow.given[t][1:2]]
    return all(value is not None and constant(value) for value in weights)


def _steepness(flow: Flow, t: int) -> float:
    """At least how steep a normalisation is, the scale that the rounding errors of its gradient have: weight / σ."""
    operand, result = flow.nodes[flow.given[t][0].source].value, flow.nodes[t].value
    if operand is None or result is None or not positive(operand.norm):
        return 1.0
    return max(result.norm / operand.norm, 1.0)


def _cancels(flow: Flow, i: int, uses: list[GraphEdge]) -> bool:
    """Whether the contributions to a node add up to rounding errors."""
    if flow.words[i] in SEVERAL:
        return False  # they come to different outputs
    parts = [flow.handed.get(key(edge)) for edge in uses]
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


def constant(value: Value) -> bool:
    """Whether all elements are one number other than NaN."""
    if value.numbers is not None:
        return bool(value.numbers) and all(x == value.numbers[0] for x in value.numbers)
    statistics = value.statistics
    return not statistics.nans and not statistics.infs and statistics.minimum == statistics.maximum


def made_constant(flow: Flow, i: int) -> int:
    """The sum or mean that made the constant cotangent at a node, else the node."""
    at = i
    while True:
        gradient, edge = flow.nodes[at].gradient, flow.carriers[at]
        if gradient is None or not constant(gradient) or edge is None or flow.nodes[edge.target].kind == "output":
            return i
        at = edge.target
        if flow.words[at] in REDUCTIONS:
            return at
        if flow.words[at] not in SHAPES | CASTS and flow.words[at] not in ("Mul", "Div", "Neg", "Add", "Sub"):
            return i
