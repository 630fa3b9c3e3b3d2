"""Find trainings in which no parameter changes: methods that are named and not called, and loops without a step."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from gradlab.explore.doctor.context.case import Case, Optimizer
from gradlab.explore.doctor.context.code_edits import CLEARING_CODE, after, instead
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, quote, sweep_call, sweep_place
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.step_history import sweeps_by_loss
from gradlab.explore.doctor.context.training_source import (
    OPTIMIZER,
    SCALER,
    SCHEDULER,
    Source,
    conditions_around,
    function_statements,
    method_of,
    role_of,
    source_of,
    sources_of,
    value_of,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.trace.data import Line
from gradlab.explore.trace.journal import SweepEntry

MIN_CALLS = 3  # backward calls of one loss; a lesson or a saliency map has one or two
MAX_INITIAL_WRITES = 6  # by initialising, loading and moving a parameter; each step of an optimizer adds one
# Programs that call backward() for other purposes than training: to measure times, for derivatives of derivatives, for hooks.
OTHER_PURPOSES = re.compile(
    r"\btime\.\w+\(|\b(?:timeit|perf_counter|process_time|profile|profiler|cProfile|benchmark|Timer|retain_graph|create_graph|"
    r"register_\w*hook|functional_call|autograd\.grad|\w*memory_\w+|tracemalloc)\b|['\"]grad['\"]"
)
EFFECTS = {
    ("step", OPTIMIZER): "no step is made",
    ("step", SCALER): "no step is made",
    ("step", SCHEDULER): "the learning rate is not changed",
    ("zero_grad", OPTIMIZER): "the gradients are not cleared",
    ("backward", ""): "no gradient is computed",
}


declare(
    "uncalled-method",
    meaning="`step`, `zero_grad` or `backward` is named without parentheses, so it is not called.",
    why="""
        `optimizer.step` is an expression whose value is the method. Python evaluates it, discards the method, and raises no
        error. The parameters, the learning rate or the gradients stay as they are.
    """,
    remedy="Add the parentheses: `optimizer.step()`.",
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 3), torch.randn(64, 1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step  #!
    """,
    healthy={"optimizer.step": "optimizer.step()"},
)

declare(
    "nothing-learns",
    meaning="Gradients are computed again and again, and no parameter changes.",
    why="""
        `backward()` only computes gradients. The parameters change when an optimizer that holds them makes a step. If the
        step is missing, is in an `if` that is never true, or is of another optimizer, the loss stays where it is, and no error is
        raised. The same holds if each gradient is exactly 0.
    """,
    remedy="""
        Call `optimizer.step()` after each `backward()`, and `optimizer.zero_grad()` before the next one. If all gradients are 0,
        look for the operation of the loss whose derivative is 0.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 3), torch.randn(64, 1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()  #!
    """,
    healthy={"loss.backward()": "loss.backward()\n    optimizer.step()"},
)


# ------------------------------------------------------------------------------------------------------- uncalled methods
@check("uncalled-method")
def find_uncalled_methods(case: Case) -> Iterable[Finding]:
    """Find `opt.step`, `opt.zero_grad` or `loss.backward` as a statement, without parentheses."""
    for source in sources_of(case):
        for node in source.program.statements:
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Attribute):
                continue
            method, name = node.value.attr, ast.unparse(node.value.value)
            if method not in ("step", "zero_grad", "backward") or _is_shown(case, source, node) or _is_tried(source, node):
                continue
            role = "" if method == "backward" else role_of(case, source, name)
            effect = EFFECTS.get((method, role))
            if effect is None or (method == "backward" and not _is_uncalled_sweep(case, source, name)):
                continue
            yield Finding(
                "uncalled-method",
                f"{source.quote(node)} has no parentheses, so the method is not called and {effect}.",
                source.line(node),
                fix=_advise_call(case, source, node.value, role),
                worth=8.5,
                place=source.place_of(node),
            )


def _is_shown(case: Case, source: Source, node: ast.stmt) -> bool:
    """Return whether a statement displays a method: the last one of a cell, outside loops, if no step is missing."""
    last = case.trace is not None and case.trace.program == "the cell" and node is source.program.tree.body[-1]
    return last and (case.trace is None or not case.trace.sweeps or bool(case.steps))


def _is_tried(source: Source, node: ast.stmt) -> bool:
    """Return whether a statement in a `try` finds out whether an object has the method."""
    tries = [one for one in source.program.statements if isinstance(one, ast.Try)]
    return any(one.lineno <= node.lineno <= (one.end_lineno or 0) for one in tries)


def _is_uncalled_sweep(case: Case, source: Source, name: str) -> bool:
    """Return whether `loss.backward` is of a tensor, and no step without gradients is reported, which names it."""
    found, _ = case.found.get("find_steps_without_gradients", ([], ""))
    if any(f"{name}.backward()" in finding.fix for finding in found):
        return False
    value = value_of(case, name)
    return library_of(value) is not None if value is not None else bool(_values_of(source, name))


