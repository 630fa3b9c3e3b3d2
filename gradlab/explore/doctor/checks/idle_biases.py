"""Find biases without effect: a later operation subtracts the same number again, as a normalisation and a softmax do.

At an optimum the gradient of a bias is also 0, although the bias has an effect. So a bias is only reported if its gradient is
negligible in all backward calls, and if the operation that cancels it is found. The biases of the keys of an attention are not
reported, since its layers usually have biases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gradlab.explore.doctor.context.case import join_names
from gradlab.explore.doctor.context.flow import Flow, leaf_names
from gradlab.explore.doctor.context.zero_gradients import EPSILON, ROUNDING
from gradlab.explore.doctor.findings import Finding

MAX_OPERATIONS = 40  # after a bias that are examined
# Share of the norm of all gradients. In the healthy examples in tests/doctor, at the first backward call, it is at most 2.3e-8
# for a bias before a normalisation, and at least 5e-4 for a bias with an effect (3e-6 for queries with tiny weights).
NEGLIGIBLE_SHARE = 1e-4


def find_idle_biases(flow: Flow, candidates: Mapping[int, Sequence[int]]) -> Iterable[Finding]:
    """Find biases without effect. All biases before a normalisation are one Note.

    Parameters
    ----------
    flow : Flow
    candidates : mapping of int to sequence of int
        Leaves by the node that adds them.

    Yields
    ------
    Finding
    """
    normalised: dict[int, str] = {}
    idle: dict[int, list[int]] = {}
    reasons: dict[str, list[int]] = {}
    for at, leaves in candidates.items():
        negligible = [leaf for leaf in leaves if _has_no_gradient(flow, leaf, at)]
        if not negligible:
            continue
        idle[at] = negligible
        single = all(math.prod(flow.nodes[leaf].shape or ()) == 1 for leaf in negligible)
        normalisation = _following_normalisation(flow, at)
        if normalisation:
            normalised[at] = normalisation
        elif _is_centred(flow, at):
            reasons.setdefault("the mean over the rows is subtracted from the sum", []).append(at)
        elif single and _is_softmax_input(flow, at):
            reasons.setdefault("it adds the same to all entries of a row of the softmax", []).append(at)
    if normalised:
        first, *others = dict.fromkeys(normalised.values())
        reason = f"the normalisation after each, as {first}," if others else first
        reasons[f"{reason} subtracts the mean"] = list(normalised)
    for reason, nodes in reasons.items():
        yield _note(flow, nodes, list(dict.fromkeys(leaf for at in nodes for leaf in idle[at])), reason)


def _has_no_gradient(flow: Flow, leaf: int, at: int) -> bool:
    """Return whether the gradient of a leaf was negligible compared with the others in all recorded backward calls."""
    node = flow.nodes[leaf]
    epsilon = EPSILON.get(node.gradient.dtype if node.gradient is not None else "", 0.0)
    rows = math.prod(flow.nodes[at].shape or ()) / max(math.prod(node.shape or ()), 1)
    most = max(NEGLIGIBLE_SHARE, 10 * ROUNDING * epsilon * math.sqrt(rows))
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
    has = f"The bias {join_names(names)} has" if len(names) == 1 else f"The biases {join_names(names)} have"
    fix = "Use bias=False." if of_layers else ""
    where = "" if of_layers or len(names) > 1 else f" in {flow.code(at)}{flow.place(at)}"
    return Finding("cancelled", f"{has} no effect{where}: {reason}.", flow.line(at), at, fix, evidence, remark=True)


def _following_operations(flow: Flow, at: int) -> list[int]:
    """Return the operations that use a sum, without those that only reshape it."""
    found, waiting, seen = [], [at], {at}
    while waiting and len(seen) < MAX_OPERATIONS:
        for edge in flow.uses[waiting.pop(0)]:
            t = edge.target
            if t in seen:
                continue
            seen.add(t)
            if flow.is_reshape_or_cast(t):
                waiting.append(t)
            else:
                found.append(t)
    return found


def _following_normalisation(flow: Flow, at: int) -> str:
    """Return "BatchNorm1d (`model[1]`)" for the next operation; "" if it is not a normalisation."""
    for i in _following_operations(flow, at):
        kind = flow.kinds.get(flow.nodes[i].module, "")
        if "Norm" in kind and flow.nodes[i].module != flow.nodes[at].module:
            return f"{kind} (`{flow.nodes[i].module}`)"
        if flow.properties[i].normalises:
            return f"{flow.operation(i)} in {flow.code(i)}{flow.place(i)}"
    return ""


def _is_centred(flow: Flow, at: int) -> bool:
    """Return whether the next operations compute `h - h.mean(0)`."""
    following = _following_operations(flow, at)
    means = {i for i in following if flow.ops[i] == "Mean"}
    after_means = {t for i in means for t in _following_operations(flow, i)}
    return any(flow.ops[i] == "Sub" and i in after_means for i in following)


def _is_softmax_input(flow: Flow, at: int) -> bool:
    """Return whether the next operation, except those of a scale and a mask, is a softmax."""
    seen, waiting = {at}, [at]
    while waiting and len(seen) < MAX_OPERATIONS:
        for i in _following_operations(flow, waiting.pop(0)):
            if flow.ops[i] in ("Softmax", "LogSoftmax"):
                return True
            if i not in seen and flow.scales_or_masks(i):
                seen.add(i)
                waiting.append(i)
    return False
