"""Gradients that are zero for another reason than their units: a factor of zero, contributions that cancel, underflow."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterable, Sequence

from gradlab.explore.doctor.checks.idle_biases import idle_biases
from gradlab.explore.doctor.checks.units import BENT, RECTIFIERS
from gradlab.explore.doctor.context.case import Case, listed
from gradlab.explore.doctor.context.code_edits import argument, instead
from gradlab.explore.doctor.context.definitions import calls
from gradlab.explore.doctor.context.flow import (
    CASTS,
    PRODUCTS,
    SHAPES,
    Flow,
    figure,
    key,
    leaf_names,
    numbers_known,
    operand_text,
    positive,
)
from gradlab.explore.doctor.context.random_weights import drawn
from gradlab.explore.doctor.context.zero_gradients import NORMALISATIONS, Cause, Starved, made_constant, starved
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.names import prefixes
from gradlab.explore.trace.data import GraphEdge, Operand
from gradlab.explore.trace.values import Value

# The least numbers above 0 (IEEE 754; bfloat16 has float32's exponents): what is below half of them is rounded to 0.
LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}

FACTORS = PRODUCTS | frozenset(["Mul", "Div", "NativeDropout", "Dropout", "Embedding"])
CHOICES = frozenset(["Where", "MaskedFill"])
STILL = frozenset(["Pow", "MseLoss", "Abs", "SmoothL1Loss", "HuberLoss", "L1Loss"])  # flat where what goes in is 0
CELLS = ("RNN", "LSTM", "GRU")  # start from a state of zeros


declare(
    "cancelled",
    meaning="contributions that add up to zero",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "zero-factor",
    meaning="everything is multiplied by zero",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "underflow",
    meaning="rounded to zero, by float16 as a rule",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("cancelled", "zero-factor", "underflow")
def find_zero_gradients(case: Case) -> Iterable[Finding]:
    """Leaves to which exactly nothing comes, or rounding errors alone."""
    if not numbers_known(case.trace):
        return
    flow = Flow(case)
    hungry = starved(flow)
    said: set[tuple[str, int | None, tuple[str, ...]]] = set()
    idle: dict[int, Sequence[int]] = {}
    for at, causes in hungry.by_node.items():
        if causes[0].how == "bias":
            if _partial(flow, hungry, hungry.leaves[at]):
                idle[at] = hungry.leaves[at]
            continue
        finding = _of(flow, hungry, at, causes)
        if finding is not None:
            same = finding.kind, finding.line, tuple(leaf_names(flow, hungry.leaves[at])) if finding.line is None else ()
            if same not in said:
                said.add(same)
                yield finding
    yield from idle_biases(flow, idle)


def _of(flow: Flow, hungry: Starved, at: int, causes: Sequence[Cause]) -> Finding | None:
    word, how = flow.words[at], causes[0].how
    if how == "sum":
        return _sum(flow, hungry, at)
    if word == "Softmax" or word in NORMALISATIONS:
        zero = _zero_factor(flow, hungry, at, causes) if word in NORMALISATIONS else None
        return zero or _constant(flow, hungry, at, how)
    if word in RECTIFIERS | BENT:
        return None  # of `units`
    if word in FACTORS:
        return _zero_factor(flow, hungry, at, causes) or _underflow(flow, hungry, at, causes)
    if word in CHOICES:
        return _nothing_chosen(flow, hungry, at)
    if word in STILL:
        return _still(flow, hungry, at) or _underflow(flow, hungry, at, causes)
    return _underflow(flow, hungry, at, causes)


def _get(flow: Flow, leaves: Sequence[int], what: str = "exactly 0") -> str:
    return f"{listed(leaf_names(flow, leaves))} {'gets' if len(leaves) == 1 else 'get'} {what}"


def _partial(flow: Flow, hungry: Starved, leaves: Sequence[int]) -> bool:
    """Whether the leaves are but biases, and others learn."""
    matrix = any(math.prod(s) > max(s) for i in leaves if (s := flow.nodes[i].shape) is not None and len(s) >= 2)
    return hungry.learns and not matrix


# ------------------------------------------------------------------------------------------------------ a factor of zero
def _zero_factor(flow: Flow, hungry: Starved, at: int, causes: Sequence[Cause]) -> Finding | None:
    node, leaves = flow.nodes[at], hungry.leaves[at]
    sources = {cause.source for cause in causes}
    nodes: list[int] = []  # where zeros began
    operands: list[Operand] = []
    for source in sources:
        for edge in _factors(flow, at):
            other = edge.source
            value = _value(flow, other)
            if other != source and value is not None and value.all_zero:
                nodes.append(_origin(flow, other))
        operands += [o for o in node.operands if o.value is not None and o.value.all_zero]
    nodes = list(dict.fromkeys(nodes))
    if any(flow.words[i] in RECTIFIERS | BENT for i in nodes):
        return None  # a consequence of units that are shut
    kind = flow.kinds.get(node.module, "")
    drops = "Dropout" in kind or "ropout" in flow.words[at]
    if not nodes and not operands and not (drops and node.value is not None and node.value.all_zero):
        return None
    if kind.startswith(CELLS):
        return None  # of `units`, if one of its gates is shut
    of = f"{flow.code(at)}{flow.place(at)}"
    evidence = {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at, "factors": tuple(nodes)}
    if drops:
        return Finding(
            "zero-factor",
            f"The dropout `{node.module}` in {of} drops every element, so nothing goes through: {_get(flow, leaves)}.",
            flow.line(at),
            at,
            _fewer_dropped(flow, node.module),
            evidence,
            worth=6.0,
        )
    trained = [i for i in nodes if flow.nodes[i].kind == "leaf"]
    learning = [i for i in trained if positive(flow.norms[i])]
    if trained and len(learning) == len(trained) and not operands and len(trained) == len(nodes):
        names = listed(leaf_names(flow, trained))
        return Finding(
            "zero-factor",
            f"{names} {'is' if len(trained) == 1 else 'are'} 0 everywhere, so in this step {_get(flow, leaves)} (lost in {of}). "
            f"{names} itself learns: from the next step on the others do.",
            flow.line(at),
            at,
            "",
            evidence,
            remark=True,
        )
    if trained:
        still = [i for i in dict.fromkeys([*trained, *leaves]) if (value := flow.nodes[i].value) is not None and value.all_zero]
        all_zero = leaf_names(flow, sorted(still, key=lambda i: (len(flow.nodes[i].shape or ()) < 2, _last_use(flow, i))))
        return Finding(
            "zero-factor",
            f"{listed(all_zero)} {'is' if len(all_zero) == 1 else 'are'} 0 everywhere. In {of} each gradient is multiplied by "
            f"the zeros of another tensor, so {_get(flow, leaves)} and {'does' if len(leaves) == 1 else 'do'} not change.",
            flow.line(at),
            at,
            drawn(flow, still),
            evidence,
            worth=6.0,
        )
    literal = bool(operands) and all(o.kind == "constant" for o in operands)
    shown = [operand_text(o) for o in operands if operand_text(o) != "a tensor"] or [flow.code(i) for i in nodes]
    named = " and ".join(dict.fromkeys(shown)) or _factor_name(flow, at)
    return Finding(
        "zero-factor",
        f"{of} multiplies by {named}, which is 0{'' if literal else ' everywhere'}: {_get(flow, leaves)}.",
        flow.line(at),
        at,
        "" if literal and hungry.learns else f"See why {named} is 0.",
        evidence,
        remark=literal and hungry.learns,
        worth=6.0,
    )


def _last_use(flow: Flow, leaf: int) -> int:
    """The last operation that a leaf is given to."""
    return max((edge.target for edge in flow.uses[leaf]), default=leaf)


def _fewer_dropped(flow: Flow, module: str) -> str:
    """How to make a dropout let something through: in place of the one call that makes one of probability 1."""
    ones = [
        call
        for call in calls(flow.case, prefixes(module)[0])
        if ast.unparse(call.func).rpartition(".")[2].startswith("Dropout")
        and any(isinstance(one, ast.Constant) and one.value == 1 for one in (*call.args, *(k.value for k in call.keywords)))
    ]
    if len(ones) != 1:
        return "Give it a probability below 1."
    new = copy.deepcopy(ones[0])
    for one in (*new.args, *(keyword.value for keyword in new.keywords)):
        if isinstance(one, ast.Constant) and one.value == 1 and not isinstance(one.value, bool):
            one.value = 0.5
    code = instead(ast.unparse(new), ast.unparse(ones[0]))
    return f"Give it a probability below 1: {code}. This changes the loss, which did not depend on the input before."


def _factors(flow: Flow, at: int) -> list[GraphEdge]:
    """The edges to what an operation multiplies, without what it adds."""
    word, operands = flow.words[at], flow.given[at]
    if word in NORMALISATIONS:
        return [edge for edge in operands if edge.argument == 1]
    added = {"Addmm": 0, "Addmv": 0, "Baddbmm": 0, "Addbmm": 0, "Addr": 0}.get(word, 2 if word in PRODUCTS else None)
    return [edge for edge in operands if edge.argument != added]


def _factor_name(flow: Flow, at: int) -> str:
    """The factor of a product in the source that is no part of the graph."""
    place = flow.nodes[at].place
    source = "" if place is None else place.source
    return f"a tensor in `{source}`" if source else "a tensor"


def _value(flow: Flow, i: int) -> Value | None:
    """The value of a node, or of what it is a reshaped copy of."""
    while flow.nodes[i].value is None and flow.words[i] in SHAPES | CASTS and len(flow.given[i]) == 1:
        i = flow.given[i][0].source
    return flow.nodes[i].value


def _origin(flow: Flow, i: int) -> int:
    """Where the zeros of an all-zero value began: among what it was computed from as far as that is all zero too."""
    while flow.nodes[i].kind == "operation":
        for edge in flow.given[i]:
            value = _value(flow, edge.source)
            if value is not None and value.all_zero:
                i = edge.source
                break
        else:
            return i
    return i


def _nothing_chosen(flow: Flow, hungry: Starved, at: int) -> Finding | None:
    node, leaves = flow.nodes[at], hungry.leaves[at]
    mask = next((o for o in node.operands if o.value is not None and o.value.dtype == "bool"), None)
    named = f" `{mask.text}`" if mask is not None and mask.text else ""
    return Finding(
        "zero-factor",
        f"{flow.code(at)}{flow.place(at)} takes nothing of what was computed: its mask{named} is the same everywhere. "
        f"{_get(flow, leaves)}.",
        flow.line(at),
        at,
        f"See why{named or ' the mask'} hides everything.",
        {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at},
        worth=6.0,
    )


def _still(flow: Flow, hungry: Starved, at: int) -> Finding | None:
    """The base of a square is 0: a minimum."""
    base = _value(flow, flow.given[at][0].source)
    result = flow.nodes[at].value
    exact = (base is not None and base.all_zero) or (flow.words[at] != "Pow" and result is not None and result.all_zero)
    if not exact:
        return None
    leaves = hungry.leaves[at]
    return Finding(
        "zero-factor",
        f"{flow.code(at)}{flow.place(at)} is at its minimum: what goes in is 0 everywhere, so {_get(flow, leaves)}.",
        flow.line(at),
        at,
        "",
        {"leaves": tuple(leaf_names(flow, leaves)), "at": at},
        remark=True,
    )


# ----------------------------------------------------------------------------------------------------------- cancelled
def _sum(flow: Flow, hungry: Starved, at: int) -> Finding | None:
    leaves = hungry.leaves[at]
    if _partial(flow, hungry, leaves):
        return None  # a difference of two results, as a critic's of real and fake, has no use for the last bias
    parts = [(flow.handed[key(edge)], edge.target) for edge in flow.uses[at] if flow.handed.get(key(edge))]
    makers = [made_constant(flow, target) for _, target in parts]
    maker = makers[0] if len(set(makers)) == 1 and makers[0] != parts[0][1] else max(makers)
    norms = " and ".join(figure(norm) for norm, _ in parts[:3]) + (" …" if len(parts) > 3 else "")
    ways = " and ".join(dict.fromkeys(flow.code(target) for _, target in parts[:3]))
    total = flow.norms[at] or 0.0
    because = (
        f" {flow.code(maker)}{flow.place(maker)} weighs them so that they cancel." if maker not in dict(parts).values() else ""
    )
    return Finding(
        "cancelled",
        f"The gradients that {flow.name(at)} gets through {ways} cancel: their norms are {norms}, and their sum is "
        f"{'exactly 0' if total == 0 else f'a rounding error ({figure(total)})'}.{because} {_get(flow, leaves, 'nothing')}.",
        flow.line(maker) if flow.line(maker) is not None else flow.line(parts[-1][1]),
        at,
        "Use another loss: this one is the same whatever they are.",
        {"norms": tuple(norm for norm, _ in parts), "total": total, "leaves": tuple(leaf_names(flow, leaves)), "at": at},
        worth=5.0,
    )


def _constant(flow: Flow, hungry: Starved, at: int, how: str) -> Finding | None:
    """A softmax or a normalisation was handed a constant: its Jacobian's rows add up to 0."""
    node, leaves = flow.nodes[at], hungry.leaves[at]
    value, gradient = node.value, node.gradient
    remark = _partial(flow, hungry, leaves)
    evidence = {"arrived": flow.norms[at], "leaves": tuple(leaf_names(flow, leaves)), "at": at}
    name = flow.operation(at)
    if flow.words[at] == "Softmax" and value is not None and value.size and _ones(value):
        return Finding(
            "cancelled",
            f"{flow.code(at)}{flow.place(at)} takes the softmax over an axis of length 1, which is 1 whatever goes in: "
            f"{_get(flow, leaves)}.",
            flow.line(at),
            at,
            _of_one(flow, at),
            evidence,
            remark=remark,
            worth=6.0,
        )
    if gradient is None or (how == "edge" and made_constant(flow, at) == at):
        return None
    maker = made_constant(flow, at)
    what = "each row of a softmax adds up to 1" if flow.words[at] == "Softmax" else "a normalisation takes the mean out"
    operand = _value(flow, flow.given[at][0].source)
    evidence["handed"] = next((flow.handed.get(key(e)) for e in flow.given[at]), None)
    return Finding(
        "cancelled",
        f"{flow.code(maker)}{flow.place(maker)} adds up what {name} made, and {what}: it does not change, so "
        f"{_get(flow, leaves, 'nothing')} "
        "but rounding errors.",
        flow.line(maker),
        at,
        "Take a loss that depends on how it is spread: a square, a cross-entropy, one entry.",
        evidence,
        remark=remark or operand is None,
        worth=5.0,
    )


