"""Parameters that an optimizer holds twice, that two optimizers step, and that are in a group with a learning rate of 0."""

from __future__ import annotations

import ast
import copy
import math
from collections import Counter
from collections.abc import Iterable
from itertools import combinations, groupby
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, Optimizer, learner_names
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.events import event_line, event_place, events_after, quote
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.step_history import optimizer_call
from gradlab.explore.doctor.context.training_source import SCHEDULER, method_of, role_of, sources_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import NOTE, check, declare
from gradlab.explore.trace.data import Event
from gradlab.explore.trace.journal import Entry

MIN_STEPS = 2
GIVING_PARAMETERS = ("parameters", "chain", "list", "tuple", "filter")  # functions that return parameters, or items of theirs

declare(
    "held-twice",
    meaning="An optimizer holds a parameter twice, and changes it twice at each step.",
    why="""
        A list of parameters that is joined from several modules contains a parameter twice if one module is part of another, or
        if two modules share it. The optimizer then makes two steps for it, with one state, at each call of `step()`. PyTorch
        warns about it when the optimizer is made.
    """,
    remedy="Pass `model.parameters()`, which contains each parameter once, or remove the repeated ones from the list.",
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 4), torch.randn(64, 1)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.SGD([*net.parameters(), *net[2].parameters()], lr=0.1)  #!
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"[*net.parameters(), *net[2].parameters()]": "[*net[0].parameters(), *net[2].parameters()]"},
)

