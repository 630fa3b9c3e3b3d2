"""Results that do not depend on their input, because an axis of size 1 is normalised.

The softmax of one number is 1, and a number minus its own mean is 0. A number divided by its own sum is 1, and divided by its own
norm 1 or -1. The gradient of the layers before is 0, or as large as the `eps` of the normalisation and rounding errors make it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.code_edits import argument, instead, parse_expression
from gradlab.explore.doctor.context.flow import Flow, edge_key, extremes, leaf_names, root_mean_square
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.trace.data import Shape
from gradlab.explore.trace.values import Value

CONSEQUENCES = ("dead", "saturated", "zero-factor", "vanishing", "exploding")  # of a constant in place of the features
MAX_STEPS = 4  # operations between a reduction and the operation that uses it
ROUNDING = 1e-5  # of results next to 0 or 1
MAX_GAIN = 1e-2  # of the gradient that passes, by the eps of a normalisation
MIN_RATIO = 1e3  # of the gradient of a leaf in another sweep to the one in this sweep
MIN_SHARE = 1e-3  # of the largest gradient in that sweep


@dataclass(frozen=True)
class ConstantResult:
    """A normalisation over an axis of size 1, or an operation that normalises groups of one element.

    Attributes
    ----------
    at : int
        The node of the result.
    source : int
        The node that is normalised.
    reduction : int
        The node that reduces the axis; `at` for a softmax or a normalisation layer.
    shape : tuple of int
        The shape of its input.
    axis : int
    result : str
        What the result is: "1", "0", "1 or -1", "the bias".
    """

    at: int
    source: int
    reduction: int
    shape: Shape
    axis: int
    result: str


def find_constant_results(flow: Flow) -> tuple[list[Finding], set[int]]:
    """Find normalisations over axes of size 1, the last one on each path, and the leaves that get no gradient because of them."""
    findings: list[Finding] = []
    explained: set[int] = set()
    for i in reversed(range(len(flow.nodes))):
        one = _constant_result(flow, i) if flow.nodes[i].kind == "operation" else None
        if one is None or not _passes_nothing(flow, one):
            continue
        leaves = [leaf for leaf in _leaves_through(flow, one) if leaf not in explained]
        if not leaves or _learn_elsewhere(flow, leaves):
            continue
        explained.update(leaves)
        if not any(flow.nodes[edge.target].operation.startswith("Keras ") for edge in flow.uses[i]):  # see `keras_outputs`
            findings.append(_report(flow, one, leaves))
    return findings[::-1], explained


def drop_consequences_of_constants(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out findings on layers that get a constant, and on the gradient that it does not pass."""
    constants = [one for one in findings if "reduction" in one.evidence and not one.remark]
    if not constants or case.trace is None:
        return list(findings)
    behind: set[int] = {one.evidence["at"] for one in constants}
    for i in range(len(case.trace.nodes)):
        if not behind.isdisjoint(case.inputs[i]):
            behind.add(i)
    return [one for one in findings if one.kind not in CONSEQUENCES or not behind & {one.node, *one.evidence.get("nodes", ())}]


# ------------------------------------------------------------------------------------------------------------ recognition
def _constant_result(flow: Flow, i: int) -> ConstantResult | None:
    inputs, properties = flow.inputs[i], flow.properties[i]
    if not inputs:
        return None
    source = inputs[0].source
    shape = flow.nodes[source].shape
    if flow.ops[i] in ("Softmax", "LogSoftmax") and shape is not None:
        axis = next(iter(flow.axes(i)), None)
        if axis is None or shape[axis] != 1:
            return None
        return ConstantResult(i, source, i, shape, axis, "1" if flow.ops[i] == "Softmax" else "0")
    if properties.normalises and shape is not None:
        group = _group_axis(flow, i, shape)
        return None if group is None else ConstantResult(i, source, i, shape, group, _layer_result(flow, i))
    if (properties.adds or properties.multiplies) and len(inputs) == 2:
        return _constant_combination(flow, i)
    return None


