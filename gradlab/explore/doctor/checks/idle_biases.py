"""Biases without effect: what comes after them takes out whatever is added to all rows, or to all entries of a row.

At an optimum the gradients of a bias add up to zero, too, though it has an effect. So they must be next to nothing beside those
of other leaves, in each sweep that was seen, and the operation that takes it out must be there. A Note is worth reading where the
bias can be left out: not of the keys of an attention, whose layers have biases by habit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gradlab.explore.doctor.context.case import listed
from gradlab.explore.doctor.context.flow import CASTS, SHAPES, Flow, leaf_names
from gradlab.explore.doctor.context.zero_gradients import EPSILON, NORMALISATIONS, ROUNDING
from gradlab.explore.doctor.findings import Finding

SCORING = frozenset(("Mul", "Div", "MaskedFill", "Add"))  # between scores and their softmax
FAR = 40  # operations after a bias that are looked at
# Share of the norm of all gradients. A bias whose gradient is below it at every sweep gets nothing. At the first sweep of the
# healthy cells in our tests a bias before a normalisation has at most 2.3e-8, and one with an effect 5e-4 (but queries of tiny
# weights 3e-6).
NOTHING = 1e-4


def idle_biases(flow: Flow, found: Mapping[int, Sequence[int]]) -> Iterable[Finding]:
    """Notes on biases without effect, by the node that adds them: one Note for all that stand before a normalisation."""
    normalised: dict[int, str] = {}
    idle: dict[int, list[int]] = {}
    reasons: dict[str, list[int]] = {}
    for at, leaves in found.items():
        without = [leaf for leaf in leaves if _is_without(flow, leaf, at)]
        if not without:
            continue
        idle[at] = without
        single = all(math.prod(flow.nodes[leaf].shape or ()) == 1 for leaf in without)
        normalisation = _normalisation(flow, at)
        if normalisation:
            normalised[at] = normalisation
        elif _is_centred(flow, at):
            reasons.setdefault("the mean over the rows is subtracted from what it is added to", []).append(at)
        elif single and _is_scored(flow, at):
            reasons.setdefault("it adds the same to all entries of a row of the softmax", []).append(at)
    if normalised:
        first, *others = dict.fromkeys(normalised.values())
        reason = f"the normalisation after each, as {first}," if others else first
        reasons[f"{reason} subtracts the mean"] = list(normalised)
    for reason, nodes in reasons.items():
        yield _note(flow, nodes, list(dict.fromkeys(leaf for at in nodes for leaf in idle[at])), reason)


def _is_without(flow: Flow, leaf: int, at: int) -> bool:
    """Whether a leaf got nothing beside the others in each sweep that was seen."""
    node = flow.nodes[leaf]
    epsilon = EPSILON.get(node.gradient.dtype if node.gradient is not None else "", 0.0)
    rows = math.prod(flow.nodes[at].shape or ()) / max(math.prod(node.shape or ()), 1)
    most = max(NOTHING, 10 * ROUNDING * epsilon * math.sqrt(rows))
    key = next((one.key for one in flow.trace.leaves if one.node == leaf), None)
    norms = [norm for i, norm in enumerate(flow.norms) if norm is not None and flow.nodes[i].kind == "leaf"]
    shares = [((flow.norms[leaf] or 0.0), math.hypot(*norms))]
    earlier = flow.case.timelines.get(key, ()) if key is not None else ()
    shares += [(entry.arrived, math.hypot(*(one.arrived for one in swept.entries))) for swept, entry in earlier]
    return all(own <= most * whole for own, whole in shares)


def _note(flow: Flow, nodes: Sequence[int], leaves: Sequence[int], reason: str) -> Finding:
    names, at = leaf_names(flow, leaves), nodes[0]
    of_layers = all(name.endswith(".bias") for name in names) and reason.endswith("subtracts the mean")
    evidence = {"arrived": flow.norms[at], "leaves": tuple(names), "at": at}
    has = f"The bias {listed(names)} has" if len(names) == 1 else f"The biases {listed(names)} have"
    fix = ("Use bias=False.") if of_layers else ""
    where = "" if of_layers or len(names) > 1 else f" in {flow.code(at)}{flow.place(at)}"
    return Finding("cancelled", f"{has} no effect{where}: {reason}.", flow.line(at), at, fix, evidence, remark=True)


def _after(flow: Flow, at: int) -> list[int]:
    """The operations that a sum goes to, without those that only move its elements."""
    found, waiting, seen = [], [at], {at}
    while waiting and len(seen) < FAR:
        for edge in flow.uses[waiting.pop(0)]:
            t = edge.target
            if t in seen:
                continue
            seen.add(t)
            if flow.words[t] in SHAPES | CASTS:
                waiting.append(t)
            else:
                found.append(t)
    return found


def _normalisation(flow: Flow, at: int) -> str:
    """ "BatchNorm1d (`model[1]`)"; "" if no normalisation comes next."""
    for i in _after(flow, at):
        kind = flow.kinds.get(flow.nodes[i].module, "")
        if "Norm" in kind and flow.nodes[i].module != flow.nodes[at].module:
            return f"{kind} (`{flow.nodes[i].module}`)"
        if flow.words[i] in NORMALISATIONS:
            return f"{flow.operation(i)} in {flow.code(i)}{flow.place(i)}"
    return ""


def _is_centred(flow: Flow, at: int) -> bool:
    """Whether what follows is `h - h.mean(0)`."""
    following = _after(flow, at)
    means = {i for i in following if flow.words[i] == "Mean"}
    behind_means = {t for i in means for t in _after(flow, i)}
    return any(flow.words[i] == "Sub" and i in behind_means for i in following)


def _is_scored(flow: Flow, at: int) -> bool:
    """Whether what follows is a softmax."""
    seen, waiting = {at}, [at]
    while waiting and len(seen) < FAR:
        for i in _after(flow, waiting.pop(0)):
            if flow.words[i] in ("Softmax", "LogSoftmax"):
                return True
            if i not in seen and flow.words[i] in SCORING:
                seen.add(i)
                waiting.append(i)
    return False
