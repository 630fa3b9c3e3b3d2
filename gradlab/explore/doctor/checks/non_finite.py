"""Find the operation that computes the first NaN or the first infinity.

In the forward pass a NaN is born at a node whose value contains a NaN and whose inputs do not. If an input contains an infinity,
the operation that computed the infinity is reported as the cause. In the backward pass it is a node that receives a finite
cotangent and passes a cotangent that is not finite. Only what makes the loss or the gradient of a leaf non-finite is reported:
minus infinity in a mask is right.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.doctor.checks.masks import find_hidden_rows
from gradlab.explore.doctor.checks.singular import (
    Explanation,
    argument_value,
    code_at,
    explain_derivative,
    explain_value,
    guard_argument,
)
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, parse_expression, replace_expression
from gradlab.explore.doctor.context.flow import Flow, first_arguments, flow_of, has_gradients, plural
from gradlab.explore.doctor.context.loss_scale import falling_scale, is_searching
from gradlab.explore.doctor.context.number_limits import largest_exponent, largest_finite
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Operand
from gradlab.explore.trace.values import Value

MAX_BIRTHS = 3  # reported of one sweep; one often leads to others


declare(
    "nan-born",
    meaning="An operation computes NaN from inputs that contain no NaN.",
    why="""
        Everything computed from a NaN is NaN: the loss, all gradients and, after the next step, the parameters. Usual
        causes are 0 / 0 (also the softmax of a row of -inf), inf - inf, 0 · inf, and the logarithm or a root of a negative
        number.
    """,
    remedy="""
        Keep the inputs in the domain of the operation: by exp or softplus, a clamp, or a small number added. A `torch.where` on
        its result is not enough: it keeps the NaN out of the loss, but the gradient there can still be NaN, as
        0 · inf or 0 · NaN.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(100, 3)
        counts = torch.randint(0, 5, (100,))
        w = torch.randn(3, requires_grad=True)
        rate = x @ w
        loss = (rate - counts * torch.log(rate)).mean()  #!
        loss.backward()
    """,
    healthy={"rate = x @ w": "rate = torch.exp(x @ w)"},
)

declare(
    "inf-born",
    meaning="An operation computes the first infinity from finite inputs, forward or in its derivative.",
    why="""
        The logarithm of 0, a division by 0 and an overflow are infinite, and so is the derivative of a square root at 0. A step
        with an infinite gradient destroys the parameters, and inf - inf or 0 · inf further on is NaN.
    """,
    remedy="""
        Use a function that computes both steps stably: `log_softmax`, `logsigmoid`, `logsumexp`, a loss with logits. Or add a
        small number before the operation, or clamp its input.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        x, y = torch.randint(0, 256, (64, 8)).float(), torch.randint(0, 3, (64,))
        w = torch.randn(8, 3, requires_grad=True)
        probs = torch.softmax(x @ w, dim=1)
        loss = -torch.log(probs)[torch.arange(64), y].mean()  #!
        loss.backward()
    """,
    healthy={
        "probs = torch.softmax(x @ w, dim=1)": "log_probs = torch.log_softmax(x @ w, dim=1)",
        "loss = -torch.log(probs)[torch.arange(64), y].mean()": "loss = -log_probs[torch.arange(64), y].mean()",
    },
)

declare(
    "nan-input",
    notes=True,
    meaning="A tensor that the program uses, data or a parameter, already contains NaN or infinities.",
    why="One NaN makes the mean of a batch NaN, and with it the gradients of all parameters. An infinity has a similar effect.",
    remedy="""
        Leave out the rows with missing values, or replace these values, before training. If it is a parameter, an earlier
        step usually made it NaN: use a smaller learning rate, or clip the gradients while they are still finite.
    """,
    fault="""
        import torch
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(50, 3), torch.randn(50, 1)
        x[17, 1] = float("nan")  # a missing value
        model = torch.nn.Linear(3, 1)
        loss = F.mse_loss(model(x), y)  #!
        loss.backward()
    """,
    healthy={
        "model = torch.nn.Linear(3, 1)": "model, complete = torch.nn.Linear(3, 1), x.isfinite().all(1)",
        "loss = F.mse_loss(model(x), y)": "loss = F.mse_loss(model(x[complete]), y[complete])",
    },
)


@dataclass
class Birth:
    """The first node at which a NaN or an infinity appears."""

    at: int
    kind: str  # "nan" or "inf"
    cause: int | None = None  # of a NaN: the node that computed the infinity behind it
    masked: bool = False  # of a NaN: whether it comes from infinities that were assigned
    seen: int = 0  # the first node whose recorded value contains it


@check("nan-born", "inf-born", "nan-input", keras=True)
def find_non_finite(case: Case) -> Iterable[Finding]:
    """Find inputs and operations that make the loss or a gradient NaN or infinite. If a GradScaler keeps skipping steps because
    of them, `loss_scale` reports it."""
    if falling_scale(case) is None:
        yield from explain_non_finite(case)


def explain_non_finite(case: Case) -> Iterable[Finding]:
    """Yield the inputs and operations that make the loss or a gradient of the last sweep NaN or infinite."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    if not result_is_non_finite(flow):
        return
    inputs = list(_find_inputs(flow))
    yield from inputs
    births = _forward_births(flow)
    reported: set[tuple[object, str]] = set()
    count = 0
    for birth in births:
        at = birth.cause if birth.cause is not None else birth.at
        same = (flow.nodes[at].place or at, flow.ops[at])
        if same not in reported and count < MAX_BIRTHS:
            reported.add(same)
            count += 1
            yield _forward_finding(flow, birth)
    if count or inputs:
        return  # errors of the backward pass follow from these
    if any(is_non_finite(flow.nodes[i].value) for i in flow.trace.outputs):
        yield _unrecorded_finding(flow)
        return
    for at in _backward_births(flow):
        if is_searching(case) and _is_overflow(flow, at):
            continue
        same = (flow.nodes[at].place or at, flow.ops[at])
        if same not in reported and count < MAX_BIRTHS:
            reported.add(same)
            count += 1
            yield _backward_finding(flow, at)