def _group_axis(flow: Flow, i: int, shape: Shape) -> int | None:
    """Return an axis that a normalisation layer reduces, if its groups have one element each; else None."""
    properties, node = flow.properties[i], flow.nodes[i]
    if not properties.channels_first:  # a layer norm, over the last axes
        weight = next((flow.nodes[e.source].shape for e in flow.inputs[i] if e.argument == 1), None)
        size = math.prod(weight) if weight is not None else 0 if node.value is None or not node.value.all_zero else shape[-1]
        return len(shape) - 1 if shape and shape[-1] == size == 1 else None
    groups = getattr(flow.case.modules.get(node.module), "num_groups", None) or _written_groups(flow, i)
    one = len(shape) >= 2 and groups == shape[1] and math.prod(shape[2:]) == 1
    return 1 if one else None


def _written_groups(flow: Flow, i: int) -> int | None:
    """Return the number of groups in the code of `F.group_norm(x, 8)`; None if it is not a number."""
    place = flow.nodes[i].place
    call = parse_expression(place.source) if place is not None else None
    if not isinstance(call, ast.Call):
        return None
    given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "num_groups")]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return value if isinstance(value, int) else None


def _layer_result(flow: Flow, i: int) -> str:
    """Return the result of a normalisation layer whose groups have one element."""
    bias = next((flow.nodes[e.source].value for e in flow.inputs[i] if e.argument == 2), None)
    return "0" if bias is None or bias.all_zero else "the bias"


def _constant_combination(flow: Flow, i: int) -> ConstantResult | None:
    """Return the quotient or difference of a tensor and its own reduction over an axis of size 1."""
    for edge, other in (flow.inputs[i], flow.inputs[i][::-1]):
        reduction = _reduction_before(flow, edge.source)
        if reduction is None:
            continue
        given = flow.inputs[reduction][0].source
        shape, axes = flow.nodes[given].shape, flow.axes(reduction)
        if shape is None or not axes or math.prod(shape) < 2 or any(shape[axis] != 1 for axis in axes):
            continue
        common = _near(flow, other.source) & _near(flow, given)
        result = _formula_result(flow, i, flow.nodes[other.source].value) or _unseen_result(flow, i, reduction)
        if common and result and flow.nodes[i].shape == flow.nodes[other.source].shape:
            return ConstantResult(i, max(common), reduction, shape, axes[0], result)
    return None


def _reduction_before(flow: Flow, i: int) -> int | None:
    """Return the reduction that a node is computed from by functions of one tensor: `x.var(1)` of `(x.var(1) + eps).sqrt()`."""
    for _ in range(MAX_STEPS):
        if flow.properties[i].reduces:
            return i if flow.inputs[i] else None
        passes = flow.is_reshape_or_cast(i) or flow.properties[i].elementwise or flow.properties[i].moves
        if not passes or len(flow.inputs[i]) != 1:
            return None
        i = flow.inputs[i][0].source
    return None


def _near(flow: Flow, i: int) -> set[int]:
    """Return a node and the nodes that it is computed from in a few steps, element by element."""
    near, steps = {i}, [i]
    for _ in range(MAX_STEPS):
        steps = [
            edge.source
            for at in steps
            if flow.properties[at].elementwise or flow.is_reshape_or_cast(at)
            for edge in flow.inputs[at]
            if edge.source not in near and flow.nodes[edge.source].kind == "operation"
        ]
        near.update(steps)
    return near


