"""The doctor over time: what a run says of itself, from the numbers of its steps.

Of each frame a few numbers are remembered. A claim is made only of what was measured: a layer has stopped where its gradient is
exactly 0, at look after look, and never where it is small; a loss swings where it goes up and down by half of itself and comes no
further, while each step moves weights by a tenth of themselves or more. What healthy runs do is in `tests/explore`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.watch.examination import Examined
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.replaying import BIRTHS, KeptStep

LOOKS = 30  # at which a gradient is exactly 0 in a row before it is said
ALIVE = 3  # looks at which it was not before
STALE = 3  # looks at which `.grad` was not cleared
RECENT = 200  # steps, and looks, that are judged together
LEAST = 60  # steps before anything is said of where a loss goes
FAR = 0.1  # ‖update‖ / ‖weights‖ of a layer, in the median; usual is 1e-4 to 1e-2
SWING = 0.5  # of the mean of the loss
SWEPT = "Look at what each operation made of it: `w.kept.sweep`."
BLOWN, ROSE = 100.0, 10.0  # times the least loss, and times the first


class Judge:
    """Sees the rows of each frame."""

    def __init__(self, measuring: Any, of: WatchedModel, loss: str, optimizer: str) -> None:
        self.measuring, self.of, self.loss, self.optimizer = measuring, of, loss, optimizer
        self.kept: KeptStep | None = None
        self.examined = Examined()  # what the doctor found in the first steps, once these are over
        self._last_end, self._window = 0, (0, 0)  # ticks at the end of the last step, and around the step that is kept
        layers = len(of.layers)
        self._alive = np.zeros(layers, np.int64)  # looks at which the gradient was not 0
        self._zeros = np.zeros(layers, np.int64)  # looks in a row at which it was
        self._since = np.zeros(layers, np.int64)  # the first of these
        self._norm = np.full(layers, np.nan)  # the last that was not 0
        self._stale, self._cleared, self._stale_at, self._stale_norm = 0, 0, 0, 0.0
        self._losses: deque[float] = deque(maxlen=RECENT)
        self._first: list[float] = []
        self._ratios: deque[np.ndarray] = deque(maxlen=RECENT)
        self._dead: dict[int, float] = {}  # the share, at the last look

    def see(self, steps: np.ndarray, rows: np.ndarray, stale: dict[int, float]) -> None:
        """The steps of a frame, counted from 0, in order, with their rows, and the norms that were not cleared."""
        layout = self.measuring.layout
        losses = rows[:, layout.loss]
        finite = losses[np.isfinite(losses)]
        self._losses.extend(finite.tolist())
        if len(self._first) < 10:
            self._first += finite[: 10 - len(self._first)].tolist()
        gradients, ratios, dead = (rows[:, part] for part in (layout.gradient, layout.ratio, layout.dead))
        for at in _with_numbers(gradients):
            step, gradient = int(steps[at]), gradients[at]
            seen = ~np.isnan(gradient)
            zero = seen & (gradient == 0)
            self._since[zero & (self._zeros == 0)] = step
            self._zeros[zero] += 1
            alive = seen & ~zero
            self._zeros[alive] = 0
            self._alive[alive] += 1
            self._norm[alive] = gradient[alive]
            if self.kept is None and np.isinf(gradient).any():  # on a device it is read with the frame, after the step
                spoilt = tuple(self.of.layers[i] for i in np.flatnonzero(np.isinf(gradient)))
                self.kept = KeptStep(step + 1, "gradient", spoilt, False)
        self._ratios.extend(ratios[_with_numbers(ratios)])
        for at in _with_numbers(dead):
            self._dead.update((int(i), float(dead[at, i])) for i in np.flatnonzero(~np.isnan(dead[at])))
        for step, norm in stale.items():
            if step == 0:
                continue
            if norm > 0:
                self._stale_at = self._stale_at or step + 1
                self._stale, self._stale_norm = self._stale + 1, norm
            else:
                self._cleared += 1

    def ended_step(self, tick: int) -> None:
        """A step is over, at a tick of the clock of notes."""
        if self.kept is not None and not self._window[1]:
            self._window = self._last_end, tick
        self._last_end = tick

    # ------------------------------------------------------------------------------------------------------ what is said
    def diagnosis(self, trouble: str) -> Diagnosis:
        """What is found: by the doctor in the program, and in the numbers of the steps."""
        own = [*self._stopped(), *self._accumulated(), *self._far(), *self._blown()]
        examined = self.examined.diagnosis
        births = self._birth()
        own, births = ([one for one in several if one.kind not in self.examined.silenced] for several in (own, births))
        theirs = [one for one in (*examined.findings, *examined.remarks) if not births or one.kind not in BIRTHS]
        by_kind = {one.kind: one.evidence for one in own}
        theirs = [replace(one, evidence={**by_kind.get(one.kind, {}), **one.evidence}, model="") for one in theirs]
        theirs = [one for one in theirs if not self._is_of_stopped(one, own)]
        known = {one.kind for one in theirs}
        if any(one.kind == "update-ratio" and "cosine" in one.evidence for one in theirs):
            known |= {"diverged", "loss-swings"}  # steps that overshoot make both
        findings = [*births, *theirs, *(one for one in own if one.kind not in known)]
        return examined.with_parts(findings, [*examined.unseen, *([trouble] if trouble else [])], ())

    @staticmethod
    def _is_of_stopped(finding: Finding, own: Sequence[Finding]) -> bool:
        """Whether a finding is about dead units that made layers stop learning, which says more."""
        stopped = (units for one in own for units in one.evidence.get("dead", ()))
        return finding.kind == "dead" and any(f"`{name}`" in finding.message for name in stopped)

    @property
    def _is_kept_examined(self) -> bool:
        """Whether the step that is kept is the first bad one that the doctor has seen."""
        since, until = self._window
        spoilt = self.examined.spoilt
        return spoilt is not None and since < spoilt and (spoilt < until or not until)

    def _birth(self) -> list[Finding]:
        kept = self.kept
        if kept is None:
            return []
        what = f"`{self.loss}`" if kept.what == "loss" else f"the gradient of {_few(kept.spoilt)}"
        when = (
            "it was seen before the weights were moved by it"
            if kept.intact
            else "the weights are not finite any more, or were moved by it"
        )
        message = f"At step {kept.step} {what} was not finite for the first time; {when}."
        finite = [name for name, value in kept.gradients.items() if not value.odd]
        if kept.spoilt and finite:
            message += f" The gradient of {_few(finite)} was finite."
        first, causes = Finding("nan-born", "", worth=12.0), kept.causes
        if self._is_kept_examined:  # recorded, with its lines
            diagnosis = self.examined.diagnosis
            births = tuple(one for one in (*diagnosis.findings, *diagnosis.remarks) if one.kind in BIRTHS)
            if diagnosis.findings and not births:
                return []  # what is found there explains it
            causes = births or causes
        if causes:
            cause = causes[0]
            message = f"{message} {cause.message}"
            first = replace(cause, worth=12.0, model="", remark=False)
            fix = cause.fix or ("Look at the step: `w.replay()`." if kept.batch is not None else SWEPT)
        elif kept.batch is not None:
            fix = "Look at the step: `w.replay()`."
        elif kept.sweep is not None:
            fix = SWEPT
        else:
            fix = (
                "To see which operation made it, give a callable that computes the loss of a batch, "
                "`gl.watch(…, replay=loss_of)`, and compute the loss by `w.loss(*batch)`."
            )
        evidence = {"step": kept.step, "what": kept.what, "spoilt": list(kept.spoilt), "intact": kept.intact}
        return [replace(first, message=message, fix=fix, evidence={**first.evidence, **evidence})]

    def _stopped(self) -> list[Finding]:
        learning = [any(p.requires_grad for p in self.of.of_layer(i)) for i in range(len(self.of.layers))]
        still = [
            i
            for i in np.flatnonzero((self._zeros >= LOOKS) & (self._alive >= ALIVE) & (self._zeros * 50 >= self._alive))
            if learning[i]
        ]
        if not still:
            return []
        recent = list(self._losses)[-LOOKS:]
        everything = len(still) == sum(learning)
        if everything and recent and max(map(abs, recent)) < 1e-12:
            return []  # there is nothing left to learn
        first = int(min(still, key=lambda i: self._since[i]))
        step, looks = int(self._since[first]) + 1, int(self._zeros[first])
        names = _few([self.of.layers[i] for i in still])
        are = "its gradient is" if len(still) == 1 else "their gradients are"
        message = (
            f"{names} stopped learning at step {step}: {are} exactly 0 at all {looks} checks since then. The last "
            f"gradient of `{self.of.layers[first]}` that was not 0 had norm {self._norm[first]:.3g}."
        )
        shut = [self.of.activations[i] for i, share in self._dead.items() if share == 1.0]
        fix = "Check the operations after it: one of them passes no gradient back."
        if shut:
            message += (
                f" Every unit of `{shut[0].name}` ({shut[0].kind}) gives 0 for the whole batch, and passes no gradient back."
            )
            fix = "Use a smaller learning rate, or an activation whose slope is nowhere 0, such as LeakyReLU."
        evidence = {
            "layers": [self.of.layers[i] for i in still],
            "step": step,
            "looks": looks,
            "last norm": float(self._norm[first]),
            "dead": [one.name for one in shut],
        }
        return [Finding("stopped-learning", message, fix=fix, evidence=evidence, worth=9.0)]

    def _accumulated(self) -> list[Finding]:
        if self._stale < STALE or self._cleared * 10 > self._stale:
            return []
        looks = self._stale + self._cleared
        call = "`optimizer.zero_grad()`" if self.optimizer else "Set `.grad = None` for each parameter"
        return [
            Finding(
                "accumulated",
                f"The gradients were not cleared: at {self._stale} of {looks} checks, the first at step {self._stale_at}, "
                "`.grad` still held gradients that an earlier step had used. Each step uses the sum of all gradients so far, of "
                f"norm {self._stale_norm:.3g} at the last check, in one parameter.",
                fix=f"{'Call ' if self.optimizer else ''}{call} before each `backward()`.",
                evidence={"step": self._stale_at, "looks": looks, "stale": self._stale, "norm": self._stale_norm},
                worth=8.0,
            )
        ]

    def _far(self) -> list[Finding]:
        losses = np.array(self._losses)
        if len(losses) < LEAST or len(self._ratios) < 10:
            return []
        half = len(losses) // 2
        mean = float(losses.mean())
        swing = float(np.percentile(losses, 90) - np.percentile(losses, 10))
        if mean <= 0 or swing < SWING * mean or losses[half:].mean() < 0.9 * losses[:half].mean():
            return []
        ratios = self._median_ratios()
        far = int(np.argmax(ratios)) if len(ratios) else 0
        if not len(ratios) or not ratios[far] >= FAR:
            return []
        return [
            Finding(
                "loss-swings",
                f"`{self.loss}` goes up and down and does not decrease: in the last {len(losses)} steps it was between "
                f"{np.percentile(losses, 10):.3g} and {np.percentile(losses, 90):.3g}, with a mean of {losses[:half].mean():.3g} "
                f"in the first half and {losses[half:].mean():.3g} in the second. A step changes `{self.of.layers[far]}` by "
                f"{ratios[far]:.2g} of its weights (median).",
                fix="Use a smaller learning rate: steps of about a thousandth of the weights are usual.",
                evidence={
                    "swing": swing,
                    "mean": mean,
                    "steps": len(losses),
                    "of": self.of.layers[far],
                    "ratio": float(ratios[far]),
                },
                worth=7.0,
            )
        ]

    def _median_ratios(self) -> np.ndarray:
        """The median of recent ratios of each layer; of those with a matrix alone, since a bias may begin at 0."""
        ratios = np.stack(list(self._ratios))
        some = ~np.isnan(ratios).all(0)
        medians = np.full(ratios.shape[1], -1.0)
        medians[some] = np.nanmedian(ratios[:, some], 0)
        for i in range(len(medians)):
            if not any(len(p.shape) >= 2 for p in self.of.of_layer(i)):
                medians[i] = -1.0
        return medians

    def _blown(self) -> list[Finding]:
        """The loss grew far beyond where it began."""
        layout, columns = self.measuring.layout, self.measuring.columns
        pooled = columns.pooled()
        means = pooled.mean[:, layout.loss]
        known = np.flatnonzero(~np.isnan(means))
        if len(self._first) < 10 or len(self._losses) < LEAST or not len(known):
            return []
        first, last = float(np.mean(self._first)), float(np.mean(list(self._losses)[-10:]))
        least = int(known[np.argmin(means[known])])
        if min(first, float(means[least])) <= 0 or last < ROSE * first or last < BLOWN * means[least]:
            return []
        return [
            Finding(
                "diverged",
                f"`{self.loss}` grew from {first:.3g} to {last:.3g} (means of the first and the last ten steps). Its smallest "
                f"{'mean of ' + str(pooled.width) + ' steps' if pooled.width > 1 else 'value'} was {means[least]:.3g}, at step "
                f"{least * pooled.width + 1}.",
                fix="Use a smaller learning rate, or clip the gradients before each step: "
                "`clip_grad_norm_(model.parameters(), 1.0)`.",
                evidence={"first": first, "least": float(means[least]), "last": last},
                worth=7.5,
            )
        ]


def _with_numbers(rows: np.ndarray) -> np.ndarray:
    """Which rows are not all NaN, in order: most steps were not looked at."""
    return np.flatnonzero(~np.isnan(rows).all(axis=1))


def _few(names: Any) -> str:
    names = [f"`{name}`" for name in names]
    if len(names) > 3:
        return f"{names[0]}, {names[1]} and {len(names) - 2} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