def _of_one(flow: Flow, at: int) -> str:
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    code = instead(flow.case.spelled(f"gradlab.sigmoid({argument(source)})"), source) if argument(source) else ""
    if not code:
        return "For one output use sigmoid, or binary_cross_entropy_with_logits of the logits."
    return f"For one output use sigmoid: {code}. This changes the loss, which did not depend on the output before."


def _ones(value: Value) -> bool:
    if value.numbers is not None:
        return all(x == 1 for x in value.numbers)
    return value.statistics.minimum == value.statistics.maximum == 1


# ----------------------------------------------------------------------------------------------------------- underflow
def _underflow(flow: Flow, hungry: Starved, at: int, causes: Sequence[Cause]) -> Finding | None:
    """A product of numbers that are not 0 is below half of the least number of its type."""
    node, leaves = flow.nodes[at], hungry.leaves[at]
    source = causes[0].source
    handed = next((edge.gradient for edge in flow.given[at] if edge.source == source), None)
    arrived = node.gradient
    if handed is None or arrived is None:
        return None
    dtype, least = handed.dtype, LEAST.get(handed.dtype, 0.0)
    word = flow.words[at]
    factor = 1.0
    if word in FACTORS:
        others = [_value(flow, e.source) for e in _factors(flow, at) if e.source != source]
        others += [o.value for o in node.operands]
        known = [v.largest for v in others if v is not None and v.dtype != "bool"]
        if len(known) != 1 or known[0] == 0:
            return None
        factor = known[0] if word != "Div" else 1 / known[0]
    elif word not in CASTS and not (word in ("Mean", "Sum") and handed.size):
        return None
    elif word == "Mean":
        factor = max(arrived.size, 1) / handed.size
    terms = max(arrived.size // max(handed.size, 1), 1) * ((flow.nodes[at].shape or (1,))[-1] if word in PRODUCTS else 1)
    if arrived.largest * factor * terms > least / 2:
        return None
    return Finding(
        "underflow",
        f"In {flow.code(at)}{flow.place(at)} the gradient is rounded to 0: {figure(arrived.largest)} times {figure(factor)} is "
        f"below {figure(least)}, the least number of {dtype}. {_get(flow, leaves)}.",
        flow.line(at),
        at,
        "Multiply the loss by a scale before backward() and the gradients by its inverse after it"
        f"{', or compute in float32' if dtype in ('float16', 'bfloat16') else ''}.",
        {"largest": arrived.largest, "factor": factor, "least": least, "dtype": dtype, "leaves": tuple(leaf_names(flow, leaves))},
        worth=6.0,
    )
