"""Products along the depth: gradients that vanish or explode on their way through layers, or through the steps of one cell.

Measured is the ratio of the norms of two cotangents on one way, never a norm by itself: what is small everywhere is a matter of
the loss's scale. The way from a layer to the loss is the one that carried most of its cotangent, so a skip connection that
carries the gradient is the way; where what a layer is given gets its gradient by another way, the layer is in a branch, and what
is lost there is not lost by depth. On the way each operation has its gain, ‖what went out‖ / ‖what came in‖; their product is the
ratio, and the kind of operation with the largest part in its logarithm is the cause.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case, listed
from gradlab.explore.doctor.context.flow import (
    LOSSES,
    PRODUCTS,
    REDUCTIONS,
    Flow,
    figure,
    numbers_known,
    operand_text,
    positive,
    root_mean_square,
)
from gradlab.explore.doctor.context.step_history import is_changed
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare

# Over 1 300 nets without shared weights, whose truth is known by the mean-field recursion (Schoenholz et al. 2017), neither bound
# has a false alarm or a miss (tests/doctor/sweep.py: multilayer and convolutional nets, four activations, five initialisations).
LOST, GAINED = 1e-4, 1e3
# Shared weights: the product over steps is that of one matrix's powers, whose spread is far wider than that of independent ones.
# Of 270 healthy recurrent nets of the sweep 3 lose or gain more than 1e-3 and 1e-4, none 1e-6.
LOST_OVER_STEPS = 1e-6
LAYERS = 3  # of fewer there is no depth, but for one operation that does it alone
STEPS = 8  # uses of one parameter on one way that are a recurrence: 1e-6 is lost over 8 only where each step keeps less than 0.18
STEPS_OF_NUMBERS = 16  # of one number: Horner's scheme and powers have their few factors by right
TIED = 3  # uses of one parameter from which on a way is not one of independent layers
NEAR = 200  # nodes behind a layer that are looked at
WALKS = 16  # ways that are walked, the most extreme ones

RECTIFIED = frozenset(["Relu", "LeakyRelu", "Gelu", "Silu", "Elu", "ClampMin", "Prelu"])
BENT = frozenset(["Tanh", "Sigmoid"])
BOUNDS = {"Sigmoid": 0.25, "Tanh": 1.0, "Hardsigmoid": 1 / 6}  # of the slope, by calculus


declare(
    "vanishing",
    meaning="a product of small factors along the depth",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "exploding",
    meaning="a product of large factors along the depth",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "recurrent",
    meaning="such a product over the steps of one cell",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@dataclass
class Way:
    """From a layer to the last one before the loss."""

    nodes: list[int]
    layers: list[int]  # of them
    gains: dict[int, float]  # logarithms, by the node that has them
    log: float  # of the whole ratio, without recurrent parts


@check("vanishing", "exploding", "recurrent", of_each_loss=True)
def find_vanishing_and_exploding(case: Case) -> Iterable[Finding]:
    """Vanishing and exploding gradients, by layers and by steps."""
    if not numbers_known(case.trace):
        return
    flow = Flow(case)
    findings = _by_steps(flow)
    yield from findings
    for sign in (-1, 1):
        way = _extreme(flow, sign)
        if way is not None:
            finding = _of_way(flow, way, sign)
            if finding is not None:
                yield finding


def limit(sign: int) -> float:
    """The logarithm beyond which a ratio is an alarm."""
    return -math.log(LOST) if sign < 0 else math.log(GAINED)


# --------------------------------------------------------------------------------------------------------------- layers
def _extreme(flow: Flow, sign: int) -> Way | None:
    """The way on which most is lost (-1) or gained (1), if it is beyond the bound."""
    norms, bound = flow.norms, limit(sign)
    last: list[int | None] = [None] * len(flow.nodes)
    for i in reversed(range(len(flow.nodes))):
        edge = flow.carriers[i]
        above = None if edge is None else last[edge.target]
        last[i] = above if above is not None else i if flow.weights[i] is not None else None
    ends = []
    for i, weight in enumerate(flow.weights):
        end = last[i]
        if weight is None or end is None or end == i or flow.layered_behind[i]:
            continue
        first, final = norms[i], norms[end]
        if not (positive(first) and positive(final)):
            continue
        assert first is not None
        assert final is not None
        log = math.log(first) - math.log(final)
        if sign * log > bound and not (sign < 0 and _passed_by(flow, i, final)):
            ends.append((sign * log, i, end))
    best = None
    for _, i, end in sorted(ends, reverse=True)[:WALKS]:
        way = _walked(flow, i, end)
        if way is not None and sign * way.log > bound and (best is None or sign * way.log > sign * best.log):
            culprit = sign * max(sign * way.gains[i] for i in way.gains if flow.words[i] not in REDUCTIONS | LOSSES)
            if len(way.layers) >= LAYERS or sign * culprit > bound:
                best = way
    return best


def _passed_by(flow: Flow, layer: int, final: float) -> bool:
    """Whether gradient comes to what lies behind a layer all the same, by a way beside it: a branch lost it and not the depth."""
    parameters = set(flow.weights)
    behind, waiting = {layer}, [layer]
    while waiting and len(behind) < NEAR:
        for edge in flow.given[waiting.pop()]:
            s = edge.source
            if s in behind or s in parameters:
                continue
            norm, carrier = flow.norms[s], flow.carriers[s]
            if norm is not None and norm > LOST * final and carrier is not None and carrier.target not in behind:
                return True
            behind.add(s)
            waiting.append(s)
    return False


def _walked(flow: Flow, start: int, end: int) -> Way | None:
    """The way, without the stretches that one parameter governs."""
    nodes = []
    for i in flow.way_up(start):
        nodes.append(i)
        if i == end:
            break
    norms = flow.norms
    if any(not positive(norms[i]) for i in nodes):
        return None
    uses = Counter(weight for i in nodes if (weight := flow.weights[i]) is not None and weight >= 0)
    spans = []
    for weight, count in uses.items():
        if count >= TIED:
            at = [k for k, i in enumerate(nodes) if flow.weights[i] == weight]
            spans.append((at[0], at[-1]))
    tied = {k for first, final in spans for k in range(first + 1, final + 1)}
    gains = {
        nodes[k]: math.log(norms[nodes[k - 1]]) - math.log(norms[nodes[k]])  # type: ignore[arg-type]
        for k in range(1, len(nodes))
        if k not in tied
    }
    layers = [i for k, i in enumerate(nodes) if flow.weights[i] is not None and k not in tied]
    return Way(nodes, layers, gains, sum(gains.values())) if gains else None


def _of_way(flow: Flow, way: Way, sign: int) -> Finding | None:
    start, end = way.nodes[0], way.nodes[-1]
    total: dict[str, float] = {}
    by_kind: dict[str, list[int]] = {}
    for i, gain in way.gains.items():
        kind = "@" if flow.words[i] in PRODUCTS else flow.words[i]
        total[kind] = total.get(kind, 0.0) + gain
        by_kind.setdefault(kind, []).append(i)
    kind = max(total, key=lambda k: sign * total[k])
    single = max(way.gains, key=lambda i: sign * way.gains[i])
    members = by_kind[kind]
    alone = sign * way.gains[single] > limit(sign) and sign * (way.log - way.gains[single]) < sign * way.gains[single]
    if alone:
        kind, members = ("@" if flow.words[single] in PRODUCTS else flow.words[single]), [single]
    log, n = sum(way.gains[i] for i in members), len(members)
    each = math.exp(log / n)
    first, last = flow.norms[start], flow.norms[end]
    assert first is not None
    assert last is not None
    name = "vanishing" if sign < 0 else "exploding"
    evidence: dict[str, object] = {
        "first": first,
        "last": last,
        "layers": len(way.layers),
        "operations": n,
        "each": each,
        "nodes": tuple(members),
        "start": start,
        "end": end,
    }
    at = members[0]
    lines = [line for i in members if (line := flow.line(i)) is not None]
    line = lines[0] if lines else None
    where = _layer(flow, start), _layer(flow, end)
    ends = f"{figure(last)} behind {where[1]}", f"{figure(first)} behind {where[0]}"
    sentence = (
        f"Over {len(way.layers)} layers the norm of the gradient that arrives {'falls' if sign < 0 else 'grows'} from "
        f"{ends[0]} to {ends[1]}."
    )
    cause, fix = _cause(flow, kind, members, each, sign, evidence)
    return Finding(
        name,
        f"{cause} {sentence}",
        line,
        at,
        fix,
        evidence,
        worth=5.0 + min(abs(way.log) / 100, 1.0),
        lines=tuple(dict.fromkeys(other for other in lines if other != line))[:3],
    )


def _layer(flow: Flow, i: int) -> str:
    weight = flow.weights[i]
    if weight is not None and weight >= 0 and flow.nodes[weight].name:
        return f"`{flow.nodes[weight].name}`"
    return flow.code(i)


def _cause(flow: Flow, kind: str, members: list[int], each: float, sign: int, evidence: dict[str, object]) -> tuple[str, str]:
    """The cause in a sentence, and what to do."""
    n, at = len(members), members[0]
    way = "passed on" if sign < 0 else "multiplied it by"
    product = each**n
    times = f"{n} of them {'left' if sign < 0 else 'made'} {figure(product)} times what arrived" if n > 1 else ""
    evidence["product"] = product
    if kind == "@":
        weights = [w for i in members if (w := flow.weights[i]) is not None and w >= 0]
        node = flow.nodes[weights[0]] if weights else None
        value = node.value if node is not None else None
        told, fix = "", "Scale the weights so that each layer keeps the norm: nn.init.xavier_normal_ or nn.init.kaiming_normal_."
        if node is not None and value is not None and node.shape is not None and len(node.shape) >= 2:
            fans = node.shape[0] * math.prod(node.shape[2:]), node.shape[1] * math.prod(node.shape[2:])
            fan_in = fans[1] if _outputs_first(flow, members, weights[0]) else fans[0]
            scale, xavier, he = root_mean_square(value), math.sqrt(2 / sum(fans)), math.sqrt(2 / max(fan_in, 1))
            evidence |= {"scale": scale, "xavier": xavier, "he": he, "shape": node.shape, "matrix": weights[0]}
            size = "×".join(map(str, node.shape))
            told = (
                f" A weight of `{node.name}` ({size}) is {figure(scale)} in the root mean square; Xavier's rule gives "
                f"{figure(xavier)}, He's {figure(he)}."
            )
            fix = _drawn(flow, weights, xavier, he)
        names = listed([flow.nodes[w].name or flow.nodes[w].label for w in weights]) if weights else flow.code(at)
        of = f"{flow.code(at)}{flow.place(at)}"
        if n == 1:
            return f"The product with {names} in {of} {way} {figure(each)} of the gradient's norm alone.{told}", fix
        return f"Each product with the weights {names} ({of}) {way} {figure(each)} on average; {times}.{told}", fix
    bound = BOUNDS.get(kind)
    named = flow.operation(at) if n == 1 else kind.lower()
    if bound is not None and sign < 0:
        evidence["bound"] = bound
        fix = "Use relu or gelu with He's initialisation, a normalisation between the layers, or skip connections."
        cause = (
            f"Each {kind.lower()} passes on at most {bound:.3g}; {n} of them ({flow.code(at)}{flow.place(at)}) left "
            f"{figure(product)} times what arrived, {figure(each)} each on average."
        )
        return cause, fix
    constant = next((o for o in flow.nodes[at].operands if o.kind in ("constant", "input", "cut")), None)
    by = ""
    if kind in ("Mul", "Div") and constant is not None and constant.value is not None and constant.value.size == 1:
        number = constant.value.numbers[0] if constant.value.numbers else 0
        by = f", by {figure(float(number))}"
        evidence["constant"] = number
    if n == 1:
        fix = f"Take the factor {operand_text(constant)} out, or put a normalisation behind it." if constant is not None else ""
        return f"{flow.code(at)}{flow.place(at)} ({named}{by}) alone {way} {figure(each)} of the gradient's norm.", fix
    fix = "Scale this operation so that it keeps the norm, or put a normalisation between the layers."
    return f"Each {flow.code(at)}{flow.place(at)} ({named}{by}) {way} {figure(each)} on average; {times}.", fix


def _drawn(flow: Flow, weights: list[int], xavier: float, he: float) -> str:
    """How to draw the weights, for the activations that there are; of weights that steps have made so, that."""
    if any(is_changed(flow.case, flow.keys[w]) for w in weights if w in flow.keys):
        return "The steps of this cell have made the weights so: take a smaller learning rate or a smaller weight decay."
    words = set(flow.words)
    rules = [f"{figure(xavier)} (tanh)"] * bool(words & BENT or not words & RECTIFIED)
    rules += [f"{figure(he)} (ReLU)"] * bool(words & RECTIFIED or not words & BENT)
    return f"Draw the weights with a standard deviation of {' or '.join(rules)}."


def _outputs_first(flow: Flow, members: list[int], weight: int) -> bool:
    """Whether the rows of a matrix are outputs, as nn.Linear has them and `W @ x`, and not inputs, as in `x @ W`."""
    for i in members:
        for edge in flow.given[i]:
            if flow.weights[i] != weight or flow.weight_behind(edge.source) != weight:
                continue
            if flow.words[i] not in ("Mm", "Addmm", "Bmm", "Matmul", "Mv"):
                return True  # a layer of the library: nn.Linear, a convolution
            turned, at = False, edge.source
            while flow.nodes[at].kind == "operation" and len(flow.given[at]) == 1 and at != weight:
                turned ^= flow.words[at] in ("T", "Transpose", "Permute", "Mt")
                at = flow.given[at][0].source
            first = edge.argument == (1 if flow.words[i] == "Addmm" else 0)
            return turned ^ first
    return True


# ---------------------------------------------------------------------------------------------------------------- steps
def _by_steps(flow: Flow) -> list[Finding]:
    """The same product over the steps of one cell: one parameter again and again on one way."""
    users: dict[int, list[int]] = {}
    for i, node in enumerate(flow.nodes):
        if node.kind != "operation":
            continue
        for edge in flow.given[i]:
            leaf = flow.leaf_behind(edge.source) if flow.words[i] in PRODUCTS or flow.words[i] in ("Mul", "Div") else None
            if leaf is not None:
                users.setdefault(leaf, []).append(i)
    findings: list[Finding] = []
    covered: set[int] = set()
    for leaf, nodes in sorted(users.items(), key=lambda item: -len(flow.nodes[item[0]].shape or ())):
        few = STEPS if flow.nodes[leaf].shape else STEPS_OF_NUMBERS
        alive = [i for i in nodes if positive(flow.norms[i])]
        if len(nodes) < few or len(alive) < few or covered & set(nodes):
            continue
        using = set(alive)
        on = [i for i in flow.way_up(alive[0]) if i in using]
        if len(on) < few:
            continue
        first, last = flow.norms[on[0]], flow.norms[on[-1]]
        assert first is not None
        assert last is not None
        log = math.log(first) - math.log(last)
        if abs(log) < -math.log(LOST_OVER_STEPS):
            continue
        covered |= set(flow.way_up(on[0]))
        findings.append(_of_steps(flow, leaf, on, first, last))
    return findings


def _of_steps(flow: Flow, leaf: int, on: list[int], first: float, last: float) -> Finding:
    steps, at, node = len(on), on[-1], flow.nodes[leaf]
    each = math.exp((math.log(first) - math.log(last)) / (steps - 1))
    small = first < last
    evidence = {"steps": steps, "first": first, "last": last, "each": each, "start": on[0], "end": at, "leaf": leaf}
    module = flow.nodes[at].module
    name = f"`{node.name or node.label}`"
    what = f"{flow.code(at)}{flow.place(at)}" + (f" (in `{module}`)" if module else "")
    by = f"keeps only {figure(each)} of the gradient's norm" if small else f"multiplies the gradient by {figure(each)}"
    ends = (
        "is left at the first, so the first steps learn nothing" if small else "has become at the first, which drowns the others"
    )
    message = (
        f"{what} is run {steps} times with the same {name}, and each step {by}: of {figure(last)} at the last step "
        f"{figure(first)} {ends}."
    )
    gated = flow.kinds.get(flow.nodes[at].module, "").startswith(("LSTM", "GRU"))
    if not node.shape:
        fix = f"Keep {name} near 1, or use fewer steps."
    elif small:
        passed = (
            ""
            if gated
            else "Let the state pass on as it is, as an LSTM or h = h + f(h) does, start from an orthogonal matrix, or "
        )
        fix = f"{'' if gated else passed}give the early steps a loss of their own."
        fix = fix[:1].upper() + fix[1:]
    else:
        fix = "Start from an orthogonal matrix of scale 1, or bound the gradient with nn.utils.clip_grad_norm_."
    return Finding("recurrent", message, flow.line(at), at, fix, evidence, worth=5.0)
