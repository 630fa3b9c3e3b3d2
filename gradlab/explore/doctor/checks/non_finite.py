"""NaN and infinity at their birth: which operation, at which operand, and what became of it.

Forward, the birth of a NaN is a node with a NaN of which nothing that went in had one; an infinity may have gone in, and then
its birth is the cause. Backward, it is a node at which a finite cotangent arrived and that handed on none. Nothing is said
unless the loss or the gradient of a leaf is harmed: minus infinity as a mask is as it should be.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.doctor.checks.masks import hidden_rows
from gradlab.explore.doctor.checks.singular import (
    Singular,
    derivative,
    function,
    given_value,
    greatest_finite,
    guarded,
    largest_exponent,
)
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import expression, instead, replaced
from gradlab.explore.doctor.context.flow import LOSSES, SHAPES, Flow, numbers_known, plural
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Operand
from gradlab.explore.trace.values import Value

# Operations that choose or put in place: an infinity in what they make was put there.
PUTTING = frozenset(
    [
        "MaskedFill",
        "Where",
        "IndexPut",
        "CopySlices",
        "Fill",
        "ConstantPadNd",
        "Scatter",
        "MaskedScatter",
        "Copy",
        "IndexFill",
        "Clamp",
    ]
)
SHOWN = 3  # births in one sweep; one often leads to others


declare(
    "nan-born",
    meaning="the first NaN, where finite numbers, or an infinity, went in",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "inf-born",
    meaning="the first infinity, where finite numbers went in",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "nan-input",
    meaning="NaN or infinity in what the user put in",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@dataclass
class Birth:
    """Where a NaN or an infinity came into being."""

    at: int
    kind: str  # "nan" or "inf"
    cause: int | None = None  # of a NaN: where the infinity was born that made it
    masked: bool = False  # of a NaN: of minus infinities that are a mask
    seen: int = 0  # the first node at which the NaN or the infinity was seen


@check("nan-born", "inf-born", "nan-input")
def find_non_finite(case: Case) -> Iterable[Finding]:
    """What is NaN or infinite, and where it began."""
    if not numbers_known(case.trace):
        return
    flow = Flow(case)
    if not _harm(flow):
        return
    put = list(_put_in(flow))
    yield from put
    births = _forward(flow)
    said: set[tuple[object, str]] = set()
    count = 0
    for birth in births:
        at = birth.cause if birth.cause is not None else birth.at
        same = (flow.nodes[at].place or at, flow.words[at])
        if same not in said and count < SHOWN:
            said.add(same)
            count += 1
            yield _of_forward(flow, birth)
    if count or put:
        return  # what is wrong backward follows from it
    if any(odd(flow.nodes[i].value) for i in flow.trace.outputs):
        yield _unseen(flow)
        return
    for at in _backward(flow):
        same = (flow.nodes[at].place or at, flow.words[at])
        if same not in said and count < SHOWN:
            said.add(same)
            count += 1
            yield _of_backward(flow, at)


def odd(value: Value | None) -> bool:
    """Whether there is a NaN or an infinity in it."""
    return value is not None and value.odd


def _harm(flow: Flow) -> bool:
    leaves = any(odd(leaf.gradient) or odd(leaf.arrived) for leaf in flow.trace.leaves)
    return leaves or any(
        odd(node.value) if node.kind == "output" else node.kind == "leaf" and odd(node.gradient) for node in flow.nodes
    )


# ------------------------------------------------------------------------------------------------------- what was put in
def _put_in(flow: Flow) -> Iterable[Finding]:
    said: set[str] = set()
    for i, node in enumerate(flow.nodes):
        if node.kind == "leaf" and odd(node.value):
            assert node.value is not None
            stepped = any(node.name in event.names for event in flow.trace.events if event.kind in ("step", "write"))
            earlier = stepped and flow.trace.sweep > 1
            evidence = {"nans": node.value.nans, "infs": node.value.infs, "size": node.value.size, "leaf": i}
            yield Finding(
                "nan-input",
                f"`{node.name or node.label}` itself holds {_counted(node.value)} among its {node.value.size} elements "
                "when sweep "
                f"{flow.trace.sweep} begins{': an earlier step made it so' if earlier else ''}.",
                None,
                i,
                "Take a smaller learning rate, or clip the gradients." if earlier else "See what it was made of.",
                evidence,
                remark=earlier,
                worth=9.0,
            )
        for operand in node.operands:
            value = operand.value
            if value is None or not odd(value) or _is_mask(flow, i, operand):
                continue
            name = f"`{operand.text}`" if operand.text else f"What {flow.code(i)} is given"
            if name in said:
                continue
            said.add(name)
            row = f", in {flow.code(i)}{flow.place(i)}" if operand.text else flow.place(i)
            yield Finding(
                "nan-input",
                f"{name} holds {_counted(value)} among its {value.size} elements{row}, so all that is computed from it does.",
                flow.line(i),
                i,
                _filled(flow, i, operand.text),
                {"nans": value.nans, "infs": value.infs, "size": value.size, "argument": operand.argument, "at": i},
                worth=9.0,
            )


def _filled(flow: Flow, i: int, text: str) -> str:
    """What to give in place of a tensor with NaN or infinities."""
    place = flow.nodes[i].place
    filled = flow.case.spelled(f"gradlab.where({text}.isfinite(), {text}, 0.0)")
    code = instead(replaced(place.source, text, filled), place.source) if place is not None and text.isidentifier() else ""
    uses = {node.place for node in flow.nodes if any(operand.text == text for operand in node.operands)}
    code = code if len(uses) == 1 else ""
    if not code:
        return "Leave these elements out, or put numbers in their place."
    return f"Leave these elements out, or put numbers in their place: {code}."


def _counted(value: Value) -> str:
    nans = plural(value.nans, "NaN", "NaN") if value.nans else ""
    infs = plural(value.infs, "infinity", "infinities") if value.infs else ""
    return " and ".join(part for part in (nans, infs) if part)


def _is_mask(flow: Flow, i: int, operand: Operand) -> bool:
    """Whether the infinities of an operand say where not to look: it is put in, or added before a softmax or a maximum."""
    value = operand.value
    if value is None or value.nans:
        return False
    if flow.words[i] in PUTTING:
        return True
    high = max((x for x in value.numbers if x == x), default=0.0) if value.numbers is not None else None
    positive = high == math.inf if high is not None else value.statistics.infs > 0 and value.statistics.maximum > 0
    if positive or flow.words[i] not in ("Add", "Sub", "Mul"):
        return False
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            t = edge.target
            if flow.words[t] in ("Softmax", "LogSoftmax", "Logsumexp", "Max", "Amax", "Exp", "Sigmoid"):
                return True
            if t not in seen and len(seen) < 20:
                seen.add(t)
                waiting.append(t)
    return False


# -------------------------------------------------------------------------------------------------------------- forward
def _forward(flow: Flow) -> list[Birth]:
    """The births whose NaN or infinity does harm, in the order of the program."""
    nans, infs = [False] * len(flow.nodes), [False] * len(flow.nodes)
    births: dict[int, Birth] = {}
    for i, node in enumerate(flow.nodes):
        sources = [edge.source for edge in flow.given[i]]
        value = node.value
        given_nan, given_inf = any(nans[s] for s in sources), any(infs[s] for s in sources)
        operands = [operand.value for operand in node.operands if operand.value is not None]
        operand_nan, operand_inf = any(v.nans for v in operands), any(v.infs for v in operands)
        if value is None:
            nans[i], infs[i] = given_nan, given_inf
            continue
        nans[i], infs[i] = value.nans > 0, value.infs > 0
        if node.kind != "operation" or flow.words[i] in PUTTING:
            continue
        if nans[i] and not (given_nan or operand_nan):
            births[i] = Birth(i, "nan", masked=given_inf or operand_inf)
        elif infs[i] and not (given_nan or operand_nan) and (not (given_inf or operand_inf) or _overflows_beside(flow, i)):
            births[i] = Birth(i, "inf")
    births = {_unknown_behind(flow, i): birth for i, birth in births.items()}
    for i, birth in births.items():
        nans[i], infs[i] = nans[i] or birth.kind == "nan", infs[i] or birth.kind == "inf"
    harmful = _harmful(flow, nans, infs)
    consumed = set()
    for i, birth in births.items():
        birth.at, birth.seen = i, birth.at
        if birth.kind == "nan" and birth.masked:
            birth.cause = _origin(flow, birth.at, infs, births)
            if birth.cause is not None:
                birth.masked = False
                if birth.at in harmful:
                    consumed.add(birth.cause)
    roots = [b for b in births.values() if b.at in harmful and b.at not in consumed and not _was_put_in(flow, b, infs)]
    behind = {b.at for b in roots if b.kind == "nan"}
    return [b for b in roots if b.kind == "nan" or not (behind & _after(flow, b.at))] or roots


def _overflows_beside(flow: Flow, i: int) -> bool:
    """Whether an exponential overflows at finite numbers, whatever infinities it is given besides: exp(-inf) is 0."""
    value, result = given_value(flow, i), flow.nodes[i].value
    if flow.words[i] not in ("Exp", "Exp2", "Expm1") or value is None or result is None:
        return False
    return greatest_finite(value) > largest_exponent(result.dtype)


def _unknown_behind(flow: Flow, i: int) -> int:
    """The first of the operations before a node whose values nobody saw, as those inside of one call; else the node."""
    while True:
        unseen = [
            e.source for e in flow.given[i] if flow.nodes[e.source].kind == "operation" and flow.nodes[e.source].value is None
        ]
        unseen = [s for s in unseen if flow.nodes[s].place == flow.nodes[i].place and flow.words[s] not in SHAPES]
        if len(unseen) != 1 or flow.words[i] in LOSSES:
            return i
        i = unseen[0]


def _was_put_in(flow: Flow, birth: Birth, infs: list[bool]) -> bool:
    """Whether a NaN was made of infinities that were put in and are no mask: then these are told of."""
    if not birth.masked:
        return False
    waiting, seen = [birth.at], {birth.at}
    while waiting:
        i = waiting.pop()
        if flow.nodes[i].kind == "leaf":
            return True
        if any(odd(operand.value) and not _is_mask(flow, i, operand) for operand in flow.nodes[i].operands):
            return True
        near = {edge.source for edge in flow.given[i] if infs[edge.source]} - seen
        seen |= near
        waiting += near
    return False


def _after(flow: Flow, at: int) -> set[int]:
    """The nodes behind a node."""
    seen, waiting = {at}, [at]
    while waiting:
        for edge in flow.uses[waiting.pop()]:
            if edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return seen


def _harmful(flow: Flow, nans: list[bool], infs: list[bool]) -> set[int]:
    """The nodes whose NaN or infinity comes to an output, or makes a cotangent NaN."""
    harmful: set[int] = set()
    for i in reversed(range(len(flow.nodes))):
        node = flow.nodes[i]
        if not (nans[i] or infs[i]):
            continue
        spoilt = any(odd(edge.gradient) and not odd(flow.nodes[edge.target].gradient) for edge in flow.given[i])
        for edge in flow.uses[i]:
            t = edge.target
            spoilt = spoilt or t in harmful or (flow.nodes[t].kind == "output" and odd(flow.nodes[t].value))
            spoilt = spoilt or any(odd(e.gradient) for e in flow.given[t] if not odd(flow.nodes[t].gradient))
        if spoilt and node.kind == "operation":
            harmful.add(i)
    return harmful


def _origin(flow: Flow, i: int, infs: list[bool], births: dict[int, Birth]) -> int | None:
    """Where the infinities began that a node was given; None where they were put in."""
    waiting, seen = [i], {i}
    while waiting:
        for edge in flow.given[waiting.pop()]:
            s = edge.source
            if s in births and births[s].kind == "inf":
                return s
            if infs[s] and s not in seen:
                seen.add(s)
                waiting.append(s)
    return None


def _of_forward(flow: Flow, birth: Birth) -> Finding:
    at = birth.at if birth.cause is None else birth.cause
    said = function(flow, at) if not birth.masked else None
    lines: tuple[int, ...] = ()
    value = flow.nodes[at].value
    evidence: dict[str, object] = {"at": at, "nans": value.nans if value else 0, "infs": value.infs if value else 0}
    hidden = hidden_rows(flow, at, birth.seen) if birth.masked or (value is None and birth.kind == "nan") else None
    if hidden is not None:
        message = f"{flow.code(at)}{flow.place(at)} gives NaN: {hidden.said}, and the softmax of a row of -inf is 0 / 0."
        fix = _of_finite_mask(flow, at)
        evidence = {"at": at, "mask": hidden.name, "hiding": hidden.hiding, "rows": hidden.rows}
    elif birth.masked:
        message, fix = _of_masked(flow, at), _of_finite_mask(flow, at)
    else:
        if said is None:
            made = value if value is not None and odd(value) else flow.nodes[birth.seen].value
            what = _counted(made) if made is not None and odd(made) else "NaN or infinities"
            if made is not None:
                evidence |= {"nans": made.nans, "infs": made.infs, "seen": birth.seen}
            said = Singular(f"{flow.code(at)}{flow.place(at)} made {what} of finite numbers.", "", {})
        evidence |= said.evidence
        message, fix = said.message, said.fix
        if birth.cause is not None:
            became = flow.nodes[birth.at].value
            many = became.nans if became is not None else 0
            message += f" In {flow.code(birth.at)}{flow.place(birth.at)} {_meeting(flow, birth.at)}: {many} NaN."
            line = flow.line(birth.at)
            lines = () if line is None or line == flow.line(at) else (line,)
            evidence |= {"then": birth.at, "then_nans": became.nans if became else 0}
    guard = _guard(flow, birth.at)
    if guard is not None:
        message += (
            f" {flow.code(guard)[:60]}{'' if flow.place(guard) == flow.place(at) else flow.place(guard)} leaves these "
            "out of the value, "
            "but backward they are multiplied by 0, and 0 · inf is NaN."
        )
        fix = _safe_inside(flow, at, guard)
    nan = birth.kind == "nan"
    return Finding("nan-born" if nan else "inf-born", message, flow.line(at), at, fix, evidence, worth=10.0, lines=lines)


def _unseen(flow: Flow) -> Finding:
    """What is told where the output is not finite, and nobody saw what the operations before it made: the first whose arguments
    tell why, or that it was so before backward began."""
    kind = "nan" if any(value.nans for i in flow.trace.outputs if (value := flow.nodes[i].value) is not None) else "inf"
    for i, node in enumerate(flow.nodes):
        if node.kind == "operation" and node.value is None and function(flow, i) is not None:
            return _of_forward(flow, Birth(i, kind))
    at = next(i for i in flow.trace.outputs if odd(flow.nodes[i].value))
    value, name = flow.nodes[at].value, flow.nodes[at].name
    assert value is not None
    counted = _counted(value)
    message = (
        f"{f'`{name}`' if name else 'The result'} {f'is {counted[2:]}' if value.size == 1 else f'holds {counted}'} before "
        "backward begins. What the operations on the way made was not recorded, and is not kept by the graph."
    )
    evidence = {"at": at, "nans": value.nans, "infs": value.infs}
    return Finding(f"{kind}-born", message, flow.line(at), at, "", evidence, worth=8.0)


def _of_finite_mask(flow: Flow, at: int) -> str:
    """How to mask so that a row of nothing stays finite."""
    for i in _before(flow, at):
        place = flow.nodes[i].place
        tree = expression(place.source) if flow.words[i] == "MaskedFill" and place is not None else None
        if place is not None and isinstance(tree, ast.Call) and len(tree.args) >= 2:
            tree.args[-1] = ast.UnaryOp(ast.USub(), ast.Constant(1e4))
            return f"Leave a key in each row, or mask with a finite number: {instead(ast.unparse(tree), place.source)}."
    return "Leave at least one key in each row, or leave such rows out."


def _before(flow: Flow, at: int) -> list[int]:
    """What a node is computed from by its first arguments."""
    earlier: list[int] = []
    while flow.given[at] and len(earlier) < 10:
        at = flow.given[at][0].source
        earlier.append(at)
    return earlier


def _safe_inside(flow: Flow, at: int, guard: int) -> str:
    """How to protect an operation behind a `where`: by a `where` before it, on the same condition."""
    place, own = flow.nodes[guard].place, flow.nodes[at].place
    tree = expression(place.source) if place is not None else None
    code = ""
    if isinstance(tree, ast.Call) and len(tree.args) == 3 and own is not None:
        condition, first = ast.unparse(tree.args[0]), ast.unparse(tree.args[1])
        mine = expression(own.source)
        inside = mine is not None and ast.unparse(mine) in first
        kept = "{x}, 1.0" if inside else "1.0, {x}"
        below = 1 if isinstance(mine, ast.BinOp) and isinstance(mine.op, ast.Div) else 0
        code = guarded(flow, at, lambda x: flow.case.spelled(f"gradlab.where({condition}, {kept.format(x=x)})"), below)
    what = f": {code}" if code else ", as in log(where(x > 0, x, 1))"
    return f"A where around it does not protect: give it a safe input inside{what}."


def _of_masked(flow: Flow, at: int) -> str:
    value = flow.nodes[at].value
    if flow.words[at] in ("Softmax", "LogSoftmax"):
        return (
            f"The softmax in {flow.code(at)}{flow.place(at)} has a row that is -inf everywhere, all of it masked: its "
            f"sum is 0, and 0 / 0 made {value.nans if value else 'its'} NaN."
        )
    many = value.nans if value is not None else 0
    return f"{flow.code(at)}{flow.place(at)} was given infinities that were put in, and made {many} NaN of them."


def _meeting(flow: Flow, at: int) -> str:
    """What became NaN when an infinity came."""
    word = flow.words[at]
    if word in ("Mul", "Mm", "Addmm", "Mv", "Bmm", "Dot"):
        return "0 · inf is NaN"
    if word == "Div":
        return "inf / inf is NaN"
    if word in ("Sub", "Add", "Sum", "Mean", "Rsub"):
        return "inf - inf is NaN"
    return "it becomes NaN"


def _guard(flow: Flow, at: int) -> int | None:
    """The `where` that leaves a node's NaN out of the value: no harm is done to the loss."""
    if any(odd(flow.nodes[i].value) for i in flow.trace.outputs):
        return None
    for i in flow.way_up(at):
        if i != at and flow.words[i] in ("Where", "MaskedFill"):
            return i
    return None


