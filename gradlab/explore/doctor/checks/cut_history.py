"""Cuts of the history by detach, `.data`, grad modes, numbers, NumPy, integers, new tensors, and operations without a derivative.

A cut is a Problem if values computed from its result reach the loss, and a tensor that should learn has no other path there.
A cut with another path beside it is usual: a target, an advantage, a coefficient, the output of a teacher, a straight-through
estimator. A Note is reported for a term of the loss that is cut off, and for a derivative without create_graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from gradlab.diagnose.history_loss import CHECKPOINT
from gradlab.explore.doctor.checks.cut_advice import explain_cut, suggest_fix, suggest_smooth_operation
from gradlab.explore.doctor.context.case import Case, Learner, cell_line, join_names, learner_names
from gradlab.explore.doctor.context.cuts import (
    CutHistory,
    blocked_learners,
    collect_buffer_cuts,
    collect_cuts,
    on_line,
    place_in_package,
)
from gradlab.explore.doctor.context.grad_switches import find_switch
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.operations import lookup, operation_name
from gradlab.explore.trace.data import GraphNode

EXPLICIT_CUTS = ("detached", "item", "no_grad")  # kinds of cuts that a program asks for
LOSS_CALL = re.compile(r"(cross_entropy|kl_div|_loss|criterion|Loss\(.*\))\(", re.IGNORECASE)  # usual names of losses


declare(
    "detached",
    meaning="`detach()`, `.data` or a derivative without `create_graph=True` cuts parameters off from the result.",
    why="""
        These return values without their history, so the chain rule stops there. The parameters before the cut get None as
        their gradient, and an optimizer skips them. No error is raised while another path requires a gradient.
    """,
    remedy="""
        Remove `detach()` or `.data`. Keep them for values that should not learn, such as a target or the output of a teacher.
        A derivative that is differentiated again needs `create_graph=True`.
    """,
    notes=True,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
        parameters = [*encoder.parameters(), *head.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for step in range(3):
            features = torch.relu(encoder(x)).detach()  #!
            loss = F.mse_loss(head(features), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)  # only the head learns
        for step in range(3):
            features = torch.relu(encoder(x)).detach()
            loss = F.mse_loss(head(features), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)

declare(
    "item",
    meaning="A number from `item()`, `float()` or `tolist()` is used in the loss instead of the tensor.",
    why="""
        A Python number has no history. The loss contains it as a constant, whose derivative is 0, so the parameters that it was
        computed from get no gradient through it.
    """,
    remedy="""
        Compute with the tensor itself, and join several with `torch.stack`. Use `item()` only for numbers that are printed or
        stored.
    """,
    notes=True,
    fault="""
        import math

        import torch

        torch.manual_seed(0)
        x = torch.randn(40) * 2 + 1
        mean = torch.tensor(0.0, requires_grad=True)
        log_scale = torch.tensor(0.3, requires_grad=True)
        scale = log_scale.exp().item()  #!
        loss = (((x - mean) / scale) ** 2).mean() / 2 + math.log(scale)
        loss.backward()
    """,
    healthy="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(40) * 2 + 1
        mean = torch.tensor(0.0, requires_grad=True)
        log_scale = torch.tensor(0.3, requires_grad=True)
        scale = log_scale.exp()
        loss = (((x - mean) / scale) ** 2).mean() / 2 + torch.log(scale)
        loss.backward()
        print(f"loss {loss.item():.3f}, scale {scale.item():.3f}")
    """,
)

declare(
    "numpy",
    meaning="Values on the way to the result are computed with NumPy.",
    why="""
        NumPy's functions are not recorded: an array has no history. The parameters that it was computed from get no gradient
        through it.
    """,
    remedy="""
        Use the function of the same name of `torch`, such as `torch.exp` for `np.exp`. Convert to NumPy only for plots and
        numbers that are stored.
    """,
    fault="""
        import numpy as np
        import torch

        t = torch.linspace(0, 1, 20)
        y = 3 * torch.exp(-2 * t)
        rate = torch.tensor(1.0, requires_grad=True)
        amplitude = torch.tensor(1.0, requires_grad=True)
        decay = torch.from_numpy(np.exp((-rate * t).detach().numpy()))  #!
        loss = ((amplitude * decay - y) ** 2).mean()
        loss.backward()
    """,
    healthy="""
        import numpy as np
        import torch

        t = torch.linspace(0, 1, 20)
        y = 3 * torch.exp(-2 * t)
        rate = torch.tensor(1.0, requires_grad=True)
        amplitude = torch.tensor(1.0, requires_grad=True)
        decay = torch.exp(-rate * t)
        loss = ((amplitude * decay - y) ** 2).mean()
        loss.backward()
        print(np.round(decay.detach().numpy(), 2))
    """,
)

