"""Find gradients that are clipped, scaled or overwritten to nothing before the step, and clipping that has no effect."""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import before, instead
from gradlab.explore.doctor.context.events import event_line, quote, sweep_place
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.program import own_statements
from gradlab.explore.doctor.context.training_source import (
    BACKWARD,
    CHANGE,
    CLEAR,
    CLIP,
    CLIPPING,
    SCALER,
    STEP,
    UNSCALE,
    Source,
    call_of,
    function_statements,
    kind_of,
    loop_body,
    method_of,
    number_at,
    role_of,
    source_of,
    sources_of,
    statements_inside,
    value_of,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Event
from gradlab.explore.trace.journal import SweepEntry

NOTHING = 1e-4  # share of the gradient that is left
MAX_MOVE = 1e-6  # ‖Δw‖ / ‖w‖ of a step that changes nothing
UNLIMITED = 1e6  # a limit to measure the norm of the gradients, not to clip them
USUAL_LIMIT = 1.0  # max_norm in most programs


declare(
    "clipped-to-nothing",
    meaning="The gradients are clipped, scaled or set to 0 between `backward()` and the step, so that nothing is left of them.",
    why="""
        `clip_grad_norm_(parameters, max_norm)` scales all gradients together to at most `max_norm`, and
        `clip_grad_value_` limits each element. With a limit of 0 or far below the gradients, the step changes nothing. Gradients
        that a GradScaler has scaled have to be unscaled before they are clipped.
    """,
    remedy="""
        Use a limit near the usual norm of the gradients, which `clip_grad_norm_` returns: 1.0 is common. Call
        `scaler.unscale_(optimizer)` before clipping.
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
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-8)  #!
            optimizer.step()
    """,
    healthy={"1e-8": "1.0"},
)

declare(
    "idle-clipping",
    meaning="The gradients are clipped before `backward()` or after the step, so that clipping has no effect.",
    why="""
        Clipping changes the gradients that are there when it is called. Before `backward()` they are cleared, and after the step
        they have been used. The steps are made with gradients of any size.
    """,
    remedy="Clip between `loss.backward()` and `optimizer.step()`.",
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
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!
            loss.backward()
            optimizer.step()
    """,
    healthy="""
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
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    """,
)


@dataclass(frozen=True)
class StepAfter:
    """A step of an optimizer, the sweep before it, and the norm of the gradients after that sweep."""

    step: Event
    sweep: SweepEntry
    norm: float


# ----------------------------------------------------------------------------------------------------- clipped to nothing
@check("clipped-to-nothing")
def find_gradients_clipped_to_nothing(case: Case) -> Iterable[Finding]:
    """Find statements between backward and the steps that leave nothing of the gradients."""
    for whose in dict.fromkeys(event.whose for event in case.steps):
        pairs = steps_after_sweeps(case, whose)
        if not pairs:
            continue
        source, statements = reducing_statements(case, pairs[-1])
        if source is None:
            continue
        zero, scaled = _is_zero(case, whose), _is_scaled(case, source, pairs[-1])
        limits = [(node, limit_of(case, source, node)) for node in statements]
        found = [(node, limit) for node, limit in limits if (not limit if zero else not scaled and _is_tiny(pairs, limit))]
        if len(found) != 1:
            continue
        node, limit = found[0]
        first = pairs[0]
        evidence: dict[str, object] = {"gradient norm": first.norm}
        numbers = ""
        if limit is not None:
            evidence["limit"] = limit
            numbers = f" ({_limit_name(node)}={limit:g})"
        left = "0" if zero or limit == 0 else "almost 0"
        yield Finding(
            "clipped-to-nothing",
            f"{source.quote(node)} turns gradients of norm {digits(first.norm)} into {left}{numbers}, so "
            f"{quote(first.step.place)} changes nothing.",
            source.line(node),
            fix=_advise_limit(source, node, limit),
            evidence=evidence,
            worth=8.5,
            place=source.place_of(node),
        )


def steps_after_sweeps(case: Case, whose: int) -> list[StepAfter]:
    """Return the steps of an optimizer that follow a recorded sweep which left gradients for it."""
    assert case.trace is not None
    events, pairs = case.trace.events, []
    sweeps = {swept.event: swept for swept in case.trace.journal}
    last: SweepEntry | None = None
    for at, event in enumerate(events):
        if event.kind == "backward":
            last = sweeps.get(at + 1)
        if event.kind == "step" and event.whose == whose and last is not None:
            held = {*event.held}
            norm = math.hypot(*(entry.after or 0.0 for entry in last.entries if entry.key in held))
            if 0 < norm < math.inf:
                pairs.append(StepAfter(event, last, norm))
            last = None
    return pairs


def _is_zero(case: Case, whose: int) -> bool:
    """Return whether all gradients of an optimizer are 0 at each of its steps."""
    steps = [event for event in case.steps if event.whose == whose]
    return not any(event.keys and event.checked for event in steps) and not all(event.keys for event in steps)


def _is_scaled(case: Case, source: Source, pair: StepAfter) -> bool:
    """Return whether the loss was scaled by a GradScaler, so that the gradients are not those of the step."""
    place = sweep_place(case, pair.sweep)
    scaler = re.search(r"([\w.]+)\.scale\(", place.statement if place is not None else "")
    return scaler is not None and role_of(case, source, scaler[1]) == SCALER


def _is_tiny(pairs: Sequence[StepAfter], limit: float | None) -> bool:
    """Return whether a limit is far below the gradients at each step, and no step changes the weights."""
    if limit is None:
        return False
    for pair in pairs:
        entries = [entry for entry in pair.sweep.entries if entry.key in pair.step.held and entry.arrived > 0]
        moved = [entry.moved for entry in entries if entry.moved is not None]
        if not entries or limit > NOTHING * pair.norm or not any(pair.step.rates):
            return False
        if math.hypot(*moved) > MAX_MOVE * math.hypot(*(entry.weight for entry in entries)):
            return False
    return True


def reducing_statements(case: Case, pair: StepAfter) -> tuple[Source | None, list[ast.stmt]]:
    """Return the statements between a backward call and a step that clip, scale or write gradients; none if any clears them."""
    start, stop = sweep_place(case, pair.sweep), pair.step.place
    source = source_of(case, stop)
    if source is None or start is None or stop is None or start.file != stop.file or start.function != stop.function:
        return None, []
    around = [node for node in function_statements(source, stop.line) if start.line <= node.lineno <= stop.line]
    kinds = [kind_of(case, source, node) for node in around]
    first = next((at for at, kind in enumerate(kinds) if kind == BACKWARD), 0)
    last = next((at for at in range(first, len(kinds)) if kinds[at] == STEP and around[at].lineno == stop.line), len(kinds))
    found = [around[at] for at in range(first, last) if kinds[at] in (CLIP, CHANGE)]
    functions = {node.name: node for node in source.program.statements if isinstance(node, ast.FunctionDef)}
    for node in around[first:last]:
        function = functions.get(method_of(node)[1]) if not method_of(node)[0] else None
        inside = list(own_statements(function)) if function is not None else []
        found += [one for one in inside if kind_of(case, source, one) in (CLIP, CHANGE)]
    return source, [node for node in found if _can_reduce(node)] if CLEAR not in kinds[first:last] else []


def _can_reduce(node: ast.stmt) -> bool:
    """Return whether a statement that clips or writes gradients can make them small: not `p.grad += noise`, nor a division."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Mult)
    return not method_of(node)[1].startswith(("add_", "div_"))


def limit_of(case: Case, source: Source, node: ast.stmt) -> float | None:
    """Return the limit of a statement that clips gradients, or the factor by which it scales them, if it is known."""
    expression = _limit_expression(node)
    value = number_at(case, source, expression, node.lineno) if expression is not None else None
    return None if value is None else abs(value)


def _limit_expression(node: ast.stmt) -> ast.expr | None:
    if isinstance(node, ast.AugAssign):
        return node.value if isinstance(node.op, ast.Mult) else None
    call = call_of(node)
    if call is None:
        return None
    named = {one.arg: one.value for one in call.keywords}
    method = method_of(node)[1]
    if method in CLIPPING:
        given = next((named[name] for name in ("max_norm", "clip_value", "clip_val") if name in named), None)
        return given if given is not None else call.args[1] if len(call.args) > 1 else None
    given = named.get("max")
    return given if given is not None else call.args[-1] if call.args else None


def _limit_name(node: ast.stmt) -> str:
    """Return the name of the argument that limits the gradients."""
    method = method_of(node)[1]
    if method in CLIPPING:
        return "max_norm" if "norm" in method else "clip_value"
    return "limit" if method.startswith("cl") else "factor"


def _advise_limit(source: Source, node: ast.stmt, limit: float | None) -> str:
    """Return how to change the limit, or to remove the statement."""
    expression = _limit_expression(node)
    call = call_of(node)
    if call is not None and isinstance(expression, (ast.Constant, ast.UnaryOp)) and method_of(node)[1] in CLIPPING:
        new = copy.deepcopy(call)
        for at, one in enumerate(call.args):
            if one is expression:
                new.args[at] = ast.Constant(USUAL_LIMIT)
        for keyword, old in zip(new.keywords, call.keywords, strict=True):
            if old.value is expression:
                keyword.value = ast.Constant(USUAL_LIMIT)
        return f"Use a limit near the usual norm of the gradients: {instead(ast.unparse(new), source.text(call))}."
    if isinstance(expression, (ast.Name, ast.Attribute)) and (limit is not None or method_of(node)[1] in CLIPPING):
        usual = "a number near the usual norm of the gradients" if method_of(node)[1].startswith("cl") else "a larger number"
        return f"Set `{source.text(expression)}` to {usual}, such as 1."
    return f"Remove `{source.text(node)}`."


# --------------------------------------------------------------------------------------------------------- scaled gradients
@check("clipped-to-nothing")
def find_clipping_of_scaled_gradients(case: Case) -> Iterable[Finding]:
    """Find gradients that are clipped while a GradScaler has multiplied them by its scale."""
    if not _has_clipping(case):
        return
    for whose in dict.fromkeys(event.whose for event in case.steps):
        pairs = steps_after_sweeps(case, whose)
        if len(pairs) < 2:
            continue
        step, place = pairs[-1].step, sweep_place(case, pairs[-1].sweep)
        source = source_of(case, step.place)
        if source is None or step.place is None or place is None or place.file != step.place.file:
            continue
        between = [node for node in loop_body(source, step.place.line) if place.line <= node.lineno <= step.place.line]
        kinds = {node: kind_of(case, source, node) for node in between}
        clips = [node for node in between if kinds[node] == CLIP]
        scaler, method = method_of(next((node for node in between if node.lineno == step.place.line), ast.Pass()))
        if not clips or method != "step" or role_of(case, source, scaler) != SCALER or UNSCALE in kinds.values():
            continue
        value = value_of(case, scaler)
        limit = limit_of(case, source, clips[0])
        call = call_of(next(node for node in between if node.lineno == step.place.line))
        if limit is None or limit >= UNLIMITED or f"{scaler}.scale(" not in (place.statement or ""):
            continue
        if (value is not None and not value.is_enabled()) or call is None or not call.args:
            continue
        if any(pair.norm * pair.sweep.scale < limit for pair in pairs):
            continue
        norm = pairs[-1].norm * pairs[-1].sweep.scale
        yield Finding(
            "clipped-to-nothing",
            f"{source.quote(clips[0])} clips gradients that `{scaler}` has scaled, so their norm is {digits(norm)} and "
            f"the limit of {limit:g} cuts all of them. `{scaler}.step()` then divides them by the scale, and next to nothing is "
            "left.",
            source.line(clips[0]),
            fix=f"Unscale them first: {before(f'{scaler}.unscale_({ast.unparse(call.args[0])})', source.text(clips[0]))}.",
            evidence={"scaled norm": norm, "limit": limit},
            worth=8.0,
            place=source.place_of(clips[0]),
        )


# ----------------------------------------------------------------------------------------------------------- idle clipping
@check("idle-clipping")
def find_idle_clipping(case: Case) -> Iterable[Finding]:
    """Find gradients that are clipped before they are computed, or after they are used."""
    owners = list(dict.fromkeys(event.whose for event in case.steps))
    if len(owners) != 1 or not _has_clipping(case):
        return
    pairs = steps_after_sweeps(case, owners[0])
    if len(pairs) < 2:
        return
    step, place = pairs[-1].step, sweep_place(case, pairs[-1].sweep)
    source = source_of(case, step.place)
    if source is None or step.place is None or place is None or place.file != step.place.file:
        return
    body = loop_body(source, step.place.line)
    order = [(kind, node) for node in body if (kind := _kind_inside(case, source, node))]
    kinds = [kind for kind, _ in order]
    lines = {kind: [node.lineno for one, node in order if one == kind] for kind in (BACKWARD, STEP)}
    if "" in kinds or "?" in kinds or lines[BACKWARD] != [place.line] or lines[STEP] != [step.place.line] or CLEAR not in kinds:
        return
    for clip in idle_clips(order):
        limit = limit_of(case, source, clip)
        if limit is not None and limit >= UNLIMITED:
            continue
        backward, used = (next(node for kind, node in order if kind == one) for one in (BACKWARD, STEP))
        later = clip.lineno > step.place.line or body.index(clip) > body.index(used)
        when = (
            f"runs after {source.quote(used)} has used the gradients"
            if later
            else f"runs before {source.quote(backward)} computes the gradients"
        )
        yield Finding(
            "idle-clipping",
            f"{source.quote(clip)} {when}, so it has no effect.",
            source.line(clip),
            fix=f"Move it between `{source.text(backward)}` and `{source.text(used)}`.",
            worth=7.0,
            lines=tuple(line for line in (event_line(step),) if line is not None and source.place is None),
            place=source.place_of(clip),
        )


def _has_clipping(case: Case) -> bool:
    """Return whether a function that clips gradients is named in the source."""
    return any(name in source.program.text for source in sources_of(case) for name in CLIPPING)


def _kind_inside(case: Case, source: Source, node: ast.stmt) -> str:
    """Return what a statement of a loop does to gradients; "?" if it may do several things, or none."""
    inside = statements_inside(node)
    if len(inside) == 1:
        return kind_of(case, source, node)
    kinds = {kind for one in inside if (kind := kind_of(case, source, one))}
    return CLEAR if kinds == {CLEAR} and isinstance(node, ast.For) else "?" if kinds else ""


def idle_clips(order: Sequence[tuple[str, ast.stmt]]) -> list[ast.stmt]:
    """Return the statements that clip cleared gradients, or gradients that are cleared before a step uses them.

    The statements are those of a loop, in the order of the text. The second iteration shows what follows the last of them.
    """
    is_empty = False
    waiting: list[ast.stmt] = []
    idle: dict[int, ast.stmt] = {}
    for at, (kind, node) in enumerate([*order, *order, *order]):
        late = at >= len(order)
        if kind == CLEAR:
            idle |= {id(one): one for one in waiting}
            is_empty, waiting = True, []
        elif kind in (BACKWARD, CHANGE):
            is_empty = False
        elif kind == STEP:
            waiting = []
        elif kind == CLIP and late and at < 2 * len(order):
            if is_empty:
                idle[id(node)] = node
            else:
                waiting.append(node)
    return list(idle.values())
