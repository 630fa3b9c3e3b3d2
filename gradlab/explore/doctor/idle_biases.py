"""Biases without effect: what comes after them takes out whatever is added to all rows, or to all entries of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gradlab.explore.doctor.case import listed
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.flow import CASTS, SHAPES, Flow, leaf_names
from gradlab.explore.doctor.starving import NORMALISATIONS

SCORING = frozenset(("Mm", "Bmm", "Baddbmm", "Matmul", "Mul", "Div", "MaskedFill", "Add"))  # between scores and their softmax
FAR = 40  # operations after a bias that are looked at


def idle_biases(flow: Flow, found: Mapping[int, Sequence[int]]) -> Iterable[Finding]:
    """Notes on biases without effect, by the node that adds them: one Note for all that stand before a normalisation."""
    normalised: dict[int, str] = {}
    for at, leaves in found.items():
        normalisation = _normalisation(flow, at)
        if normalisation:
            normalised[at] = normalisation
        elif _is_centred(flow, at):
            yield _note(flow, [at], leaves, "the mean over the rows is subtracted from what it is added to")
        elif _is_scored(flow, at):
            yield _note(flow, [at], leaves, "it adds the same to all entries of a row of the softmax")
        else:
            yield _note(flow, [at], leaves, "what comes after it does not depend on what is added to all rows")
    if normalised:
        leaves = list(dict.fromkeys(leaf for at in normalised for leaf in found[at]))
        first, *others = dict.fromkeys(normalised.values())
        reason = f"the normalisation after each, as {first}," if others else first
        yield _note(flow, list(normalised), leaves, f"{reason} subtracts the mean")


def _note(flow: Flow, nodes: Sequence[int], leaves: Sequence[int], reason: str) -> Finding:
    names, at = leaf_names(flow, leaves), nodes[0]
    of_layers = all(name.endswith(".bias") for name in names) and reason.endswith("subtracts the mean")
    evidence = {"arrived": flow.norms[at], "leaves": tuple(names), "at": at}
    has = f"The bias {listed(names)} has" if len(names) == 1 else f"The biases {listed(names)} have"
    fix = ("Use bias=False.") if of_layers else ""
    where = "" if of_layers else f" in {flow.code(at)}{flow.place(at)}"
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
    """Whether what follows is a softmax, directly or of scores that are products."""
    seen, waiting = {at}, [at]
    while waiting and len(seen) < FAR:
        for i in _after(flow, waiting.pop(0)):
            if flow.words[i] in ("Softmax", "LogSoftmax"):
                return True
            if i not in seen and flow.words[i] in SCORING:
                seen.add(i)
                waiting.append(i)
    return False
