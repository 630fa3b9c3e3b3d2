"""History that is cut: by detach, `.data`, a grad mode, numbers, NumPy, integers, operations without a derivative, new tensors.

A cut is a fault if what was made of it leads on to what is differentiated and something that is meant to learn has no other
way there. If it has another way the cut is how programs are: a target, an advantage, the output of a teacher, a coefficient, a
code that is passed straight through. A Note is left of a term of the loss that was cut off, which moves nothing, and of a
derivative without create_graph.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlab.diagnose.history_loss import HISTORY_LOSSES
from gradlab.diagnose.history_loss import LOSS_FAMILIES as WAYS_OF
from gradlab.explore.doctor.advice import argument, expression, grouped, instead
from gradlab.explore.doctor.case import Case, Learner, called, cell_line, listed
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.flow import bare
from gradlab.explore.doctor.program import bound
from gradlab.explore.doctor.switches import switch_of
from gradlab.explore.trace.data import Cut, Line
from gradlab.explore.trace.values import Value

WRITTEN = ("detached", "item", "no_grad")  # cuts that somebody wrote down
TERMS = frozenset(("Add", "Sub", "Rsub", "Neg", "Sum", "Mean", "View", "Reshape", "Squeeze", "ToCopy"))  # lead on to a loss
# Operations whose derivative is 0 wherever there is one, by the name of their node.
FLAT = frozenset(("Round", "Sign", "Floor", "Ceil", "Trunc", "Sgn", "Bernoulli", "Normal", "Poisson", "Heaviside", "FloorDivide"))
# Operations that compare an output with a target: what reaches only their second argument is a target.
LOSSES = frozenset(
    (
        "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KlDiv", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits",
        "CrossEntropyLoss", "NllLoss", "SoftMarginLoss", "CosineEmbeddingLoss", "Sub", "CosineSimilarity",
    )
)  # fmt: skip

LOSS_CALL = re.compile(r"(cross_entropy|kl_div|_loss|criterion|Loss\(.*\))\(", re.IGNORECASE)  # what people call them


@dataclass
class CutHistory:
    """The cuts of one line and way, of which something reached what is differentiated."""

    how: str
    kind: str
    place: Line | None
    cut: Cut
    reaches: dict[int, None] = field(default_factory=dict)
    keys: dict[int, None] = field(default_factory=dict)
    again: Line | None = None  # where the numbers came back as a tensor
    number: float | None = None  # that came back
    final: bool = False  # it is the very thing that was to be differentiated

    @property
    def nodes(self) -> list[int]:
        """The nodes of the graph that it reached."""
        return list(self.reaches)


def cuts(case: Case) -> Iterable[Finding]:
    """Findings on cuts."""
    trace = case.trace
    if trace is None:
        return
    reached = case.reached | _stepped_unseen(case)
    for torn in [*reaching(case), *through_a_buffer(case)]:
        behind = case.known(torn.keys)
        blocked = [one for one in behind if one.key not in reached]
        meant = [one for one in blocked if case.is_meant(one)]
        if (torn.final and (meant or not behind or not case.optimizers)) or (meant and not _is_target(case, torn, meant)):
            yield _alarm(case, torn, meant or blocked)
        elif torn.kind in WRITTEN and not torn.cut.old and any(map(case.is_meant, behind)):
            if _is_constant_term(case, torn):
                yield _note(case, torn, behind, "It is added to the loss as a constant: this term does not move")
            elif torn.how == "grad()":  # nobody wrote that down: it is how autograd.grad is without create_graph
                yield _note(case, torn, behind, "Through this derivative no gradient goes to")


def _stepped_unseen(case: Case) -> frozenset[int]:
    """What optimizers found with a gradient, where some sweeps were not looked at: one of these may have brought it."""
    assert case.trace is not None
    if case.trace.sweeps <= len(case.trace.journal):
        return frozenset()
    return frozenset(key for event in case.steps for key in event.keys)


def _is_constant_term(case: Case, torn: CutHistory) -> bool:
    """Whether what was cut off is but added to the loss: it has no gradient there, and changes none of others."""
    trace = case.trace
    assert trace is not None
    if torn.final or not torn.nodes:
        return False
    seen: set[int] = set()
    for at in torn.nodes:
        if bare(trace.nodes[at].operation).rstrip("0123456789") not in ("Add", "Sub", "Rsub"):
            return False
        waiting = [at]
        while waiting:
            i = waiting.pop()
            if i in seen:
                continue
            seen.add(i)
            node, given = trace.nodes[i], case.inputs[i]
            word = bare(node.operation).rstrip("0123456789")
            scaled = word in ("Mul", "Div") and len(given) == 1
            if math.prod(node.shape or ()) != 1 or not (node.kind == "output" or scaled or word in TERMS):
                return False
            waiting += case.uses[i]
    return True


def flat(case: Case) -> Iterable[Finding]:
    """Findings on operations that pass no gradient on though they have a node: their derivative is 0."""
    trace = case.trace
    if trace is None or not trace.nodes:
        return
    stops = {i for i, node in enumerate(trace.nodes) if bare(node.operation) in FLAT}
    if not stops:
        return
    alive, waiting = set(trace.outputs), list(trace.outputs)
    while waiting:
        for source in case.inputs[waiting.pop()]:
            if source not in alive and source not in stops:
                alive.add(source)
                waiting.append(source)
    dead = [leaf for leaf in trace.leaves if leaf.node is not None and leaf.node not in alive]
    dead = [leaf for leaf in dead if leaf.arrived is not None and leaf.arrived.all_zero]
    for stop in sorted(stops):
        above = _behind(case, stop)
        node = trace.nodes[stop]
        keys = [leaf.key for leaf in dead if leaf.node in above]
        behind = [one for one in case.known(keys) if case.is_meant(one)]
        if not behind and bare(node.operation) == "Normal" and node.gradient is not None and not node.gradient.all_zero:
            yield _drawn(case, stop)
        if not behind or not any(target in alive for target in case.uses[stop]):
            continue
        what = f"`{node.place.source}`" if node.place is not None and node.place.source else f"`{node.label}`"
        name = bare(node.operation).lower()
        yield Finding(
            "non-differentiable",
            f"{what}{on(node.place)} has slope 0 wherever it has one ({name}), so the gradient of {called(behind)} is exactly 0.",
            case.line(node),
            stop,
            case.spelled(_instead(name, node.place)),
            {"zeros": sum(leaf.arrived.zeros for leaf in dead if leaf.arrived is not None), "count": len(behind)},
            worth=8.0,
        )


def _drawn(case: Case, at: int) -> Finding:
    """A Note on a normal draw whose parameters learn in another way: by a score, or not as was thought."""
    assert case.trace is not None
    node = case.trace.nodes[at]
    what = f"`{node.place.source}`" if node.place is not None and node.place.source else f"`{node.label}`"
    return Finding(
        "non-differentiable",
        f"{what}{on(node.place)} is a draw, and passes exactly 0 of what arrives there on to its mean and deviation: they learn "
        "by other terms alone.",
        case.line(node),
        at,
        case.spelled(_instead("normal", node.place)),
        remark=True,
        worth=0.5,
    )


def on(place: Line | None) -> str:
    """ " on line 3", or where else it is."""
    return "" if place is None else f" on line {place.line}" if place.in_cell else f" at {place.where}"


def kind_of(how: str) -> str:
    """The kind of a way to lose the history."""
    last = how.rpartition(", then ")[2].removesuffix("_")
    return WAYS_OF.get(last, "non-differentiable")


# ------------------------------------------------------------------------------------------------------- which cuts reach
def reaching(case: Case) -> list[CutHistory]:
    """The cuts of which something reached what is differentiated, by line and way, in the order of the program."""
    trace = case.trace
    assert trace is not None
    by_site: dict[tuple[object, ...], CutHistory] = {}
    final = set(trace.losses)

    def add(at: int, nodes: Sequence[int], **more: object) -> None:
        cut = trace.cuts[at]
        key = (cut.how, cut.place, more.get("again"))
        torn = by_site.setdefault(key, CutHistory(cut.how, kind_of(cut.how), cut.place, cut))
        torn.reaches.update((node, None) for node in nodes if node >= 0)
        torn.keys.update((leaf, None) for leaf in cut.keys)
        torn.final |= at in final
        for name, value in more.items():
            setattr(torn, name, value)

    for at, cut in enumerate(trace.cuts):
        if cut.how == "born" and (cut.reaches or at in final):
            for source in _sources(case, at):
                here = trace.cuts[source].place == cut.place  # the numbers never stood by themselves: tensor([a, b])
                kind = "re-wrapped" if here and cut.place is not None else kind_of(trace.cuts[source].how)
                add(source, cut.reaches, again=cut.place, number=_single(trace.cuts[source].value), kind=kind)
                if at in final:
                    next(reversed(by_site.values())).final = True
        elif cut.how != "born" and (cut.reaches or at in final):
            add(at, cut.reaches)
    for at, node, number in _constants(case):
        add(at, [node], number=number, again=trace.nodes[node].place)
    return _first_cause(list(by_site.values()))


def through_a_buffer(case: Case) -> list[CutHistory]:
    """The numbers that left tensors and were written into what was to be differentiated, where that has no history at all and no
    cut of its own: `preds[i] = model(x[i]).item()`."""
    trace = case.trace
    if trace is None or trace.nodes or trace.losses or not case.root:
        return []
    assignment = next(iter(reversed(case.program.assigned(case.root))), None)
    sink = trace.asked if assignment is None else None
    for cut in reversed(trace.cuts):
        if kind_of(cut.how) not in ("item", "numpy") or not cut.keys:
            continue
        if case.program.flows(cut.place, sink) or (assignment is not None and case.program.leads(cut.place, assignment)):
            keys = dict.fromkeys(key for other in trace.cuts if other.place == cut.place for key in other.keys)
            return [CutHistory(cut.how, kind_of(cut.how), cut.place, cut, keys=keys, final=True)]
    return []


def _first_cause(torn: list[CutHistory]) -> list[CutHistory]:
    """Where the numbers of one source left after they had been cut off, the leaving is said and not the detach before it."""
    mine = [one for one in torn if not one.cut.aside]  # of topk's results the values have gone on, to a cut that is told of
    torn = [one for one in torn if not one.cut.aside or not any(set(one.keys) <= set(other.keys) for other in mine)]
    left = [one for one in torn if one.kind in ("numpy", "item")]
    return [
        one
        for one in torn
        if one in left or not any(other.place is not None and one.place is not None and _same(one, other) for other in left)
    ]


def _same(one: CutHistory, other: CutHistory) -> bool:
    a, b = one.place, other.place
    assert a is not None
    assert b is not None
    return (a.where, a.line, a.function) == (b.where, b.line, b.function) and set(one.keys) <= set(other.keys)


def _sources(case: Case, born: int) -> list[int]:
    """Where the numbers of a tensor that was made of numbers came from: what left before it, and is among its elements, or went
    its way by the names of the program."""
    trace = case.trace
    assert trace is not None
    origin = trace.cuts[born]
    ends = [i for i, cut in enumerate(trace.cuts) if i != born and kind_of(cut.how) in ("item", "numpy") and cut.how != "born"]
    equal = [i for i in ends if _among(trace.cuts[i].value, origin.value)]
    flowing = [i for i in ends if case.program.flows(trace.cuts[i].place, origin.place)]
    straight = {numbers for i in flowing if i in equal and (numbers := _numbers(trace.cuts[i].value))}
    # A number may have left at several places, to be printed at one and to go on at another.
    return [i for i in equal if i in flowing or _numbers(trace.cuts[i].value) not in straight] or flowing


def _numbers(value: Value | None) -> tuple[object, ...]:
    return () if value is None or value.numbers is None else tuple(value.numbers)


def _constants(case: Case) -> list[tuple[int, int, float]]:
    """The numbers that left a tensor and came back as an operand: (cut, node, number)."""
    trace = case.trace
    assert trace is not None
    left, written = {}, {}
    for i, cut in enumerate(trace.cuts):
        number = _single(cut.value)
        if number is not None and kind_of(cut.how) == "item" and cut.keys:
            left[number] = i
            if cut.place is not None and cut.place.source:
                written[cut.place.where, cut.place.line, cut.place.source] = i
    if not left:
        return []
    constants = []
    for at, node in enumerate(trace.nodes):
        for operand in node.operands:
            number = _single(operand.value) if operand.kind == "constant" else None
            if number is None or not telling(number):
                continue
            place = node.place
            within = [  # Python has reckoned with it on the way: `0.5 * loss.item()`
                i
                for (where, line, source), i in written.items()
                if place is not None and (where, line) == (place.where, place.line) and source in place.source
            ]
            if number in left or within:
                constants.append((left[number] if number in left else within[-1], at, number))
    return constants


def telling(number: float) -> bool:
    """Whether a number is its own mark: not one that programs are full of, such as 2, 0.1 or 1e-8."""
    if not math.isfinite(number):
        return False
    return len(f"{abs(number):.17g}".replace(".", "").lstrip("0").partition("e")[0].rstrip("0")) > 6


def _single(value: Value | None) -> float | None:
    if value is None or value.numbers is None or len(value.numbers) != 1 or isinstance(value.numbers[0], complex):
        return None
    return float(value.numbers[0])


def _among(left: Value | None, right: Value | None) -> bool:
    """Whether the numbers that left are among those of which a tensor was made."""
    if left is None or right is None or not left.numbers or not right.numbers:
        return False
    known = {float(number) for number in right.numbers if not isinstance(number, complex)}
    own = [float(number) for number in left.numbers if not isinstance(number, complex)]
    return all(number in known for number in own) and any(telling(number) for number in own)


def _is_target(case: Case, torn: CutHistory, meant: Sequence[Learner]) -> bool:
    """Whether it looks like the output of a teacher: where nobody says what learns, something cut by detach or no_grad that
    reaches a loss as what another model's output is compared with."""
    trace = case.trace
    assert trace is not None
    if torn.kind not in ("detached", "no_grad") or case.optimizers or not torn.nodes:
        return False
    own = {one.model for one in meant}
    others = {one.model for one in case.known(case.reached)}
    if "" in own or not others or own & others:
        return False
    return all(_compares(case, node) for node in torn.nodes)


