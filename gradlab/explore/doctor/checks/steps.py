"""Find steps that increase the loss, that oscillate, and that are rounded to nothing.

Too long steps are found in `step_causes`. A sweep is one recorded backward call.
"""

from __future__ import annotations

import ast
import copy
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from gradlab.explore.doctor.checks.step_causes import find_step_cause
from gradlab.explore.doctor.checks.wrong_signs import STEPS_IN_A_ROW, find_wrong_sign, loss_text
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import flip_sign, instead
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, events_after, quote, write_after
from gradlab.explore.doctor.context.loss_sign import sign_of_loss
from gradlab.explore.doctor.context.step_history import optimizer_call, rate_text, step_cosine, sweeps_by_loss
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import Event
from gradlab.explore.trace.journal import Entry, SweepEntry, sample_size

# The smallest cosine between step and gradient in three steps in a row. In 192 runs (gradient descent, momentum, Adam, RMSprop;
# two depths and activations, full and random batches, three seeds; tests/doctor/measured_runs.py) it is at most −0.25 if the
# steps go against the gradient, and at least 0.26 in the first three steps if they go along it.
MIN_COSINE_UP = 0.1
MIN_STUCK_SHARE = 0.99  # of the elements with a gradient that a step does not change
ORDINARY_RATE = 1e-2  # if the gradient is too small to change the elements at this learning rate, training has converged
MIN_SWINGS = 5  # sweeps in a row in which the gradient reverses
# A step of gradient descent multiplies the gradient along a direction of curvature c by 1 − rate · c. If it overshoots along the
# steepest direction, the gradient reverses: the cosine is −1 if the gradient has this direction, and at −0.9 other directions
# have a fifth of its square.
MAX_COSINE_BACK = -0.9
# A reversal alone is not a fault: near a minimum, and with random batches, gradients of few elements reverse half of the time. An
# oscillation of amplitude x costs E = ½ c x². Its step has the length rate · c x, so −⟨Δw, g⟩ = 2 rate · c E, which is 4 E at
# rate · c = 2, where the loss stops decreasing. So a quarter of −⟨Δw, g⟩ has to be a considerable share of the loss.
MIN_COST = 0.1
MIN_GAIN = 0.1  # share by which the loss must decrease over an oscillation to be accepted, 2 % in each of five steps
SMALL_SHARE = 0.1  # of the first loss; if the loss is below, it has decreased before
# If the data is always the same, an oscillating loss returns to the value of two steps before. With batches of 64 rows it differs
# by an eighth of the standard deviation of the rows.
MAX_SCATTER = 0.05
BLOW_UP_FACTOR = 10.0  # of the loss during an oscillation, more than different batches cause
REWARD_WORDS = ("likelihood", "reward", "return", "elbo", "utility", "score", "log_p", "logp", "objective", "entropy")
LOSS_WORDS = ("loss", "err", "cost", "mse", "nll")


declare(
    "ascent",
    meaning="The steps increase the loss, or they decrease a loss that has the wrong sign.",
    why="""
        A small step against the gradient decreases the loss, and a step along the gradient increases it. A log-likelihood
        without its minus, or a squared error with one, decreases without end while the model becomes worse. If neither the
        name of the loss nor its operations show that it should decrease, the finding is a Note.
    """,
    remedy="""
        Subtract the gradient instead of adding it, and leave `maximize=True` out. Minimise the negative log-likelihood, or the
        squared error without a minus.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(64, 3)
        y = x @ torch.tensor([1.0, -2.0, 0.5])
        w = torch.zeros(3, requires_grad=True)
        for step in range(10):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w += 0.1 * w.grad  #!
                w.grad = None
    """,
    healthy={"w += 0.1 * w.grad": "w -= 0.1 * w.grad"},
    notes=True,
)