def _formula_result(flow: Flow, i: int, given: Value | None) -> str:
    """Return the result of a quotient or difference, if it is the same for all inputs up to its sign; else ""."""
    value = flow.nodes[i].value
    if value is None or given is None or value.odd or given.odd or not value.size:
        return ""
    low, high = extremes(value)
    if flow.properties[i].adds:
        return "0" if value.largest <= ROUNDING * max(given.largest, ROUNDING) else ""
    if value.all_zero:
        return "0"
    if low >= 1 - ROUNDING and high <= 1 + ROUNDING:
        return "1"
    return "1 or -1" if value.largest <= 1 + ROUNDING and root_mean_square(value) >= 1 - MAX_GAIN else ""


def _unseen_result(flow: Flow, i: int, reduction: int) -> str:
    """Return the result of a division inside a function of PyTorch, whose value is not known; "" if it may vary."""
    if flow.nodes[i].value is not None or not flow.properties[i].multiplies:
        return ""
    reduces, given = flow.properties[reduction].reduces, flow.inputs[reduction][0].source
    return "1 or -1" if reduces == "norm" or (reduces in ("sum", "mean") and flow.ops[given] == "Pow") else ""


def _passes_nothing(flow: Flow, one: ConstantResult) -> bool:
    """Return whether next to nothing of the gradient at the result arrives at the input."""
    arrived = flow.norms[one.at]
    if one.at == one.reduction:
        passed = next((flow.edge_norms.get(edge_key(edge)) for edge in flow.inputs[one.at] if edge.source == one.source), None)
        if arrived is None or passed is None or passed > MAX_GAIN * arrived:
            return False
        value = flow.nodes[one.at].value  # a rectifier passes no gradient to zeros
        return arrived > 0 or (value is not None and value.all_zero)
    parts = [norm for edge in flow.uses[one.source] if (norm := flow.edge_norms.get(edge_key(edge))) is not None]
    total = flow.norms[one.source]
    return total is not None and bool(parts) and total <= MAX_GAIN * max(*parts, arrived or 0.0)


def _leaves_through(flow: Flow, one: ConstantResult) -> list[int]:
    """Return the leaves behind the input of a normalisation that reach the loss only through its result."""
    behind = _upstream(flow, one.source)
    direct: set[int] = set()  # nodes that reach an output another way
    for i in reversed(range(len(flow.nodes))):
        if flow.nodes[i].kind == "output" or (i != one.at and any(edge.target in direct for edge in flow.uses[i])):
            direct.add(i)
    return [i for i in sorted(behind - direct) if flow.nodes[i].kind == "leaf"]


def _upstream(flow: Flow, i: int) -> set[int]:
    found, waiting = {i}, [i]
    while waiting:
        for edge in flow.inputs[waiting.pop()]:
            if edge.source not in found:
                found.add(edge.source)
                waiting.append(edge.source)
    return found


def _learn_elsewhere(flow: Flow, leaves: Iterable[int]) -> bool:
    """Return whether another sweep brought leaves a gradient: then the axis has size 1 in this batch only."""
    for leaf in leaves:
        timeline = flow.case.timelines.get(flow.keys.get(leaf, 0), ())
        last = [entry.arrived for _, entry in timeline][-1:]
        for swept, entry in timeline:
            largest = max(other.arrived for other in swept.entries)
            if entry.arrived > max(MIN_RATIO * last[0], MIN_SHARE * largest):
                return True
    return False


