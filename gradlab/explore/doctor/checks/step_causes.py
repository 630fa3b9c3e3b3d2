"""Find the first step that spoils the weights: it is too long, its weight decay is too strong, or its eps is rounded to 0.

Later findings may be consequences of that step. Weights that the steps made large or small, for example, are not reported as
badly initialised (`drop_consequences`).
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Sequence
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, quote, write_after
from gradlab.explore.doctor.context.flow import Flow, digits, flow_of, root_mean_square
from gradlab.explore.doctor.context.step_history import (
    has_improved,
    input_name,
    large_operand,
    next_loss,
    optimizer_call,
    rate_text,
    standardising_advice,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.trace.data import Event, Operand
from gradlab.explore.trace.journal import Entry, SweepEntry

# ‖Δw‖ / ‖w‖ of one step for a matrix. A usual value is 1e-3 (Karpathy, CS231n). In the healthy examples in tests/doctor it is
# below 3.3, and in the faulty ones it is at least 38.
MAX_RATIO = 10.0
GROWTH = 10.0  # times the loss before the step
SHRUNK_SHARE = 1e-2  # of the first norm, which usual decay does not reach in the 200 sweeps that are recorded
STRONGLY_SHRUNK_SHARE, STRONG_DECAY = 0.5, 0.1  # the same if each step subtracts a tenth of the weights
HALF_LEAST = {"float16": 2.0**-25, "bfloat16": 2.0**-134}  # smaller numbers are rounded to 0
CONSEQUENCES = frozenset(("exploding", "vanishing", "dead", "saturated", "zero-factor", "underflow", "cancelled"))


def find_step_cause(case: Case) -> Finding | None:
    """Return a finding on the first step that spoils the weights."""
    return _find_rounded_eps(case) or _find_strong_decay(case) or _find_long_step(case)


def drop_consequences(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out findings that are consequences of a reported step, if they are of a later sweep."""
    findings = [one for one in findings if not any(_follows(one, cause) for cause in findings)]
    causes = [one for one in findings if "since" in one.evidence]
    if not causes or case.trace is None or case.trace.sweep <= min(one.evidence["since"] for one in causes):
        return list(findings)
    return [one for one in findings if one in causes or not _is_consequence(one)]


def _follows(finding: Finding, cause: Finding) -> bool:
    """Return whether a finding only describes the effect of a cause that is reported: nothing changes, or nothing is cleared."""
    if cause.kind == "uncalled-method":
        return finding.kind == "accumulated" and ".zero_grad()`" in cause.fix
    if cause.kind == "scaled-step":
        return finding.kind in ("update-ratio", "inf-born", "nan-born", "nan-input")
    if cause.kind == "not-probabilities":  # 0 divided by the sum 0
        return finding.kind in ("nan-born", "inf-born") and finding.node == cause.node
    if cause.kind == "clipped-to-nothing":
        return finding.kind == "step-before-backward" or "stuck" in finding.evidence
    if cause.kind == "step-before-backward":
        return finding.kind == "idle-clipping"
    return cause.kind in ("zero-learning-rate", "rounded-update") and "stuck" in finding.evidence


def _is_consequence(finding: Finding) -> bool:
    """Return whether a finding may be a consequence of weights that an earlier step spoilt."""
    if finding.kind == "recurrent":
        return bool(finding.evidence["first"] > finding.evidence["last"])
    unexplained = "seen" in finding.evidence or isinstance(finding.evidence.get("largest"), tuple)  # an overflow
    overflow = finding.kind in ("inf-born", "nan-born") and unexplained
    weights = finding.kind == "nan-input" and "leaf" in finding.evidence
    return finding.kind in CONSEQUENCES or overflow or weights


