"""Find a softmax over the batch, of logits whose classes are in axis 1.

It is certain if an operation on the result takes axis 1 as the classes: `nll_loss`, one element for each example, or targets of
which each row adds up to 1. Losses that are contrasted over the batch, attention weights, mixtures and classes in axis 0 are not.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

from gradlab.explore.doctor.checks.losses import rows_add_up
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, is_function, parse_expression
from gradlab.explore.doctor.context.definitions import find_calls
from gradlab.explore.doctor.context.flow import Flow, digits, flow_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import Shape

SOFTMAX_LAYERS = ("Softmax", "LogSoftmax")


declare(
    "batch-softmax",
    meaning="A softmax or log_softmax is over the batch instead of the classes.",
    why="""
        Logits of a batch have shape (examples, classes), or (examples, classes, …). A softmax over axis 0 compares the examples
        of the batch with each other: the probabilities of a class add up to 1 over the examples, and those of an example do not.
        The loss depends on which examples are in the batch, and a single example has probability 1 for each class.
    """,
    remedy="Use `dim=1`, the axis of the classes. For classes in the last axis of any number of axes use `dim=-1`.",
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(5):
            optimizer.zero_grad()
            log_probs = F.log_softmax(model(x), dim=0)  #!
            loss = F.nll_loss(log_probs, y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"dim=0": "dim=1"},
)


@check("batch-softmax", of_each_loss=True)
def find_batch_softmax(case: Case) -> Iterable[Finding]:
    """Find softmaxes over the batch whose result is used as the probabilities of the classes of each example."""
    if case.trace is None or not case.trace.recorded:
        return
    flow = flow_of(case)
    for i in range(len(flow.nodes)):
        found = _normalised_over_batch(flow, i)
        if found is None:
            continue
        reduction, shape = found
        user = next(_users_of_classes(flow, i, shape), None)
        if user is None or _is_similarity(flow, i):
            continue
        total = shape[1] / shape[0]
        yield Finding(
            "batch-softmax",
            f"{_softmax_text(flow, i)} normalises over axis 0 of a tensor of shape ({', '.join(map(str, shape))}), which is the "
            f"batch: the probabilities of each class add up to 1 over the {shape[0]} examples, and those of one example to "
            f"{digits(total)} on average instead of 1. {_use_text(flow, user)}",
            flow.line(i),
            i,
            _advise(flow, i, reduction),
            {"shape": shape, "sum": total, "at": i},
            worth=7.0,
        )


def _normalised_over_batch(flow: Flow, i: int) -> tuple[int, Shape] | None:
    """Return the node that reduces axis 0 in a softmax, and the shape of the result; None if a node is not such a softmax."""
    shape, properties = flow.nodes[i].shape, flow.properties[i]
    if flow.nodes[i].kind != "operation" or shape is None or len(shape) < 2 or min(shape[:2]) < 2:
        return None
    if flow.ops[i] in SOFTMAX_LAYERS:
        return (i, shape) if flow.axes(i) == (0,) else None
    if len(flow.inputs[i]) != 2 or not (properties.multiplies or properties.adds):
        return None
    for edge, other in (flow.inputs[i], flow.inputs[i][::-1]):
        at = flow.before_reshapes(edge.source)
        by_hand = flow.properties[at].reduces == ("logsumexp" if properties.adds else "sum") and flow.axes(at) == (0,)
        if not by_hand or flow.nodes[flow.inputs[at][0].source].shape != shape:
            continue
        if properties.adds or {flow.ops[other.source], flow.ops[flow.inputs[at][0].source]} == {"Exp"}:
            return at, shape
    return None


def _users_of_classes(flow: Flow, i: int, shape: Shape) -> Iterator[int]:
    """Yield the operations that take axis 1 of the result of a softmax as the classes."""
    log = flow.ops[i] == "LogSoftmax" or flow.properties[i].adds
    waiting, seen = [(i, log)], {i}
    while waiting:
        at, log = waiting.pop()
        for edge in flow.uses[at]:
            t = edge.target
            if t in seen:
                continue
            seen.add(t)
            compares = log or not flow.properties[t].multiplies  # weights of a sum are multiplied by the values themselves
            if (edge.argument == 0 and _takes_classes(flow, t, shape)) or (compares and _has_rows_of_targets(flow, t, shape)):
                yield t
            elif flow.properties[t].elementwise and flow.nodes[t].shape == shape and len(flow.inputs[t]) == 1:
                waiting.append((t, log or flow.ops[t] == "Log"))


def _takes_classes(flow: Flow, t: int, shape: Shape) -> bool:
    """Return whether an operation takes one class of each example."""
    loss = flow.properties[t].loss
    if loss is not None:
        return loss.takes == "log-probabilities" and flow.ops[t].startswith("NllLoss")
    if len(shape) != 2 or flow.properties[t].moves != "part":
        return False
    picked = flow.ops[t] == "Index" and flow.nodes[t].shape == shape[:1] != shape[1:]
    return picked or (flow.ops[t] == "Gather" and flow.axes(t) == (1,))


def _has_rows_of_targets(flow: Flow, t: int, shape: Shape) -> bool:
    """Return whether an operation compares the result with targets of which each row, and not each column, adds up to 1."""
    properties = flow.properties[t]
    if len(shape) != 2 or shape[0] == shape[1] or not (properties.loss is not None or properties.adds or properties.multiplies):
        return False
    return any(o.value is not None and o.value.shape == shape and rows_add_up(o.value) for o in flow.nodes[t].operands)


def _is_similarity(flow: Flow, i: int) -> bool:
    """Return whether the input of a softmax is computed from a product of two computed tensors, as the pairs of a batch are."""
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.inputs[waiting.pop()]:
            s = edge.source
            if s in seen:
                continue
            seen.add(s)
            if flow.properties[s].product and flow.weights[s] is None:
                return True
            if flow.properties[s].elementwise or flow.is_reshape_or_cast(s):
                waiting.append(s)
    return False


def _softmax_text(flow: Flow, i: int) -> str:
    layer = f"{flow.operation(i)} in " if flow.kinds.get(flow.nodes[i].module, "") in SOFTMAX_LAYERS else ""
    return f"{layer}{flow.code(i)}{flow.place(i)}"


def _use_text(flow: Flow, user: int) -> str:
    if flow.properties[user].loss is not None and flow.ops[user].startswith("NllLoss"):
        return f"nll_loss{flow.place(user)} takes axis 1 as the classes."
    if flow.properties[user].moves == "part":
        return f"{flow.code(user)}{flow.place(user)} takes one class of each example."
    return f"In {flow.code(user)}{flow.place(user)} each row of the targets adds up to 1."


def _advise(flow: Flow, i: int, reduction: int) -> str:
    place, module = flow.nodes[reduction].place, flow.nodes[i].module
    code = ""
    if flow.kinds.get(module, "") in SOFTMAX_LAYERS:
        calls = [
            call
            for call in find_calls(flow.case, prefixes(module)[0])
            if ast.unparse(call.func).rpartition(".")[2] == flow.kinds[module]
        ]
        code = _with_axis_1(calls[0]) if len({ast.unparse(call) for call in calls}) == 1 else ""
    elif place is not None:
        call = parse_expression(place.source)
        code = _with_axis_1(call) if isinstance(call, ast.Call) else ""
    return f"Normalise over the classes{f': {code}' if code else ' (dim=1)'}. This changes the loss."


def _with_axis_1(call: ast.Call) -> str:
    """Return a call with axis 1 in place of axis 0; "" if it does not contain the axis as a number."""
    new = copy.deepcopy(call)
    given = [one.value for one in new.keywords if one.arg in ("dim", "axis")]
    name = ast.unparse(call.func).rpartition(".")[2]
    is_layer = name in SOFTMAX_LAYERS
    at = 1 if not is_layer and (is_function(call) or isinstance(call.func, ast.Name)) else 0
    axis = given[0] if given else new.args[at] if len(new.args) > at else None
    if not isinstance(axis, ast.Constant) or axis.value != 0:
        return ""
    axis.value = 1
    keeps = any(one.arg == "keepdim" for one in new.keywords) or len(new.args) > at + 1
    if not keeps and "softmax" not in name.lower():
        new.keywords.append(ast.keyword("keepdim", ast.Constant(True)))
    return instead(ast.unparse(ast.fix_missing_locations(new)), ast.unparse(call))
