"""Where the steps lead: up and not down, too far, nowhere, or to and fro."""

from __future__ import annotations

import ast
import copy
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from gradlab.explore.doctor.checks.step_causes import step_cause
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead, negated, turned
from gradlab.explore.doctor.context.events import after, event_line, names, statement, write_after
from gradlab.explore.doctor.context.flow import bare
from gradlab.explore.doctor.context.step_history import optimizer_call, rate, runs
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import Entry, Swept, looked_at

IN_A_ROW = 3  # steps up that are no accident: of a step to a random side each loss grows with probability ½, three with ⅛
# The least cosine of three steps in a row with their gradients. Of 192 runs (gradient descent, momentum, Adam, RMSprop; two
# depths and activations, whole and random batches, three seeds; tests/doctor/measured_runs.py) it is at most −0.25 of steps
# that go down, and at least 0.26 of the first three of those that go up.
UP = 0.1
STUCK = 0.99  # share of the elements that a step leaves as they were, though their gradient is not 0: all but a few
ORDINARY = 1e-2  # a rate at which the same gradient would move them; otherwise training has arrived
SWINGS = 5  # sweeps in a row that turn back
# A step of descent multiplies the gradient along a direction of curvature c by 1 − rate · c: where the steepest one is
# overstepped it turns round, with a cosine of −1 if that direction has all of it; −0.9 leaves a fifth of its square to others.
BACK = -0.9
# Turning alone is not a fault: near a minimum, and with random batches, gradients of few elements turn as often as not. What a
# swing of amplitude x costs is E = ½ c x², and the step that makes it, of length rate · c x, goes 2 rate · c · E along the
# gradient, 4 E at rate · c = 2, where it comes no further. So a quarter of ⟨Δw, g⟩ has to be a part of the loss that counts.
COST = 0.1
GAIN = 0.1  # share of the loss that swinging has to have gained to be let alone: five steps of 2 % each
ARRIVED = 0.1  # of the first loss: what swings below has come down before
# On one and the same data the loss of a swing comes back to what it was two steps before; that of batches of 64 rows is off by
# an eighth of the deviation of the rows.
SCATTER = 0.05
BLOWN = 10.0  # growth of the loss while it swings, which no noise of batches makes
# Operations that give nothing below 0, nothing above 0, and those that leave the sign of what they are given.
ABOVE = frozenset(
    ("MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "NllLoss", "CrossEntropyLoss", "BinaryCrossEntropy", "Abs", "Square",
     "BinaryCrossEntropyWithLogits", "LinalgVectorNorm", "Norm", "Exp", "Relu", "Softmax", "Sigmoid", "Softplus")
)  # fmt: skip
BELOW = frozenset(("LogSoftmax", "LogSigmoid"))
KEEPS = frozenset(
    ("Mean", "Sum", "Index", "Gather", "Select", "View", "Reshape", "Squeeze", "Unsqueeze", "Slice", "Take", "Clone", "ToCopy",
     "Max", "Min", "Getitem", "Diagonal", "Diag", "Transpose", "T", "Permute", "Expand")
)  # fmt: skip
REWARDS = ("likelihood", "reward", "return", "elbo", "utility", "score", "log_p", "logp", "objective", "entropy")
ERRORS = ("loss", "err", "cost", "mse", "nll")