def _values_of(source: Source, name: str) -> list[ast.expr]:
    """Return the expressions that are assigned to a name."""
    statements = [node for node in source.program.statements if isinstance(node, ast.Assign)]
    return [node.value for node in statements if name in map(ast.unparse, node.targets)]


def _advise_call(case: Case, source: Source, method: ast.Attribute, role: str) -> str:
    """Return how to call a method, as code if its arguments are known."""
    text = source.text(method)
    if role == SCALER:
        named = [one.name for one in case.optimizers if one.name]
        return f"Call it: {instead(f'{text}({named[0]})', text)}." if len(named) == 1 else "Call it with the optimizer."
    owner = value_of(case, ast.unparse(method.value))
    made = [ast.unparse(value) for value in _values_of(source, ast.unparse(method.value))]
    if role == SCHEDULER and any("Plateau" in one for one in (type(owner).__name__, *made)):
        return "Call it with the validation loss."
    return f"Call it: {instead(f'{text}()', text)}."


# ----------------------------------------------------------------------------------------------------------- missing steps
@check("nothing-learns")
def find_missing_steps(case: Case) -> Iterable[Finding]:
    """Find loops of backward calls in which the optimizer that holds the parameters makes no step."""
    trace = case.trace
    if trace is None or trace.sweeps < MIN_CALLS or case.error is not None or case.meant is not None:
        return
    if any(found for found, _ in (case.found.get("find_uncalled_methods", ([], "")),)):
        return
    stepped = {key for event in case.steps for key in event.held}
    for run in sweeps_by_loss(case):
        leaves = {entry.key for entry in run[-1].entries}
        holders = [one for one in case.optimizers if one.name and leaves & {*one.keys}]
        place = sweep_place(case, run[-1])
        source = source_of(case, place)
        written = {key for event in trace.events[run[0].event :] if event.kind == "write" for key in event.keys}
        if place is None or source is None or not holders or leaves & (stepped | written) or len(run) < 2:
            continue
        if _count_calls(case, place, run) < MIN_CALLS:
            continue
        if any(sweep_place(case, swept) != place for swept in run) or not _is_idle(run) or _has_learned(case, holders, leaves):
            continue
        if not _is_for_training(case, source, place):
            continue
        yield from _find_missing_step(case, source, place, run, holders)
        return


def _count_calls(case: Case, place: Line, run: Sequence[SweepEntry]) -> int:
    """Return the number of backward calls of a run, of which not all may be recorded."""
    assert case.trace is not None
    events = sum(event.kind == "backward" and event.place == place for event in case.trace.events)
    return min(case.trace.sweeps, events) if len(run) == len(case.trace.journal) else len(run)


def _is_idle(run: Sequence[SweepEntry]) -> bool:
    """Return whether gradients arrived in each sweep, and nothing wrote to the leaves in between."""
    entries = [entry for swept in run for entry in swept.entries]
    arrived = all(math.hypot(*(entry.arrived for entry in swept.entries)) > 0 for swept in run)
    return arrived and not any(entry.written or entry.moved for entry in entries)


def _has_learned(case: Case, holders: Sequence[Optimizer], leaves: set[int]) -> bool:
    """Return whether the optimizers may have made steps in an earlier cell."""
    if any(getattr(case.namespace.get(one.name), "state", None) for one in holders):
        return True
    tensors = [case.tensors[key] for key in leaves if key in case.learners]
    return any((library := library_of(one)) is not None and library.version(one) > MAX_INITIAL_WRITES for one in tensors)


def _is_for_training(case: Case, source: Source, place: Line) -> bool:
    """Return whether a program has no other use for gradients: it does not read them, and measures nothing."""
    programs = [one.program for one in sources_of(case)]
    if any(OTHER_PURPOSES.search(program.text) for program in programs):
        return False
    for node in (node for program in programs for node in program.statements):
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and CLEARING_CODE.search(ast.unparse(node)):
            continue
        simple = not any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node))
        parts = list(ast.walk(node)) if simple else [part for child in _heads(node) for part in ast.walk(child)]
        if any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in parts):
            return False
        calls = [part for part in parts if isinstance(part, ast.Call)]
        measured = [part for part in calls if ast.unparse(part.func).rpartition(".")[2].startswith("clip_grad")]
        if measured and not (isinstance(node, ast.Expr) and node.value in measured):
            return False  # the norm of the gradients is used
    return True