# ------------------------------------------------------------------------------------------------------------ long steps
def _find_long_step(case: Case) -> Finding | None:
    """Find the first step that changed a matrix by many times its norm."""
    found = _first_long_step(case)
    if found is None:
        return None
    sweep, entry, event = found
    moved, ratio = entry.moved or 0.0, (entry.moved or 0.0) / entry.weight
    next_value = next_loss(case, sweep)
    evidence: dict[str, object] = {
        "of": entry.name,
        "ratio": ratio,
        "moved": moved,
        "weight": entry.weight,
        "gradient norm": entry.arrived,
        "since": sweep.number,
    }
    grew = ""
    if next_value is not None and sweep.loss is not None and not next_value <= GROWTH * abs(sweep.loss):
        grew = f" `{sweep.root or 'the loss'}` went from {digits(sweep.loss)} to {digits(next_value)} in this step."
        grew = grew if sweep.root else grew.replace("`", "").replace("the loss", "The loss", 1)
        evidence |= {"loss": sweep.loss, "next": next_value}
    message = (
        f"{quote(event.place)} moved {entry_names(case, [entry])} by {digits(moved)}, which is {digits(ratio)} times its norm of "
        f"{digits(entry.weight)}{rate_text(event)}.{grew}"
    )
    worth = 7.5 if sweep.number >= case.sweep_with_nan > 0 else 10.5 if case.sweep_with_nan else 7.5
    large = _large_input(case, event, ratio)
    if large is not None:
        i, operand, flow = large
        assert operand.value is not None
        size = root_mean_square(operand.value)
        evidence |= {"input": size, "largest": operand.value.largest, "argument": operand.argument}
        return Finding(
            "update-ratio",
            f"{input_name(flow, i, operand)} has a root mean square of {digits(size)}{flow.place(i)}, and the gradients grow "
            f"with it: {message}",
            flow.line(i),
            i,
            standardising_advice(flow, operand),
            evidence,
            worth=worth + 0.1,
            lines=tuple(line for line in (event_line(event),) if line is not None),
        )
    return Finding(
        "update-ratio",
        message,
        event_line(event),
        fix="Use a smaller learning rate: steps of about a thousandth of the weights are usual.",
        evidence=evidence,
        worth=worth,
        place=event_place(event),
    )


def _first_long_step(case: Case) -> tuple[SweepEntry, Entry, Event] | None:
    """Return the first step that is many times as long as a matrix, and longer than the matrix was at any sweep until then.

    Weights that have come close to 0 change by many times their norm, though the steps are short.
    """
    assert case.trace is not None
    largest: dict[int, float] = {}
    for sweep in case.trace.journal:
        for entry in sweep.entries:
            largest[entry.key] = max(largest.get(entry.key, 0.0), entry.weight)
        worst = max(
            (
                entry
                for entry in sweep.entries
                if _is_step(entry) and (one := case.learners.get(entry.key)) is not None and len(one.shape) >= 2
                if (entry.moved or 0.0) > largest[entry.key]
            ),
            key=lambda entry: (entry.moved or 0.0) / entry.weight,
            default=None,
        )
        if worst is None or (worst.moved or 0.0) / worst.weight <= MAX_RATIO or has_improved(case, sweep):
            continue
        event = write_after(case, sweep, [worst.key])
        if event is not None:
            return sweep, worst, event
    return None


def _is_step(entry: Entry) -> bool:
    """Return whether a step changed a leaf, and its gradient is finite."""
    return bool(entry.moved and entry.weight) and math.isfinite(entry.arrived) and not math.isnan(entry.moved or 0.0)


# ---------------------------------------------------------------------------------------------------------- large inputs
def _large_input(case: Case, event: Event, ratio: float) -> tuple[int, Operand, Flow] | None:
    """Return an input of a layer with numbers far above 1 that made a step too long, for SGD with a usual learning rate."""
    if event.optimizer not in ("", "SGD", "ASGD") or any(one > 1 for one in event.rates) or case.trace is None:
        return None
    flow = flow_of(case)
    for i, weight in enumerate(flow.weights):
        if weight is None or weight < 0:
            continue
        operand = large_operand(flow, i)
        if operand is not None and operand.value is not None and ratio < root_mean_square(operand.value) ** 2:
            return i, operand, flow
    return None