def is_non_finite(value: Value | None) -> bool:
    """Return whether a value contains a NaN or an infinity."""
    return value is not None and value.odd


def result_is_non_finite(flow: Flow) -> bool:
    """Return whether the loss or the gradient of a leaf contains a NaN or an infinity."""
    leaves = any(is_non_finite(leaf.gradient) or is_non_finite(leaf.arrived) for leaf in flow.trace.leaves)
    return leaves or any(
        is_non_finite(node.value) if node.kind == "output" else node.kind == "leaf" and is_non_finite(node.gradient)
        for node in flow.nodes
    )


# ---------------------------------------------------------------------------------------------------------------- inputs
def _find_inputs(flow: Flow) -> Iterable[Finding]:
    reported: set[str] = set()
    for i, node in enumerate(flow.nodes):
        if node.kind == "leaf" and is_non_finite(node.value):
            assert node.value is not None
            stepped = any(node.name in event.names for event in flow.trace.events if event.kind in ("step", "write"))
            earlier = stepped and flow.trace.sweep > 1
            evidence = {"nans": node.value.nans, "infs": node.value.infs, "size": node.value.size, "leaf": i}
            yield Finding(
                "nan-input",
                f"`{node.name or node.label}` contains {_count_text(node.value)} among its {node.value.size} elements "
                f"when sweep {flow.trace.sweep} begins{', caused by an earlier step' if earlier else ''}.",
                None,
                i,
                "Use a smaller learning rate, or clip the gradients." if earlier else "Check how it was computed.",
                evidence,
                remark=earlier,
                worth=9.0,
            )
        for operand in node.operands:
            value = operand.value
            if value is None or not is_non_finite(value) or _is_mask(flow, i, operand):
                continue
            name = f"`{operand.text}`" if operand.text else f"The input of {flow.code(i)}"
            if name in reported:
                continue
            reported.add(name)
            row = f", in {flow.code(i)}{flow.place(i)}" if operand.text else flow.place(i)
            yield Finding(
                "nan-input",
                f"{name} contains {_count_text(value)} among its {value.size} elements{row}, so the result is not finite.",
                flow.line(i),
                i,
                _replacement_fix(flow, i, operand.text),
                {"nans": value.nans, "infs": value.infs, "size": value.size, "argument": operand.argument, "at": i},
                worth=9.0,
            )


