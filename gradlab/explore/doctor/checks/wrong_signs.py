"""Find a loss that the steps decrease although it has no lower bound: a minus too many before a loss, or one too few."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, negate
from gradlab.explore.doctor.context.loss_sign import find_negation, is_bounded, is_fit, sign_of_loss
from gradlab.explore.doctor.context.step_history import step_cosine, sweeps_by_loss
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.trace.data import GraphNode
from gradlab.explore.trace.journal import SweepEntry

STEPS_IN_A_ROW = 3  # a random step increases the loss with probability ½, three in a row with ⅛
MIN_COSINE = 0.1  # of a step against the gradient; see MIN_COSINE_UP in `steps`
MIN_SWEEPS = 3  # of a loss that compares predictions with targets
# Names of programs that move a model away from targets on purpose.
MEANT = re.compile(r"unlearn|forget|adv|attack|confus|fool|revers|ascent|maxim|worst|perturb", re.IGNORECASE)


def find_wrong_sign(case: Case) -> Finding | None:
    """Find a decreasing loss that has no lower bound, so that its sign is wrong."""
    trace = case.trace
    assert trace is not None
    if sign_of_loss(case) != -1 or is_bounded(case):
        return None
    for run in sweeps_by_loss(case):
        if run[-1].number != trace.sweep:
            continue
        return _find_decrease(case, run) or _find_turned_loss(case, run)
    return None


def _find_decrease(case: Case, run: Sequence[SweepEntry]) -> Finding | None:
    """Find a loss that is never above 0 and decreases in each of the last steps."""
    if len(run) <= STEPS_IN_A_ROW:
        return None
    window = run[-STEPS_IN_A_ROW - 1 :]
    losses = [sweep.loss for sweep in window if sweep.loss is not None]
    cosines = [step_cosine(sweep) for sweep in window[:-1]]
    if any(b >= a for a, b in pairwise(losses)) or any(one is None or one > -MIN_COSINE for one in cosines):
        return None
    if any(not entry.moved for entry in window[0].entries):
        return None  # another player of a game is not trained in this step, such as the generator of a critic
    name = run[-1].root or "the loss"
    subject = loss_text(name)
    node, text = _culprit(case)
    return Finding(
        "ascent",
        f"{subject[:1].upper()}{subject[1:]} has the wrong sign: it is never above 0 and has no lower bound, and the steps "
        f"decrease it from {losses[0]:.4g} to {losses[-1]:.4g} in {STEPS_IN_A_ROW} steps.",
        case.line(case.trace.nodes[node]) if case.trace is not None else None,
        node,
        _advise_sign(text, name),
        {"first": losses[0], "last": losses[-1], "steps": STEPS_IN_A_ROW},
        worth=8.0,
    )


def _find_turned_loss(case: Case, run: Sequence[SweepEntry]) -> Finding | None:
    """Find a minus before a loss of targets, or none before a log-likelihood. Its values may go up and down."""
    trace = case.trace
    assert trace is not None
    if len(run) < MIN_SWEEPS or len(run) != len(trace.journal) or not is_fit(case):
        return None
    if any(not entry.moved for sweep in run[:-1] for entry in sweep.entries):
        return None  # as in a game
    known = [one for sweep in run[:-1] if (one := step_cosine(sweep)) is not None]
    if len(known) < len(run) - 1 or known[0] > -MIN_COSINE or sum(known) / len(known) > -MIN_COSINE:
        return None
    name = run[-1].root or "the loss"
    subject = loss_text(name)
    node, text = _culprit(case)
    if any(MEANT.search(one) for one in _names_around(trace.nodes[node], name, text)):
        return None
    return Finding(
        "ascent",
        f"{subject[:1].upper()}{subject[1:]} has the wrong sign: it is never above 0 and has no lower bound. In {len(known)} "
        f"steps the updates went against its gradient (cosine {known[0]:.3g} in the first), which moves the predictions away "
        "from the targets.",
        case.line(trace.nodes[node]),
        node,
        _advise_sign(text, name),
        {"cosine": known[0], "steps": len(known)},
        worth=8.0,
    )


def _culprit(case: Case) -> tuple[int, str]:
    """Return the node and the statement that make the loss negative: a minus, else the operation of the loss."""
    assert case.trace is not None
    root = case.inputs[case.trace.outputs[0]][0]
    found = find_negation(case)
    for node in (root if found is None else found, root):
        place = case.trace.nodes[node].place
        if place is not None and negate(place.statement):
            return node, place.statement
    return root, ""


def _names_around(node: GraphNode, name: str, text: str) -> list[str]:
    place = node.place
    return [name, text, place.function if place is not None else "", place.file.rpartition("/")[2] if place is not None else ""]


def _advise_sign(text: str, name: str) -> str:
    """Return how to change the sign of a loss."""
    code = instead(negate(text), text) if text else ""
    if not code:
        return f"Change the sign of {loss_text(name)}: a minus before a log-likelihood, and none before a squared error."
    return f"Change the sign of {loss_text(name)}: {code}. This changes the loss to its negative."


def loss_text(name: str) -> str:
    """Return the name of a loss in backticks, or "the loss"."""
    return name if name == "the loss" else f"`{name}`"
