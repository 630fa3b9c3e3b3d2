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
from typing import Any

from gradlab.diagnose.history_loss import HISTORY_LOSSES
from gradlab.explore.doctor.context.case import Case, Learner, called, cell_line, listed
from gradlab.explore.doctor.context.code_edits import argument, expression, grouped, instead
from gradlab.explore.doctor.context.cuts import CutHistory, on, reaching, through_a_buffer
from gradlab.explore.doctor.context.flow import bare
from gradlab.explore.doctor.context.grad_switches import switch_of
from gradlab.explore.doctor.context.program import bound
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Line

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


declare(
    "detached",
    meaning="detach() or .data cuts off something that is meant to learn",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "item",
    meaning="a number taken out by item(), float() or tolist() enters the loss again",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "numpy",
    meaning="the way leads through NumPy",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "no_grad",
    meaning="made while nothing was recorded: no_grad, inference_mode, set_grad_enabled(False)",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "integer",
    meaning="made into integers or booleans",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "non-differentiable",
    meaning="an operation without a derivative: argmax, a comparison, indices, a draw; or of slope 0: round, sign",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "re-wrapped",
    meaning="made into a new tensor: tensor(…), Parameter(…), requires_grad_() on a copy",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("detached", "item", "numpy", "no_grad", "integer", "non-differentiable", "re-wrapped")
def find_cuts(case: Case) -> Iterable[Finding]:
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


@check("non-differentiable")
def find_zero_derivatives(case: Case) -> Iterable[Finding]:
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


# ------------------------------------------------------------------------------------------------------- which cuts reach


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