declare(
    "two-optimizers",
    severity=NOTE,
    meaning="Two optimizers step the same parameter in turn.",
    why="""
        Each optimizer has a learning rate and a state of its own, and each of them uses all of `.grad`, whichever loss it came
        from. In a GAN whose generator's optimizer also holds the discriminator, the generator's step makes the discriminator
        worse. Two optimizers for a shared encoder may be meant.
    """,
    remedy="Pass each parameter to one optimizer, and add the losses if both should change it.",
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        encoder, policy, value = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        first = torch.optim.SGD([*encoder.parameters(), *policy.parameters()], lr=0.01)
        second = torch.optim.SGD([*encoder.parameters(), *value.parameters()], lr=0.1)
        x, labels, y = torch.randn(64, 4), torch.randint(0, 2, (64,)), torch.randn(64, 1)
        for step in range(5):
            first.zero_grad()
            nn.functional.cross_entropy(policy(encoder(x).tanh()), labels).backward()
            first.step()
            second.zero_grad()
            nn.functional.mse_loss(value(encoder(x).tanh()), y).backward()
            second.step()  #!
    """,
    healthy={"[*encoder.parameters(), *value.parameters()]": "value.parameters()"},
)

declare(
    "idle-group",
    severity=NOTE,
    meaning="A parameter group has a learning rate of 0, and its parameters get gradients.",
    why="""
        `step()` does not change the parameters of such a group. If they should not learn, computing their gradients takes time
        and memory for nothing. A scheduler may raise the learning rate later.
    """,
    remedy="Give the group a learning rate above 0, or set `requires_grad` of its parameters to False.",
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 4), torch.randn(64, 1)
        body, head = nn.Linear(4, 8), nn.Linear(8, 1)
        groups = [{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters()}]
        optimizer = torch.optim.SGD(groups, lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(head(body(x).tanh()), y)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy={'"lr": 0.0': '"lr": 0.01'},
)


# ------------------------------------------------------------------------------------------------------------------- twice
@check("held-twice")
def find_repeated_parameters(case: Case) -> Iterable[Finding]:
    """Find optimizers that step in the cell and hold a parameter twice."""
    for one in case.optimizers:
        step = next((event for event in case.steps if event.whose == one.whose and event.keys), None)
        times = Counter(one.keys)
        repeated = [learner for key, learner in case.learners.items() if times[key] > 1 and learner.requires_grad]
        if step is None or not repeated or not {learner.key for learner in repeated} & {*step.keys}:
            continue
        call = optimizer_call(case, one.name)
        line, place = event_line(step), event_place(step)
        if call is not None and any(call is node for node in ast.walk(case.program.tree)):
            line, place = call.lineno, None
        most = max(times[learner.key] for learner in repeated)
        often = "twice" if most == 2 else f"up to {most} times"
        holder = f"`{one.name}`" if one.name else f"The {one.kind}"
        yield Finding(
            "held-twice",
            f"{holder} holds {learner_names(repeated)} {often}: each call of {quote(step.place)} changes "
            f"{'it' if len(repeated) == 1 else 'them'} {often}.",
            line,
            fix=_pass_each_once(case, one, call),
            evidence={"parameters": len(repeated), "times": most, "optimizer": one.name, "name": repeated[0].name},
            worth=8.0,
            place=place,
        )


def _pass_each_once(case: Case, one: Optimizer, call: ast.Call | None) -> str:
    """Return advice after which an optimizer holds each parameter once."""
    whole = next(
        (
            f"{name}.parameters()"
            for name, model in case.models.items()
            if {id(parameter) for parameter in model.parameters()} == {*one.keys}
        ),
        "",
    )
    groups = getattr(case.namespace.get(one.name), "param_groups", ())
    if call is None or not call.args or len(groups) != 1 or not _gives_parameters(case, call.args[0]):
        return "Pass each parameter once. dict.fromkeys() removes repeated ones from a list."
    edited = copy.deepcopy(call)
    new = whole or f"list(dict.fromkeys({ast.unparse(call.args[0])}))"
    edited.args[0] = ast.parse(new, mode="eval").body
    return f"Pass each parameter once: {instead(ast.unparse(edited), ast.unparse(call))}."


def _gives_parameters(case: Case, given: ast.expr) -> bool:
    """Return whether an expression is known to give parameters, not parameter groups or pairs of names and parameters."""
    if isinstance(given, ast.Starred):
        return False
    for node in ast.walk(given):
        held = case.namespace.get(node.id) if isinstance(node, ast.Name) else None
        of_groups = isinstance(held, (list, tuple)) and any(isinstance(item, (dict, tuple)) for item in held)
        of_others = isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] not in GIVING_PARAMETERS
        if of_groups or of_others or isinstance(node, ast.Dict):
            return False
    return True


# -------------------------------------------------------------------------------------------------------------- two of them
@check("two-optimizers")
def find_shared_parameters(case: Case) -> Iterable[Finding]:
    """Find parameters that two named optimizers step in turn."""
    named = [one for one in case.optimizers if one.name]
    groups = {one.whose: getattr(case.namespace.get(one.name), "param_groups", None) for one in named}
    for first, second in combinations(named, 2):
        if _share_groups(groups[first.whose], groups[second.whose]):
            continue  # one of them steps through the other, as Lookahead and SAM do
        shared = [learner for key, learner in case.learners.items() if _are_in_turn(case, key, first, second)]
        if not shared:
            continue
        steps = [next(event for event in case.steps if event.whose == one.whose) for one in (first, second)]
        it = "it" if len(shared) == 1 else "them"
        yield Finding(
            "two-optimizers",
            f"`{first.name}` and `{second.name}` both hold {learner_names(shared)}, and step {it} in turn: "
            f"{quote(steps[0].place)} and {quote(steps[1].place)}. Each uses a learning rate and a state of its own.",
            event_line(steps[1]),
            fix=f"If this is not meant, pass {it} to `{first.name}` or `{second.name}` alone.",
            evidence={"parameters": len(shared), "name": shared[0].name, "optimizers": (first.name, second.name)},
            remark=True,
            worth=4.0,
            place=event_place(steps[1]),
        )


def _share_groups(groups: Any, others: Any) -> bool:
    return groups is others or bool({id(one) for one in groups or ()} & {id(one) for one in others or ()})


def _are_in_turn(case: Case, key: int, first: Optimizer, second: Optimizer) -> bool:
    """Return whether two optimizers step a leaf, and each of them again after the other."""
    both = (first.whose, second.whose)
    order = [whose for whose, _ in groupby(event.whose for event in case.steps if key in event.keys and event.whose in both)]
    return len(order) >= 2 * MIN_STEPS


# ---------------------------------------------------------------------------------------------------------- learning rate 0
@check("idle-group")
def find_idle_groups(case: Case) -> Iterable[Finding]:
    """Find parameter groups with a learning rate of 0, next to others that learn, whose parameters get gradients."""
    if _has_scheduler(case):
        return
    for one in case.optimizers:
        groups = getattr(case.namespace.get(one.name), "param_groups", ()) if one.name else ()
        steps = [event for event in case.steps if event.whose == one.whose]
        if len(steps) < MIN_STEPS or not all(event.rates[:1] == (0.0,) and len(event.rates) > 1 for event in steps):
            continue
        for i, group in enumerate(groups):
            if group.get("lr") != 0:
                continue
            still = [(learner, entry) for p in group["params"] if (learner := case.learners.get(id(p)))
                     and (entry := _still_entry(case, learner, steps)) is not None]  # fmt: skip
            if not still:
                continue
            learners: list[Learner] = [learner for learner, _ in still]
            norm = math.hypot(*(entry.arrived for _, entry in still))
            get = "it gets" if len(learners) == 1 else "they get"
            yield Finding(
                "idle-group",
                f"`{one.name}.param_groups[{i}]` has a learning rate of 0: {quote(steps[0].place)} does not change "
                f"{learner_names(learners)}, although {get} a gradient of norm {digits(norm)}.",
                event_line(steps[0]),
                fix=f"If `{one.name}.param_groups[{i}]` should learn, give it a learning rate above 0. If not, set requires_grad "
                "of its parameters to False: no gradient is then computed.",
                evidence={
                    "gradient norm": norm,
                    "parameters": len(learners),
                    "of": tuple(learner.name for learner in learners),
                    "optimizer": one.name,
                    "group": i,
                },
                remark=True,
                worth=5.0,
                place=event_place(steps[0]),
            )


def _still_entry(case: Case, learner: Learner, steps: list[Event]) -> Entry | None:
    """Return the last entry of a leaf that got a gradient and did not change at the step after it."""
    line = case.timelines.get(learner.key, ())
    if not learner.requires_grad or len(line) < MIN_STEPS or any(entry.moved for _, entry in line):
        return None
    for swept, entry in reversed(line):
        stepped = any(event in steps for event in events_after(case, swept))
        if stepped and entry.arrived > 0 and entry.moved == 0:
            return entry
    return None


def _has_scheduler(case: Case) -> bool:
    """Return whether the program has a scheduler, or writes a learning rate."""
    for source in sources_of(case):
        for node in source.program.statements:
            base, _ = method_of(node)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
            if (base and role_of(case, source, base) == SCHEDULER) or any("'lr'" in ast.unparse(one) for one in targets):
                return True
    return any(type(value).__module__.endswith("lr_scheduler") for value in case.namespace.values())