def _heads(node: ast.stmt) -> list[ast.AST]:
    """Return the expressions of a compound statement, without the statements in it."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler))]


def _find_missing_step(
    case: Case, source: Source, place: Line, run: Sequence[SweepEntry], holders: Sequence[Optimizer]
) -> Iterator[Finding]:
    """Report a loop without a step, if the source shows why there is none."""
    assert case.trace is not None
    statements = function_statements(source, place.line)
    steps = [(one, node) for one in sources_of(case) for node in one.program.statements if method_of(node)[1] == "step"]
    steps = [(one, node) for one, node in steps if role_of(case, one, method_of(node)[0]) != SCHEDULER]
    names = {one.name for one in holders}
    others = {one.name for one in case.optimizers if one.name and any(step.whose == one.whose for step in case.steps)}
    foreign = [node for _, node in steps if method_of(node)[0] in others - names]
    own = [(one, node) for one, node in steps if node not in foreign]
    call = sweep_call(case, run[-1])
    kept = any(entry.before for swept in run[1:] for entry in swept.entries)
    holder = holders[0].name
    entries = [entry for entry in run[-1].entries if any(entry.key in one.keys for one in holders)]
    leaves = entry_names(case, entries)
    unchanged = f"{leaves} did not change."
    calls = _count_calls(case, place, run)
    evidence = {"calls": calls}
    line, where = event_line(call), event_place(call)
    if own:
        inside = [node for node in own if node[1] in statements]
        tests = [conditions_around(statements, node) for _, node in inside]
        if len(inside) != len(own) or not all(tests) or others or len(own) != 1:
            return
        test, node = tests[0][-1], inside[0][1]
        if any(test.lineno <= place.line <= (test.end_lineno or 0) for test in tests[0]):
            return
        yield Finding(
            "nothing-learns",
            f"{source.quote(node)} was never reached: `{source.text(test.test)}` was not true after any of the {calls} "
            f"calls of {quote(place)}, so {unchanged}",
            source.line(node),
            fix=f"Choose a condition that becomes true in the loop, or call `{source.text(node)}` once more after it.",
            evidence=evidence,
            worth=8.0,
            place=source.place_of(node),
        )
        return
    if kept and case.trace.program == "the cell" and not foreign:
        return  # gradients that are added up for a step in a later cell
    if foreign:
        other = method_of(foreign[0])[0]
        text = (
            f"{Source(source.program, source.place).quote(foreign[0])} is a step of another optimizer: `{other}` does not hold "
            f"{leaves}, and `{holder}`, which does, made no step in {calls} calls of {quote(place)}. So {unchanged}"
        )
    else:
        text = f"{quote(place)} was called {calls} times, and no step of `{holder}` uses the gradients, so {unchanged}"
    yield Finding(
        "nothing-learns",
        text,
        line,
        fix=_advise_step(case, source, place, holder, kept=kept),
        evidence=evidence,
        worth=8.0,
        place=where,
    )


def _advise_step(case: Case, source: Source, place: Line, holder: str, *, kept: bool) -> str:
    """Return code for the step after a backward call."""
    text = place.statement or place.source
    step = f"{holder}.step()"
    scaler = re.search(r"([\w.]+)\.scale\(", text)
    if scaler is not None and role_of(case, source, scaler[1]) == SCALER:
        updates = any(method_of(node) == (scaler[1], "update") for node in source.program.statements)
        step = f"{scaler[1]}.step({holder})" + ("" if updates else f"; {scaler[1]}.update()")
    return f"Call it: {after(step + (f'; {holder}.zero_grad()' if kept else ''), text)}."


# ---------------------------------------------------------------------------------------------------------- zero gradients
@check("nothing-learns")
def find_zero_gradients_in_all_sweeps(case: Case) -> Iterable[Finding]:
    """Find optimizers whose parameters got a gradient of exactly 0 in each sweep, if no other finding explains it."""
    trace = case.trace
    if trace is None or case.error is not None or len(case.steps) < MIN_CALLS:
        return
    if any(not one.remark for found, _ in case.found.values() for one in found):
        return
    for run in sweeps_by_loss(case):
        entries = [entry for swept in run for entry in swept.entries]
        keys = {entry.key for entry in entries}
        steps = [event for event in case.steps if keys & {*event.held}]
        losses = [swept.loss for swept in run]
        if (
            len(run) < MIN_CALLS
            or len(steps) < MIN_CALLS
            or any(entry.arrived or entry.moved or entry.after for entry in entries)
        ):
            continue
        if any(loss is None or loss == 0 or not math.isfinite(loss) for loss in losses) or any(event.keys for event in steps):
            continue
        held = {key for event in steps for key in event.held}
        if held - keys:
            continue  # other parameters of the optimizer may learn by another loss
        call = sweep_call(case, run[-1])
        name = f"`{run[-1].root}`" if run[-1].root else "the loss"
        yield Finding(
            "nothing-learns",
            f"{quote(steps[-1].place)} changes nothing: the gradient of {name} with respect to {entry_names(case, entries)} was "
            f"exactly 0 in all {len(run)} backward calls, while {name} was {digits(losses[-1] or 0.0)}.",
            event_line(call),
            fix="Look for the operation of the loss whose derivative is 0 here.",
            evidence={"calls": len(run), "loss": losses[-1]},
            worth=6.0,
            place=event_place(call),
        )
        return
