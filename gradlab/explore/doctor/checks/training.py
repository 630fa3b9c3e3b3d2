"""Training over steps and cells: optimizers that hold other tensors, gradients that add up, steps without gradients."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from gradlab.diagnose.source_locations import clip
from gradlab.explore.doctor.checks.late_parameters import Creation, created_late
from gradlab.explore.doctor.checks.replaced_leaves import replaced_leaves
from gradlab.explore.doctor.context.case import Case, Learner, called, cell_line, listed
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.events import after, asked_at, asked_by, event_line, names, statement, write_after
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import Entry, Swept

CLEARED = 6  # leaves whose gradients are cleared one by one
SAME = 1e-5  # relative: two float32 norms of one gradient, added up in another order, differ by less (n · 6e-8 for n < 160 terms)


# -------------------------------------------------------------------------------------------------------------- the events


declare(
    "stale-optimizer",
    meaning="the optimizer does not hold these parameters",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "accumulated",
    meaning="gradients of several sweeps were added up without intent",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "step-before-backward",
    meaning="step() without the gradients of this loss: before backward(), or after they were zeroed",
    why="",
    remedy="",
    fault="",
    healthy="",
)


# ------------------------------------------------------------------------------------------------------------------- stale
@check("stale-optimizer")
def find_stale_optimizers(case: Case) -> Iterable[Finding]:
    """An optimizer stepped, and something that got a gradient is in no optimizer and did not change."""
    steps = case.steps
    if case.trace is None or not steps:
        return
    held = {key for one in case.optimizers for key in one.keys} | {key for event in steps for key in event.held}
    left: dict[int, tuple[Entry, Event]] = {}
    for key, line in case.timelines.items():
        learner = case.learners.get(key)
        if key in held or learner is None or not (learner.model or learner.parameter) or key in replaced_leaves(case):
            continue
        if any(entry.moved for _, entry in line) or all(entry.written or entry.moved is None for _, entry in line):
            continue
        for swept, entry in line:
            step = next((event for event in after(case, swept) if event.kind == "step"), None)
            if step is not None and entry.arrived > 0 and entry.moved == 0:
                left[key] = entry, step
    if not left:
        return
    stepped = [case.learners[key] for event in steps for key in event.keys if key in case.learners]
    if stepped and not any(one.model for one in stepped) and any(case.learners[key].model for key in left):
        return  # what is optimized is given to a model as its input: the model is meant to stay
    late = _late(case, left)
    if late:
        yield _made_later(case, left, late)
        left = {key: seen for key, seen in left.items() if key not in late}
    if not left:
        return
    learners = [case.learners[key] for key in left]
    step = next(iter(left.values()))[1]
    norm = math.hypot(*(entry.arrived for entry, _ in left.values()))
    old = [key for event in steps for key in event.held if key not in case.learners or "param_groups" in case.learners[key].name]
    old = list(dict.fromkeys(old))
    why = ""
    if old:
        many = f"{len(old)} tensor{'s' * (len(old) > 1)}"
        why = f" It holds {many} that the program has no other name for: what they belonged to was replaced."
    homes = list(dict.fromkeys(one.listed for one in learners if one.listed))
    if homes:
        why = f" {listed(homes)} is a plain list, in which parameters() does not look."
    yield Finding(
        "stale-optimizer",
        f"{statement(step.place)} does not move {called(learners)}: "
        f"{'it is' if len(learners) == 1 else 'they are'} in no optimizer, got "
        f"a gradient of norm {norm:.3g}, and did not change.{why}",
        event_line(step),
        fix=_held_by(case, learners, homes, bool(old), step),
        evidence={
            "leaves": [one.name for one in learners],
            "gradient norm": norm,
            "unnamed": len(old),
            "parameters": len(learners),
        },
        worth=8.0,
    )


def _late(case: Case, left: dict[int, tuple[Entry, Event]]) -> dict[int, Creation]:
    """Those of the leaves that forward makes, of a model of which an optimizer holds all the rest."""
    late = {key: made for key in left if (made := created_late(case, case.learners[key])) is not None}
    models = {case.learners[key].model for key in late}
    rest = [one for one in case.learners.values() if one.model in models and one.requires and one.key not in late]
    return late if rest and all(one.optimizers for one in rest) else {}


def _made_later(case: Case, left: dict[int, tuple[Entry, Event]], late: dict[int, Creation]) -> Finding:
    learners = [one for one in case.learners.values() if one.key in late]
    step = left[learners[0].key][1]
    norm = math.hypot(*(left[key][0].arrived for key in late))
    made = list(late.values())
    places = " and ".join(dict.fromkeys(f"{one.where} in `{one.function}`" for one in made))
    it, its, was = ("it", "It", "is") if len(learners) == 1 else ("them", "They", "are")
    holder = f"`{name}`" if (name := _optimizer(case, step)) else "the optimizer"
    anew = all(one.always for one in made)
    how = (
        f"anew at every call, and {holder} does not hold {it}."
        if anew
        else (f"at the first call of the model, and {holder} was made before that: it does not hold {it}.")
    )
    return Finding(
        "stale-optimizer",
        f"{called(learners)} {was} created {places}, {how} {its} got a gradient of norm {norm:.3g}, and "
        f"{statement(step.place)} did not move {it}.",
        made[0].cell_line or event_line(step),
        fix=f"Create {it} once, in `__init__`."
        if anew
        else f"Create {it} in `__init__`, or call the model once before making the optimizer.",
        evidence={
            "leaves": [one.name for one in learners],
            "gradient norm": norm,
            "unnamed": 0,
            "parameters": len(learners),
        },
        worth=8.0,
        lines=tuple(line for line in (event_line(step),) if line is not None),
    )


def _held_by(case: Case, learners: list[Learner], homes: list[str], old: bool, step: Event) -> str:
    """How the optimizer comes to hold some leaves."""
    if homes:
        known = next(iter(case.program.assigned(_optimizer(case, step))), None)
        source = ast.unparse(known) if known is not None else ""
        code = before("; ".join(f"{home} = gradlab.nn.ModuleList({home})" for home in homes), source)
        return case.spelled(
            f"Make {listed(homes)} an `nn.ModuleList`, and the optimizer after that{f': {code}' if code else ''}."
        )
    models = list(dict.fromkeys(one.model for one in learners if one.model))
    code = _remade(case, learners, step)
    again = _made_in_loop(case, learners, step)
    if again is not None:
        return (
            f"`{clip(ast.unparse(again))}` on line {again.lineno} makes a new tensor in each pass, after the optimizer was "
            "made. Write into the tensor that the optimizer holds, by copy_() under no_grad()."
        )
    if old:
        where = f": {code}" if code else f", from the parameters of `{models[0]}`" if models else ""
        return f"Make the optimizer anew after the change{where}."
    what = f"the parameters of `{models[0]}`" if models else listed([one.name for one in learners])
    how = f": {code}" if code else ""
    return f"Give {what} to the optimizer too{how}. If they are not to learn, set their requires_grad to False."


def _made_in_loop(case: Case, learners: list[Learner], step: Event) -> ast.stmt | None:
    """The statement that makes one of some leaves anew in a loop that steps."""
    line, names = event_line(step), {one.name for one in learners}
    loops = [node for node in case.program.statements if isinstance(node, (ast.For, ast.While))]
    around = [node for node in loops if line is not None and node.lineno <= line <= (node.end_lineno or 0)]
    for node in (part for loop in around for part in ast.walk(loop)):
        if isinstance(node, ast.Assign) and names & {ast.unparse(target) for target in node.targets}:
            return node
    return None


def _optimizer(case: Case, step: Event) -> str:
    return next((one.name for one in case.optimizers if one.whose == step.whose), "")


def _remade(case: Case, learners: list[Learner], step: Event) -> str:
    """The optimizer with these leaves in it as well, before the statement of the cell that steps."""
    name, line = _optimizer(case, step), event_line(step)
    around = next((node for node in case.program.tree.body if line and node.lineno <= line <= (node.end_lineno or 0)), None)
    if not name or around is None or len(step.rates) != 1:
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
    return case.spelled(before(f"{name} = gradlab.optim.{step.optimizer}({group}, lr={step.rates[0]:g}{rest})", first))


def _settings(optimizer: Any) -> dict[str, Any] | None:
    """What an optimizer was told beside its parameters and its learning rate; None if that is not to be written as a number."""
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
    """Gradients of several sweeps were added up, and no accumulation was meant: a step was made of one before the other came, or
    the same was differentiated in an earlier cell."""
    if case.trace is None:
        return
    within: dict[int, list[tuple[Swept, Entry]]] = {}
    for key, line in case.timelines.items():
        used = False  # a step has been made of what is in `.grad`
        for (_, earlier), (swept, entry) in pairwise(line):
            used = bool(entry.before) and (used or (earlier.moved or 0) > 0)
            if used and (entry.moved or 0) > 0:
                within.setdefault(key, []).append((swept, entry))
    if within:
        yield _in_a_loop(case, within)
    elif over_cells := _over_cells(case):
        yield _from_cells(case, over_cells)


def _in_a_loop(case: Case, within: dict[int, list[tuple[Swept, Entry]]]) -> Finding:
    assert case.trace is not None
    longest = max(within.values(), key=len)
    swept, entry = longest[-1]
    place = asked_at(case, swept)
    every = [sweeps[-1][1] for sweeps in within.values()]
    return Finding(
        "accumulated",
        f"{statement(place)} adds to gradients that a step has already been made of, and nothing has cleared them since: in "
        f"{len(longest) + 1} of {case.trace.sweeps} calls {names(case, every)} kept what was there. At the last, ‖.grad‖ of "
        f"`{entry.name}` went from {entry.before:.3g} to {entry.after:.3g}, of which this call brought {entry.arrived:.3g}.",
        event_line(asked_by(case, swept)),
        fix=_clear(case, [one.key for one in every], place),
        evidence={
            "of": entry.name,
            "calls": len(longest) + 1,
            "sweeps": case.trace.sweeps,
            "parameters": len(every),
            "before": entry.before,
            "after": entry.after,
            "arrived": entry.arrived,
        },
        worth=8.0,
    )


def _over_cells(case: Case) -> list[tuple[Swept, Entry, int]]:
    """The first sweeps of the cell that added to what earlier cells had left of the same kind of loss."""
    repeated = []
    for key, line in case.timelines.items():
        swept, entry = line[0]
        known = case.past.leaves.get(key)
        if known is None or not entry.before or known.gradient is None or asked_at(case, swept) is None:
            continue
        if math.isclose(known.gradient, entry.before, rel_tol=SAME) and known.operation == swept.operation:
            repeated.append((swept, entry, known.cells + 1))
    return repeated


def _from_cells(case: Case, repeated: list[tuple[Swept, Entry, int]]) -> Finding:
    swept, entry, cells = repeated[0]
    place = asked_at(case, swept)
    return Finding(
        "accumulated",
        f"{statement(place)} adds to the gradients that earlier cells have left: `.grad` of "
        f"{names(case, [one for _, one, _ in repeated])} "
        f"is now the sum of {cells} of them. ‖.grad‖ of `{entry.name}` went from {entry.before:.3g} to "
        f"{entry.after:.3g}, of which "
        f"this call brought {entry.arrived:.3g}.",
        event_line(asked_by(case, swept)),
        fix=_clear(case, [one.key for _, one, _ in repeated], place),
        evidence={
            "of": entry.name,
            "cells": cells,
            "parameters": len(repeated),
            "before": entry.before,
            "after": entry.after,
            "arrived": entry.arrived,
        },
        worth=7.0,
    )


def _clear(case: Case, keys: Iterable[int], place: Line | None) -> str:
    """How the gradients of some leaves are cleared before a call of backward."""
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
        return f"Call zero_grad() of {listed(holders)} before each backward()."
    if names and len(names) <= CLEARED and call:
        return f"Clear them: {before('; '.join(f'{name}.grad = None' for name in names), call)}."
    return "Set the .grad of each to None before each backward()."


# ------------------------------------------------------------------------------------------------------------- empty steps
@check("step-before-backward")
def find_steps_without_gradients(case: Case) -> Iterable[Finding]:
    """A step that had no gradients to go by, and a sweep that brought some before or after it."""
    trace = case.trace
    if trace is None:
        return
    by_optimizer: dict[int, list[int]] = {}
    for at, event in enumerate(trace.events):
        if event.kind == "step":
            by_optimizer.setdefault(event.whose, []).append(at)
    for whose, places in by_optimizer.items():
        if any(trace.events[at].keys for at in places):
            continue
        first, held = trace.events[places[0]], set(trace.events[places[0]].held)
        reaching = [swept for swept in trace.journal if any(e.key in held and e.arrived > 0 for e in swept.entries)]
        name = next((one.name for one in case.optimizers if one.whose == whose), "") or first.optimizer
        if not reaching:
            yield from _never(case, name, first, held, len(places))
            continue
        sweep = asked_at(case, reaching[0])
        norm = math.hypot(*(e.arrived for e in reaching[0].entries if e.key in held))
        earlier = reaching[0].event <= places[0]
        cleared = _cleared(case, sweep, first.place) if earlier else None
        text = f"`{name}.zero_grad()`" if cleared is None else f"`{cleared[1]}` on line {cleared[0]}"
        if earlier:
            message = (
                f"{statement(first.place)} moved nothing: backward() had brought a gradient of norm {norm:.3g}, and {text} "
                "threw it "
                "away before the step."
            )
            fix = "Clear the gradients before backward(), or after step()."
        elif sweep is None:
            message = (
                f"{statement(first.place)} moved nothing: backward() was not called in the cell, so no parameter had a gradient."
            )
            idle = _not_called(case)
            fix = f"Call it: {instead(f'{idle}()', idle)}." if idle else "Call backward() first, then step()."
        else:
            message = (
                f"{statement(first.place)} comes before {statement(sweep)}: no parameter had a gradient yet, so nothing "
                "moved; the "
                f"gradient of norm {norm:.3g} came afterwards."
            )
            fix = "Call backward() first, then step()."
        yield Finding(
            "step-before-backward",
            message,
            event_line(first),
            fix=fix,
            evidence={"gradient norm": norm, "steps": len(places)},
            worth=8.0,
            lines=() if cleared is None else (cleared[0],),
        )
    yield from _by_hand(case)


def _never(case: Case, name: str, first: Event, held: set[int], steps: int) -> Iterable[Finding]:
    """Steps where a model was called and nothing was ever differentiated: what the optimizer holds has no gradient even now.

    (Where no model was called, steps may be there to show a schedule of learning rates.)
    """
    assert case.trace is not None
    if case.trace.journal or case.root or not case.trace.calls or any(one.graded for one in case.known(held)):
        return
    idle = _not_called(case)
    yield Finding(
        "step-before-backward",
        f"{statement(first.place)} moved nothing: backward() was not called, so no parameter that `{name}` holds had a gradient.",
        event_line(first),
        fix=f"Call it: {instead(f'{idle}()', idle)}." if idle else "Call backward() on the loss first, then step().",
        evidence={"steps": steps, "parameters": len(held)},
        worth=8.0,
    )


def _not_called(case: Case) -> str:
    """The statement that names a backward and does not call it: `loss.backward`."""
    idle = [
        node.value for node in case.program.statements if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute)
    ]
    return next((ast.unparse(node) for node in idle if node.attr == "backward"), "")


def _by_hand(case: Case) -> Iterable[Finding]:
    """The same where the user writes to the leaves: nothing moved, though the memory was written to."""
    unmoved: list[tuple[Swept, Entry, Event, tuple[int, str]]] = []
    for key, line in case.timelines.items():
        if any(entry.moved != 0 or entry.arrived == 0 for _, entry in line):
            continue
        swept, entry = line[-1]
        event = write_after(case, swept, [key])
        if event is None or event.kind != "write":
            continue
        cleared = _cleared(case, asked_at(case, swept), event.place)
        if cleared is not None:
            unmoved.append((swept, entry, event, cleared))
    if unmoved:
        _, entry, event, (line_number, text) = unmoved[0]
        yield Finding(
            "step-before-backward",
            f"`{text}` on line {line_number} clears the gradient before {statement(event.place)} uses it, so "
            f"{names(case, [one for _, one, _, _ in unmoved])} did not move; backward() had brought a gradient of norm "
            f"{entry.arrived:.3g}.",
            line_number,
            fix=f"Clear it after line {cell_line(event.place)}.",
            evidence={"of": entry.name, "gradient norm": entry.arrived},
            worth=8.0,
        )


def _cleared(case: Case, sweep: Line | None, step: Line | None) -> tuple[int, str] | None:
    """The statement between two lines of the cell that clears gradients."""
    start, stop = cell_line(sweep), cell_line(step)
    if start is None or stop is None:
        return None
    for node in case.program.statements:
        if start <= node.lineno <= stop and isinstance(node, (ast.Expr, ast.Assign)):
            text = ast.unparse(node)
            if "zero_grad(" in text or ".grad.zero_(" in text or text.endswith(".grad = None"):
                return node.lineno, text
    return None
