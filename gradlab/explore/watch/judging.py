"""Findings on a run from the numbers of its steps.

A few numbers of each frame are remembered. A finding only states measurements. A layer has stopped learning if its gradient is
exactly 0 at many checks in a row, not if it is small. A loss swings if it varies by half of its mean and does not decrease, while
steps change a layer by a tenth of its weights or more. `tests/explore` checks that healthy runs have no findings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.loss_scale import falling_text
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.watch.examination import ExaminationResult
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.replaying import ORIGIN_KINDS, BadStep

ZEROS = 30  # minimum number of checks in a row at which a gradient is exactly 0
NONZEROS = 3  # minimum number of checks before at which it was not
OLD_GRADIENTS = 3  # minimum number of checks at which `.grad` was not cleared
RECENT = 200  # steps, and checks, that are judged together
LEAST_STEPS = 60  # minimum number of steps for findings on the loss
LARGE_RATIO = 0.1  # minimum median of ‖update‖ / ‖weights‖ of a layer; usual is 1e-4 to 1e-2
SWING = 0.5  # minimum range of the loss, as a share of its mean
SEE_SWEEP = "See the results of each operation: `w.bad_step.sweep`."
TIMES_LEAST, TIMES_FIRST = 100.0, 10.0  # minimum growth of the loss from its minimum, and from the first steps


class Judge:
    """The search for findings in the rows of each frame."""

    def __init__(self, measuring: Any, target: WatchedModel, loss_name: str, optimizer: str) -> None:
        self.measuring, self.target, self.loss_name, self.optimizer = measuring, target, loss_name, optimizer
        self.bad_step: BadStep | None = None
        self.scaled: Any = None  # the `ScaledLosses`
        self.examination = ExaminationResult()  # the doctor's findings on the first steps, once these have ended
        self._last_end, self._window = 0, (0, 0)  # ticks at the end of the last step, and around the bad step
        layers = len(target.layers)
        self._nonzeros = np.zeros(layers, np.int64)  # checks at which the gradient was not 0
        self._zeros = np.zeros(layers, np.int64)  # checks in a row at which it was 0
        self._since = np.zeros(layers, np.int64)  # the first step of these
        self._norm = np.full(layers, np.nan)  # the last norm that was not 0
        self._old, self._cleared = 0, 0  # checks at which `.grad` still had old gradients, and at which it was cleared
        self._old_since, self._old_norm = 0, 0.0
        self._losses: deque[float] = deque(maxlen=RECENT)
        self._first: list[float] = []
        self._ratios: deque[np.ndarray] = deque(maxlen=RECENT)
        self._dead: dict[int, float] = {}  # share of dead units by activation, at the last check

    def add_rows(self, steps: np.ndarray, rows: np.ndarray, old_gradients: dict[int, float]) -> None:
        """Add the steps of a frame in order, counted from 0, with their rows, and the norms of gradients not cleared, by step."""
        layout = self.measuring.layout
        losses = rows[:, layout.loss]
        finite = losses[np.isfinite(losses)]
        self._losses.extend(finite.tolist())
        if len(self._first) < 10:
            self._first += finite[: 10 - len(self._first)].tolist()
        gradients, ratios, dead = (rows[:, part] for part in (layout.gradient, layout.ratio, layout.dead))
        for at in _measured_rows(gradients):
            step, gradient = int(steps[at]), gradients[at]
            known = ~np.isnan(gradient)
            zero = known & (gradient == 0)
            self._since[zero & (self._zeros == 0)] = step
            self._zeros[zero] += 1
            nonzero = known & ~zero
            self._zeros[nonzero] = 0
            self._nonzeros[nonzero] += 1
            self._norm[nonzero] = gradient[nonzero]
            if self.bad_step is None and np.isinf(gradient).any():  # gradients on a device are read after the step
                bad = tuple(self.target.layers[i] for i in np.flatnonzero(np.isinf(gradient)))
                self.bad_step = BadStep(step + 1, "gradient", bad, False)
        self._ratios.extend(ratios[_measured_rows(ratios)])
        for at in _measured_rows(dead):
            self._dead.update((int(i), float(dead[at, i])) for i in np.flatnonzero(~np.isnan(dead[at])))
        for step, norm in old_gradients.items():
            if step == 0:
                continue
            if norm > 0:
                self._old_since = self._old_since or step + 1
                self._old, self._old_norm = self._old + 1, norm
            else:
                self._cleared += 1

    def end_step(self, tick: int) -> None:
        """End a step at a tick of the clock of notes."""
        if self.bad_step is not None and not self._window[1]:
            self._window = self._last_end, tick
        self._last_end = tick

    # -------------------------------------------------------------------------------------------------------- findings
    def diagnosis(self, trouble: str) -> Diagnosis:
        """Return the findings of the doctor on the program, and those on the numbers of the steps."""
        own = [*self._find_stopped_layers(), *self._find_old_gradients(), *self._find_swings(), *self._find_divergence()]
        own += self._find_falling_scale()
        examined = self.examination.diagnosis
        origins = self._find_origin()
        own, origins = ([one for one in several if one.kind not in self.examination.silenced] for several in (own, origins))
        theirs = [one for one in (*examined.findings, *examined.remarks) if not origins or one.kind not in ORIGIN_KINDS]
        by_kind = {one.kind: one.evidence for one in own}
        theirs = [replace(one, evidence={**by_kind.get(one.kind, {}), **one.evidence}, model="") for one in theirs]
        theirs = [one for one in theirs if not self._is_explained_by_stopped(one, own)]
        known = {one.kind for one in theirs}
        if any(one.kind == "update-ratio" and "cosine" in one.evidence for one in theirs):
            known |= {"diverged", "loss-swings"}  # steps that overshoot cause both
        findings = [*origins, *theirs, *(one for one in own if one.kind not in known)]
        return examined.with_parts(findings, [*examined.unseen, *([trouble] if trouble else [])], ())

    @staticmethod
    def _is_explained_by_stopped(finding: Finding, own: Sequence[Finding]) -> bool:
        """Return whether a finding is about dead units that made layers stop learning, which is a finding of its own."""
        stopped = (units for one in own for units in one.evidence.get("dead", ()))
        return finding.kind == "dead" and any(f"`{name}`" in finding.message for name in stopped)

    @property
    def _is_bad_step_examined(self) -> bool:
        """Return whether the first non-finite sweep that the doctor has examined is in the bad step."""
        since, until = self._window
        tick = self.examination.nonfinite_tick
        return tick is not None and since < tick and (tick < until or not until)

    def _find_origin(self) -> list[Finding]:
        bad = self.bad_step
        if bad is None:
            return []
        what = f"`{self.loss_name}`" if bad.what == "loss" else f"the gradient of {_few(bad.parameters)}"
        when = (
            "The weights were still finite."
            if bad.weights_finite
            else "The weights are not finite any more, or were already updated."
        )
        message = f"At step {bad.step} {what} was not finite for the first time. {when}"
        finite = [name for name, value in bad.gradients.items() if not value.odd]
        if bad.parameters and finite:
            message += f" The gradient of {_few(finite)} was finite."
        first, causes = Finding("nan-born", "", worth=12.0), bad.causes
        if self._is_bad_step_examined:  # recorded, with its lines
            diagnosis = self.examination.diagnosis
            origins = tuple(one for one in (*diagnosis.findings, *diagnosis.remarks) if one.kind in ORIGIN_KINDS)
            if diagnosis.findings and not origins:
                return []  # those findings explain it
            causes = origins or causes
        if causes:
            cause = causes[0]
            message = f"{message} {cause.message}"
            first = replace(cause, worth=12.0, model="", remark=False)
            fix = cause.fix or ("Recompute the step: `w.replay()`." if bad.batch is not None else SEE_SWEEP)
        elif bad.batch is not None:
            fix = "Recompute the step: `w.replay()`."
        elif bad.sweep is not None:
            fix = SEE_SWEEP
        else:
            fix = (
                "To find the operation, pass a function that computes the loss of a batch, `gl.watch(…, replay=loss_of)`, "
                "and compute the loss with `w.loss(*batch)`."
            )
        evidence = {"step": bad.step, "what": bad.what, "parameters": list(bad.parameters), "weights_finite": bad.weights_finite}
        return [replace(first, message=message, fix=fix, evidence={**first.evidence, **evidence})]

    def _find_stopped_layers(self) -> list[Finding]:
        learning = [any(p.requires_grad for p in self.target.layer_params(i)) for i in range(len(self.target.layers))]
        stopped = [
            i
            for i in np.flatnonzero((self._zeros >= ZEROS) & (self._nonzeros >= NONZEROS) & (self._zeros * 50 >= self._nonzeros))
            if learning[i]
        ]
        if not stopped:
            return []
        recent = list(self._losses)[-ZEROS:]
        everything = len(stopped) == sum(learning)
        if everything and recent and max(map(abs, recent)) < 1e-12:
            return []  # the loss is 0: training is complete
        first = int(min(stopped, key=lambda i: self._since[i]))
        step, checks = int(self._since[first]) + 1, int(self._zeros[first])
        names = _few([self.target.layers[i] for i in stopped])
        are = "its gradient is" if len(stopped) == 1 else "their gradients are"
        message = (
            f"{names} stopped learning at step {step}: {are} exactly 0 at all {checks} checks since then. The last "
            f"gradient of `{self.target.layers[first]}` that was not 0 had norm {self._norm[first]:.3g}."
        )
        dead = [self.target.activations[i] for i, share in self._dead.items() if share == 1.0]
        fix = "Check the operations after it: one of them passes no gradient back."
        if dead:
            message += (
                f" Every unit of `{dead[0].name}` ({dead[0].kind}) returns 0 for the whole batch, so it passes no gradient back."
            )
            fix = "Use a smaller learning rate, or an activation whose slope is never 0, such as LeakyReLU."
        evidence = {
            "layers": [self.target.layers[i] for i in stopped],
            "step": step,
            "checks": checks,
            "last norm": float(self._norm[first]),
            "dead": [one.name for one in dead],
        }
        return [Finding("stopped-learning", message, fix=fix, evidence=evidence, worth=9.0)]

    def _find_old_gradients(self) -> list[Finding]:
        if self._old < OLD_GRADIENTS or self._cleared * 10 > self._old:
            return []
        checks = self._old + self._cleared
        call = "`optimizer.zero_grad()`" if self.optimizer else "Set `.grad = None` for each parameter"
        return [
            Finding(
                "accumulated",
                f"The gradients were not cleared: at {self._old} of {checks} checks, the first at step {self._old_since}, "
                "`.grad` still held gradients that an earlier step had used. Each step uses the sum of all gradients so far, of "
                f"norm {self._old_norm:.3g} at the last check, in one parameter.",
                fix=f"{'Call ' if self.optimizer else ''}{call} before each `backward()`.",
                evidence={"step": self._old_since, "checks": checks, "uncleared": self._old, "norm": self._old_norm},
                worth=8.0,
            )
        ]

    def _find_falling_scale(self) -> list[Finding]:
        scaled = self.scaled
        if scaled is None or not scaled.steps.is_falling:
            return []
        steps, causes = scaled.steps, scaled.result.causes if scaled.result is not None else ()
        text = falling_text("the GradScaler", steps, scaled.first, scaled.last)
        message = f"{causes[0].message} Therefore {text}." if causes else f"{text[:1].upper()}{text[1:]}."
        fix = causes[0].fix if causes else "Find the operation that overflows: run `gradlab doctor` on the script, or `%%grad`."
        first = causes[0] if causes else Finding("falling-scale", "")
        evidence = {**first.evidence, "skipped": steps.skipped, "steps": steps.made + steps.skipped, "scale": scaled.last}
        return [
            replace(first, kind="falling-scale", message=message, fix=fix, evidence=evidence, worth=11.0, model="", remark=False)
        ]

    def _find_swings(self) -> list[Finding]:
        losses = np.array(self._losses)
        if len(losses) < LEAST_STEPS or len(self._ratios) < 10:
            return []
        half = len(losses) // 2
        mean = float(losses.mean())
        swing = float(np.percentile(losses, 90) - np.percentile(losses, 10))
        if mean <= 0 or swing < SWING * mean or losses[half:].mean() < 0.9 * losses[:half].mean():
            return []
        ratios = self._median_ratios()
        largest = int(np.argmax(ratios)) if len(ratios) else 0
        if not len(ratios) or not ratios[largest] >= LARGE_RATIO:
            return []
        return [
            Finding(
                "loss-swings",
                f"`{self.loss_name}` goes up and down and does not decrease: in the last {len(losses)} steps it was between "
                f"{np.percentile(losses, 10):.3g} and {np.percentile(losses, 90):.3g}, with a mean of {losses[:half].mean():.3g} "
                f"in the first half and {losses[half:].mean():.3g} in the second. The median update of "
                f"`{self.target.layers[largest]}` is {ratios[largest]:.2g} of its weights.",
                fix="Use a smaller learning rate: steps of about a thousandth of the weights are usual.",
                evidence={
                    "swing": swing,
                    "mean": mean,
                    "steps": len(losses),
                    "of": self.target.layers[largest],
                    "ratio": float(ratios[largest]),
                },
                worth=7.0,
            )
        ]

    def _median_ratios(self) -> np.ndarray:
        """Return the median of recent ratios of each layer; −1 for layers without a matrix, since a bias may start at 0."""
        ratios = np.stack(list(self._ratios))
        some = ~np.isnan(ratios).all(0)
        medians = np.full(ratios.shape[1], -1.0)
        medians[some] = np.nanmedian(ratios[:, some], 0)
        for i in range(len(medians)):
            if not any(len(p.shape) >= 2 for p in self.target.layer_params(i)):
                medians[i] = -1.0
        return medians

    def _find_divergence(self) -> list[Finding]:
        layout, columns = self.measuring.layout, self.measuring.columns
        summary = columns.summary()
        means = summary.mean[:, layout.loss]
        known = np.flatnonzero(~np.isnan(means))
        if len(self._first) < 10 or len(self._losses) < LEAST_STEPS or not len(known):
            return []
        first, last = float(np.mean(self._first)), float(np.mean(list(self._losses)[-10:]))
        least = int(known[np.argmin(means[known])])
        if min(first, float(means[least])) <= 0 or last < TIMES_FIRST * first or last < TIMES_LEAST * means[least]:
            return []
        return [
            Finding(
                "diverged",
                f"`{self.loss_name}` grew from {first:.3g} to {last:.3g} (means of the first and last ten steps). Its smallest "
                f"{'mean of ' + str(summary.width) + ' steps' if summary.width > 1 else 'value'} was {means[least]:.3g}, at step "
                f"{least * summary.width + 1}.",
                fix="Use a smaller learning rate, or clip the gradients before each step: "
                "`clip_grad_norm_(model.parameters(), 1.0)`.",
                evidence={"first": first, "least": float(means[least]), "last": last},
                worth=7.5,
            )
        ]


def _measured_rows(rows: np.ndarray) -> np.ndarray:
    """Return the indices of rows with measurements, which most steps do not have."""
    return np.flatnonzero(~np.isnan(rows).all(axis=1))


def _few(names: Any) -> str:
    names = [f"`{name}`" for name in names]
    if len(names) > 3:
        return f"{names[0]}, {names[1]} and {len(names) - 2} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