# ----------------------------------------------------------------------------------------------------------------- decay
def _parameter_groups(case: Case) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return the name, the optimizer and the group for each parameter group of the optimizers in the namespace."""
    found = []
    for one in case.optimizers:
        optimizer = case.namespace.get(one.name)
        found += [(one.name, optimizer, group) for group in getattr(optimizer, "param_groups", ()) if isinstance(group, dict)]
    return found


def _find_strong_decay(case: Case) -> Finding | None:
    """Find weights that weight decay shrinks."""
    lines = case.timelines
    for name, optimizer, group in _parameter_groups(case):
        decay, lr = group.get("weight_decay", 0), group.get("lr", 0)
        if not isinstance(decay, (int, float)) or not isinstance(lr, (int, float)) or not decay > 0 or not lr > 0:
            continue
        for parameter in group["params"]:
            line = lines.get(id(parameter), [])
            learner = case.learners.get(id(parameter))
            if learner is None or len(learner.shape) < 2 or len(line) < 2:
                continue
            is_shrunk = _is_shrunk_by_decay(line, type(optimizer).__name__, lr, decay)
            event = write_after(case, line[0][0], [id(parameter)]) if is_shrunk else None
            if event is None:
                continue
            first, last = line[0], line[-1]
            return Finding(
                "update-ratio",
                f"`weight_decay={decay:g}` of `{name}` is too large: the norm of `{learner.name}` falls from "
                f"{digits(first[1].weight)} at backward call {first[0].number} to {digits(last[1].weight)} at backward call "
                f"{last[0].number}, because {quote(event.place)} shrinks the weights at each step{rate_text(event)}.",
                event_line(event),
                fix=_advise_decay(case, name, decay),
                evidence={
                    "of": learner.name,
                    "weight_decay": decay,
                    "first norm": first[1].weight,
                    "last norm": last[1].weight,
                    "numbers": (first[0].number, last[0].number),
                    "since": first[0].number,
                },
                worth=10.5,
                place=event_place(event),
            )
    return None


def _is_shrunk_by_decay(line: Sequence[tuple[SweepEntry, Entry]], kind: str, lr: float, decay: float) -> bool:
    """Return whether weight decay made the norm of a leaf small."""
    norms = [entry.weight for _, entry in line]
    strong = lr * decay >= STRONG_DECAY and kind in ("SGD", "AdamW")
    bound = (STRONGLY_SHRUNK_SHARE if strong else SHRUNK_SHARE) * norms[0]
    at = next((k for k, norm in enumerate(norms) if norm < bound), 0)
    if not at or norms[-1] >= bound:
        return False
    if kind in ("SGD", "AdamW"):  # w becomes (1 - lr · decay) w
        factor, steps = abs(1 - lr * decay), line[at][0].number - line[0][0].number
        return norms[at] == 0 or steps * math.log(max(factor, 1e-300)) <= 0.5 * math.log(norms[at] / norms[0])
    outweighs = [decay * entry.weight > entry.arrived for _, entry in line[:at]]  # the gradient is g + decay · w
    return sum(outweighs) > len(outweighs) / 2


def _advise_decay(case: Case, name: str, decay: float) -> str:
    """Return advice to lower the weight decay, as code if it is not that of one group of parameters."""
    defaults = getattr(case.namespace.get(name), "defaults", {})
    code = _call_with_keyword(case, name, "weight_decay", 1e-4) if defaults.get("weight_decay") == decay else ""
    return f"Use a smaller weight_decay (1e-4 to 1e-2 are usual){f': {code}' if code else ''}."


def _call_with_keyword(case: Case, optimizer: str, keyword: str, value: float) -> str:
    """Return the call that creates an optimizer, with one argument changed, in place of the call in the code."""
    made = optimizer_call(case, optimizer)
    if made is None:
        return ""
    new = copy.deepcopy(made)
    given = next((one for one in new.keywords if one.arg == keyword), None)
    if given is not None:
        given.value = ast.Constant(value)
    else:
        new.keywords.append(ast.keyword(keyword, ast.Constant(value)))
    return instead(ast.unparse(ast.fix_missing_locations(new)), ast.unparse(made))


# ------------------------------------------------------------------------------------------------------------ eps of 0
def _find_rounded_eps(case: Case) -> Finding | None:
    """Find an eps that is rounded to 0, so that the step is not finite if the squares of the gradients are rounded to 0, too."""
    lines = case.timelines
    for name, optimizer, group in _parameter_groups(case):
        eps = group.get("eps")
        for parameter in group["params"]:
            dtype = str(parameter.dtype).rpartition(".")[2]
            learner, line = case.learners.get(id(parameter)), lines.get(id(parameter), [])
            if not isinstance(eps, float) or not eps < HALF_LEAST.get(dtype, 0.0) or learner is None:
                continue
            spoilt = next((pair for pair in line if pair[1].moved is not None and not math.isfinite(pair[1].moved)), None)
            event = write_after(case, spoilt[0], [id(parameter)]) if spoilt is not None else None
            if spoilt is None or event is None:
                continue
            least = 2 * HALF_LEAST[dtype]
            code = _call_with_keyword(case, name, "eps", 1e-4)
            return Finding(
                "underflow",
                f"{quote(event.place)} made `{learner.name}` infinite or NaN: the eps={eps:g} of {type(optimizer).__name__} "
                f"is rounded to 0 in {dtype}, whose smallest positive number is {digits(least)}. Where the squares of the "
                "gradients are rounded to 0 too, the step divides by 0.",
                event_line(event),
                fix="Keep the weights in float32 and compute in float16 with autocast and a GradScaler, or use an eps that "
                f"{dtype} can represent{f': {code}' if code else ''}.",
                evidence={"of": learner.name, "eps": eps, "least": least, "since": spoilt[0].number},
                worth=11.0,
                place=event_place(event),
            )
    return None