# ------------------------------------------------------------------------------------------------------------- backward
def _backward(flow: Flow) -> list[int]:
    """The nodes at which a finite cotangent arrived, and that handed on NaN or infinity; the first in the sweep first."""
    births = []
    for i in reversed(range(len(flow.nodes))):
        node = flow.nodes[i]
        if node.kind != "operation" or node.gradient is None or odd(node.gradient):
            continue
        if any(odd(edge.gradient) for edge in flow.given[i]):
            births.append(i)
    return births


def _of_backward(flow: Flow, at: int) -> Finding:
    handed = [edge.gradient for edge in flow.given[at] if odd(edge.gradient)]
    value = handed[0]
    assert value is not None
    said = derivative(flow, at)
    evidence: dict[str, object] = {"at": at, "nans": value.nans, "infs": value.infs}
    if said is None:
        said = Singular(
            f"Backward through {flow.code(at)}{flow.place(at)} {_counted(value)} "
            f"{'was' if value.nans + value.infs == 1 else 'were'} made "
            "of finite numbers.",
            "",
            {},
        )
    evidence |= said.evidence
    lines: tuple[int, ...] = ()
    message, fix = said.message, said.fix
    guard = next((i for i in flow.way_up(at) if flow.words[i] in ("Where", "MaskedFill")), None)
    if value.nans and not value.infs:
        by = f"{flow.code(guard)[:60]} passes back 0 there, and " if guard is not None else "What arrives there is 0, and "
        message += f" {by}0 · inf is NaN ({value.nans} of them)."
        if guard is not None:
            fix = _safe_inside(flow, at, guard)
    else:
        then = _then_nan(flow, at)
        if then is not None:
            line = flow.line(then)
            lines = () if line is None or line == flow.line(at) else (line,)
            message += f" Further back, in {flow.code(then)}{flow.place(then)}, 0 · inf is NaN."
            evidence["then"] = then
    kind = "inf-born" if value.infs else "nan-born"
    return Finding(kind, message, flow.line(at), at, fix, evidence, worth=10.0, lines=lines)


def _then_nan(flow: Flow, at: int) -> int | None:
    """The node that made NaN of an infinite cotangent."""
    waiting, seen = [at], {at}
    while waiting:
        i = waiting.pop(0)
        for edge in flow.given[i]:
            g = edge.gradient
            if g is None or not odd(g):
                continue
            if g.nans and i != at:
                return i
            if edge.source not in seen and not (g.nans and i == at):
                seen.add(edge.source)
                waiting.append(edge.source)
    return None
