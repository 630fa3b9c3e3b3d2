"""What the steps of a cell have made of the weights: too long a step, too much decay, a division by an eps of 0.

What comes later follows from it. So the first such step is told, and of weights that steps have blown up or shrunk nobody says
that they were drawn badly (`without_consequences`).
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Sequence
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.events import event_line, names, statement, write_after
from gradlab.explore.doctor.context.flow import Flow, figure, root_mean_square
from gradlab.explore.doctor.context.step_history import (
    _next_loss,
    has_gained,
    input_name,
    large_operand,
    optimizer_call,
    rate,
    standardised,
)
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.trace.data import Event, Operand
from gradlab.explore.trace.journal import Entry, Swept

# ‖Δw‖ / ‖w‖ of one step at a matrix. Healthy training lies at 1e-3 (Karpathy's rule) and, with the largest first steps of the
# healthy cells in our tests, below 3.3; the sick begin at 38.
FAR = 10.0
GROWN = 10.0  # times the loss before the step
SHRUNK = 1e-2  # of the first norm: no usual decay comes there in the 200 sweeps that are remembered
HALVED, STRONG = 0.5, 0.1  # the same where each step takes a tenth of the weights
HALF_LEAST = {"float16": 2.0**-25, "bfloat16": 2.0**-134}  # what is below is rounded to 0
CONSEQUENCES = frozenset(("exploding", "vanishing", "dead", "saturated", "zero-factor", "underflow", "cancelled"))


def step_cause(case: Case) -> Finding | None:
    """Return what a step of the cell did wrong first."""
    return _eps(case) or _decay(case) or _far(case)


def without_consequences(case: Case, findings: Sequence[Finding]) -> list[Finding]:
    """Leave out what follows from steps that are reported, if the sweep that is shown came after them."""
    causes = [one for one in findings if "since" in one.evidence]
    if not causes or case.trace is None or case.trace.sweep <= min(one.evidence["since"] for one in causes):
        return list(findings)
    return [one for one in findings if one in causes or not _follows(one)]


def _follows(finding: Finding) -> bool:
    if finding.kind == "recurrent":
        return bool(finding.evidence["first"] > finding.evidence["last"])
    unexplained = "seen" in finding.evidence or isinstance(finding.evidence.get("largest"), tuple)  # an overflow
    overflow = finding.kind in ("inf-born", "nan-born") and unexplained
    weights = finding.kind == "nan-input" and "leaf" in finding.evidence
    return finding.kind in CONSEQUENCES or overflow or weights


# ------------------------------------------------------------------------------------------------------------ long steps
def _far(case: Case) -> Finding | None:
    """The first step that moved a matrix by many times its own norm."""
    found = _first_far(case)
    if found is None:
        return None
    swept, entry, event = found
    moved, ratio = entry.moved or 0.0, (entry.moved or 0.0) / entry.weight
    then = _next_loss(case, swept)
    evidence: dict[str, object] = {
        "of": entry.name,
        "ratio": ratio,
        "moved": moved,
        "weight": entry.weight,
        "gradient norm": entry.arrived,
        "since": swept.number,
    }
    grew = ""
    if then is not None and swept.loss is not None and not then <= GROWN * abs(swept.loss):
        grew = f" `{swept.root or 'the loss'}` went from {figure(swept.loss)} to {figure(then)} with it."
        grew = grew if swept.root else grew.replace("`", "").replace("the loss", "The loss", 1)
        evidence |= {"loss": swept.loss, "next": then}
    message = (
        f"{statement(event.place)} moved {names(case, [entry])} by {figure(moved)}, which is {figure(ratio)} times its norm of "
        f"{figure(entry.weight)}{rate(event)}.{grew}"
    )
    worth = 7.5 if swept.number >= case.sweep_with_nan > 0 else 10.5 if case.sweep_with_nan else 7.5
    large = _large_input(case, event, ratio)
    if large is not None:
        i, operand, flow = large
        assert operand.value is not None
        size = root_mean_square(operand.value)
        evidence |= {"input": size, "largest": operand.value.largest, "argument": operand.argument}
        return Finding(
            "update-ratio",
            f"{input_name(flow, i, operand)} has a root mean square of {figure(size)}{flow.place(i)}, and the gradients grow "
            f"with it: {message}",
            flow.line(i),
            i,
            standardised(flow, operand),
            evidence,
            worth=worth + 0.1,
            lines=tuple(line for line in (event_line(event),) if line is not None),
        )
    return Finding(
        "update-ratio",
        message,
        event_line(event),
        fix="Take a smaller learning rate: steps of about a thousandth of the weights are usual.",
        evidence=evidence,
        worth=worth,
    )


def _first_far(case: Case) -> tuple[Swept, Entry, Event] | None:
    assert case.trace is not None
    for swept in case.trace.journal:
        worst = max(
            (
                entry
                for entry in swept.entries
                if _is_step(entry) and (one := case.learners.get(entry.key)) is not None and len(one.shape) >= 2
            ),
            key=lambda entry: (entry.moved or 0.0) / entry.weight,
            default=None,
        )
        if worst is None or (worst.moved or 0.0) / worst.weight <= FAR or has_gained(case, swept):
            continue
        event = write_after(case, swept, [worst.key])
        if event is not None:
            return swept, worst, event
    return None


def _is_step(entry: Entry) -> bool:
    """Whether a leaf was moved by a gradient of finite numbers."""
    return bool(entry.moved and entry.weight) and math.isfinite(entry.arrived) and not math.isnan(entry.moved or 0.0)


# ---------------------------------------------------------------------------------------------------------- large inputs
def _large_input(case: Case, event: Event, ratio: float) -> tuple[int, Operand, Flow] | None:
    """The input of a layer that made a step so long: plain gradient descent at a usual rate, and numbers far above 1."""
    if event.optimizer not in ("", "SGD", "ASGD") or any(one > 1 for one in event.rates) or case.trace is None:
        return None
    flow = Flow(case)
    for i, weight in enumerate(flow.weights):
        if weight is None or weight < 0:
            continue
        operand = large_operand(flow, i)
        if operand is not None and operand.value is not None and ratio < root_mean_square(operand.value) ** 2:
            return i, operand, flow
    return None


# ----------------------------------------------------------------------------------------------------------------- decay
def _groups(case: Case) -> list[tuple[str, Any, dict[str, Any]]]:
    """The optimizers of the namespace by name, with each of their groups of parameters."""
    found = []
    for one in case.optimizers:
        optimizer = case.namespace.get(one.name)
        found += [(one.name, optimizer, group) for group in getattr(optimizer, "param_groups", ()) if isinstance(group, dict)]
    return found


def _decay(case: Case) -> Finding | None:
    """Weights that shrink since each step takes a part of them away."""
    lines = case.timelines
    for name, optimizer, group in _groups(case):
        decay, lr = group.get("weight_decay", 0), group.get("lr", 0)
        if not isinstance(decay, (int, float)) or not isinstance(lr, (int, float)) or not decay > 0 or not lr > 0:
            continue
        for parameter in group["params"]:
            line = lines.get(id(parameter), [])
            learner = case.learners.get(id(parameter))
            if learner is None or len(learner.shape) < 2 or len(line) < 2:
                continue
            steps = _shrunk_by(line, type(optimizer).__name__, lr, decay)
            event = write_after(case, line[0][0], [id(parameter)]) if steps else None
            if event is None:
                continue
            first, last = line[0], line[-1]
            return Finding(
                "update-ratio",
                f"weight_decay={decay:g} of `{name}` is too large: the norm of `{learner.name}` falls from "
                f"{figure(first[1].weight)} at sweep {first[0].number} to {figure(last[1].weight)} at sweep {last[0].number}, as "
                f"{statement(event.place)} takes a part of the weights away at each step{rate(event)}.",
                event_line(event),
                fix=_less_decay(case, name),
                evidence={
                    "of": learner.name,
                    "weight_decay": decay,
                    "first norm": first[1].weight,
                    "last norm": last[1].weight,
                    "numbers": (first[0].number, last[0].number),
                    "since": first[0].number,
                },
                worth=10.5,
            )
    return None


def _shrunk_by(line: Sequence[tuple[Swept, Entry]], kind: str, lr: float, decay: float) -> bool:
    """Whether decay made a leaf's norm small."""
    norms = [entry.weight for _, entry in line]
    strong = lr * decay >= STRONG and kind in ("SGD", "AdamW")
    bound = (HALVED if strong else SHRUNK) * norms[0]
    at = next((k for k, norm in enumerate(norms) if norm < bound), 0)
    if not at or norms[-1] >= bound:
        return False
    if kind in ("SGD", "AdamW"):  # w becomes (1 - lr · decay) w
        left = abs(1 - lr * decay)
        return norms[at] == 0 or at * math.log(max(left, 1e-300)) <= 0.5 * math.log(norms[at] / norms[0])
    pulls = [decay * entry.weight > entry.arrived for _, entry in line[:at]]  # the gradient is g + decay · w
    return sum(pulls) > len(pulls) / 2


