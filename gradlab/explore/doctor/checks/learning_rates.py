"""Find schedulers that bring the learning rate to nothing early in the training, and updates by hand that change nothing."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, events_after, quote
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.step_history import sweeps_by_loss
from gradlab.explore.doctor.context.training_source import (
    CHANGE,
    CLIP,
    SCHEDULER,
    Source,
    function_statements,
    kind_of,
    method_of,
    number_at,
    optimizer_named,
    role_of,
    scheduled_optimizer,
    source_of,
    sources_of,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check
from gradlab.explore.trace.data import Event
from gradlab.explore.trace.journal import Entry, SweepEntry

MIN_STEPS = 8
VANISHED = 1e-4  # of the largest learning rate
# Steps at the largest learning rate that are as long together as all steps. After 5 of them, training is not over. After
# 25 it is not, either, if the loss and the gradients are still about what they were.
FEW, SEVERAL = 5.0, 25.0
STILL_LARGE, STILL_ABOUT = 0.1, 0.4  # shares of the first gradient and the first loss
MAX_MOVE = 1e-7  # ‖Δw‖ / ‖w‖ of a step that changes nothing: about the rounding error of float32
SMALL_MOVE = 1e-6  # for an update by hand, which changes nothing at all
# An update by hand is only reported if the gradient would change the weights at an ordinary learning rate.
ORDINARY_RATE = 1e-2
MIN_CHANGE = 1e-4  # of the weights, by a step of SGD at that learning rate, if the training is not over


# ------------------------------------------------------------------------------------------------------------- schedulers
@check("zero-learning-rate")
def find_vanished_learning_rates(case: Case) -> Iterable[Finding]:
    """Find optimizers whose learning rate fell to nothing in the first half of the steps, while the gradients are still large."""
    for whose in dict.fromkeys(event.whose for event in case.steps):
        steps = [event for event in case.steps if event.whose == whose]
        rates = [max(event.rates, default=math.nan) for event in steps]
        largest = max(rates, default=0.0)
        if len(steps) < MIN_STEPS or not largest > 0 or any(math.isnan(rate) for rate in rates):
            continue
        gone = next((i for i in range(len(rates) - 1, -1, -1) if rates[i] > VANISHED * largest), -1) + 1
        worth_of = math.fsum(rates) / largest
        if gone > len(steps) / 2 or worth_of > SEVERAL or worth_of > len(steps) / 4:
            continue
        shares = (STILL_LARGE, STILL_LARGE) if worth_of <= FEW else (STILL_ABOUT, STILL_ABOUT)
        if not _still_learns(case, set(steps[-1].held), shares, gone):
            continue
        yield _vanished_finding(case, steps, rates, gone)


def _still_learns(case: Case, held: set[int], shares: tuple[float, float], gone: int) -> bool:
    """Return whether gradients and loss are still large at the end, and the last steps do not change the weights.

    They are compared with those of the first sweep, if the sweeps before step `gone` are recorded, and else with the weights.
    """
    for run in sweeps_by_loss(case):
        if len(run) < 2 or not held & {entry.key for entry in run[-1].entries}:
            continue
        first, last = run[0], run[-1]
        norms = [math.hypot(*(entry.arrived for entry in swept.entries if entry.key in held)) for swept in (first, last)]
        if not (math.isfinite(norms[1]) and norms[1] >= shares[0] * norms[0] > 0):
            return False
        if first.loss is not None and last.loss is not None and not abs(last.loss) >= shares[1] * abs(first.loss):
            return False
        entries = [entry for entry in last.entries if entry.key in held]
        weight = math.hypot(*(entry.weight for entry in entries))
        if first.number > gone and ORDINARY_RATE * norms[1] < MIN_CHANGE * weight:
            return False
        return math.hypot(*(entry.moved or 0.0 for entry in entries)) <= MAX_MOVE * weight
    return False


def _vanished_finding(case: Case, steps: Sequence[Event], rates: Sequence[float], gone: int) -> Finding:
    name = optimizer_named(case, steps[0].whose)
    found = _find_schedule(case, steps[0], name)
    cause = quote(steps[0].place) if found is None else found[0].quote(found[1])
    of = f" of `{name}`" if name else ""
    start = rates.index(max(rates))
    fell = f"from {digits(rates[start])} to {digits(rates[gone])} in {gone - start} step{'s' * (gone - start > 1)}"
    rest = f"The other {len(steps) - gone} of {len(steps)} steps, down to {digits(rates[-1])}, change almost nothing."
    evidence = {"first": rates[start], "low": rates[gone], "last": rates[-1], "after": gone - start, "idle": len(steps) - gone}
    evidence["steps"] = len(steps)
    if found is None:
        return Finding(
            "zero-learning-rate",
            f"The learning rate{of} fell {fell} of {cause}. {rest}",
            event_line(steps[0]),
            fix="Let it fall more slowly.",
            evidence=evidence,
            worth=8.0,
            place=event_place(steps[0]),
        )
    source, node = found
    return Finding(
        "zero-learning-rate",
        f"{cause} takes the learning rate{of} {fell}. {rest}",
        source.line(node),
        fix="Run it once per epoch and not after each batch, or let the learning rate fall more slowly.",
        evidence=evidence,
        worth=8.0,
        place=source.place_of(node),
    )


def _find_schedule(case: Case, step: Event, optimizer: str) -> tuple[Source, ast.stmt] | None:
    """Return the statement that steps the scheduler of an optimizer, or writes its learning rate; None if it is not unique."""
    found: list[tuple[Source, ast.stmt]] = []
    for source in sources_of(case):
        for node in source.program.statements:
            base, method = method_of(node)
            if method == "step" and base and role_of(case, source, base) == SCHEDULER:
                owner = scheduled_optimizer(case, source, base)
                is_other = owner in case.namespace and optimizer not in ("", owner)
                found += [(source, node)] if not is_other else []
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found += [(source, node)] if any(ast.unparse(one).endswith("['lr']") for one in targets) else []
    return found[0] if len(found) == 1 else None


# ---------------------------------------------------------------------------------------------------------- steps by hand
@check("zero-learning-rate")
def find_idle_updates(case: Case) -> Iterable[Finding]:
    """Find updates by hand, `w -= lr * w.grad`, that leave each leaf as it is, although it has a gradient."""
    if case.trace is None or not any(event.kind == "write" for event in case.trace.events):
        return
    updates: dict[tuple[str, int], list[tuple[SweepEntry, Entry, Event]]] = {}
    moving: set[tuple[str, int]] = set()
    for swept in case.trace.journal:
        writes = [event for event in events_after(case, swept) if event.kind == "write" and event.place is not None]
        for entry in swept.entries:
            for event in writes:
                if entry.key not in event.keys or event.place is None:
                    continue
                at = event.place.file, event.place.line
                if entry.moved != 0:
                    moving.add(at)
                elif entry.arrived and ORDINARY_RATE * entry.arrived > SMALL_MOVE * entry.weight:
                    updates.setdefault(at, []).append((swept, entry, event))
    idle = {at: several for at, several in updates.items() if at not in moving and len({one[0].number for one in several}) > 1}
    by_factor: dict[tuple[str, str, bool], list[tuple[SweepEntry, Entry, Event]]] = {}
    for several in idle.values():
        factor, is_known = _factor_of(case, several[0][2])
        if not is_known and _is_gradient_changed(case):
            continue
        place = several[0][2].place
        if factor and place is not None:
            by_factor.setdefault((place.file, factor, is_known), []).extend(several)
    for (_, factor, is_known), several in by_factor.items():
        first = several[0][2]
        entries = [entry for _, entry, _ in several]
        sweeps = {swept.number for swept, _, _ in several}
        recorded = "" if len(sweeps) >= case.trace.sweeps else " recorded"
        norm = math.hypot(*(entry.arrived for swept, entry, _ in several if swept.number == several[0][0].number))
        zero = "the gradient is multiplied by 0" if factor in ("0", "0.0") else f"`{factor}` is 0"
        why = zero if is_known else f"`{factor}` is 0, or so small that the step is rounded to nothing"
        yield Finding(
            "zero-learning-rate",
            f"{quote(first.place)} changes nothing in {len(sweeps)}{recorded} steps: {why}, so {entry_names(case, entries)} "
            f"{'stays' if len({entry.key for entry in entries}) == 1 else 'stay'} the same, although the first gradient has norm "
            f"{digits(norm)}.",
            event_line(first),
            fix="Use a learning rate above 0." if is_known else "Use a larger learning rate.",
            evidence={"steps": len(sweeps), "gradient norm": norm, "of": tuple(dict.fromkeys(entry.name for entry in entries))},
            worth=7.5,
            place=event_place(first),
        )


def _is_gradient_changed(case: Case) -> bool:
    """Return whether the program may change or clear gradients before they are used."""
    if case.found.get("find_steps_without_gradients", ([], ""))[0]:
        return True
    nodes = [(source, node) for source in sources_of(case) for node in source.program.statements]
    return any(kind_of(case, source, node) in (CLIP, CHANGE) for source, node in nodes)


def _factor_of(case: Case, write: Event) -> tuple[str, bool]:
    """Return the factor of the gradient in an update if it is 0, "lr", and whether that is known; ("", False) otherwise.

    The factor of `w -= lr * w.grad` is also returned if its value is not known, because it cannot be another number.
    """
    source = source_of(case, write.place)
    if source is None or write.place is None:
        return "", False
    line = write.place.line
    for node in function_statements(source, line):
        if node.lineno != line or not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
            continue
        for product in (part for part in ast.walk(node) if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult)):
            for factor, other in ((product.left, product.right), (product.right, product.left)):
                is_gradient = any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(other))
                value = number_at(case, source, factor, line)
                if is_gradient and value == 0:
                    return source.text(factor), True
                if is_gradient and value is None and isinstance(factor, ast.Name) and _is_update(node, product):
                    return source.text(factor), False
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
            factors = [one.value for one in call.keywords if one.arg in ("alpha", "value")]
            for factor in factors if "grad" in ast.unparse(call) else ():
                plain = factor.operand if isinstance(factor, ast.UnaryOp) else factor
                value = number_at(case, source, factor, line)
                if value == 0 or (value is None and isinstance(plain, ast.Name)):
                    return source.text(plain), value is not None
    return "", False


def _is_update(node: ast.stmt, product: ast.expr) -> bool:
    """Return whether a statement is `w -= product`."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)) and node.value is product
