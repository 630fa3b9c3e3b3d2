"""Cross entropies in a graph: those of the library's functions, and those written by hand.

A cross entropy is linear in the log-probabilities: -Σ w log p, and a mean if its weights w sum to 1. These are minus its
gradient at the log-probabilities, so class weights, soft targets, label smoothing and ignored targets need no rules of their own.
If all p are 1 / K, a mean is ln(K).
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.trace.values import Value

AXIS = re.compile(r"\((-?\d+)\)$")  # of a label: "log_softmax(1)"
MAX_PATH = 40  # nodes between the log-probabilities and the loss
# The sum of the weights of a mean, of float32 numbers, and the largest slope of a mean of binary cross entropies.
ROUNDING = 1e-3


@dataclass(frozen=True)
class CrossEntropy:
    """A cross entropy that is a mean over the examples.

    Attributes
    ----------
    at : int
        The node that is the mean.
    logits : int
    classes : int
        2 for a binary cross entropy.
    loss : float
    rows : int
        The number of examples.
    binary : bool
        Whether each example has one logit.
    """

    at: int
    logits: int
    classes: int
    loss: float
    rows: int
    binary: bool = False

    @property
    def of_equal_probabilities(self) -> float:
        """The loss if all classes have the same probability."""
        return math.log(self.classes)


def find_cross_entropies(flow: Flow) -> Iterator[CrossEntropy]:
    """Yield the cross entropies of a graph."""
    for i, node in enumerate(flow.nodes):
        if node.kind != "operation" or node.gradient is None or node.gradient.odd:
            continue
        found = _logits_of(flow, i)
        if found is None:
            continue
        source, logits, classes, sign = found
        at = _mean_of(flow, i, sign, logits if sign > 0 else None)
        value = flow.nodes[at].value if at is not None else None
        shape = flow.nodes[source].shape
        if at is not None and value is not None and shape is not None:
            yield CrossEntropy(at, logits, classes, loss_of(value), math.prod(shape) // classes)
    yield from _find_binary(flow)


def _logits_of(flow: Flow, i: int) -> tuple[int, int, int, int] | None:
    """Return what a node takes the log-softmax of: the node, that before reshapes and shifts, and the number of classes; and the
    sign, -1 if the node has log-probabilities, 1 if it has the logarithms of the sums of exponentials."""
    op = flow.ops[i]
    if op == "LogSoftmax":
        return _rows(flow, i, -1)
    if flow.properties[i].reduces == "logsumexp":
        return _rows(flow, i, 1)
    if op != "Log":
        return None
    below = flow.origin_of(flow.inputs[i][0].source)
    if flow.ops[below] == "Softmax":
        return _rows(flow, below, -1)
    if flow.ops[below] == "Sum":
        exponential = flow.inputs[below][0].source
        return _rows(flow, below, 1, exponential) if flow.ops[exponential] == "Exp" else None
    if flow.properties[below].multiplies and len(flow.inputs[below]) == 2:
        numerator, total = (edge.source for edge in sorted(flow.inputs[below], key=lambda edge: edge.argument))
        if flow.ops[total] in ("Pow", "Reciprocal"):
            total = flow.inputs[total][0].source
        if flow.ops[numerator] == "Exp" and flow.ops[total] == "Sum" and flow.inputs[total][0].source == numerator:
            return _rows(flow, total, -1, numerator)
    return None


def _rows(flow: Flow, i: int, sign: int, of: int | None = None) -> tuple[int, int, int, int] | None:
    """Return the same for a node whose label has the axis of the classes, and which is computed from `of`, an exponential."""
    source = flow.inputs[i if of is None else of][0].source
    shape, axis = flow.nodes[source].shape, AXIS.search(flow.nodes[i].label)
    if not shape or axis is None or not -len(shape) <= int(axis[1]) < len(shape):
        return None
    classes = shape[int(axis[1])]
    return (source, _without_shift(flow, source), classes, sign) if classes > 1 else None


def _without_shift(flow: Flow, i: int) -> int:
    """Return the logits from which `logits - logits.max()` was computed; the node itself if it is something else."""
    if flow.ops[i] == "Sub" and flow.inputs[i]:
        logits, *others = (edge.source for edge in sorted(flow.inputs[i], key=lambda edge: edge.argument))
        if all(flow.properties[one].reduces == "extreme" and flow.inputs[one][0].source == logits for one in others):
            shifts = [operand for operand in flow.nodes[i].operands if operand.value is not None and operand.value.size > 1]
            return logits if len(others) + len(shifts) == 1 else i
    return i


def _mean_of(flow: Flow, start: int, sign: int, logits: int | None) -> int | None:
    """Return the node to which all log-probabilities lead by linear operations, if it is a mean; None otherwise."""
    gradient = flow.nodes[start].gradient
    assert gradient is not None
    total = gradient_sum(gradient)
    waiting, seen = [start], {start}
    for _ in range(MAX_PATH):
        if not waiting:
            return None
        i = heapq.heappop(waiting)
        node = flow.nodes[i]
        if node.kind != "operation" or not (i == start or _is_linear(flow, i, seen, logits)):
            return None
        if not waiting and i != start and node.shape is not None and math.prod(node.shape) == 1:
            value, own = node.value, node.gradient
            if value is not None and value.size == 1 and not value.odd and own is not None and not own.odd:
                arrived = gradient_sum(own)
                if arrived and math.isclose(total, sign * arrived, rel_tol=ROUNDING) and loss_of(value) > 0:
                    return i
        for edge in flow.uses[i]:
            if edge.target not in seen:
                seen.add(edge.target)
                heapq.heappush(waiting, edge.target)
    return None


def _is_linear(flow: Flow, i: int, seen: set[int], logits: int | None) -> bool:
    """Return whether a node is linear in nodes that were seen, and in the logits if these may be added."""
    properties = flow.properties[i]
    sources = [edge.source for edge in flow.inputs[i]]
    if properties.adds:
        others = [one for one in sources if one not in seen]
        added = not any(one.kind == "constant" for one in flow.nodes[i].operands)
        return added and all(logits is not None and _without_shift(flow, flow.origin_of(one)) == logits for one in others)
    if properties.multiplies:
        return (len(sources) == 1 and flow.inputs[i][0].argument == 0) or (flow.ops[i] == "Mul" and len(sources) == 1)
    negative_log_likelihood = properties.loss is not None and properties.loss.takes == "log-probabilities"
    return bool(
        properties.moves
        or properties.writes
        or properties.reduces in ("sum", "mean")
        or flow.ops[i] in ("Neg", "Gather")
        or (negative_log_likelihood and properties.loss is not None and properties.loss.nonnegative and not properties.poles)
    )


def _find_binary(flow: Flow) -> Iterator[CrossEntropy]:
    """Yield the means of binary cross entropies."""
    for i, node in enumerate(flow.nodes):
        loss = flow.properties[i].loss
        if node.kind != "operation" or loss is None or not flow.inputs[i]:
            continue
        if loss.takes not in ("logits", "probabilities") or not flow.ops[i].startswith("BinaryCrossEntropy"):
            continue
        logits = edge = flow.inputs[i][0]
        if loss.takes == "probabilities":
            before = flow.before_reshapes(edge.source)
            if flow.ops[before] != "Sigmoid":
                continue
            logits = flow.inputs[before][0]
        at = i
        while math.prod(flow.nodes[at].shape or ()) > 1 and len(flow.uses[at]) == 1:
            at = flow.uses[at][0].target
            if flow.properties[at].reduces != "mean" and not flow.is_reshape_or_cast(at):
                break
        value, arrived, given = flow.nodes[at].value, flow.nodes[at].gradient, flow.nodes[logits.source].value
        if value is None or value.size != 1 or value.odd or arrived is None or arrived.odd or given is None:
            continue
        slope = logits.gradient
        if slope is None or slope.odd or not slope.size or slope.largest * slope.size > (1 + ROUNDING) * arrived.largest:
            continue  # a sum, or weights above 1
        yield CrossEntropy(at, flow.before_reshapes(logits.source), 2, loss_of(value), slope.size, True)


def gradient_sum(value: Value) -> float:
    """Return the sum of the elements of a value."""
    return float(sum(value.numbers)) if value.numbers is not None else value.statistics.mean * value.size


def loss_of(value: Value) -> float:
    """Return the number of a value with one element."""
    return float(value.numbers[0]) if value.numbers is not None else value.statistics.mean


def spread_of(value: Value) -> float:
    """Return the standard deviation of the elements of a value."""
    if not value.size or value.odd:
        return math.nan
    mean = gradient_sum(value) / value.size
    return math.sqrt(max(value.norm**2 / value.size - mean**2, 0.0))