def _replacement_fix(flow: Flow, i: int, text: str) -> str:
    """Return a fix for a tensor with NaN or infinities."""
    place = flow.nodes[i].place
    filled = flow.case.spell(f"gradlab.where({text}.isfinite(), {text}, 0.0)")
    named = place if text.isidentifier() else None
    code = instead(replace_expression(named.source, text, filled), named.source) if named is not None else ""
    uses = {node.place for node in flow.nodes if any(operand.text == text for operand in node.operands)}
    if not code or len(uses) != 1:
        return "Leave these elements out, or replace them by numbers."
    return f"Leave these elements out, or replace them by numbers: {code}."


def _count_text(value: Value) -> str:
    nans = plural(value.nans, "NaN", "NaN") if value.nans else ""
    infs = plural(value.infs, "infinity", "infinities") if value.infs else ""
    return " and ".join(part for part in (nans, infs) if part)


def _is_mask(flow: Flow, i: int, operand: Operand) -> bool:
    """Return whether the infinities of an operand are a mask: they are assigned, or added before a softmax or a maximum."""
    value = operand.value
    if value is None or value.nans:
        return False
    if _assigns(flow, i):
        return True
    high = max((x for x in value.numbers if x == x), default=0.0) if value.numbers is not None else None
    positive = high == math.inf if high is not None else value.statistics.infs > 0 and value.statistics.maximum > 0
    if positive or not (flow.properties[i].adds or flow.ops[i] == "Mul"):
        return False
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            t = edge.target
            if flow.properties[t].ignores_minus_inf:
                return True
            if t not in seen and len(seen) < 20:
                seen.add(t)
                waiting.append(t)
    return False


def _assigns(flow: Flow, i: int) -> bool:
    """Return whether an operation assigns values, so that an infinity in its result is meant. The bounds of a clamp are such."""
    return flow.properties[i].writes or flow.ops[i] == "Clamp"


# -------------------------------------------------------------------------------------------------------------- forward
def _forward_births(flow: Flow) -> list[Birth]:
    """Return the births that make the loss or a gradient non-finite, in the order of the program."""
    nans, infs = [False] * len(flow.nodes), [False] * len(flow.nodes)
    births: dict[int, Birth] = {}
    for i, node in enumerate(flow.nodes):
        sources = [edge.source for edge in flow.inputs[i]]
        value = node.value
        given_nan, given_inf = any(nans[s] for s in sources), any(infs[s] for s in sources)
        operands = [operand.value for operand in node.operands if operand.value is not None]
        operand_nan, operand_inf = any(v.nans for v in operands), any(v.infs for v in operands)
        if value is None:
            nans[i], infs[i] = given_nan, given_inf
            continue
        nans[i], infs[i] = value.nans > 0, value.infs > 0
        if node.kind != "operation" or _assigns(flow, i):
            continue
        if nans[i] and not (given_nan or operand_nan):
            births[i] = Birth(i, "nan", masked=given_inf or operand_inf)
        elif infs[i] and not (given_nan or operand_nan) and (not (given_inf or operand_inf) or _exp_overflows(flow, i)):
            births[i] = Birth(i, "inf")
    births = {_first_unrecorded(flow, i): birth for i, birth in births.items()}
    for i, birth in births.items():
        nans[i], infs[i] = nans[i] or birth.kind == "nan", infs[i] or birth.kind == "inf"
    harmful = _harmful_nodes(flow, nans, infs)
    consumed = set()
    for i, birth in births.items():
        birth.at, birth.seen = i, birth.at
        if birth.kind == "nan" and birth.masked:
            birth.cause = _find_infinity(flow, birth.at, infs, births)
            if birth.cause is not None:
                birth.masked = False
                if birth.at in harmful:
                    consumed.add(birth.cause)
    roots = [b for b in births.values() if b.at in harmful and b.at not in consumed and not _comes_from_inputs(flow, b, infs)]
    behind = {b.at for b in roots if b.kind == "nan"}
    return [b for b in roots if b.kind == "nan" or not (behind & _descendants(flow, b.at))] or roots


