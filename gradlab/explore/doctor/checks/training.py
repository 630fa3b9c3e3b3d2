"""Optimizers that hold other tensors, gradients that add up over steps or cells, and steps without gradients."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from gradlab.diagnose.source_locations import clip
from gradlab.explore.doctor.checks.late_parameters import Creation, find_late_creation
from gradlab.explore.doctor.checks.recreated_leaves import find_layer_of_loop, layer_of_loop_finding
from gradlab.explore.doctor.checks.replaced_leaves import find_replacement, replaced_leaves
from gradlab.explore.doctor.context.case import Case, Learner, cell_line, join_names, learner_names
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.events import (
    entry_names,
    event_line,
    event_place,
    events_after,
    quote,
    sweep_call,
    sweep_place,
    write_after,
)
from gradlab.explore.doctor.context.program import SCOPES
from gradlab.explore.doctor.context.training_source import clears_between
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import Entry, SweepEntry

MAX_LEAVES_IN_FIX = 6  # for a fix that clears each gradient by itself
# Two float32 norms of one gradient, summed in another order, differ by less (n · 6e-8 for n < 160 terms).
RELATIVE_TOLERANCE = 1e-5


declare(
    "stale-optimizer",
    meaning="A parameter gets gradients, and the optimizer that steps does not hold it.",
    why="""
        An optimizer holds the tensors that it was given when it was made. Parameters that are created later, or that are in a
        plain list where `parameters()` does not find them, are not changed by `step()`. No error is raised.
    """,
    remedy="""
        Make the optimizer after the model is complete, or add new parameters by `add_param_group`. Keep layers in an
        `nn.ModuleList`. To give a leaf new values, write into it by `copy_()` under `torch.no_grad()`.
    """,
    notes=True,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, labels = torch.randn(32, 4), torch.randint(0, 3, (32,))
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model[2] = nn.Linear(8, 3)
        for step in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, labels = torch.randn(32, 4), torch.randint(0, 3, (32,))
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 10))
        model[2] = nn.Linear(8, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
    """,
)

