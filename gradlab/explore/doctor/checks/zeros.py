"""Find gradients that are exactly 0 for other reasons than inactive units: factors of 0, contributions that cancel, underflow."""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Iterable, Sequence

from gradlab.explore.doctor.checks.class_weights import find_zero_weights
from gradlab.explore.doctor.checks.idle_biases import find_idle_biases
from gradlab.explore.doctor.checks.reduced_axes import find_constant_results
from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.definitions import find_calls
from gradlab.explore.doctor.context.flow import (
    Flow,
    digits,
    edge_key,
    flow_of,
    has_gradients,
    is_positive,
    leaf_names,
    operand_text,
)
from gradlab.explore.doctor.context.random_weights import random_weights_advice
from gradlab.explore.doctor.context.step_history import has_converged
from gradlab.explore.doctor.context.zero_gradients import (
    Cause,
    LostGradients,
    constant_source,
    find_lost_gradients,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import GraphEdge, Operand
from gradlab.explore.trace.values import Value

# The smallest positive numbers (IEEE 754; bfloat16 has the exponents of float32). Numbers below half of them are rounded to 0.
SMALLEST_POSITIVE = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}

TRANSPOSED = re.compile(r"\.(m?T|t\(\)|transpose\([^()]*\))$")
CELLS = ("RNN", "LSTM", "GRU")  # start from a state of zeros


declare(
    "cancelled",
    meaning="Contributions to a gradient add up to 0, because the loss is the same for all values of some parameters.",
    why="""
        Each row of a softmax adds up to 1, and a normalisation subtracts the mean. A loss that only adds up their results does
        not depend on the layers before them, so these get a gradient of 0 or only rounding errors. Over an axis of length 1 the
        result itself is the same for every input: the softmax of one number is 1, and a number minus its own mean is 0. Two cases
        are reported as a Note: a bias without effect, such as one before a batch normalisation, and an axis of length 1 beside
        layers that learn, as in an attention with one key.
    """,
    remedy="""
        Use a loss that compares the values with targets, such as a squared error or a cross-entropy, instead of a plain sum.
        For a single output use a sigmoid instead of a softmax. Normalise an axis with several elements. Use `bias=False` in a
        layer before a batch or instance normalisation, which subtracts the mean of each channel.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x = torch.randn(64, 10)
        y = (x[:, :1] > 0).float()
        model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
        p = torch.softmax(model(x), dim=1)  #!
        loss = F.binary_cross_entropy(p, y)
        loss.backward()
    """,
    healthy={"p = torch.softmax(model(x), dim=1)": "p = torch.sigmoid(model(x))"},
    notes=True,
)

declare(
    "zero-factor",
    meaning="A gradient is exactly 0 because it is multiplied by zeros, such as weights that start at 0 or an empty mask.",
    why="""
        The derivative of a product with respect to one factor is the other factor: d(a * b) / da = b. If the
        weights of two layers in a row start at 0, with tanh or ReLU between them, each multiplies the gradient of the other by
        0, and the weights of neither change.
    """,
    remedy="""
        Draw the weights of all layers except the last at random; biases may start at 0. If a factor, a mask or a dropout is 0
        everywhere, check how it is computed.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 10), torch.randn(64, 1)
        model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
        for layer in (model[0], model[2]):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        loss = F.mse_loss(model(x), y)  #!
        loss.backward()
    """,
    healthy={"nn.init.zeros_(layer.weight)": "nn.init.xavier_normal_(layer.weight)"},
    notes=True,
)

declare(
    "underflow",
    meaning="A number that is not 0 is rounded to 0, because it is too small for its dtype, usually float16.",
    why="""
        The smallest positive number of float16 is 6e-8, and gradients are often smaller. They become exactly 0, and the layers
        before that operation do not learn. If the `eps` of an optimizer is rounded to 0, its step divides by 0.
    """,
    remedy="""
        Keep the weights in float32, and compute in float16 with `torch.autocast` and `torch.amp.GradScaler`, which scales the
        loss up before `backward()` and the gradients down before the step. Or use bfloat16, which has the range of float32, or
        float32.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        features = torch.randn(32, 256).half()
        head = nn.Linear(256, 256).half()
        loss = 1e-4 * head(features).abs().mean()  #!
        loss.backward()
    """,
    healthy={
        "features = torch.randn(32, 256).half()": "features = torch.randn(32, 256)",
        "head = nn.Linear(256, 256).half()": "head = nn.Linear(256, 256)",
    },
)