def _exp_overflows(flow: Flow, i: int) -> bool:
    """Return whether an exponential overflows at a finite input, though other inputs are infinite: exp(-inf) is 0."""
    value, result, properties = argument_value(flow, i), flow.nodes[i].value, flow.properties[i]
    exponential = properties.poles and properties.saturates == "below"
    if not exponential or value is None or result is None:
        return False
    return largest_finite(value) > largest_exponent(result.dtype, flow.ops[i])


def _first_unrecorded(flow: Flow, i: int) -> int:
    """Return the first operation of the same line before a node whose value was not recorded, as inside a call; else the node."""
    while True:
        unseen = [
            e.source for e in flow.inputs[i] if flow.nodes[e.source].kind == "operation" and flow.nodes[e.source].value is None
        ]
        unseen = [s for s in unseen if flow.nodes[s].place == flow.nodes[i].place and not flow.is_reshape(s)]
        if len(unseen) != 1 or flow.properties[i].loss is not None:
            return i
        i = unseen[0]


def _comes_from_inputs(flow: Flow, birth: Birth, infs: list[bool]) -> bool:
    """Return whether a NaN comes from infinities in inputs that are not a mask: these are reported themselves."""
    if not birth.masked:
        return False
    waiting, seen = [birth.at], {birth.at}
    while waiting:
        i = waiting.pop()
        if flow.nodes[i].kind == "leaf":
            return True
        if any(is_non_finite(operand.value) and not _is_mask(flow, i, operand) for operand in flow.nodes[i].operands):
            return True
        near = {edge.source for edge in flow.inputs[i] if infs[edge.source]} - seen
        seen |= near
        waiting += near
    return False


def _descendants(flow: Flow, at: int) -> set[int]:
    """Return a node and the nodes that are computed from it."""
    seen, waiting = {at}, [at]
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            if edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return seen


def _harmful_nodes(flow: Flow, nans: list[bool], infs: list[bool]) -> set[int]:
    """Return the nodes whose NaN or infinity reaches an output or makes a cotangent non-finite."""
    harmful: set[int] = set()
    for i in reversed(range(len(flow.nodes))):
        node = flow.nodes[i]
        if not (nans[i] or infs[i]):
            continue
        harms = any(
            is_non_finite(edge.gradient) and not is_non_finite(flow.nodes[edge.target].gradient) for edge in flow.inputs[i]
        )
        for edge in flow.uses[i]:
            t = edge.target
            harms = harms or t in harmful or (flow.nodes[t].kind == "output" and is_non_finite(flow.nodes[t].value))
            harms = harms or any(is_non_finite(e.gradient) for e in flow.inputs[t] if not is_non_finite(flow.nodes[t].gradient))
        if harms and node.kind == "operation":
            harmful.add(i)
    return harmful


def _find_infinity(flow: Flow, i: int, infs: list[bool], births: dict[int, Birth]) -> int | None:
    """Return the node that computed the infinities in the inputs of a node; None if they were assigned."""
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.inputs[waiting.pop()]:
            s = edge.source
            if s in births and births[s].kind == "inf":
                return s
            if infs[s] and s not in seen:
                seen.add(s)
                waiting.append(s)
    return None