def _compares(case: Case, node: int) -> bool:
    """Whether an operation compares what it is given with a target, as a loss does, or a product with logarithms."""
    trace = case.trace
    assert trace is not None
    name, place = bare(trace.nodes[node].operation), trace.nodes[node].place
    if place is not None and LOSS_CALL.search(place.source):
        return True
    above = {bare(trace.nodes[source].operation) for source in case.inputs[node]}
    return name in LOSSES or (name == "Mul" and bool(above & {"LogSoftmax", "Log"}))


def _behind(case: Case, node: int) -> set[int]:
    behind, waiting = {node}, [node]
    while waiting:
        for source in case.inputs[waiting.pop()]:
            if source not in behind:
                behind.add(source)
                waiting.append(source)
    return behind


# ------------------------------------------------------------------------------------------------------------------ words
def _alarm(case: Case, torn: CutHistory, learners: Sequence[Learner]) -> Finding:
    why, fix = words(case, torn)
    switch = switch_of(case, (torn.place, torn.cut.cell)) if torn.kind == "no_grad" and torn.cut.within is None else None
    if switch is not None:
        why = why.partition(" while ")[0].partition(" in inference_mode")[0] + f" under `{switch[0].text}` {switch[1]}"
    names = called(learners) if learners else ""
    if not names and torn.cut.leaves:
        names = listed(list(torn.cut.leaves))
    cause = f"`{torn.place.source}`{on(torn.place)}{_inside(torn)}: " if torn.place is not None and torn.place.source else ""
    back = ""
    if torn.again is not None and torn.again != torn.place:
        back = f" It enters again{on(torn.again)}, in `{torn.again.source}`." if torn.again.source else ""
    if torn.final:
        effect = " So what is to be differentiated has no history" + (f", and nothing leads back to {names}." if names else ".")
    else:
        effect = (
            f" Nothing else leads from {names} to the result, so {'its' if len(learners) == 1 else 'their'} gradient is None."
        )
    evidence: dict[str, object] = {"leaves": [one.name for one in learners] or list(torn.cut.leaves)}
    if len(learners) > 3:
        evidence["parameters"] = len(learners)
    if torn.number is not None:
        evidence["number"] = torn.number
    line = cell_line(torn.place) or cell_line(torn.cut.cell) or cell_line(torn.again) or _called_from(case, torn)
    further = [cell_line(torn.again), _called_from(case, torn)]
    if switch is not None and switch[1].startswith("on line"):
        own = switch[0].line
        line, further = (own, [line, *further]) if switch[0].how != "block" else (line, [own, *further])
    return Finding(
        torn.kind,
        f"{cause}{why}.{back}{effect}",
        line,
        torn.nodes[0] if torn.nodes else None,
        switch[0].removed(switch[1]) if switch is not None else _mended(case, torn, fix),
        evidence,
        worth=9.0 if torn.final else 8.0,
        lines=tuple(one for one in further if one is not None),
    )