declare(
    "accumulated",
    meaning="A step uses the sum of the gradients of several backward calls as if it were the gradient of one.",
    why="""
        `backward()` adds to `.grad`. If nothing clears it, step n uses the sum of the gradients of steps 1 to n. Old gradients
        never fade, and the loss oscillates or increases.
    """,
    remedy="""
        Call `optimizer.zero_grad()` before each `backward()`. If gradients of several batches are added up on purpose, call it
        after each step.
    """,
    notes=True,
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()  #!
            optimizer.step()
    """,
    healthy="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)

declare(
    "step-before-backward",
    meaning="`step()` is called while parameters have no gradient: before `backward()`, or after `zero_grad()`.",
    why="""
        An optimizer skips parameters whose `.grad` is None. Nothing changes, the loss stays where it is, and no error is
        raised.
    """,
    remedy="Call `optimizer.zero_grad()`, `loss.backward()` and `optimizer.step()` in this order.",
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()  #!
    """,
    healthy="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = x @ torch.tensor([1.0, -2.0, 0.5, 3.0])
        w = torch.zeros(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
)


# ------------------------------------------------------------------------------------------------------------------- stale
@check("stale-optimizer")
def find_stale_optimizers(case: Case) -> Iterable[Finding]:
    """Find parameters that got a gradient and did not change, because no optimizer holds them."""
    steps = case.steps
    if case.trace is None or not steps:
        return
    held = {key for one in case.optimizers for key in one.keys} | {key for event in steps for key in event.held}
    left: dict[int, tuple[Entry, Event]] = {}
    for key, line in case.timelines.items():
        learner = case.learners.get(key)
        if key in held or learner is None or not (learner.model or learner.is_parameter) or key in replaced_leaves(case):
            continue
        if any(entry.moved for _, entry in line) or all(entry.written or entry.moved is None for _, entry in line):
            continue
        for swept, entry in line:
            step = next((event for event in events_after(case, swept) if event.kind == "step"), None)
            if step is not None and entry.arrived > 0 and entry.moved == 0:
                left[key] = entry, step
    if not left:
        return
    stepped = [case.learners[key] for event in steps for key in event.keys if key in case.learners]
    if stepped and not any(one.model for one in stepped) and any(case.learners[key].model for key in left):
        return  # only inputs of a model are optimized: the model is not expected to change
    late = _late_parameters(case, left)
    if late:
        yield _late_parameter_finding(case, left, late)
        left = {key: seen for key, seen in left.items() if key not in late}
    if not left:
        return
    learners = [case.learners[key] for key in left]
    step = next(iter(left.values()))[1]
    norm = math.hypot(*(entry.arrived for entry, _ in left.values()))
    old = [key for event in steps for key in event.held if key not in case.learners or "param_groups" in case.learners[key].name]
    old = list(dict.fromkeys(old))
    again = find_layer_of_loop(case, learners, step)
    if again is not None:
        yield layer_of_loop_finding(learners, again, step, norm, len(old))
        return
    why = ""
    if old:
        many, they, them = ("1 tensor", "it was", "it") if len(old) == 1 else (f"{len(old)} tensors", "they were", "them")
        replacement = find_replacement(case, learners, _optimizer(case, step))
        how = f"{replacement} replaced {them}" if replacement else f"{they} replaced"
        why = f" The optimizer holds {many} that the program has no other name for: {how}."
    homes = list(dict.fromkeys(one.in_list for one in learners if one.in_list))
    if homes:
        why = f" {join_names(homes)} is a plain list, which parameters() does not search."
    yield Finding(
        "stale-optimizer",
        f"{quote(step.place)} does not change {learner_names(learners)}: no optimizer holds "
        f"{'it' if len(learners) == 1 else 'them'}, although {'it' if len(learners) == 1 else 'they'} got a gradient of norm "
        f"{norm:.3g}.{why}",
        event_line(step),
        fix=_suggest_optimizer(case, learners, homes, bool(old), step),
        evidence={
            "leaves": [one.name for one in learners],
            "gradient norm": norm,
            "unnamed": len(old),
            "parameters": len(learners),
        },
        worth=8.0,
        place=event_place(step),
    )


def _late_parameters(case: Case, left: dict[int, tuple[Entry, Event]]) -> dict[int, Creation]:
    """Return the parameters that forward creates, if optimizers hold all others of the same models."""
    late = {key: creation for key in left if (creation := find_late_creation(case, case.learners[key])) is not None}
    models = {case.learners[key].model for key in late}
    rest = [one for one in case.learners.values() if one.model in models and one.requires_grad and one.key not in late]
    return late if rest and all(one.optimizers for one in rest) else {}


def _late_parameter_finding(case: Case, left: dict[int, tuple[Entry, Event]], late: dict[int, Creation]) -> Finding:
    learners = [one for one in case.learners.values() if one.key in late]
    step = left[learners[0].key][1]
    norm = math.hypot(*(left[key][0].arrived for key in late))
    creations = list(late.values())
    places = " and ".join(dict.fromkeys(f"{one.where} in `{one.function}`" for one in creations))
    it, subject, verb = ("it", "It", "is") if len(learners) == 1 else ("them", "They", "are")
    holder = f"`{name}`" if (name := _optimizer(case, step)) else "the optimizer"
    every_call = all(one.always for one in creations)
    how = (
        f"again at every call, and {holder} does not hold {it}."
        if every_call
        else f"at the first call of the model. {holder[:1].upper()}{holder[1:]} was created before that and does not hold {it}."
    )
    return Finding(
        "stale-optimizer",
        f"{learner_names(learners)} {verb} created {places}, {how} {subject} got a gradient of norm {norm:.3g}, and "
        f"{quote(step.place)} did not change {it}.",
        creations[0].cell_line or event_line(step),
        fix=f"Create {it} once, in `__init__`."
        if every_call
        else f"Create {it} in `__init__`, or call the model once before creating the optimizer.",
        evidence={
            "leaves": [one.name for one in learners],
            "gradient norm": norm,
            "unnamed": 0,
            "parameters": len(learners),
        },
        worth=8.0,
        lines=tuple(line for line in (event_line(step),) if line is not None),
    )


def _suggest_optimizer(case: Case, learners: list[Learner], homes: list[str], old: bool, step: Event) -> str:
    """Return advice after which the optimizer holds the leaves."""
    if homes:
        known = next(iter(case.program.assignments(_optimizer(case, step))), None)
        source = ast.unparse(known) if known is not None else ""
        code = before("; ".join(f"{home} = gradlab.nn.ModuleList({home})" for home in homes), source)
        return case.spell(
            f"Make {join_names(homes)} an `nn.ModuleList`, and create the optimizer after that{f': {code}' if code else ''}."
        )
    models = list(dict.fromkeys(one.model for one in learners if one.model))
    code = _complete_optimizer(case, learners, step)
    again = _creation_in_loop(case, learners, step)
    if again is not None:
        return (
            f"`{clip(ast.unparse(again))}` on line {again.lineno} creates a new tensor in each iteration, after the optimizer "
            "was created. Write into the tensor that the optimizer holds, by copy_() under no_grad()."
        )
    if old:
        where = f": {code}" if code else f", from the parameters of `{models[0]}`" if models else ""
        return f"Create the optimizer after the change{where}."
    what = f"the parameters of `{models[0]}`" if models else join_names([one.name for one in learners])
    how = f": {code}" if code else ""
    return f"Pass {what} to the optimizer too{how}. If they should not learn, set their requires_grad to False."


def _creation_in_loop(case: Case, learners: list[Learner], step: Event) -> ast.stmt | None:
    """Return a statement that creates one of the leaves again in the loop of the step."""
    line, names = event_line(step), {one.name for one in learners}
    loops = [node for node in case.program.statements if isinstance(node, (ast.For, ast.While))]
    around = [node for node in loops if line is not None and node.lineno <= line <= (node.end_lineno or 0)]
    for node in (part for loop in around for part in ast.walk(loop)):
        if isinstance(node, ast.Assign) and names & {ast.unparse(target) for target in node.targets}:
            return node
    return None


def _optimizer(case: Case, step: Event) -> str:
    return next((one.name for one in case.optimizers if one.whose == step.whose), "")


def _complete_optimizer(case: Case, learners: list[Learner], step: Event) -> str:
    """Return code for the optimizer with these leaves added, before the statement of the cell that steps."""
    name, line = _optimizer(case, step), event_line(step)
    around = next((node for node in case.program.tree.body if line and node.lineno <= line <= (node.end_lineno or 0)), None)
    if not name or around is None or isinstance(around, SCOPES) or len(step.rates) != 1:
        return ""
    known = [one for one in case.learners.values() if one.key in step.held and "param_groups" not in one.name]
    both = [*known, *learners]
    models = list(dict.fromkeys(one.model for one in both if one.model))
    parts = [f"{model}.parameters()" for model in models]
    parts = parts if len(parts) == 1 else [f"*{part}" for part in parts]
    parts += [one.name for one in both if not one.model]
    group = parts[0] if len(parts) == 1 and parts[0].endswith("parameters()") else None
    if group is None:
        group = f"[{', '.join(part if part[0] == '*' or part.isidentifier() else f'*{part}' for part in parts)}]"
    first = ast.unparse(around).partition("\n")[0]
    settings = _settings(case.namespace.get(name))
    if settings is None:
        return ""
    rest = "".join(f", {key}={value!r}" for key, value in settings.items())
    return case.spell(before(f"{name} = gradlab.optim.{step.optimizer}({group}, lr={step.rates[0]:g}{rest})", first))


def _settings(optimizer: Any) -> dict[str, Any] | None:
    """Return the arguments of an optimizer except its parameters and `lr`; None if one of them is not a plain value."""
    defaults = getattr(optimizer, "defaults", None)
    try:
        known = inspect.signature(type(optimizer).__init__).parameters
    except (TypeError, ValueError):
        return None
    if not isinstance(defaults, dict):
        return None
    settings = {key: value for key, value in defaults.items() if key in known and value != known[key].default and key != "lr"}
    plain = all(type(x) in (bool, int, float, str) for value in settings.values() for x in _flat(value))
    return settings if plain else None


def _flat(value: Any) -> tuple[Any, ...]:
    return value if type(value) is tuple else (value,)


# ------------------------------------------------------------------------------------------------------------- accumulated
@check("accumulated")
def find_accumulated_gradients(case: Case) -> Iterable[Finding]:
    """Find gradients of several sweeps that were added up by mistake.

    A step used one of them before the next one was added, or an earlier cell differentiated the same kind of loss.
    """
    if case.trace is None:
        return
    within: dict[int, list[tuple[SweepEntry, Entry]]] = {}
    for key, line in case.timelines.items():
        used = False  # whether a step has used the content of `.grad`
        for (_, earlier), (swept, entry) in pairwise(line):
            used = bool(entry.before) and (used or (earlier.moved or 0) > 0)
            if used and (entry.moved or 0) > 0:
                within.setdefault(key, []).append((swept, entry))
    if within:
        yield _loop_finding(case, within)
    elif over_cells := _sums_over_cells(case):
        yield _cells_finding(case, over_cells)


def _loop_finding(case: Case, within: dict[int, list[tuple[SweepEntry, Entry]]]) -> Finding:
    assert case.trace is not None
    longest = max(within.values(), key=len)
    swept, entry = longest[-1]
    place = sweep_place(case, swept)
    every = [sweeps[-1][1] for sweeps in within.values()]
    return Finding(
        "accumulated",
        f"{quote(place)} adds to gradients that a step has already used, and nothing clears them in between: in "
        f"{len(longest)} of {case.trace.sweeps} calls, {entry_names(case, every)} kept the old gradient. At the last one, "
        f"‖.grad‖ of `{entry.name}` went from {entry.before:.3g} to {entry.after:.3g}; this call contributed "
        f"{entry.arrived:.3g}.",
        event_line(sweep_call(case, swept)),
        fix=clearing_advice(case, [one.key for one in every], place),
        evidence={
            "of": entry.name,
            "calls": len(longest),
            "sweeps": case.trace.sweeps,
            "parameters": len(every),
            "before": entry.before,
            "after": entry.after,
            "arrived": entry.arrived,
        },
        worth=8.0,
        place=event_place(sweep_call(case, swept)),
    )


def _sums_over_cells(case: Case) -> list[tuple[SweepEntry, Entry, int]]:
    """Return the first sweeps of the cell that added to gradients of the same kind of loss from earlier cells."""
    repeated = []
    for key, line in case.timelines.items():
        swept, entry = line[0]
        known = case.past.leaves.get(key)
        if known is None or not entry.before or known.gradient is None or sweep_place(case, swept) is None:
            continue
        if math.isclose(known.gradient, entry.before, rel_tol=RELATIVE_TOLERANCE) and known.operation == swept.operation:
            repeated.append((swept, entry, known.cells + 1))
    return repeated


def _cells_finding(case: Case, repeated: list[tuple[SweepEntry, Entry, int]]) -> Finding:
    swept, entry, cells = repeated[0]
    place = sweep_place(case, swept)
    return Finding(
        "accumulated",
        f"{quote(place)} adds to the gradients of earlier cells: `.grad` of "
        f"{entry_names(case, [one for _, one, _ in repeated])} is now the sum of {cells} gradients. ‖.grad‖ of `{entry.name}` "
        f"went from {entry.before:.3g} to {entry.after:.3g}; this call contributed {entry.arrived:.3g}.",
        event_line(sweep_call(case, swept)),
        fix=clearing_advice(case, [one.key for _, one, _ in repeated], place),
        evidence={
            "of": entry.name,
            "cells": cells,
            "parameters": len(repeated),
            "before": entry.before,
            "after": entry.after,
            "arrived": entry.arrived,
        },
        worth=7.0,
        place=event_place(sweep_call(case, swept)),
    )


def clearing_advice(case: Case, keys: Iterable[int], place: Line | None) -> str:
    """Return advice that clears the gradients of some leaves before a call of backward."""
    call = place.statement or place.source if place is not None else ""
    learners = [case.learners[key] for key in keys if key in case.learners]
    holders: dict[str, None] = {}
    for one in learners:
        known = [name for name in one.optimizers if name] or [one.model]
        if not holders.keys() & set(known):
            holders[known[0]] = None
    names = [one.name for one in learners]
    if learners and "" not in holders:
        if call:
            return f"Call {before('; '.join(f'{name}.zero_grad()' for name in holders), call)}."
        return f"Call zero_grad() of {join_names(holders)} before each backward()."
    if names and len(names) <= MAX_LEAVES_IN_FIX and call:
        return f"Clear them: {before('; '.join(f'{name}.grad = None' for name in names), call)}."
    return "Set the .grad of each to None before each backward()."


# ------------------------------------------------------------------------------------------------------------- empty steps
@check("step-before-backward")
def find_steps_without_gradients(case: Case) -> Iterable[Finding]:
    """Find steps without gradients, if a sweep computed some before or after the step."""
    trace = case.trace
    if trace is None:
        return
    by_optimizer: dict[int, list[int]] = {}
    for at, event in enumerate(trace.events):
        if event.kind == "step":
            by_optimizer.setdefault(event.whose, []).append(at)
    for whose, places in by_optimizer.items():
        steps = [trace.events[at] for at in places]
        if all(event.keys for event in steps) or any(event.keys and event.checked for event in steps):
            continue
        first, held = trace.events[places[0]], set(trace.events[places[0]].held)
        reaching = [swept for swept in trace.journal if any(e.key in held and e.arrived > 0 for e in swept.entries)]
        name = next((one.name for one in case.optimizers if one.whose == whose), "") or first.optimizer
        if not reaching:
            yield from _find_missing_backward(case, name, first, held, len(places))
            continue
        sweep = sweep_place(case, reaching[0])
        norm = math.hypot(*(e.arrived for e in reaching[0].entries if e.key in held))
        earlier = reaching[0].event <= places[0]
        clearing = _find_clearing(case, sweep, first.place) if earlier else None
        text = f"`{name}.zero_grad()`" if clearing is None else f"`{clearing[1]}` on line {clearing[0]}"
        if earlier:
            known = clearing is not None or clears_between(case, sweep, first.place)
            message = (
                f"{quote(first.place)} changed nothing: backward() had computed a gradient of norm {norm:.3g}, and "
                f"{f'{text} cleared it before the step' if known else 'it was 0 or None at the step'}."
            )
            fix = (
                "Clear the gradients before backward(), or after step()." if known else "Find the code that clears or scales it."
            )
        elif sweep is None:
            message = (
                f"{quote(first.place)} changed nothing: backward() was not called in the cell, so no parameter had a gradient."
            )
            idle = _uncalled_backward(case)
            fix = f"Call it: {instead(f'{idle}()', idle)}." if idle else "Call backward() first, then step()."
        else:
            message = (
                f"{quote(first.place)} comes before {quote(sweep)}: no parameter had a gradient yet, so nothing changed. The "
                f"gradient of norm {norm:.3g} was computed afterwards."
            )
            fix = "Call backward() first, then step()."
        yield Finding(
            "step-before-backward",
            message,
            event_line(first),
            fix=fix,
            evidence={"gradient norm": norm, "steps": len(places)},
            worth=8.0,
            lines=() if clearing is None else (clearing[0],),
            place=event_place(first),
        )
    yield from _find_unused_gradients(case)


def _find_missing_backward(case: Case, name: str, first: Event, held: set[int], steps: int) -> Iterable[Finding]:
    """Find steps in a program that calls a model and never calls backward().

    Without a call of a model, the steps may only show a schedule of learning rates.
    """
    assert case.trace is not None
    if case.trace.journal or case.root or not case.trace.calls or any(one.has_grad for one in case.learners_of(held)):
        return
    idle = _uncalled_backward(case)
    yield Finding(
        "step-before-backward",
        f"{quote(first.place)} changed nothing: backward() was not called, so no parameter that `{name}` holds had a gradient.",
        event_line(first),
        fix=f"Call it: {instead(f'{idle}()', idle)}." if idle else "Call backward() on the loss first, then step().",
        evidence={"steps": steps, "parameters": len(held)},
        worth=8.0,
        place=event_place(first),
    )


def _uncalled_backward(case: Case) -> str:
    """Return a statement that names a backward and does not call it, such as `loss.backward`; "" if there is none."""
    idle = [
        node.value for node in case.program.statements if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute)
    ]
    return next((ast.unparse(node) for node in idle if node.attr == "backward"), "")


