"""Find reentrant checkpoints that record no gradient, because none of their arguments requires grad."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gradlab.diagnose.history_loss import CHECKPOINT
from gradlab.explore.doctor.context.case import Case, Learner, cell_line, join_names, learner_names
from gradlab.explore.doctor.context.checkpoint_calls import (
    has_name_of_checkpoint,
    is_checkpoint,
    turn_off_default,
    turn_off_setting,
    without_reentry,
)
from gradlab.explore.doctor.context.code_edits import instead, parse_expression
from gradlab.explore.doctor.context.cuts import CutHistory, blocked_learners, collect_cuts, on_line, place_in_package
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare

declare(
    "checkpoint-without-grad",
    meaning="A reentrant checkpoint whose arguments do not require grad cuts parameters off from the result.",
    why="""
        `checkpoint(..., use_reentrant=True)` runs its function under `no_grad`, and again in the backward pass. It only takes
        part in the backward pass if an argument requires grad. The first block after an input or after a frozen embedding has no
        such argument, so its parameters get None as their gradient, and its result does not require grad either. PyTorch warns
        "None of the inputs have requires_grad=True".
    """,
    remedy="""
        Use `use_reentrant=False`, which has no such condition. Models of Transformers take it from
        `gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})`; with `use_reentrant=True`,
        `enable_input_require_grads()` makes the output of the embedding require grad.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.utils.checkpoint import checkpoint

        torch.manual_seed(0)
        ids, labels = torch.randint(0, 50, (32,)), torch.randint(0, 4, (32,))
        embedding = nn.Embedding(50, 16).requires_grad_(False)
        block = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        head = nn.Linear(16, 4)
        optimizer = torch.optim.Adam([*block.parameters(), *head.parameters()])
        for step in range(3):
            h = checkpoint(block, embedding(ids), use_reentrant=True)  #!
            loss = F.cross_entropy(head(h), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    healthy={"use_reentrant=True": "use_reentrant=False"},
    libraries=("torch",),
)


@check("checkpoint-without-grad")
def find_checkpoints_without_grad(case: Case) -> Iterable[Finding]:
    """Find reentrant checkpoints that cut off parameters that should learn."""
    if case.trace is None:
        return
    updated = {key for event in case.steps for key in event.keys}  # in earlier sweeps, or in another checkpoint
    for history in collect_cuts(case):
        if history.how != CHECKPOINT:
            continue
        blocked = [one for one in blocked_learners(case, history) if not one.has_grad and one.key not in updated]
        meant = [one for one in blocked if case.should_learn(one)]
        if meant or (history.final and not (case.optimizers and case.learners_of(history.keys))):
            yield _describe(case, history, meant or blocked)


def _describe(case: Case, history: CutHistory, learners: Sequence[Learner]) -> Finding:
    place = history.place
    names = learner_names(learners) if learners else join_names(history.cut.leaves)
    call = f"`{place.source}`{on_line(place)}{place_in_package(history)}" if place is not None and place.source else "A call"
    if _checkpoint_call(case, history) is not None:
        how = f"With use_reentrant=True, {call} records"
    else:
        how = f"{call} runs checkpoint() with use_reentrant=True, which records"
    if history.final:
        effect = "The result has no history" + (f", and no path leads back to {names}" if names else "")
    else:
        effect = f"The gradient of {names} is None"
    line, further = cell_line(place) or cell_line(history.cut.cell), None
    edit, enabled_at = _suggest_edit(case, history)
    if enabled_at is not None:
        line, further = enabled_at, line
    evidence: dict[str, object] = {"leaves": [one.name for one in learners] or list(history.cut.leaves)}
    if len(learners) > 3:
        evidence["parameters"] = len(learners)
    return Finding(
        "checkpoint-without-grad",
        f"{how} gradients only if one of its arguments requires grad, and none does. {effect}.",
        line,
        history.nodes[0] if history.nodes else None,
        f"Use the form without this condition: {edit}." if edit else "Pass use_reentrant=False where checkpointing is enabled.",
        evidence,
        worth=9.0 if history.final else 8.0,
        lines=(further,) if further is not None else (),
        place=place if enabled_at is None else None,
    )


def _suggest_edit(case: Case, history: CutHistory) -> tuple[str, int | None]:
    """Return code that passes use_reentrant=False, and the line of the cell that enables checkpointing, if it is another one.

    The code is for the call of `checkpoint`, or for the place that enables checkpointing for a model, if there is one such place
    in the newest cell that has any. It is "" if neither is known.
    """
    call = _checkpoint_call(case, history)
    if call is not None:
        own = without_reentry(call)
        return instead(ast.unparse(own), ast.unparse(call)) if own is not None else "", None
    for program in case.programs:
        nodes = [node for node in ast.walk(program.tree) if isinstance(node, ast.expr)]
        edits = [(node, new) for node in nodes if (new := turn_off_setting(node) or turn_off_default(node)) is not None]
        if len(edits) == 1:
            ((node, new),) = edits
            old, text = ast.get_source_segment(program.text, node) or "", ast.unparse(new)
            text = text if "'" in old else text.replace("'", '"')
            return instead(text, ast.unparse(node)), node.lineno if program is case.program else None
        if edits:
            break
    return "", None


def _checkpoint_call(case: Case, history: CutHistory) -> ast.Call | None:
    """Return the user's call of a function of torch.utils.checkpoint, parsed; None if another function calls it."""
    tree = parse_expression(history.place.source) if history.place is not None and history.cut.within is None else None
    if not isinstance(tree, ast.Call):
        return None
    function = case.namespace.get(ast.unparse(tree.func))
    return tree if is_checkpoint(function) or (function is None and has_name_of_checkpoint(tree)) else None