def _less_decay(case: Case, name: str) -> str:
    code = _with_keyword(case, name, "weight_decay", 1e-4)
    return f"Take a smaller weight_decay: 1e-4 to 1e-2 are usual{f': {code}' if code else ''}."


def _with_keyword(case: Case, optimizer: str, keyword: str, value: float) -> str:
    """The call that makes an optimizer, with one of its arguments changed."""
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
def _eps(case: Case) -> Finding | None:
    """An eps that is 0 in the type of the weights: where the squares of gradients are 0 too, the step is infinite or NaN."""
    lines = case.timelines
    for name, optimizer, group in _groups(case):
        eps = group.get("eps")
        for parameter in group["params"]:
            dtype = str(parameter.dtype).rpartition(".")[2]
            learner, line = case.learners.get(id(parameter)), lines.get(id(parameter), [])
            if not isinstance(eps, float) or not eps < HALF_LEAST.get(dtype, 0.0) or learner is None:
                continue
            harmed = next((pair for pair in line if pair[1].moved is not None and not math.isfinite(pair[1].moved)), None)
            event = write_after(case, harmed[0], [id(parameter)]) if harmed is not None else None
            if harmed is None or event is None:
                continue
            least = 2 * HALF_LEAST[dtype]
            code = _with_keyword(case, name, "eps", 1e-4)
            return Finding(
                "underflow",
                f"{statement(event.place)} made `{learner.name}` infinite or NaN: the eps={eps:g} of {type(optimizer).__name__} "
                f"is rounded to 0 in {dtype}, whose least number is {figure(least)}. Where the squares of the gradients are "
                "rounded to 0 too, the step divides by 0.",
                event_line(event),
                fix="Keep the weights in float32 and let autocast and a GradScaler compute in float16, or use an eps that "
                f"{dtype} can hold{f': {code}' if code else ''}.",
                evidence={"of": learner.name, "eps": eps, "least": least, "since": harmed[0].number},
                worth=11.0,
            )
    return None