def _forward_finding(flow: Flow, birth: Birth) -> Finding:
    at = birth.at if birth.cause is None else birth.cause
    explanation = explain_value(flow, at) if not birth.masked else None
    lines: tuple[int, ...] = ()
    value = flow.nodes[at].value
    evidence: dict[str, object] = {"at": at, "nans": value.nans if value else 0, "infs": value.infs if value else 0}
    hidden = find_hidden_rows(flow, at, birth.seen) if birth.masked or (value is None and birth.kind == "nan") else None
    if hidden is not None:
        message = f"{code_at(flow, at)} gives NaN: {hidden.description}, and the softmax of a row of -inf is 0 / 0."
        fix = _finite_mask_fix(flow, at)
        evidence = {"at": at, "mask": hidden.name, "hiding": hidden.hiding, "rows": hidden.rows}
    elif birth.masked:
        message, fix = _masked_message(flow, at), _finite_mask_fix(flow, at)
    else:
        if explanation is None:
            made = value if value is not None and is_non_finite(value) else flow.nodes[birth.seen].value
            what = _count_text(made) if made is not None and is_non_finite(made) else "NaN or infinities"
            if made is not None:
                evidence |= {"nans": made.nans, "infs": made.infs, "seen": birth.seen}
            explanation = Explanation(f"{code_at(flow, at)} computed {what} from finite numbers.", "", {})
        evidence |= explanation.evidence
        message, fix = explanation.message, explanation.fix
        if birth.cause is not None:
            became = flow.nodes[birth.at].value
            many = f"{became.nans} NaN" if became is not None else "NaN"
            message += f" In {code_at(flow, birth.at)}, {_nan_cause(flow, birth.at)} gives {many}."
            line = flow.line(birth.at)
            lines = () if line is None or line == flow.line(at) else (line,)
            evidence |= {"then": birth.at, "then_nans": became.nans if became else 0}
    guard = _find_guard(flow, birth.at)
    if guard is not None:
        message += (
            f" {flow.code(guard)[:60]}{'' if flow.place(guard) == flow.place(at) else flow.place(guard)} "
            "leaves these elements out of the value, but 0 times the derivative there, which is infinite or NaN, is NaN."
        )
        fix = _safe_input_fix(flow, at, guard)
    nan = birth.kind == "nan"
    return Finding("nan-born" if nan else "inf-born", message, flow.line(at), at, fix, evidence, worth=10.0, lines=lines)


def _unrecorded_finding(flow: Flow) -> Finding:
    """Return the finding if the output is not finite and the values before it were not recorded.

    It names the first operation whose arguments show the cause, or else the output.
    """
    kind = "nan" if any(value.nans for i in flow.trace.outputs if (value := flow.nodes[i].value) is not None) else "inf"
    for i, node in enumerate(flow.nodes):
        if node.kind == "operation" and node.value is None and explain_value(flow, i) is not None:
            return _forward_finding(flow, Birth(i, kind))
    at = next(i for i in flow.trace.outputs if is_non_finite(flow.nodes[i].value))
    value, name = flow.nodes[at].value, flow.nodes[at].name
    assert value is not None
    counted = _count_text(value)
    message = (
        f"{f'`{name}`' if name else 'The result'} {f'is {counted[2:]}' if value.size == 1 else f'contains {counted}'} before "
        "backward begins. The values of the operations before it were not recorded, and the graph does not keep them."
    )
    evidence = {"at": at, "nans": value.nans, "infs": value.infs}
    return Finding(f"{kind}-born", message, flow.line(at), at, "", evidence, worth=8.0)


def _finite_mask_fix(flow: Flow, at: int) -> str:
    """Return how to mask so that a row that is masked everywhere stays finite."""
    for i in first_arguments(flow, at):
        place = flow.nodes[i].place
        tree = parse_expression(place.source) if flow.ops[i] == "MaskedFill" and place is not None else None
        if place is not None and isinstance(tree, ast.Call) and len(tree.args) >= 2:
            tree.args[-1] = ast.UnaryOp(ast.USub(), ast.Constant(1e4))
            return f"Keep a key in each row, or mask with a finite number: {instead(ast.unparse(tree), place.source)}."
    return "Keep at least one key in each row, or leave such rows out."


def _safe_input_fix(flow: Flow, at: int, guard: int) -> str:
    """Return how to protect an operation behind a `where`: by a `where` on its input, with the same condition."""
    place, own = flow.nodes[guard].place, flow.nodes[at].place
    tree = parse_expression(place.source) if place is not None else None
    code = ""
    if isinstance(tree, ast.Call) and len(tree.args) == 3 and own is not None:
        condition, first = ast.unparse(tree.args[0]), ast.unparse(tree.args[1])
        mine = parse_expression(own.source)
        inside = mine is not None and ast.unparse(mine) in first
        kept = "{x}, 1.0" if inside else "1.0, {x}"
        below = 1 if isinstance(mine, ast.BinOp) and isinstance(mine.op, ast.Div) else 0
        code = guard_argument(flow, at, lambda x: flow.case.spell(f"gradlab.where({condition}, {kept.format(x=x)})"), below)
    what = f": {code}" if code else ", as in log(where(x > 0, x, 1))"
    return f"A where around it does not prevent this: give it a safe input inside{what}."