def _inside(torn: CutHistory) -> str:
    """ " (there `self.fc(x)` at modeling.py line 12)", of what an installed package does for the user's line."""
    within = torn.cut.within
    return "" if within is None else f" (there `{within.source}`{on(within)})" if within.source else f" (there{on(within)})"


def _mended(case: Case, torn: CutHistory, fix: str) -> str:
    """What to write, where it is clear: what was cut off, without the cut."""
    source = torn.place.source if torn.place is not None else ""
    if torn.cut.within is not None and (torn.kind != "no_grad" or torn.cut.by_them):
        return f"Call what keeps the history, in place of `{source}`: it is cut inside of that." if source else ""
    last = torn.how.rpartition(", then ")[2].removesuffix("_")
    if last == "cast" and _is_index(case, torn):
        return "An index has no gradient: take a mean of its neighbours by their distance, or a softmax over all places."
    if last not in ("detach", "data", "cast", "tensor()", "Parameter()"):
        return sentence(fix)
    own = argument(source)
    if last == "tensor()" and _is_list(case, torn, own):
        own = case.spelled(f"gradlab.stack({own})") if _resolved(case, own) or own.startswith("[") else ""
    code = " and ".join([instead(own, source), *_beside(case, torn)]) if own else ""
    changes = " This changes the loss: the numbers are no longer rounded." if last == "cast" and _rounds(torn) else ""
    return f"{sentence(fix)[:-1]}: {code}.{changes}" if code else sentence(fix)


