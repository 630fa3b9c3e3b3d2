"""Leaves and layers that get nothing: rebound names, leaves and modules that were not used, nothing that asks for a gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, called, cell_line, listed
from gradlab.explore.doctor.context.code_edits import before
from gradlab.explore.doctor.context.cuts import reaching, through_a_buffer
from gradlab.explore.doctor.context.program import bound, read
from gradlab.explore.doctor.errors.lost_history import nothing_asks
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of

# ---------------------------------------------------------------------------------------------------------------- rebound


declare(
    "unused-leaf",
    meaning="a leaf that nothing was computed from",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "unused-module",
    meaning="a layer that was not called",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "frozen",
    meaning="nothing requires a gradient",
    why="",
    remedy="",
    fault="",
    healthy="",
)


# ----------------------------------------------------------------------------------------------------------------- unused
@check("unused-leaf", "unused-module")
def find_unused_leaves(case: Case) -> Iterable[Finding]:
    """Leaves and layers of which nothing was used."""
    trace = case.trace
    if trace is None or not trace.nodes or trace.cut_off:
        return
    explained = {key for torn in reaching(case) for key in torn.keys}
    if not trace.recorded:
        yield from _unreached(case, explained)
        return
    named = {entry.name for swept in trace.journal for entry in swept.entries}
    idle = [
        one
        for one in case.learners.values()
        if one.requires and not one.graded and one.key not in case.reached and one.key not in explained
        if not one.listed and one.name not in named and "param_groups" not in one.name
    ]
    yield from _leaves(case, [one for one in idle if not one.model])
    yield from _modules(case, [one for one in idle if one.model])


def _unreached(case: Case, explained: set[int]) -> Iterable[Finding]:
    """What was said to learn and is not behind the result, in a graph that nobody watched being made: it has no mark of a cut."""
    if case.meant is None:
        return
    lost = [
        one
        for one in case.learners.values()
        if one.requires and one.key in case.meant and one.key not in case.reached and one.key not in explained
    ]
    if lost:
        it, was = ("them", "they were") if len(lost) > 1 else ("it", "it was")
        yield Finding(
            "unused-leaf",
            f"No path leads from the result back to {called(lost)}, so backward() gives {it} no gradient: {was} not used, or cut "
            "off on the way, as by detach(), no_grad or item(). A graph that nobody watched being made does not tell which.",
            None,
            fix="To see the line, put %%doctor above the cell that computes it.",
            evidence={"leaves": [one.name for one in lost]},
            worth=5.0,
        )


def _leaves(case: Case, idle: list[Learner]) -> Iterable[Finding]:
    by_hand = {
        name.id
        for node in ast.walk(case.program.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "grad"
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    }
    for one in idle:
        root = one.name.partition("[")[0].partition(".")[0]
        if root not in case.program.mentioned or root in by_hand or not case.is_meant(one):
            continue
        line, how = _never_used(case, root)
        yield Finding(
            "unused-leaf",
            f"`{one.name}` requires a gradient, and {how}: its `.grad` is None.",
            line,
            fix="Use it on the way to the result, or leave it out.",
            evidence={"leaves": [one.name]},
            worth=5.0,
        )


def _never_used(case: Case, name: str) -> tuple[int | None, str]:
    """The line to look at, and in words what became of a leaf that does not lead to the result."""
    statements = case.program.statements
    used = [node for node in statements if name in read(node) and name not in bound(node)]
    for node in used:
        for target in bound(node):
            after = [other for other in statements if other.lineno > node.lineno]
            for other in after:
                if target in read(other):
                    break
                if target in bound(other):
                    return other.lineno, (
                        f"line {other.lineno} gives the name `{target}` to something else before `{ast.unparse(node)}` on line "
                        f"{node.lineno} was used"
                    )
    if used:
        return used[-1].lineno, "nothing of what was computed from it leads to the result"
    assignments = case.program.assigned(name)
    return (assignments[0].lineno if assignments else None), "nothing was computed from it"


def _modules(case: Case, idle: list[Learner]) -> Iterable[Finding]:
    trace = case.trace
    assert trace is not None
    calls: dict[str, Any] = {}
    for one_call in trace.calls:
        calls.setdefault(one_call.path, one_call)
    began = {
        model for model in case.models if any(path == model or path.startswith((f"{model}.", f"{model}[")) for path in calls)
    }
    groups: dict[str, list[Learner]] = {}
    for one in idle:
        if one.model in began:
            groups.setdefault(one.module, []).append(one)
    for path, group in groups.items():
        whole = [one for one in case.learners.values() if one.module == path and one.requires]
        meant = any(case.is_meant(one) for one in group)
        call: Any = calls.get(path)
        if call is not None and not call.graded:
            continue
        names = ", ".join(one.name.rpartition(".")[2] for one in group)
        if call is None and len(group) == len(whole):
            message = f"`{path}` was not called on the way to the result, so its parameters ({names}) got no gradient."
            kind, fix = "unused-module", f"Call `{path}` in forward, or take it out of the model."
        elif call is not None and call.nodes == 0 and len(group) == len(whole):
            at = cell_line(call.place)
            where = f" on line {at}" if at is not None else ""
            message = f"`{path}` was called{where}, and its result is not used, so its parameters ({names}) got no gradient."
            kind, fix = "unused-module", "Use what it returns."
        else:
            when = f"when `{path}` was called" if call is not None else "on the way to the result"
            message = f"{called(group)} {'was' if len(group) == 1 else 'were'} not used {when}."
            kind, fix = "unused-leaf", "Use it in forward, or take it out."
        line = None if call is None else cell_line(call.place)
        yield Finding(kind, message, line, fix=fix, evidence={"leaves": [one.name for one in group]}, remark=not meant, worth=5.0)


# ----------------------------------------------------------------------------------------------------------------- frozen
@check("frozen", "no_grad")
def find_frozen(case: Case) -> Iterable[Finding]:
    """Nothing that the result was computed from requires a gradient."""
    trace = case.trace
    if trace is None or trace.nodes or not case.root:
        return
    optimized = [one for one in case.learners.values() if one.optimizers]
    off = optimized and not any(one.requires for one in optimized)  # then a cut that lies elsewhere is not the cause
    if not off and any(trace.cuts[i].how != "born" for i in trace.losses):
        return
    if any(trace.cuts[i].how == "born" for i in trace.losses) and any(cut.keys for cut in trace.cuts):
        return
    if through_a_buffer(case):
        return
    assignment = next(iter(reversed(case.program.assigned(case.root))), None)
    line = assignment.lineno if assignment is not None else cell_line(trace.asked)
    statement = assignment if assignment is not None else case.program.at(line) if line is not None else None
    modules = list(dict.fromkeys(call.path for call in trace.calls if call.depth == 0))
    still = [path for path in modules if _is_frozen(case, path)]
    switched = next((at for path in still if (at := _switched_off(case, path)) is not None), None)
    if still:
        parameters = [one for one in case.learners.values() if one.model in still or one.module in still]
        why = f"all {len(parameters)} parameters of {listed(still)} have requires_grad=False"
        caller = _first_call(case, still[0])
        code = before(f"{still[0]}.requires_grad_()", ast.unparse(caller).partition("\n")[0] if caller is not None else "")
        on = f"Switch it on where it is to learn: {code}" if code else f"Call requires_grad_() on `{still[0]}`"
        fix = f"{on}, or on its last layer alone."
    elif (finding := nothing_asks(case.scene)) is not None:
        yield replace(finding, worth=9.0)
        return
    else:
        names = [name for name in sorted(read(statement), key=str) if _could(case.namespace.get(name))] if statement else []
        why = f"none of what it was computed from requires a gradient{f' ({listed(names)})' if names else ''}"
        codes = (
            [before(f"{name}.requires_grad_()", ast.unparse(statement)) for name in names[:3]] if statement is not None else []
        )
        fix = f"Ask for the gradient of what is to learn with requires_grad=True where it is made, or {' or '.join(codes)}."
        fix = fix if codes else ""
    yield Finding(
        "frozen",
        f"`{case.root}` has no history: {why}{f' (line {switched})' if switched else ''}.",
        switched or line,
        fix=fix,
        evidence={"modules": still} | ({"parameters": len(parameters)} if still else {}),
        worth=9.0,
    )


def _first_call(case: Case, path: str) -> ast.stmt | None:
    """The first simple statement of the cell that calls a model."""
    for node in case.program.statements:
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and ast.unparse(part.func) == path]
        if calls and not hasattr(node, "body"):
            return node
    return None


def _switched_off(case: Case, path: str) -> int | None:
    """The line that freezes a model: a loop over its parameters, or `requires_grad_(False)`."""
    for node in case.program.statements:
        text = ast.unparse(node)
        loop = isinstance(node, ast.For) and ast.unparse(node.iter).startswith(
            (f"{path}.parameters(", f"{path}.named_parameters(")
        )
        if (loop and ".requires_grad" in text) or text == f"{path}.requires_grad_(False)":
            return node.lineno
    return None


def _is_frozen(case: Case, path: str) -> bool:
    own = [one for one in case.learners.values() if one.model == path or one.module == path]
    return bool(own) and not any(one.requires for one in own)


def _could(value: Any) -> bool:
    library = library_of(value)
    return library is not None and library.is_leaf(value) and str(value.dtype).rpartition(".")[2].startswith(("float", "bfloat"))