def _masked_message(flow: Flow, at: int) -> str:
    value = flow.nodes[at].value
    if flow.ops[at] in ("Softmax", "LogSoftmax"):
        many = f"{value.nans} NaN" if value is not None else "NaN"
        return f"The softmax in {code_at(flow, at)} has a row of -inf, all of it masked: its sum is 0, and 0 / 0 gives {many}."
    many = f"{value.nans} NaN" if value is not None else "NaN"
    return f"{code_at(flow, at)} computed {many} from infinities that the program assigned."


def _nan_cause(flow: Flow, at: int) -> str:
    """Return how an operation makes NaN of an infinity."""
    properties = flow.properties[at]
    if flow.ops[at] == "Div":
        return "inf / inf"
    if properties.product or properties.multiplies or properties.drops:
        return "0 · inf"
    if properties.adds or properties.reduces in ("sum", "mean", "nansum"):
        return "inf - inf"
    return "an infinite input"


def _find_guard(flow: Flow, at: int) -> int | None:
    """Return the `where` that leaves the NaN of a node out of a finite loss; None if there is none."""
    if any(is_non_finite(flow.nodes[i].value) for i in flow.trace.outputs):
        return None
    return next((i for i in flow.path_up(at) if i != at and flow.properties[i].chooses), None)


# ------------------------------------------------------------------------------------------------------------- backward
def _backward_births(flow: Flow) -> list[int]:
    """Return the nodes that receive a finite cotangent and pass NaN or infinities, in the order of the sweep."""
    births = []
    for i in reversed(range(len(flow.nodes))):
        node = flow.nodes[i]
        if node.kind != "operation" or node.gradient is None or is_non_finite(node.gradient):
            continue
        if any(is_non_finite(edge.gradient) for edge in flow.inputs[i]):
            births.append(i)
    return births


def _is_overflow(flow: Flow, at: int) -> bool:
    """Return whether finite cotangents overflowed at a node, so that a smaller scale of the loss would prevent it."""
    explanation = explain_derivative(flow, at)
    return any(e.gradient is not None and e.gradient.infs for e in flow.inputs[at]) and (
        explanation is None or "arrived" in explanation.evidence
    )


def _backward_finding(flow: Flow, at: int) -> Finding:
    value = next(edge.gradient for edge in flow.inputs[at] if is_non_finite(edge.gradient))
    assert value is not None
    explanation = explain_derivative(flow, at)
    evidence: dict[str, object] = {"at": at, "nans": value.nans, "infs": value.infs}
    if explanation is None:
        explanation = Explanation(
            f"The backward pass of {code_at(flow, at)} computed {_count_text(value)} from finite numbers.", "", {}
        )
    evidence |= explanation.evidence
    lines: tuple[int, ...] = ()
    message, fix = explanation.message, explanation.fix
    guard = next((i for i in flow.path_up(at) if flow.properties[i].chooses), None)
    if value.nans and not value.infs:
        by = f"{flow.code(guard)[:60]} passes back 0 there, and " if guard is not None else "The gradient that arrives is 0, and "
        message += f" {by}0 · inf is NaN ({value.nans} of them)."
        if guard is not None:
            fix = _safe_input_fix(flow, at, guard)
    else:
        then = _first_nan_behind(flow, at)
        if then is not None:
            line = flow.line(then)
            lines = () if line is None or line == flow.line(at) else (line,)
            message += f" Further back, in {code_at(flow, then)}, 0 · inf is NaN."
            evidence["then"] = then
    kind = "inf-born" if value.infs else "nan-born"
    return Finding(kind, message, flow.line(at), at, fix, evidence, worth=10.0, lines=lines)


def _first_nan_behind(flow: Flow, at: int) -> int | None:
    """Return the first node that makes NaN of an infinite cotangent."""
    waiting, seen = [at], {at}
    while waiting:
        i = waiting.pop(0)
        for edge in flow.inputs[i]:
            g = edge.gradient
            if g is None or not is_non_finite(g):
                continue
            if g.nans and i != at:
                return i
            if edge.source not in seen and not (g.nans and i == at):
                seen.add(edge.source)
                waiting.append(edge.source)
    return None