def _find_unused_gradients(case: Case) -> Iterable[Finding]:
    """Find leaves that the user writes to after their gradient was cleared, so that they do not change."""
    unmoved: list[tuple[SweepEntry, Entry, Event, tuple[int, str]]] = []
    for key, line in case.timelines.items():
        if any(entry.moved != 0 or entry.arrived == 0 for _, entry in line):
            continue
        swept, entry = line[-1]
        event = write_after(case, swept, [key])
        if event is None or event.kind != "write":
            continue
        clearing = _find_clearing(case, sweep_place(case, swept), event.place)
        if clearing is not None:
            unmoved.append((swept, entry, event, clearing))
    if unmoved:
        _, entry, event, (line_number, text) = unmoved[0]
        yield Finding(
            "step-before-backward",
            f"`{text}` on line {line_number} clears the gradient before {quote(event.place)} uses it, so "
            f"{entry_names(case, [one for _, one, _, _ in unmoved])} did not change. backward() had computed a gradient of norm "
            f"{entry.arrived:.3g}.",
            line_number,
            fix=f"Clear it after line {cell_line(event.place)}.",
            evidence={"of": entry.name, "gradient norm": entry.arrived},
            worth=8.0,
        )


def _find_clearing(case: Case, sweep: Line | None, step: Line | None) -> tuple[int, str] | None:
    """Return the line and the source of a statement between two lines of the cell that clears gradients."""
    start, stop = cell_line(sweep), cell_line(step)
    if start is None or stop is None:
        return None
    for node in case.program.statements:
        if start <= node.lineno <= stop and isinstance(node, (ast.Expr, ast.Assign)):
            text = ast.unparse(node)
            if "zero_grad(" in text or ".grad.zero_(" in text or text.endswith(".grad = None"):
                return node.lineno, text
    return None