declare(
    "ascent",
    meaning="the steps go up, or the loss has the wrong sign",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "update-ratio",
    meaning="steps far too large or far too small for the weights",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("ascent", "update-ratio", "underflow")
def find_wrong_steps(case: Case) -> Iterable[Finding]:
    """Findings on steps."""
    trace = case.trace
    if trace is None or not trace.journal:
        return
    cause = step_cause(case)
    if cause is not None and "weight_decay" in cause.evidence:
        yield cause
        return  # decay moves weights up the slope of the loss, too
    up = _ascent(case)
    if up is not None:
        yield up
    elif (wrong := _wrong_sign(case)) is not None:
        yield wrong
    if cause is not None:
        yield cause
        return
    still = _still(case)
    if still is not None:
        yield still
    if up is None and (swing := _swings(case)) is not None:
        yield swing


# ------------------------------------------------------------------------------------------------------------------ ascent
def slope(swept: Swept) -> float | None:
    """The cosine between the step after a sweep and its gradient, over all its leaves."""
    if any(entry.moved is None or entry.along is None for entry in swept.entries):
        return None
    moved = math.hypot(*(entry.moved or 0.0 for entry in swept.entries))
    arrived = math.hypot(*(entry.arrived for entry in swept.entries))
    along = math.fsum(entry.along or 0.0 for entry in swept.entries)
    return along / (moved * arrived) if moved > 0 and arrived > 0 and math.isfinite(moved * arrived) else None


def _ascent(case: Case) -> Finding | None:
    for run in runs(case):
        for at in range(len(run) - IN_A_ROW):
            window = run[at : at + IN_A_ROW + 1]
            slopes = [slope(swept) for swept in window[:-1]]
            losses = [swept.loss for swept in window if swept.loss is not None]
            if any(one is None or one < UP for one in slopes) or any(b <= a for a, b in pairwise(losses)):
                continue
            if any(swept.loss is not None and swept.loss > losses[-1] for swept in run[:at]):
                continue  # it has come down from higher: momentum carries steps beyond a valley, and up for a while
            moving = [entry for entry in window[0].entries if entry.moved]
            event = write_after(case, window[0], [entry.key for entry in moving])
            if event is None or _is_attack(case, window[0], moving):
                continue
            name = window[0].root or "the loss"
            falls = _sign(case) == 1 or any(word in name.lower() for word in ERRORS)
            reward = any(word in name.lower() for word in REWARDS) and "neg" not in name.lower()
            if (reward and event.maximizes) or (not falls and (reward or event.maximizes)):
                break  # somebody wrote down that it is to grow
            meant = reward or not falls
            told = " (maximize=True)" if event.maximizes else ""
            return Finding(
                "ascent",
                f"{statement(event.place)}{told} moves {names(case, moving)} up the slope: the cosine of the step with the "
                "gradient is "
                f"{slopes[0]:.3g}, and {_quoted(name)} grew from {losses[0]:.4g} to {losses[-1]:.4g} in {IN_A_ROW} steps.",
                event_line(event),
                fix="" if meant else _without_maximize(case, event) if event.maximizes else _downhill(event),
                evidence={"cosine": slopes[0], "first": losses[0], "last": losses[-1], "steps": IN_A_ROW},
                remark=meant,
                worth=8.0,
            )
    return None


def _downhill(event: Event) -> str:
    """The step with its other sign."""
    text = event.place.statement if event.place is not None else ""
    code = instead(turned(text), text)
    return f"Go against the gradient: {code}." if code else "Subtract the gradient times the rate, in place of adding it."


def _without_maximize(case: Case, event: Event) -> str:
    """Leave `maximize=True` out where the optimizer is made."""
    name = next((one.name for one in case.optimizers if one.whose == event.whose and one.name), "")
    made = optimizer_call(case, name)
    if made is None:
        return "Leave maximize=True out."
    new = copy.deepcopy(made)
    new.keywords = [one for one in new.keywords if one.arg != "maximize"]
    code = instead(ast.unparse(new), ast.unparse(made)) if len(new.keywords) < len(made.keywords) else ""
    return f"Leave maximize=True out{f': {code}' if code else ''}."


def _is_attack(case: Case, swept: Swept, moving: Sequence[Entry]) -> bool:
    """Whether an input is moved while a model stays as it is."""
    models = [e for e in swept.entries if (one := case.learners.get(e.key)) is not None and one.model]
    return bool(models) and not any(entry in models for entry in moving)


def _wrong_sign(case: Case) -> Finding | None:
    """A loss that has no least value falls: its sign is wrong."""
    trace = case.trace
    assert trace is not None
    if _sign(case) != -1:
        return None
    for run in runs(case):
        if len(run) <= IN_A_ROW or run[-1].number != trace.sweep:
            continue
        window = run[-IN_A_ROW - 1 :]
        losses = [swept.loss for swept in window if swept.loss is not None]
        slopes = [slope(swept) for swept in window[:-1]]
        if any(b >= a for a, b in pairwise(losses)) or any(one is None or one > -UP for one in slopes):
            continue
        if any(not entry.moved for entry in window[0].entries):
            continue  # another player of the game stays: a generator against its critic
        output = trace.outputs[0]
        root = trace.nodes[case.inputs[output][0]]
        name = run[-1].root or "the loss"
        return Finding(
            "ascent",
            f"{_quoted(name)[:1].upper()}{_quoted(name)[1:]} cannot be above 0 and has no least value, and the steps make it "
            f"less: from {losses[0]:.4g} to "
            f"{losses[-1]:.4g} in "
            f"{IN_A_ROW} steps. What it measures becomes worse: its sign is wrong.",
            case.line(root),
            case.inputs[output][0],
            _other_sign(root.place, name),
            {"first": losses[0], "last": losses[-1], "steps": IN_A_ROW},
            worth=8.0,
        )
    return None


def _other_sign(place: Line | None, name: str) -> str:
    text = place.statement if place is not None else ""
    code = instead(negated(text), text)
    if not code:
        return f"Change the sign of {_quoted(name)}: a minus before a log-likelihood, and none before a squared error."
    return f"Change the sign of {_quoted(name)}: {code}. This changes the loss to its negative."


def _quoted(name: str) -> str:
    return name if name == "the loss" else f"`{name}`"


def _sign(case: Case) -> int:
    """1 if the loss cannot be below 0 by what it is computed of, −1 if it cannot be above, else 0."""
    trace = case.trace
    if trace is None or not trace.nodes or not trace.outputs:
        return 0

    known: dict[int, int] = {}

    def of(node: int, depth: int) -> int:
        if node not in known:
            known[node] = found(node, depth)
        return known[node]

    def found(node: int, depth: int) -> int:
        one = trace.nodes[node]
        name, inputs = bare(one.operation).rstrip("0123456789"), case.inputs[node]
        if depth > 40:
            return 0
        if name in ABOVE:
            return 1
        if name in BELOW:
            return -1
        numbers = [operand.value.numbers[0] for operand in one.operands if operand.value is not None and operand.value.numbers]
        if name == "Pow" and numbers and isinstance(numbers[0], (int, float)) and numbers[0] % 2 == 0:
            return 1
        if name == "Mul" and len(inputs) == 2 and inputs[0] == inputs[1]:
            return 1
        if len(inputs) == 1 or (inputs and name in KEEPS):
            below = of(inputs[0], depth + 1)
            if name in KEEPS or one.kind == "output":
                return below
            if name == "Neg":
                return -below
            if name in ("Mul", "Div") and len(one.operands) == 1 and len(numbers) == 1 and isinstance(numbers[0], (int, float)):
                return below * (1 if numbers[0] > 0 else -1 if numbers[0] < 0 else 0)
        if name == "Add" and len(inputs) == 2:
            a, b = (of(source, depth + 1) for source in inputs)
            return a if a == b else 0
        return 0

    return of(trace.outputs[0], 0)


# ------------------------------------------------------------------------------------------------------------- step sizes
def _still(case: Case) -> Finding | None:
    steps: list[tuple[Entry, Event]] = []
    for key, line in case.timelines.items():
        for swept, entry in line:
            if entry.stuck is None or entry.arrived == 0:
                continue
            event = write_after(case, swept, [key])
            if event is None or key not in event.keys or (event.rates and max(event.rates) == 0):
                continue
            if event.kind == "write" and entry.moved == 0:
                continue  # it may have been written with what it was
            if entry.stuck < STUCK or ORDINARY * entry.arrived < 1e-6 * entry.weight:
                return None
            steps.append((entry, event))
    if not steps:
        return None
    entry, event = steps[-1]
    return Finding(
        "update-ratio",
        f"{statement(event.place)} leaves {entry.stuck:.0%} of the elements of `{entry.name}` as they were, though "
        "their gradients are "
        f"not 0{rate(event)}: next to weights of norm {entry.weight:.3g} the step rounds to nothing.",
        event_line(event),
        fix="Take a larger learning rate.",
        evidence={"of": entry.name, "stuck": entry.stuck, "weight": entry.weight, "gradient norm": entry.arrived},
        worth=7.0,
    )


def _swings(case: Case) -> Finding | None:
    before = _before_each(case)
    for run in runs(case):
        for back in _stretches(case, run, before):
            steps, losses = [swept for swept, _ in back], [swept.loss or 0.0 for swept, _ in back]
            if not (_blows_up(run, losses) or _stays(run, back)) or _is_overcome(run, steps):
                continue
            largest = back[-1][1]
            event = write_after(case, steps[0], [largest.key])
            if event is None:
                continue
            first, last = losses[0], losses[-1]
            name = run[0].root or "the loss"
            turned = list({entry.key: entry for _, entry in reversed(back)}.values())
            which = "the gradient of" if len(turned) == 1 else "the largest gradient, at last that of"
            return Finding(
                "update-ratio",
                f"{statement(event.place)} steps over the valley and back{rate(event)}: in {len(back)} sweeps in a row "
                f"{which} {names(case, [largest])}{',' * (len(turned) > 1)} turned round (cosine {largest.turn:.3g} with the "
                f"one before), and {_quoted(name)} "
                f"{'grew' if last > first else 'went'} from {first:.4g} to {last:.4g}.",
                event_line(event),
                fix="Take a smaller learning rate: half of it, or less.",
                evidence={
                    "of": largest.name,
                    "leaves": [entry.name for entry in turned],
                    "cosine": largest.turn,
                    "sweeps": len(back),
                    "first": first,
                    "last": last,
                },
                worth=7.5,
            )
    return None


def _before_each(case: Case) -> dict[tuple[int, int], tuple[Swept, Entry]]:
    """The sweep before, and what it brought, by the number of a sweep and the leaf."""
    pairs = [(key, pair) for key, line in case.timelines.items() for pair in pairwise(line)]
    return {(swept.number, key): earlier for key, (earlier, (swept, _)) in pairs}


def _stretches(
    case: Case, run: Sequence[Swept], before: Mapping[tuple[int, int], tuple[Swept, Entry]]
) -> Iterable[list[tuple[Swept, Entry]]]:
    """The sweeps in a row in which the largest gradient, of the leaves that are moved between them, turned back."""
    back: list[tuple[Swept, Entry]] = []
    written: set[int] = set()  # between the sweep before and this one
    for i, swept in enumerate(run):
        # A gradient is compared with that of the same loss, and across a step: another loss, or another part of the data
        # before the same step, points elsewhere by itself.
        moved = []
        for entry in swept.entries if i else ():
            last, earlier = before.get((swept.number, entry.key), (None, None))
            if last is run[i - 1] and earlier is not None and earlier.moved and entry.key in written:
                moved.append(entry)
        written = {key for event in after(case, swept) if event.kind != "backward" for key in (*event.keys, *event.held)}
        largest = max(moved, key=lambda entry: entry.arrived, default=None)
        if largest is not None and largest.turn is not None and largest.turn < BACK:
            back.append((swept, largest))
            continue
        if len(back) >= SWINGS:
            yield back
        back = []
    if len(back) >= SWINGS:
        yield back


def _blows_up(run: Sequence[Swept], losses: Sequence[float]) -> bool:
    """Whether a loss is in the end many times the largest that it was at first, and when it began to swing."""
    quarter = max(2, len(losses) // 4)
    largest = max(abs(loss) for loss in (*(swept.loss or 0.0 for swept in run[:SWINGS]), *losses[:quarter]))
    return statistics.median(losses[-quarter:]) > BLOWN * largest > 0


def _stays(run: Sequence[Swept], back: Sequence[tuple[Swept, Entry]]) -> bool:
    """Whether a loss swings without coming down, and pays for it."""
    losses = [swept.loss or 0.0 for swept, _ in back]
    level, first, last = statistics.median(losses), losses[0], losses[-1]
    if first <= 0 or level <= 0 or last < (1 - GAIN) * first or last < ARRIVED * (run[0].loss or 0.0):
        return False
    costs = [cost for swept, _ in back if (cost := _along(swept)) is not None]
    scatter = statistics.median(abs(c - a) for a, c in zip(losses, losses[2:], strict=False))
    steady = scatter <= SCATTER * level or all(b > a for a, b in pairwise(losses))
    return steady and bool(costs) and statistics.median(costs) / 4 >= COST * level


def _along(swept: Swept) -> float | None:
    """How far the step after a sweep went down its gradient, −⟨Δw, g⟩ over all leaves; None if that was not seen."""
    parts = [-entry.along * entry.size / looked_at(entry.size) for entry in swept.entries if entry.along is not None]
    return math.fsum(parts) if parts else None


def _is_overcome(run: Sequence[Swept], steps: Sequence[Swept]) -> bool:
    """Whether the loss has come down after it swung."""
    losses = [swept.loss or 0.0 for swept in steps]
    later = [swept.loss or 0.0 for swept in run if swept.number > steps[-1].number]
    return len(later) >= SWINGS and statistics.median(later) < (1 - GAIN) * statistics.median(losses)