def _beside(case: Case, torn: CutHistory) -> list[str]:
    """The same of what else is cut off in the same way in the same statement: `p.data - rate * g.data`."""
    assert case.trace is not None
    codes = []
    if torn.kind == "detached" and torn.place is not None:
        places = dict.fromkeys(cut.place for cut in case.trace.cuts if cut.how == torn.how and cut.reaches)
        for place in places:
            alike = place is not None and (place.where, place.statement) == (torn.place.where, torn.place.statement)
            if place is not None and alike and place.source != torn.place.source and argument(place.source):
                codes.append(instead(argument(place.source), place.source))
    return list(dict.fromkeys(codes))


def _is_list(case: Case, torn: CutHistory, text: str) -> bool:
    """Whether what `tensor(…)` was given is a list of tensors, and no tensor, as far as that can be told."""
    value = _resolved(case, text)
    if value is not None:
        return type(value) in (list, tuple)
    assert case.trace is not None
    tree = expression(text)
    several = sum(cut.place == torn.place and cut.how == torn.how for cut in case.trace.cuts) > 1
    return isinstance(tree, (ast.List, ast.Tuple, ast.ListComp)) or (several and isinstance(tree, (ast.Name, ast.Attribute)))


def _resolved(case: Case, text: str) -> Any:
    """Return the value of a plain name of the namespace; None for any other expression."""
    return case.namespace.get(text) if text.isidentifier() else None