@check("cancelled", "zero-factor", "underflow", keras=True)
def find_zero_gradients(case: Case) -> Iterable[Finding]:
    """Find leaves whose gradient is exactly 0 or only rounding errors."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    lost = find_lost_gradients(flow)
    constants, explained = find_constant_results(flow)
    yield from constants
    reported: set[tuple[str, int | None, tuple[str, ...]]] = set()
    idle: dict[int, Sequence[int]] = {}
    for at, causes in lost.by_node.items():
        if causes[0].how == "bias":
            if _is_only_biases(flow, lost, lost.leaves[at]):
                idle[at] = lost.leaves[at]
            continue
        if explained.issuperset(lost.leaves[at]):
            continue
        finding = _explain(flow, lost, at, causes)
        if finding is not None:
            same = finding.kind, finding.line, tuple(leaf_names(flow, lost.leaves[at])) if finding.line is None else ()
            if same not in reported:
                reported.add(same)
                yield finding
    yield from find_idle_biases(flow, idle)


def _explain(flow: Flow, lost: LostGradients, at: int, causes: Sequence[Cause]) -> Finding | None:
    """Return a finding on the gradients that were lost at a node."""
    properties, how = flow.properties[at], causes[0].how
    if how == "sum":
        return _cancelled_sum(flow, lost, at)
    if flow.ops[at] == "Softmax" or properties.normalises:
        zero = _zero_factor(flow, lost, at, causes) if properties.normalises else None
        return zero or _constant_result(flow, lost, at, how)
    if properties.rectifier or properties.sigmoidal:
        return None  # `units` reports it
    if properties.loss is not None and (weightless := _zero_weights(flow, lost, at)) is not None:
        return weightless
    if _has_factors(flow, at):
        return _zero_factor(flow, lost, at, causes) or _underflow(flow, lost, at, causes)
    if properties.chooses:
        return _empty_mask(flow, lost, at)
    return _at_minimum(flow, lost, at) or _underflow(flow, lost, at, causes)


def _has_factors(flow: Flow, at: int) -> bool:
    """Return whether an operation multiplies its arguments."""
    properties = flow.properties[at]
    return bool(properties.product) or properties.multiplies or properties.looks_up or properties.drops


def _leaves_get(flow: Flow, leaves: Sequence[int], what: str = "exactly 0") -> str:
    return f"{join_names(leaf_names(flow, leaves))} {'gets' if len(leaves) == 1 else 'get'} {what}"


def _is_only_biases(flow: Flow, lost: LostGradients, leaves: Sequence[int]) -> bool:
    """Return whether the leaves are only biases, and other leaves have a gradient."""
    matrix = any(math.prod(s) > max(s) for i in leaves if (s := flow.nodes[i].shape) is not None and len(s) >= 2)
    return lost.others_learn and not matrix


# ------------------------------------------------------------------------------------------------------ a factor of zero
def _zero_factor(flow: Flow, lost: LostGradients, at: int, causes: Sequence[Cause]) -> Finding | None:
    """Explain a product with a factor that is 0 everywhere."""
    node, leaves = flow.nodes[at], lost.leaves[at]
    sources = {cause.source for cause in causes}
    nodes: list[int] = []  # the first all-zero nodes
    operands: list[Operand] = []
    for source in sources:
        for edge in _factor_edges(flow, at):
            other = edge.source
            value = _value_of(flow, other)
            if other != source and value is not None and value.all_zero:
                nodes.append(_origin_of_zeros(flow, other))
        operands += [o for o in node.operands if o.value is not None and o.value.all_zero]
    nodes = list(dict.fromkeys(nodes))
    if any(flow.properties[i].rectifier or flow.properties[i].sigmoidal for i in nodes):
        return None  # a consequence of inactive units
    kind = flow.kinds.get(node.module, "")
    drops = "Dropout" in kind or flow.properties[at].drops
    if not nodes and not operands and not (drops and node.value is not None and node.value.all_zero):
        return None
    if kind.startswith(CELLS):
        return None  # `units` reports a gate that is 0
    where = f"{flow.code(at)}{flow.place(at)}"
    evidence = {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at, "factors": tuple(nodes)}
    if drops:
        return Finding(
            "zero-factor",
            f"The dropout `{node.module}` in {where} drops every element, so {_leaves_get(flow, leaves)}.",
            flow.line(at),
            at,
            _advise_dropout(flow, node.module),
            evidence,
            worth=6.0,
        )
    trained = [i for i in nodes if flow.nodes[i].kind == "leaf"]
    learning = [i for i in trained if is_positive(flow.norms[i])]
    if trained and len(learning) == len(trained) and not operands and len(trained) == len(nodes):
        idle = [i for i in trained if _is_left_out(flow, i)]
        names, one = join_names(leaf_names(flow, idle or trained)), len(idle or trained) == 1
        get = f"{_leaves_get(flow, leaves)} through {where}"
        if idle:
            text = f"0 everywhere, and no optimizer holds {'it' if one else 'them'}, so in each step {get}."
        else:
            learn = f"{names} {'learns' if one else 'learn'}, so from the next step on the others do."
            text = f"0 everywhere, so in this step {get}. {learn}"
        return Finding(
            "zero-factor",
            f"{names} {'is' if one else 'are'} {text}",
            flow.line(at),
            at,
            "",
            evidence,
            remark=True,
        )
    if trained:
        zeros = [i for i in dict.fromkeys([*trained, *leaves]) if (value := flow.nodes[i].value) is not None and value.all_zero]
        all_zero = leaf_names(flow, sorted(zeros, key=lambda i: (len(flow.nodes[i].shape or ()) < 2, _last_use(flow, i))))
        return Finding(
            "zero-factor",
            f"{join_names(all_zero)} {'is' if len(all_zero) == 1 else 'are'} 0 everywhere. In {where} each gradient is "
            f"multiplied by the zeros of another tensor, so {_leaves_get(flow, leaves)} and "
            f"{'does' if len(leaves) == 1 else 'do'} not change.",
            flow.line(at),
            at,
            random_weights_advice(flow, zeros),
            evidence,
            worth=6.0,
        )
    if frozen := list(dict.fromkeys(filter(None, (_frozen_parameter(flow, at, o) for o in operands)))):
        names, one = join_names(frozen), len(frozen) == 1
        return Finding(
            "zero-factor",
            f"{where} multiplies by {names}, which {'is' if one else 'are'} 0 everywhere and {'does' if one else 'do'} not "
            f"require grad: {_leaves_get(flow, leaves)}.",
            flow.line(at),
            at,
            f"Let {names} require grad.",
            evidence,
            worth=6.0,
        )
    if not nodes and operands and all(o.kind == "input" for o in operands) and _arrives_in_another_call(flow, leaves):
        return None  # another batch is not 0
    literal = bool(operands) and all(o.kind == "constant" for o in operands)
    shown = [operand_text(o) for o in operands if operand_text(o) != "a tensor"] or [flow.code(i) for i in nodes]
    named = " and ".join(dict.fromkeys(shown)) or _factor_name(flow, at)
    is_number = literal and named.strip("`") in ("0", "0.0", "-0.0")
    factor = "0" if is_number else f"{named}, which is 0{'' if literal else ' everywhere'}"
    return Finding(
        "zero-factor",
        f"{where} multiplies by {factor}: {_leaves_get(flow, leaves)}.",
        flow.line(at),
        at,
        "" if literal and lost.others_learn else f"Check why {'this factor' if is_number else named} is 0.",
        evidence,
        remark=literal and lost.others_learn,
        worth=6.0,
    )


def _arrives_in_another_call(flow: Flow, leaves: Sequence[int]) -> bool:
    """Return whether another backward call brought one of some leaves a gradient."""
    keys = [flow.keys[leaf] for leaf in leaves if leaf in flow.keys]
    return any(entry.arrived > 0 for key in keys for _, entry in flow.case.timelines.get(key, ()))


def _is_left_out(flow: Flow, leaf: int) -> bool:
    """Return whether there are optimizers, none of them holds a leaf, and nothing else has changed it."""
    key, held = flow.keys.get(leaf), {key for one in flow.case.optimizers for key in one.keys}
    changed = any(entry.moved for _, entry in flow.case.timelines.get(key or 0, ()))
    return bool(held) and key not in held and not changed


def _frozen_parameter(flow: Flow, at: int, operand: Operand) -> str:
    """Return the name of a parameter that does not require grad, if an operand is this parameter or its transpose; else ""."""
    text = TRANSPOSED.sub("", operand.text)
    name = f"{flow.nodes[at].module}.{text.removeprefix('self.')}" if text.startswith("self.") else text
    frozen = any(one.name == name and one.is_parameter and not one.requires_grad for one in flow.case.learners.values())
    return name if frozen else ""


def _zero_weights(flow: Flow, lost: LostGradients, at: int) -> Finding | None:
    """Explain a loss that multiplies each of its terms by a weight of 0."""
    found = find_zero_weights(flow, at)
    if found is None:
        return None
    which, evidence = found
    if _arrives_in_another_call(flow, lost.leaves[at]):
        return None  # another batch has targets with a weight
    per_class = flow.ops[at].startswith("Nll")
    weight = "the weight of its class" if per_class else "its weight"
    return Finding(
        "zero-factor",
        f"{flow.code(at)}{flow.place(at)} multiplies the loss of each target by {weight}: {which}. "
        f"{_leaves_get(flow, lost.leaves[at])}.",
        flow.line(at),
        at,
        "Give the classes that occur weights above 0." if per_class else "Use weights above 0.",
        {**evidence, "leaves": tuple(leaf_names(flow, lost.leaves[at])), "at": at},
        worth=6.0,
    )


def _last_use(flow: Flow, leaf: int) -> int:
    """Return the last operation that uses a leaf."""
    return max((edge.target for edge in flow.uses[leaf]), default=leaf)


def _advise_dropout(flow: Flow, module: str) -> str:
    """Return how to lower the probability of a dropout, as code if one call sets it to 1."""
    ones = [
        call
        for call in find_calls(flow.case, prefixes(module)[0])
        if ast.unparse(call.func).rpartition(".")[2].startswith("Dropout")
        and any(isinstance(one, ast.Constant) and one.value == 1 for one in (*call.args, *(k.value for k in call.keywords)))
    ]
    if len(ones) != 1:
        return "Use a probability below 1."
    new = copy.deepcopy(ones[0])
    for one in (*new.args, *(keyword.value for keyword in new.keywords)):
        if isinstance(one, ast.Constant) and one.value == 1 and not isinstance(one.value, bool):
            one.value = 0.5
    code = instead(ast.unparse(new), ast.unparse(ones[0]))
    return f"Use a probability below 1: {code}. This changes the loss, which did not depend on the input before."


def _factor_edges(flow: Flow, at: int) -> list[GraphEdge]:
    """Return the edges to the factors of an operation, without those to its addends."""
    properties, operands = flow.properties[at], flow.inputs[at]
    if properties.normalises:
        return [edge for edge in operands if edge.argument == 1]
    return [edge for edge in operands if edge.argument != properties.addend]


def _factor_name(flow: Flow, at: int) -> str:
    """Return a name for a factor that is not a node of the graph."""
    place = flow.nodes[at].place
    source = "" if place is None else place.source
    return f"a tensor in `{source}`" if source else "a tensor"


def _value_of(flow: Flow, i: int) -> Value | None:
    """Return the value of a node, or of the node that it is a reshaped copy of."""
    while flow.nodes[i].value is None and flow.is_reshape_or_cast(i) and len(flow.inputs[i]) == 1:
        i = flow.inputs[i][0].source
    return flow.nodes[i].value


def _origin_of_zeros(flow: Flow, i: int) -> int:
    """Return the first all-zero node among the inputs, and their inputs, from which an all-zero value was computed."""
    while flow.nodes[i].kind == "operation":
        for edge in flow.inputs[i]:
            value = _value_of(flow, edge.source)
            if value is not None and value.all_zero:
                i = edge.source
                break
        else:
            return i
    return i


def _empty_mask(flow: Flow, lost: LostGradients, at: int) -> Finding | None:
    """Explain a mask that hides all elements of a computed tensor."""
    node, leaves = flow.nodes[at], lost.leaves[at]
    mask = next((o for o in node.operands if o.value is not None and o.value.dtype == "bool"), None)
    named = f" `{mask.text}`" if mask is not None and mask.text else ""
    return Finding(
        "zero-factor",
        f"{flow.code(at)}{flow.place(at)} takes no element of its input: the mask{named} is the same everywhere. "
        f"{_leaves_get(flow, leaves)}.",
        flow.line(at),
        at,
        f"Check why{named or ' the mask'} hides everything.",
        {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at},
        worth=6.0,
    )


def _at_minimum(flow: Flow, lost: LostGradients, at: int) -> Finding | None:
    """Return a Note if the input of a square, an absolute value or a loss is 0 everywhere, which is its minimum."""
    properties = flow.properties[at]
    # A function of the table with a slope of 0 at 0, a lower bound and no upper bound has its minimum there.
    least_at_zero = properties.still and not properties.reduces and properties.low >= 0 and properties.high == math.inf
    if not least_at_zero and flow.ops[at] != "Pow":
        return None
    base = _value_of(flow, flow.inputs[at][0].source)
    result = flow.nodes[at].value
    exact = (base is not None and base.all_zero) or (flow.ops[at] != "Pow" and result is not None and result.all_zero)
    if not exact:
        return None
    leaves = lost.leaves[at]
    return Finding(
        "zero-factor",
        f"{flow.code(at)}{flow.place(at)} is at its minimum: its input is 0 everywhere, so {_leaves_get(flow, leaves)}.",
        flow.line(at),
        at,
        "",
        {"leaves": tuple(leaf_names(flow, leaves)), "at": at},
        remark=True,
    )


# ----------------------------------------------------------------------------------------------------------- cancelled
def _cancelled_sum(flow: Flow, lost: LostGradients, at: int) -> Finding | None:
    """Explain contributions to the gradient of a node that add up to 0."""
    leaves = lost.leaves[at]
    if _is_only_biases(flow, lost, leaves):
        return None  # the last bias has no effect on a difference of two outputs, such as that of a critic for real and fake
    if has_converged(flow, leaves):
        return None
    contributions = [
        (flow.edge_norms[edge_key(edge)], edge.target) for edge in flow.uses[at] if flow.edge_norms.get(edge_key(edge))
    ]
    reductions = [constant_source(flow, target) for _, target in contributions]
    reduction = reductions[0] if len(set(reductions)) == 1 and reductions[0] != contributions[0][1] else max(reductions)
    norms = " and ".join(digits(norm) for norm, _ in contributions[:3]) + (" …" if len(contributions) > 3 else "")
    paths = " and ".join(dict.fromkeys(flow.code(target) for _, target in contributions[:3]))
    total = flow.norms[at] or 0.0
    because = (
        f" {flow.code(reduction)}{flow.place(reduction)} weights them so that they cancel."
        if reduction not in dict(contributions).values()
        else ""
    )
    return Finding(
        "cancelled",
        f"The gradients that {flow.name(at)} gets through {paths} cancel: their norms are {norms}, and their sum is "
        f"{'exactly 0' if total == 0 else f'a rounding error ({digits(total)})'}.{because} "
        f"{_leaves_get(flow, leaves, 'nothing')}.",
        flow.line(reduction) if flow.line(reduction) is not None else flow.line(contributions[-1][1]),
        at,
        "Use another loss: this one does not depend on them.",
        {"norms": tuple(norm for norm, _ in contributions), "total": total, "leaves": tuple(leaf_names(flow, leaves)), "at": at},
        worth=5.0,
    )


def _constant_result(flow: Flow, lost: LostGradients, at: int, how: str) -> Finding | None:
    """Explain a softmax or a normalisation with a constant cotangent, for which the gradient of its input is 0."""
    node, leaves = flow.nodes[at], lost.leaves[at]
    gradient = node.gradient
    remark = _is_only_biases(flow, lost, leaves)
    evidence = {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at}
    name = flow.operation(at)
    if gradient is None or (how == "edge" and constant_source(flow, at) == at):
        return None
    reduction = constant_source(flow, at)
    what = "each row of a softmax adds up to 1" if flow.ops[at] == "Softmax" else "a normalisation subtracts the mean"
    operand = _value_of(flow, flow.inputs[at][0].source)
    evidence["handed"] = next((flow.edge_norms.get(edge_key(e)) for e in flow.inputs[at]), None)
    return Finding(
        "cancelled",
        f"{flow.code(reduction)}{flow.place(reduction)} adds up the results of {name}, and {what}: the sum is constant, so "
        f"{_leaves_get(flow, leaves, 'nothing')} but rounding errors.",
        flow.line(reduction),
        at,
        "Use a loss that compares the values with targets, such as mse_loss or cross_entropy.",
        evidence,
        remark=remark or operand is None,
        worth=5.0,
    )


# ----------------------------------------------------------------------------------------------------------- underflow
def _underflow(flow: Flow, lost: LostGradients, at: int, causes: Sequence[Cause]) -> Finding | None:
    """Explain a product of numbers that are not 0, which is below half of the smallest positive number of its dtype."""
    node, leaves = flow.nodes[at], lost.leaves[at]
    source = causes[0].source
    passed = next((edge.gradient for edge in flow.inputs[at] if edge.source == source), None)
    arrived = node.gradient
    if passed is None or arrived is None:
        return None
    dtype, least = passed.dtype, SMALLEST_POSITIVE.get(passed.dtype, 0.0)
    op, properties = flow.ops[at], flow.properties[at]
    factor = 1.0
    if _has_factors(flow, at):
        others = [_value_of(flow, e.source) for e in _factor_edges(flow, at) if e.source != source]
        others += [o.value for o in node.operands]
        known = [v.largest for v in others if v is not None and v.dtype != "bool"]
        if len(known) != 1 or known[0] == 0:
            return None
        factor = known[0] if op != "Div" else 1 / known[0]
    elif properties.moves != "cast" and not (properties.reduces in ("mean", "sum") and passed.size):
        return None
    elif properties.reduces == "mean":
        factor = max(arrived.size, 1) / passed.size
    terms = max(arrived.size // max(passed.size, 1), 1) * ((flow.nodes[at].shape or (1,))[-1] if properties.product else 1)
    scale = flow.trace.scale
    largest = arrived.largest * scale
    if largest * factor * terms > least / 2:
        return None
    advice = "Compute in bfloat16, which has the range of float32, or in float32."
    if scale == 1.0:
        advice = "Keep the weights in float32 and compute in float16 with torch.autocast and torch.amp.GradScaler, or in float32."
    return Finding(
        "underflow",
        f"In {flow.code(at)}{flow.place(at)} the gradient is rounded to 0: {digits(largest)} times {digits(factor)} is "
        f"below {digits(least)}, the smallest positive number of {dtype}. {_leaves_get(flow, leaves)}.",
        flow.line(at),
        at,
        advice
        if dtype in ("float16", "bfloat16")
        else "Multiply the loss by a scale before backward() and divide the gradients by it afterwards.",
        {"largest": largest, "factor": factor, "least": least, "dtype": dtype, "leaves": tuple(leaf_names(flow, leaves))},
        worth=6.0,
    )