declare(
    "update-ratio",
    meaning="The steps are too large or too small, or weight decay shrinks the weights.",
    why="""
        A usual step changes the weights by about a thousandth of their norm. If a step is many times as large as the weights,
        nothing of them is left, and the loss increases, oscillates or becomes NaN. A step
        of gradient descent that is more than twice as long as the way to the minimum ends farther away on the other side. Steps
        below the rounding error of the weights, a relative 6e-8 in float32, change nothing.
    """,
    remedy="""
        Use a smaller learning rate, or a larger one if the steps round to nothing. Standardise large inputs, because the
        gradients grow with them. Use a smaller weight decay if it shrinks the weights: 1e-4 to 1e-2 are usual.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 10), torch.randn(64, 1)
        model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=10)
        for step in range(5):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy={"lr=10": "lr=0.01"},
)


declare(
    "zero-learning-rate",
    meaning="The learning rate is 0 in all steps, or falls to nothing in the first of them.",
    why="A step changes the weights by the learning rate times a direction. If it is 0, nothing is learned.",
    remedy="""
        Use a learning rate above 0. If a scheduler sets it, print `scheduler.get_last_lr()` to see when it becomes 0, and check
        whether `scheduler.step()` is meant for each epoch instead of each batch.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 3), torch.randn(64, 1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 3), torch.randn(64, 1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        for step in range(5):
            optimizer.param_groups[0]["lr"] = 0.02 * step  # warm-up
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    """,
)


@check("zero-learning-rate", keras=True)
def find_zero_learning_rates(case: Case) -> Iterable[Finding]:
    """Find optimizers whose learning rates are 0 in each of at least two steps."""
    for optimizer in dict.fromkeys(event.whose for event in case.steps):
        steps = [event for event in case.steps if event.whose == optimizer]
        if len(steps) > 1 and all(event.rates and not any(event.rates) for event in steps):
            yield Finding(
                "zero-learning-rate",
                f"{quote(steps[0].place)} changes nothing: the learning rate is 0 in all {len(steps)} steps.",
                event_line(steps[0]),
                fix="Use a learning rate above 0.",
                evidence={"steps": len(steps)},
                worth=7.0,
                place=event_place(steps[0]),
            )


@check("ascent", "update-ratio", "underflow", keras=True)
def find_wrong_steps(case: Case) -> Iterable[Finding]:
    """Find steps that increase the loss, are too long or too short, or oscillate."""
    trace = case.trace
    if trace is None or not trace.journal:
        return
    cause = find_step_cause(case)
    if cause is not None and "weight_decay" in cause.evidence:
        yield cause
        return  # weight decay may increase the loss, too
    ascent = _find_ascent(case)
    if ascent is not None:
        yield ascent
    elif (wrong := find_wrong_sign(case)) is not None:
        yield wrong
    if cause is not None:
        yield cause
        return
    rounded = _find_rounded_steps(case)
    if rounded is not None:
        yield rounded
    if ascent is None and (oscillation := _find_oscillation(case)) is not None:
        yield oscillation


# ------------------------------------------------------------------------------------------------------------------ ascent
def _find_ascent(case: Case) -> Finding | None:
    """Find steps that go along the gradient while the loss increases."""
    for run in sweeps_by_loss(case):
        for at in range(len(run) - STEPS_IN_A_ROW):
            window = run[at : at + STEPS_IN_A_ROW + 1]
            cosines = [step_cosine(sweep) for sweep in window[:-1]]
            losses = [sweep.loss for sweep in window if sweep.loss is not None]
            if any(one is None or one < MIN_COSINE_UP for one in cosines) or any(b <= a for a, b in pairwise(losses)):
                continue
            if any(loss > losses[-1] for loss in _earlier_losses(case, window[0])):
                continue  # the loss was larger before: momentum carries the steps beyond a minimum, and up for a while
            moving = [entry for entry in window[0].entries if entry.moved]
            event = write_after(case, window[0], [entry.key for entry in moving])
            if event is None or _is_attack(case, window[0], moving) or _is_by_momentum(case, event, moving):
                continue
            name = window[0].root or "the loss"
            decreases = sign_of_loss(case) == 1 or any(word in name.lower() for word in LOSS_WORDS)
            reward = any(word in name.lower() for word in REWARD_WORDS) and "neg" not in name.lower()
            if (reward and event.maximizes) or (not decreases and (reward or event.maximizes)):
                break  # the code says that the value should increase
            meant = reward or not decreases
            maximizes = " (maximize=True)" if event.maximizes else ""
            return Finding(
                "ascent",
                f"{quote(event.place)}{maximizes} moves {entry_names(case, moving)} along the gradient instead of against it "
                f"(cosine {cosines[0]:.3g}), and {loss_text(name)} grew from {losses[0]:.4g} to {losses[-1]:.4g} in "
                f"{STEPS_IN_A_ROW} steps.",
                event_line(event),
                fix="" if meant else _advise_no_maximize(case, event) if event.maximizes else _advise_descent(event),
                evidence={"cosine": cosines[0], "first": losses[0], "last": losses[-1], "steps": STEPS_IN_A_ROW},
                remark=meant,
                worth=8.0,
                place=event_place(event),
            )
    return None


def _is_by_momentum(case: Case, event: Event, moving: Sequence[Entry]) -> bool:
    """Return whether momentum may explain steps along the gradient: those of an optimizer, of a single number or in Keras.

    The cosine of a single number is 1 or -1. An optimizer of Keras cannot maximize.
    """
    sizes = [math.prod(one.shape) for entry in moving if (one := case.learners.get(entry.key)) is not None]
    is_ascending = event.kind != "step" or event.maximizes or any(rate < 0 for rate in event.rates)
    return not is_ascending and (case.is_of_keras or (len(sizes) == len(moving) and sum(sizes) == 1))


def _earlier_losses(case: Case, sweep: SweepEntry) -> list[float]:
    """Return the values of a loss before a sweep, also with leaves that are frozen now."""
    assert case.trace is not None
    keys = {entry.key for entry in sweep.entries}
    return [
        one.loss
        for one in case.trace.journal
        if one.number < sweep.number
        and one.loss is not None
        and (one.root, one.operation) == (sweep.root, sweep.operation)
        and not keys.isdisjoint(entry.key for entry in one.entries)
    ]


def _advise_descent(event: Event) -> str:
    """Return how to reverse the sign of a step."""
    text = event.place.statement if event.place is not None else ""
    code = instead(flip_sign(text), text)
    return f"Subtract the gradient: {code}." if code else "Subtract the gradient times the learning rate instead of adding it."


def _advise_no_maximize(case: Case, event: Event) -> str:
    """Return how to leave `maximize=True` out where the optimizer is created."""
    name = next((one.name for one in case.optimizers if one.whose == event.whose and one.name), "")
    made = optimizer_call(case, name)
    if made is None:
        return "Leave maximize=True out."
    new = copy.deepcopy(made)
    new.keywords = [one for one in new.keywords if one.arg != "maximize"]
    code = instead(ast.unparse(new), ast.unparse(made)) if len(new.keywords) < len(made.keywords) else ""
    return f"Leave maximize=True out{f': {code}' if code else ''}."


def _is_attack(case: Case, sweep: SweepEntry, moving: Sequence[Entry]) -> bool:
    """Return whether the steps change an input and not the model, as an adversarial attack or DeepDream does."""
    assert case.trace is not None
    models = [e for e in sweep.entries if (one := case.learners.get(e.key)) is not None and one.model]
    called = {prefixes(call.path)[0] for call in case.trace.calls}
    frozen = any(one.model in called and not one.requires_grad for one in case.learners.values())
    of_a_model = any((one := case.learners.get(e.key)) is not None and one.model for e in moving)
    return bool(models or frozen) and not of_a_model


# ------------------------------------------------------------------------------------------------------------- step sizes
def _find_rounded_steps(case: Case) -> Finding | None:
    """Find steps too short to change the weights."""
    steps: list[tuple[Entry, Event]] = []
    for key, line in case.timelines.items():
        for sweep, entry in line:
            if entry.stuck is None or entry.arrived == 0:
                continue
            event = write_after(case, sweep, [key])
            if event is None or key not in event.keys or (event.rates and max(event.rates) == 0):
                continue
            if not event.checked:
                continue
            if event.kind == "write" and entry.moved == 0:
                continue  # the same value may have been written
            if entry.stuck < MIN_STUCK_SHARE or ORDINARY_RATE * entry.arrived < 1e-6 * entry.weight:
                return None
            steps.append((entry, event))
    if not steps:
        return None
    entry, event = steps[-1]
    return Finding(
        "update-ratio",
        f"{quote(event.place)} leaves {entry.stuck:.0%} of the elements of `{entry.name}` unchanged, although their gradients "
        f"are not 0{rate_text(event)}: added to weights of norm {entry.weight:.3g}, the step is rounded to nothing.",
        event_line(event),
        fix="Use a larger learning rate.",
        evidence={"of": entry.name, "stuck": entry.stuck, "weight": entry.weight, "gradient norm": entry.arrived},
        worth=7.0,
        place=event_place(event),
    )


def _find_oscillation(case: Case) -> Finding | None:
    """Find steps that overshoot a minimum again and again."""
    before = _previous_sweeps(case)
    for run in sweeps_by_loss(case):
        for reversals in _oscillating_sweeps(case, run, before):
            steps, losses = [sweep for sweep, _ in reversals], [sweep.loss or 0.0 for sweep, _ in reversals]
            if not (_blows_up(run, losses) or _is_stuck(run, reversals)) or _is_overcome(run, steps):
                continue
            largest = reversals[-1][1]
            event = write_after(case, steps[0], [largest.key])
            if event is None:
                continue
            first, last = losses[0], losses[-1]
            name = run[0].root or "the loss"
            reversing = list({entry.key: entry for _, entry in reversed(reversals)}.values())
            which = "the gradient of" if len(reversing) == 1 else "the largest gradient, finally that of"
            return Finding(
                "update-ratio",
                f"{quote(event.place)} overshoots the minimum each time{rate_text(event)}: in {len(reversals)} backward calls in "
                f"a row {which} {entry_names(case, [largest])}{',' * (len(reversing) > 1)} reversed (cosine {largest.turn:.3g} "
                f"with the one before), and {loss_text(name)} {'grew' if last > first else 'went'} from {first:.4g} to "
                f"{last:.4g}.",
                event_line(event),
                fix="Use a smaller learning rate: half of it, or less.",
                evidence={
                    "of": largest.name,
                    "leaves": [entry.name for entry in reversing],
                    "cosine": largest.turn,
                    "sweeps": len(reversals),
                    "first": first,
                    "last": last,
                },
                worth=7.5,
                place=event_place(event),
            )
    return None


def _previous_sweeps(case: Case) -> dict[tuple[int, int], tuple[SweepEntry, Entry]]:
    """Return the previous sweep of a leaf and its entry, by the number of a sweep and the key of the leaf."""
    pairs = [(key, pair) for key, line in case.timelines.items() for pair in pairwise(line)]
    return {(sweep.number, key): earlier for key, (earlier, (sweep, _)) in pairs}


def _oscillating_sweeps(
    case: Case, run: Sequence[SweepEntry], before: Mapping[tuple[int, int], tuple[SweepEntry, Entry]]
) -> Iterable[list[tuple[SweepEntry, Entry]]]:
    """Yield the sweeps in a row in which the largest gradient of the changed leaves reversed.

    Gradients are only compared if they are of the same loss and a step is between them. The gradients of another loss, or of
    other data before the same step, differ anyway.
    """
    reversals: list[tuple[SweepEntry, Entry]] = []
    written: set[int] = set()  # since the previous sweep
    for i, sweep in enumerate(run):
        moved = []
        for entry in sweep.entries if i else ():
            last, earlier = before.get((sweep.number, entry.key), (None, None))
            if last is run[i - 1] and earlier is not None and earlier.moved and entry.key in written:
                moved.append(entry)
        writes = [event for event in events_after(case, sweep) if event.kind in ("step", "write")]
        written = {key for event in writes for key in (*event.keys, *event.held)}
        largest = max(moved, key=lambda entry: entry.arrived, default=None)
        if largest is not None and largest.turn is not None and largest.turn < MAX_COSINE_BACK:
            reversals.append((sweep, largest))
            continue
        if len(reversals) >= MIN_SWINGS:
            yield reversals
        reversals = []
    if len(reversals) >= MIN_SWINGS:
        yield reversals


def _blows_up(run: Sequence[SweepEntry], losses: Sequence[float]) -> bool:
    """Return whether a loss ends many times as large as its first values, and as those when the oscillation began."""
    quarter = max(2, len(losses) // 4)
    largest = max(abs(loss) for loss in (*(sweep.loss or 0.0 for sweep in run[:MIN_SWINGS]), *losses[:quarter]))
    return statistics.median(losses[-quarter:]) > BLOW_UP_FACTOR * largest > 0


def _is_stuck(run: Sequence[SweepEntry], reversals: Sequence[tuple[SweepEntry, Entry]]) -> bool:
    """Return whether an oscillating loss does not decrease, and the oscillation is a considerable share of it."""
    losses = [sweep.loss or 0.0 for sweep, _ in reversals]
    level, first, last = statistics.median(losses), losses[0], losses[-1]
    if first <= 0 or level <= 0 or last < (1 - MIN_GAIN) * first or last < SMALL_SHARE * (run[0].loss or 0.0):
        return False
    costs = [cost for sweep, _ in reversals if (cost := _descent(sweep)) is not None]
    scatter = statistics.median(abs(c - a) for a, c in zip(losses, losses[2:], strict=False))
    steady = scatter <= MAX_SCATTER * level or all(b > a for a, b in pairwise(losses))
    return steady and bool(costs) and statistics.median(costs) / 4 >= MIN_COST * level


def _descent(sweep: SweepEntry) -> float | None:
    """Return −⟨Δw, g⟩ of the step after a sweep, over all leaves; None if it was not recorded."""
    parts = [-entry.along * entry.size / sample_size(entry.size) for entry in sweep.entries if entry.along is not None]
    return math.fsum(parts) if parts else None


def _is_overcome(run: Sequence[SweepEntry], steps: Sequence[SweepEntry]) -> bool:
    """Return whether the loss decreased after the oscillation."""
    losses = [sweep.loss or 0.0 for sweep in steps]
    later = [sweep.loss or 0.0 for sweep in run if sweep.number > steps[-1].number]
    return len(later) >= MIN_SWINGS and statistics.median(later) < (1 - MIN_GAIN) * statistics.median(losses)