def _rounds(torn: CutHistory) -> bool:
    """Whether a cast to integers changed a number, or may have."""
    value = torn.cut.value
    if value is None or value.numbers is None or not value.dtype.startswith(("float", "bfloat")):
        return True
    return any(isinstance(number, complex) or number != int(number) for number in value.numbers)


def _is_index(case: Case, torn: CutHistory) -> bool:
    """Whether a cast's result picks elements: in brackets, or given to an embedding."""
    at = case.program.at(torn.place.line) if torn.place is not None and torn.place.in_cell else None
    names = bound(at) if at is not None else set()
    return any(
        isinstance(node, ast.Subscript) and names & {n.id for n in ast.walk(node.slice) if isinstance(n, ast.Name)}
        for node in ast.walk(case.program.tree)
    )


def _note(case: Case, torn: CutHistory, behind: Sequence[Learner], effect: str) -> Finding:
    why, fix = words(case, torn)
    evidence: dict[str, object] = {"leaves": [one.name for one in behind]}
    if len(behind) > 3:
        evidence["parameters"] = len(behind)
    return Finding(
        torn.kind,
        f"`{torn.place.source if torn.place is not None else torn.cut.label}`{on(torn.place)}{_inside(torn)}: {why}. "
        f"{effect} {called(behind)}.",
        cell_line(torn.place),
        torn.nodes[0] if torn.nodes else None,
        _mended(case, torn, fix),
        remark=True,
        evidence=evidence,
        worth=2.0,
    )