declare(
    "no_grad",
    meaning="Values on the way to the result were computed under `no_grad()`, `inference_mode()` or `set_grad_enabled(False)`.",
    why="""
        Operations are not recorded there, so their results have no history. The parameters that they were computed from get no
        gradient through them.
    """,
    remedy="""
        Compute values that should be differentiated outside the block. Keep the block for evaluation, for targets and for
        updates of parameters in place.
    """,
    notes=True,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
        parameters = [*encoder.parameters(), *head.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        with torch.no_grad():
            features = torch.relu(encoder(x))  #!
        loss = F.mse_loss(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
        parameters = [*encoder.parameters(), *head.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        features = torch.relu(encoder(x))
        loss = F.mse_loss(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(F.mse_loss(head(torch.relu(encoder(x))), y))
    """,
)

declare(
    "integer",
    meaning="A cast to integers or booleans cuts parameters off from the result.",
    why="""
        Only floating point and complex tensors can require gradients. The cast has no history, and the parameters that it was
        computed from get no gradient through it.
    """,
    remedy="""
        Remove the cast. If its result is an index, interpolate between the neighbouring entries, or take a mean of all entries
        that is weighted by a softmax.
    """,
    fault="""
        import torch

        levels = torch.linspace(0, 1, 11) ** 2
        position = torch.tensor([0.31, 0.57, 0.86], requires_grad=True)
        gain = torch.ones(3, requires_grad=True)
        index = (position * 10).long()  #!
        loss = (levels[index] * gain).sum()
        loss.backward()
    """,
    healthy="""
        import torch

        levels = torch.linspace(0, 1, 11) ** 2
        position = torch.tensor([0.31, 0.57, 0.86], requires_grad=True)
        gain = torch.ones(3, requires_grad=True)
        index = (position * 10).long()
        share = position * 10 - index  # of the next entry
        level = levels[index] * (1 - share) + levels[index + 1] * share
        loss = (level * gain).sum()
        loss.backward()
    """,
)

declare(
    "non-differentiable",
    meaning="An operation that has no derivative, or the derivative 0, is between parameters and the result.",
    why="""
        `argmax`, comparisons and random draws have no derivative, and functions such as `round` and `sign` are constant between
        their jumps. The gradient of the parameters before them is None or exactly 0, and they do not learn.
    """,
    remedy="""
        Use a smooth function: a softmax instead of `argmax`, a sigmoid instead of a comparison, cross-entropy instead of the
        accuracy. Write a draw as a function of its parameters, such as `mu + sigma * torch.randn_like(mu)`. A straight-through
        estimator, `x + (x.round() - x).detach()`, keeps the rounded value and passes the gradient.
    """,
    notes=True,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, labels = torch.randn(64, 5), torch.randint(0, 2, (64,))
        model = nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        predicted = model(x).argmax(1)  #!
        loss = F.mse_loss(predicted.float(), labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, labels = torch.randn(64, 5), torch.randint(0, 2, (64,))
        model = nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        logits = model(x)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print((logits.argmax(1) == labels).float().mean())
    """,
)

declare(
    "re-wrapped",
    meaning="`torch.tensor(…)`, `nn.Parameter(…)` or `requires_grad_()` on a copy makes a new leaf out of computed values.",
    why="""
        A new leaf has no history. `backward()` ends there and writes the gradient into the new tensor, so the parameters that its
        values were computed from get none. With `requires_grad=True` no error is raised.
    """,
    remedy="""
        Use the tensor itself, and join several with `torch.stack` or `torch.cat`. Create parameters once, in `__init__`.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        batches = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(4)]
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = [F.mse_loss(model(x), y) for x, y in batches]
        loss = torch.tensor(losses, requires_grad=True).mean()  #!
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """,
    healthy={"loss = torch.tensor(losses, requires_grad=True).mean()": "loss = torch.stack(losses).mean()"},
)


@check("detached", "item", "numpy", "no_grad", "integer", "non-differentiable", "re-wrapped")
def find_cuts(case: Case) -> Iterable[Finding]:
    """Find cuts of the history between the result and tensors that should learn."""
    trace = case.trace
    if trace is None:
        return
    for history in [*collect_cuts(case), *collect_buffer_cuts(case)]:
        if history.how == CHECKPOINT:
            continue  # see `checkpoints`
        behind = case.learners_of(history.keys)
        blocked = blocked_learners(case, history)
        meant = [one for one in blocked if case.should_learn(one)]
        if (history.final and (meant or not behind or not case.optimizers)) or (meant and not _is_target(case, history, meant)):
            yield _problem(case, history, meant or blocked)
        elif history.kind in EXPLICIT_CUTS and not history.cut.old and any(map(case.should_learn, behind)):
            if _is_constant_term(case, history):
                yield _note(case, history, behind, "It is added to the loss as a constant: this term does not move")
            elif history.how == "grad()":  # the default of autograd.grad, which a program does not ask for
                yield _note(case, history, behind, "Through this derivative no gradient reaches")


def _is_constant_term(case: Case, history: CutHistory) -> bool:
    """Return whether the result of a cut is only added to the loss, so that it does not change the other gradients."""
    trace = case.trace
    assert trace is not None
    if history.final or not history.nodes:
        return False
    seen: set[int] = set()
    for at in history.nodes:
        if not lookup(trace.nodes[at].operation).adds:
            return False
        waiting = [at]
        while waiting:
            i = waiting.pop()
            if i in seen:
                continue
            seen.add(i)
            node, sources = trace.nodes[i], case.inputs[i]
            scaled = lookup(node.operation).multiplies and len(sources) == 1
            if math.prod(node.shape or ()) != 1 or not (node.kind == "output" or scaled or _keeps_terms(node)):
                return False
            waiting += case.uses[i]
    return True


def _keeps_terms(node: GraphNode) -> bool:
    """Return whether an operation adds terms of a loss, changes their sign, or only reshapes or converts them."""
    properties = lookup(node.operation)
    linear = properties.adds or properties.reduces in ("sum", "mean") or operation_name(node.operation) == "Neg"
    return linear or properties.moves in ("layout", "cast")


@check("non-differentiable")
def find_zero_derivatives(case: Case) -> Iterable[Finding]:
    """Find operations that have a node in the graph and the derivative 0."""
    trace = case.trace
    if trace is None or not trace.nodes:
        return
    stops = {i for i, node in enumerate(trace.nodes) if (facts := lookup(node.operation)).flat and not facts.writes}
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
        ancestors = _ancestors(case, stop)
        node = trace.nodes[stop]
        name = operation_name(node.operation).lower()
        keys = [leaf.key for leaf in dead if leaf.node in ancestors]
        behind = [one for one in case.learners_of(keys) if case.should_learn(one)]
        if not behind and name == "normal" and node.gradient is not None and not node.gradient.all_zero:
            yield _normal_draw_note(case, stop)
        if not behind or not any(target in alive for target in case.uses[stop]):
            continue
        code = f"`{node.place.source}`" if node.place is not None and node.place.source else f"`{node.label}`"
        yield Finding(
            "non-differentiable",
            f"{code}{on_line(node.place)} has the derivative 0 ({name}), so the gradient of {learner_names(behind)} is exactly "
            "0.",
            case.line(node),
            stop,
            case.spell(suggest_smooth_operation(node.operation, node.place)),
            {"zeros": sum(leaf.arrived.zeros for leaf in dead if leaf.arrived is not None), "count": len(behind)},
            worth=8.0,
        )


def _normal_draw_note(case: Case, at: int) -> Finding:
    """Return a Note on a normal draw whose parameters get a gradient by another path."""
    assert case.trace is not None
    node = case.trace.nodes[at]
    code = f"`{node.place.source}`" if node.place is not None and node.place.source else f"`{node.label}`"
    return Finding(
        "non-differentiable",
        f"{code}{on_line(node.place)} is a random draw, which passes a gradient of exactly 0 to its mean and its standard "
        "deviation. They learn only from other terms.",
        case.line(node),
        at,
        case.spell(suggest_smooth_operation(node.operation, node.place)),
        remark=True,
        worth=0.5,
    )


# ------------------------------------------------------------------------------------------------------- which cuts matter
def _is_target(case: Case, history: CutHistory, meant: Sequence[Learner]) -> bool:
    """Return whether the result of a cut looks like the output of a teacher.

    This applies without an optimizer, where nothing shows which models should learn: a loss compares the output of one model
    with that of another one, which is cut off by detach or no_grad.
    """
    trace = case.trace
    assert trace is not None
    if history.kind not in ("detached", "no_grad") or case.optimizers or not history.nodes:
        return False
    own = {one.model for one in meant}
    others = {one.model for one in case.learners_of(case.reached_leaves)}
    if "" in own or not others or own & others:
        return False
    return all(_is_comparison(case, node) for node in history.nodes)


def _is_comparison(case: Case, node: int) -> bool:
    """Return whether an operation compares its inputs, as a loss does, or is a product with logarithms."""
    trace = case.trace
    assert trace is not None
    name, place = operation_name(trace.nodes[node].operation), trace.nodes[node].place
    if place is not None and LOSS_CALL.search(place.source):
        return True
    sources = {operation_name(trace.nodes[source].operation) for source in case.inputs[node]}
    compares = lookup(trace.nodes[node].operation).loss is not None or name in ("Sub", "CosineSimilarity")
    return compares or (name == "Mul" and bool(sources & {"LogSoftmax", "Log"}))


def _ancestors(case: Case, node: int) -> set[int]:
    """Return a node and all nodes that it was computed from."""
    ancestors, waiting = {node}, [node]
    while waiting:
        for source in case.inputs[waiting.pop()]:
            if source not in ancestors:
                ancestors.add(source)
                waiting.append(source)
    return ancestors


# --------------------------------------------------------------------------------------------------------------- findings
def _problem(case: Case, history: CutHistory, learners: Sequence[Learner]) -> Finding:
    place, cut = history.place, history.cut
    why, fix = explain_cut(case, history)
    switch = find_switch(case, (place, cut.cell)) if history.kind == "no_grad" and cut.within is None else None
    if switch is not None:
        why = f"{why.rpartition(' under ')[0]} under `{switch[0].text}` {switch[1]}"
    names = learner_names(learners) if learners else ""
    if not names and cut.leaves:
        names = join_names(list(cut.leaves))
    cause = f"`{place.source}`{on_line(place)}{place_in_package(history)}: " if place is not None and place.source else ""
    back = ""
    if history.again is not None and history.again != place:
        back = f" It enters again{on_line(history.again)}, in `{history.again.source}`." if history.again.source else ""
    if history.final:
        effect = " So the result has no history" + (f", and no path leads back to {names}." if names else ".")
    else:
        effect = (
            f" No other path leads from {names} to the result, so {'its' if len(learners) == 1 else 'their'} gradient is None."
        )
    evidence: dict[str, object] = {"leaves": [one.name for one in learners] or list(cut.leaves)}
    if len(learners) > 3:
        evidence["parameters"] = len(learners)
    if history.number is not None:
        evidence["number"] = history.number
    line = cell_line(place) or cell_line(cut.cell) or cell_line(history.again) or _line_of_entry(case, history)
    further = [cell_line(history.again), _line_of_entry(case, history)]
    if switch is not None and switch[1].startswith("on line"):
        own = switch[0].line
        line, further = (own, [line, *further]) if switch[0].how != "block" else (line, [own, *further])
    return Finding(
        history.kind,
        f"{cause}{why}.{back}{effect}",
        line,
        history.nodes[0] if history.nodes else None,
        switch[0].removal_advice(switch[1]) if switch is not None else suggest_fix(case, history, fix),
        evidence,
        worth=9.0 if history.final else 8.0,
        lines=tuple(one for one in further if one is not None),
        place=place,
    )


def _note(case: Case, history: CutHistory, behind: Sequence[Learner], effect: str) -> Finding:
    place = history.place
    why, fix = explain_cut(case, history)
    evidence: dict[str, object] = {"leaves": [one.name for one in behind]}
    if len(behind) > 3:
        evidence["parameters"] = len(behind)
    return Finding(
        history.kind,
        f"`{place.source if place is not None else history.cut.label}`{on_line(place)}{place_in_package(history)}: {why}. "
        f"{effect} {learner_names(behind)}.",
        cell_line(place),
        history.nodes[0] if history.nodes else None,
        suggest_fix(case, history, fix),
        remark=True,
        evidence=evidence,
        worth=2.0,
        place=place,
    )


def _line_of_entry(case: Case, history: CutHistory) -> int | None:
    """Return the line of the cell on which the result of a cut enters the graph."""
    trace = case.trace
    assert trace is not None
    for node in history.nodes:
        if node < len(trace.nodes) and (line := case.line(trace.nodes[node])) is not None:
            return line
    return cell_line(trace.asked)