# ---------------------------------------------------------------------------------------------------------------- finding
def _report(flow: Flow, one: ConstantResult, leaves: Sequence[int]) -> Finding:
    at = one.at
    code, place = flow.code(at), flow.place(at)
    shape = f"({', '.join(map(str, one.shape))}{',' * (len(one.shape) == 1)})"
    exact = not any(flow.norms[leaf] for leaf in leaves)
    get = f"{'gets' if len(leaves) == 1 else 'get'} {'exactly 0' if exact else 'nothing but rounding errors'}"
    names = leaf_names(flow, leaves)
    softmax = flow.ops[at] in ("Softmax", "LogSoftmax")
    input_ = f"axis {one.axis} of a tensor of shape {shape}, which has length 1"
    if softmax:
        name = "the softmax" if flow.ops[at] == "Softmax" else "log_softmax"
        message = f"{code}{place} takes {name} over {input_}, so the result is {one.result} for every input"
    elif at == one.reduction:
        message = (
            f"{flow.operation(at)} in {code}{place} normalises each element of a tensor of shape {shape} by itself: it is "
            f"equal to its mean, so the result is {one.result} for every input"
        )
    else:
        message = (
            f"{flow.code(one.reduction)}{flow.place(one.reduction)} reduces {input_}, so {code} is {one.result} for every input"
        )
    others = _learns_beside(flow, one, set(leaves))
    return Finding(
        "cancelled",
        f"{message}: {join_names(names)} {get}.",
        flow.line(at),
        at,
        _advise(flow, one) if not others else f"{'It learns' if len(leaves) == 1 else 'They learn'} if this axis is longer.",
        {
            "shape": one.shape,
            "axis": one.axis,
            "result": {"1": 1, "0": 0}.get(one.result, one.result),
            "leaves": tuple(names),
            "at": at,
            "reduction": one.reduction,
        },
        remark=others or _are_only_vectors(flow, leaves),
        worth=6.0,
    )


def _are_only_vectors(flow: Flow, leaves: Sequence[int]) -> bool:
    """Return whether no matrix is among some leaves, and another leaf learns."""
    others = (i for i, node in enumerate(flow.nodes) if node.kind == "leaf" and i not in leaves)
    return all(len(flow.nodes[i].shape or ()) < 2 for i in leaves) and any(flow.norms[i] for i in others)


def _learns_beside(flow: Flow, one: ConstantResult, leaves: set[int]) -> bool:
    """Return whether weights learn that are neither before the constant nor fed with it, such as the values of an attention."""
    behind = {one.at}
    for i in range(one.at + 1, len(flow.nodes)):
        if any(edge.source in behind for edge in flow.inputs[i]):
            behind.add(i)
    for i, node in enumerate(flow.nodes):
        if node.kind != "leaf" or i in leaves or len(node.shape or ()) < 2 or not flow.norms[i]:
            continue
        if not any(t in behind for t in _layers_of(flow, i)):
            return True
    return False


def _layers_of(flow: Flow, leaf: int) -> Iterator[int]:
    """Yield the operations that use a leaf, up to its shape and dtype."""
    for edge in flow.uses[leaf]:
        if flow.is_reshape_or_cast(edge.target):
            yield from _layers_of(flow, edge.target)
        else:
            yield edge.target


def _advise(flow: Flow, one: ConstantResult) -> str:
    if flow.ops[one.at] == "Softmax":
        return _advise_sigmoid(flow, one.at)
    if flow.ops[one.at] == "LogSoftmax":
        return (
            "Give the model one output for each class. With one output, use binary_cross_entropy_with_logits of the logits for "
            "two classes, and mse_loss for numbers."
        )
    if one.at == one.reduction:
        if flow.properties[one.at].channels_first:
            return f"Use fewer groups than the {one.shape[1]} channels."
        return "Leave the normalisation out, or normalise over an axis with several elements."
    if one.result == "1":
        return "For one output use a sigmoid. Else reduce an axis with several elements, or leave the division out."
    return "Reduce an axis with several elements, or leave the normalisation out."


def _advise_sigmoid(flow: Flow, at: int) -> str:
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    call = parse_expression(source)
    is_softmax = isinstance(call, ast.Call) and "softmax" in ast.unparse(call.func).rpartition(".")[2].lower()
    code = instead(flow.case.spell(f"gradlab.sigmoid({argument(source)})"), source) if is_softmax and argument(source) else ""
    if not code:  # it may be a layer of a model that the source calls as a whole
        return "For one output use a sigmoid instead of the softmax, or binary_cross_entropy_with_logits of the logits."
    return f"For one output use sigmoid: {code}. This changes the loss, which did not depend on the output before."