def words(case: Case, torn: CutHistory) -> tuple[str, str]:
    """Why, and what to do, in the words of the errors."""
    last = torn.how.rpartition(", then ")[2].removesuffix("_")
    why, fix = HISTORY_LOSSES.get(last, HISTORY_LOSSES["no derivative"])
    what = f"`{_operand(torn)}`"
    at = f"{on(torn.place)}" if torn.place is not None else ""
    return case.spelled(why.format(what=what, how=last)), case.spelled(fix.format(at=at))


def _operand(torn: CutHistory) -> str:
    """What was cut off, as the user wrote it: the leaf's name, else what the operation was given, else the operation."""
    source = torn.place.source if torn.place is not None else ""
    if torn.cut.operation == "AccumulateGrad":
        return torn.cut.label
    tree = expression(source)
    if isinstance(tree, ast.Compare):
        sides = [tree.left, *tree.comparators]
        return ast.unparse(next((side for side in sides if not isinstance(side, ast.Constant)), tree.left))
    return argument(source) or source or torn.cut.label


def _called_from(case: Case, torn: CutHistory) -> int | None:
    """The line of the cell at which what was cut came into the graph."""
    trace = case.trace
    assert trace is not None
    for node in torn.nodes:
        if node < len(trace.nodes) and (line := case.line(trace.nodes[node])) is not None:
            return line
    return cell_line(trace.asked)


def _instead(name: str, place: Line | None) -> str:
    """What people use in place of an operation of slope 0."""
    source = place.source if place is not None else ""
    tree, own = expression(source), grouped(argument(source))
    through = instead(f"({own} + ({source} - {own}).detach())", source) if argument(source) else ""
    if name == "normal" and isinstance(tree, ast.Call) and len(tree.args) == 2 and not tree.keywords:
        mu, sigma = (ast.unparse(arg) for arg in tree.args)
        code = instead(f"({mu} + {grouped(sigma)} * gradlab.randn_like({mu}))", source)
        return f"Draw by a formula that the parameters enter: {code}."
    if name in ("bernoulli", "normal", "poisson"):
        hard = f", or pass the gradient straight through: {through}" if through else ""
        return f"Draw by a formula that the parameters enter (relaxed, as Gumbel's), or take the probabilities themselves{hard}."
    smooth = "tanh" if name in ("sign", "sgn", "heaviside") else "the number itself"
    hard = f", or pass the gradient straight through: {through}" if through else ""
    return f"Use what is smooth ({smooth}){hard}."
