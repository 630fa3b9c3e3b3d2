"""Measurements during a training. Hooks notify `Measuring` of the start and the end of each step, and it stores the numbers.

A row has the numbers of one step; steps count from 0 here. The vectors in it stay on the device of the tensors. All rows since
the last frame are read together, with one transfer. Measurements that read whole tensors have paces of their own (`pace`):
gradients, updates (the weights are copied before the step), units of activations, and histograms.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import truediv
from statistics import median
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.core.numpy_warnings import silence
from gradlab.explore.libraries import library_of
from gradlab.explore.libraries.loss_scaling import LossScaling
from gradlab.explore.watch.columns import COLUMNS, Columns
from gradlab.explore.watch.histograms import Histograms
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.pace import MEMORY, Pace
from gradlab.explore.watch.progress import Speed

# Shares of the program's own time. A measurement costs two to three times what can be timed of it: hooks slow down the step, and
# evict the program's data from the processor's caches. In addition every step costs 60 to 90 µs, for its end, its loss and its
# `backward`. Together this is about 5 % of a step of 2 ms, as measured by `benchmarks/watching.py`.
GRADIENTS, UPDATES, UNITS, HISTOGRAMS = 0.0015, 0.0007, 0.0003, 0.0002
FINITE_CHECK = 0.002  # for checking after a gradlab sweep whether all gradients are finite
FRAME = 0.1  # minimum seconds between two frames
FRAMES = 0.001  # share of the time for reading frames
MAX_ROWS = 2048  # maximum number of rows that wait for a frame
CELLS = 200_000  # maximum of columns × series: 8 MB


class StepRow:
    """The measurements of one step; None for those that were not made.

    The defaults are class attributes, because most steps only have a loss and a learning rate.
    """

    loss: Any = None
    rate = math.nan
    gradients: Any = None  # norm of the gradient of each parameter in `with_gradient`, as an array of the library
    with_gradient: Sequence[int] | None = None  # the parameters with a gradient; None for all
    unclipped: Any = None  # norm of the gradient of each parameter with a gradient, before clipping
    weights: Any = None  # norm of each parameter before the update
    updates: Any = None  # norm of the update of each parameter
    units: dict[int, Any] | None = None  # shares of dead and saturated units, by activation
    not_stepped: Sequence[int] = ()  # the parameters that no optimizer of this step holds
    scale: Any = None  # the factor by which a GradScaler had multiplied the loss
    overflow: Any = None  # on a device, a number that is not 0 if the optimizer has skipped the step
    old_gradient: Any = None  # ‖.grad‖ of one parameter when the first gradient of this step was accumulated

    def __init__(self, step: int) -> None:
        self.step = step

    @property
    def has_measurements(self) -> bool:
        """Return whether anything besides the loss and the learning rate was measured."""
        return not (self.gradients is None and self.updates is None and self.units is None and self.old_gradient is None)


class SeriesLayout:
    """Positions of the series in a row of numbers."""

    def __init__(self, layers: int, activations: int) -> None:
        stops = np.cumsum([4, layers, layers, layers, activations, activations])
        self.size = int(stops[-1])
        self.loss, self.rate, self.unclipped, self.scale = 0, 1, 2, 3
        parts = [slice(int(a), int(b)) for a, b in pairwise(stops)]
        self.gradient, self.ratio, self.weight, self.dead, self.saturated = parts


class Measuring:
    """The measurements of a run.

    Parameters
    ----------
    target : WatchedModel
    every : int
        Minimum number of steps between two measurements.

    Attributes
    ----------
    steps : int
        How many steps have ended.
    spent : float
        Seconds that watching took.
    in_first_steps : bool
        Whether the first steps are still running, of which everything is measured at any cost.
    scaling : LossScaling
        The factor that gradients may contain. All numbers of gradients are without it.
    on_nonfinite : callable
        Called with "gradient" or "loss" when one on the host is not finite.
    on_frame : callable
        Called with the steps and rows of each frame, and the norms still in `.grad` when a new gradient was accumulated.
    """

    def __init__(self, target: WatchedModel, every: int) -> None:
        self.target, self.gauge = target, target.gauge
        self.layout = SeriesLayout(len(target.layers), len(target.activations))
        self.columns = Columns(self.layout.size, min(COLUMNS, max(32, CELLS // self.layout.size // 2 * 2)))
        self.histograms = Histograms(target)
        self.gradients, self.updates = Pace(GRADIENTS, every), Pace(UPDATES, every)
        self.units, self.histogram_pace = Pace(UNITS, every), Pace(HISTOGRAMS, every)
        self.steps, self.spent, self.began = 0, 0.0, clock.now()
        self.in_first_steps = False
        self._since = self.began, 0.0, 0  # when the cost started to count; `spent` and `steps` at that time
        self.scaling = LossScaling()
        self.on_nonfinite: Callable[[str], None] = lambda what: None
        self.on_frame: Callable[[np.ndarray, np.ndarray, dict[int, float]], None] = lambda steps, rows, old: None
        self._swept_loss: tuple[Any, int, float] = lambda: None, 0, 0.0  # weak reference, version and value of the last one
        self.row = StepRow(0)  # the current step
        self.last: StepRow | None = None  # the previous step, whose loss may be logged late
        self._waiting: list[StepRow] = []
        self._copies: list[Any] | None = None
        self._copy_step, self._copy_cost = -1, 0.0  # the step that the copies are for, and what they cost
        self._manual_gradients: dict[int, Any] = {}  # without an optimizer: norms of gradients, by parameter
        self._old_gradient: Any = None  # ‖.grad‖ of one parameter before its last gradient was accumulated
        # Seconds in this step for gradients without an optimizer, gradients before clipping, and units.
        self._manual_cost, self._clipping_cost, self._units_cost = 0.0, 0.0, 0.0
        self._next_frame = 0.0
        self._next_step = 0  # the next step at which anything is measured
        self.speed = Speed(self.began)
        self._step_times: deque[float] = deque(maxlen=MEMORY)  # seconds that the last steps took without watching
        self._last_end = (self.began, 0.0)  # when the last step ended, and `spent` at that time
        self.step_time = 0.0  # median seconds of the last steps without watching
        self._is_skipped = False  # whether this step was skipped, and no other sweep has begun
        self.suspect = False  # whether a sweep of this step made non-finite gradients: they are measured in any case
        self._smallest, self._finite_pace = target.smallest(), Pace(FINITE_CHECK, every=1)
        unseen = target.library.unseen
        self._unseen_value, self._unseen_compare = unseen(self._value), unseen(self._compare)
        self._unseen_divide = unseen(truediv)

    def measure_first_steps(self, steps: int) -> None:
        """Measure gradients, updates, units and histograms of the first steps at any cost. 0 ends this."""
        self.in_first_steps = steps > 0
        for pace in (self.gradients, self.updates, self.units, self.histogram_pace):
            pace.measure_first_steps(steps)
        self._since = clock.now(), self.spent, self.steps
        self._step_times.clear()  # the steps so far were slower
        self._plan()

    def _update_paces(self) -> None:
        """Update the paces to the time that a step takes by itself."""
        if self._step_times:
            self.step_time = median(self._step_times)
            for pace in (self.gradients, self.updates, self.units, self.histogram_pace, self._finite_pace):
                pace.set_step_time(self.step_time)
            self._plan()

    def _plan(self) -> None:
        """Find the next step at which anything is measured."""
        self._next_step = min(self.gradients.next, self.updates.next, max(self.histogram_pace.next, self.histograms.next))
        if self.target.activations:
            self._next_step = min(self._next_step, self.units.next)

    @property
    def is_due(self) -> bool:
        """Return whether anything besides the loss is measured in the current step."""
        return self.suspect or self.row.step >= self._next_step

    # ----------------------------------------------------------------------------------------------------------- a step
    def before_step(self, *, has_gradients: bool = True) -> None:
        """Measure before an optimizer steps. The gradients exist, unless a closure computes them."""
        began = clock.now()
        if has_gradients:
            self._measure_gradients()
        self._copy(self.row.step)
        self.spent += clock.now() - began

    def before_clipping(self, parameters: Any) -> None:
        """Measure gradients before they are clipped. `parameters` is the argument of the call that clips."""
        if self.row.unclipped is not None or not self.gradients.due(self.row.step):
            return
        began = clock.now()
        clipped = {id(p) for p in parameters} if isinstance(parameters, (list, tuple)) else None
        if clipped is None or any(id(p) in clipped for p in self.target.params):
            gradients = [p.grad for p in self.target.params if p.grad is not None]
            if gradients:
                self.row.unclipped = self._unscale(self.gauge.norms(gradients))
        self._clipping_cost = clock.now() - began
        self.spent += self._clipping_cost

    def after_closure(self) -> None:
        """Measure after a step whose closure computed the gradients."""
        began = clock.now()
        if self.row.gradients is None:
            self._measure_gradients()
        self.spent += clock.now() - began

    def _measure_gradients(self) -> None:
        began, step = clock.now(), self.row.step
        if self.suspect or self.gradients.due(step):
            gradients = [p.grad for p in self.target.params]
            having = [i for i, g in enumerate(gradients) if g is not None]
            if having:
                all_have = len(having) == len(gradients)
                self.row.with_gradient = None if all_have else having
                norms = self.gauge.norms(gradients if all_have else [gradients[i] for i in having])
                self.row.gradients = self._unscale(norms, in_step=True)
                self._check(self.row.gradients)
            self.gradients.add_cost(step, self._clipping_cost + clock.now() - began)
            self._clipping_cost = 0.0
        if self._histograms_are_due(step):
            self._add_histograms(step)

    def after_step(self, rate: float, not_stepped: Sequence[int] = (), overflow: Any = None) -> None:
        """End a step of optimizers. `not_stepped` are the parameters that they do not hold. `overflow` is a number on a device
        that is not 0 if they left the step out."""
        began = clock.now()
        self.row.overflow = overflow
        if self._copy_step == self.row.step:
            self._unseen_compare()
            self.row.not_stepped = not_stepped
        self._end(rate, began)

    def skip_step(self) -> None:
        """Begin the current step again: a GradScaler skipped it. A loss that is logged now is still that of the skipped step."""
        self.row, self._is_skipped = StepRow(self.row.step), True
        self._old_gradient = None

    def begin_sweep(self, loss: Any, scale: Any) -> None:
        """Note the loss whose multiple is differentiated, and the factor."""
        self.row.scale = scale
        self.swept_loss(loss)

    def add_manual_gradient(self, i: int) -> None:
        """Measure a gradient that was just written to `.grad`, in a training without an optimizer."""
        step = self.row.step
        if not self.gradients.due(step):
            return
        began = clock.now()
        gradient = self.target.params[i].grad
        if gradient is not None:
            self._manual_gradients[i] = self._unscale(self.gauge.norms([gradient]))
            self._check(self._manual_gradients[i])
            self._manual_cost += clock.now() - began
            if self._histograms_are_due(step):
                self.histograms.note(i, self._unscale(gradient))
        self.spent += clock.now() - began

    def nonfinite_manual_gradients(self) -> list[int]:
        """Return the parameters with a non-finite gradient in this step, in a training without an optimizer."""
        return [i for i in sorted(self._manual_gradients) if not math.isfinite(float(self._manual_gradients[i].sum()))]

    def end_manual_step(self) -> None:
        """End a step without an optimizer."""
        began, step = clock.now(), self.row.step
        if self._manual_gradients:
            having = sorted(self._manual_gradients)
            self.row.gradients = [self._manual_gradients[i] for i in having]
            self.row.with_gradient = having
            self._manual_gradients = {}
            self.gradients.add_cost(step, self._manual_cost)
            self._manual_cost = 0.0
        self._compare()
        if self.target.is_held and self._histograms_are_due(step):
            self._add_histograms(step)
        self._end(float("nan"), began)
        began = clock.now()
        if self.target.is_held:
            self._copy(self.row.step)
        self.spent += clock.now() - began

    def note_loss(self, loss: Any, *, is_new: bool = False) -> None:
        """Store the loss of the current step, or of the previous one if that has none. A loss after a skipped step is that of the
        step, unless `is_new`."""
        began = clock.now()
        weak, version, value = self._swept_loss
        if self._is_skipped and not is_new:
            return
        if weak() is not loss or self.gauge.version(loss) != version:
            value = self.value(loss)
            if not math.isfinite(value):
                value = self._unseen_value(loss)
        row = self.row if self.last is None or self.last.loss is not None else self.last
        row.loss = value
        self.spent += clock.now() - began
        if type(value) is float and not math.isfinite(value) and row.scale is None:  # otherwise the GradScaler skips the step
            self.on_nonfinite("loss")

    def add_output(self, i: int, output: Any) -> None:
        """Measure the output of an activation of a model in training mode."""
        row = self.row
        if not self.units.due(row.step) or library_of(output) is not self.target.library:
            return
        if row.units is None:
            row.units = {}
        elif i in row.units:
            return
        began = clock.now()
        one = self.target.activations[i]
        row.units[i] = self.gauge.unit_shares(output, one.kind, one.flat)
        self._units_cost += clock.now() - began
        self.spent += clock.now() - began

    def before_accumulate(self, gradient: Any) -> None:
        """Measure the `.grad` of one parameter before a new gradient is accumulated."""
        if self.row.old_gradient is None and self.gradients.due(self.row.step):
            began = clock.now()
            self._old_gradient = 0.0 if gradient is None else self._unscale(self.gauge.norms([gradient]))
            self.spent += clock.now() - began

    def after_accumulate(self) -> None:
        """Store that measurement, as the gradient was accumulated. (Gradients of `autograd.grad` are not.)"""
        if self.row.old_gradient is None:
            self.row.old_gradient = self._old_gradient

    def are_gradients_finite(self) -> bool:
        """Return whether gradients are finite after a sweep. The smallest of each layer is checked, and all when they are due."""
        began, params = clock.now(), self.target.params
        step = self.row.step
        every = self._finite_pace.due(step)
        finite = self.gauge.are_finite([p.grad for p in (params if every else [params[i] for i in self._smallest])])
        took = clock.now() - began
        if every:
            self._finite_pace.add_cost(step, took)
        self.spent += took
        return finite

    # ----------------------------------------------------------------------------------------------------------- pieces
    def swept_loss(self, loss: Any) -> float:
        """Return the value of a loss whose `backward` is called, and remember it; NaN in the cases of `value`."""
        self._is_skipped = False
        known = self.gauge.value_and_version(loss)
        if known is None:
            return self.value(loss)
        value, version = known
        self._swept_loss = weakref.ref(loss), version, value
        return value

    def value(self, loss: Any) -> float:
        """Return the value of a loss; NaN if it is not on the host, or not a tensor of one element of the watched library."""
        return self.gauge.value(loss) if not self.gauge.waits and self.target.library.is_tensor(loss) else math.nan

    def _value(self, loss: Any) -> Any:
        """Return the value of any loss."""
        library = library_of(loss)
        if library is None:
            try:
                return float(loss)
            except (TypeError, ValueError):
                raise TypeError(
                    f"log(loss) takes a number, or a tensor of one element, and got {type(loss).__name__}: {loss!r:.80}."
                ) from None
        if loss.numel() != 1:
            raise ValueError(f"log(loss) takes one number, and got a tensor of shape {tuple(loss.shape)}. Log its mean().")
        gauge = self.gauge if library is self.target.library else library.gauge([loss])
        return gauge.as_vector(loss) if gauge.waits else gauge.value(loss)

    def begin(self) -> None:
        """Start the first step of a training without an optimizer."""
        self._copy(0)

    def _copy(self, step: int) -> None:
        """Copy the weights before they are updated, if the update of this step is measured."""
        if self.updates.due(step):
            began = clock.now()
            params = self.target.params
            self._copies = self.gauge.copies(params, self._copies)
            self.row.weights = self.gauge.norms(params)
            self._copy_step, self._copy_cost = step, clock.now() - began

    def _compare(self) -> None:
        if self._copy_step == self.row.step and self._copies is not None and self.target.is_held:
            began = clock.now()
            self.row.updates = self.gauge.update_norms(self.target.params, self._copies)
            self.updates.add_cost(self.row.step, self._copy_cost + clock.now() - began)

    def _unscale(self, norms: Any, *, in_step: bool = False) -> Any:
        """Return norms of gradients without the factor that they contain now."""
        if not self.scaling.is_active:
            return norms
        scale = self.scaling.scale_of_gradients(self.target.params, in_step=in_step)
        return norms if type(scale) is float and scale == 1.0 else self._unseen_divide(norms, scale)

    def _check(self, norms: Any) -> None:
        """Report non-finite gradients, unless checking them would wait for a device."""
        if not self.gauge.waits and not math.isfinite(float(norms.sum())):
            self.on_nonfinite("gradient")

    def _histograms_are_due(self, step: int) -> bool:
        """Return whether to add histograms of a step."""
        return step >= self.histogram_pace.next and step >= self.histograms.next

    def _add_histograms(self, step: int) -> None:
        began = clock.now()
        self.histograms.take(step, partial(self._unscale, in_step=True))
        self.histogram_pace.add_cost(step, clock.now() - began)

    def _end(self, rate: float, began: float) -> None:
        """End the step. Measurements at its end started at the time `began`."""
        row = self.row
        row.rate = rate
        if row.units is not None:
            self.units.add_cost(row.step, self._units_cost)
            self._units_cost = 0.0
        if self.last is not None:
            self._waiting.append(self.last)
        is_measured = row.step >= self._next_step or self.suspect
        self.steps += 1
        self.last, self.row, self.suspect = row, StepRow(self.steps), False
        then, spent = self._last_end
        self._step_times.append(max(began - then - (self.spent - spent), 0.0))
        if is_measured or len(self._step_times) == 1:
            self._update_paces()
        if began >= self._next_frame or len(self._waiting) >= MAX_ROWS or self.steps == 8:
            self.frame()
        now = clock.now()
        self.spent += now - began
        self._last_end = now, self.spent

    def add_pause(self, seconds: float) -> None:
        """Exclude a pause of the loop from all times."""
        self.began += seconds
        self._since = self._since[0] + seconds, *self._since[1:]
        self.speed.add_pause(seconds)
        self._last_end = self._last_end[0] + seconds, self._last_end[1]

    def release(self) -> None:
        """Release the copies of the weights."""
        self._copies = None

    def frame(self, whole: bool = False) -> None:
        """Read the waiting rows into the columns. `whole` includes the last step, whose loss may still be logged."""
        began = clock.now()
        if whole and self.last is not None:
            self._waiting.append(self.last)
            self.last = None
        rows, self._waiting = self._waiting, []
        if rows:
            steps = np.array([row.step for row in rows])
            numbers, old_gradients = self._numbers(rows)
            self.columns.add(steps, numbers)
            self.on_frame(steps, numbers, old_gradients)
        self._update_paces()
        now = clock.now()
        self.speed.note(now, self.steps)
        self._next_frame = now + max(FRAME, (now - began) / FRAMES)

    def _numbers(self, rows: list[StepRow]) -> tuple[np.ndarray, dict[int, float]]:
        """Return the rows as numbers, shape (rows, series), and the old gradient norms by step, read in one transfer."""
        layout, params = self.layout, len(self.target.params)
        vectors: list[Any] = []
        setters: list[Callable[[np.ndarray], None]] = []

        def read_later(vector: Any, into: Callable[[np.ndarray], None]) -> None:
            vectors.append(vector)
            setters.append(into)

        numbers = np.full((len(rows), layout.size), np.nan)
        numbers[:, layout.rate] = [row.rate for row in rows]
        losses = [row.loss for row in rows]
        numbers[:, layout.loss] = known = [loss if type(loss) is float else math.nan for loss in losses]
        if not all(map(math.isfinite, known)):
            for k, loss in enumerate(losses):
                if type(loss) is float:
                    numbers[k, layout.loss] = loss if math.isfinite(loss) else math.inf
                elif loss is not None:
                    read_later(loss, partial(_set, numbers, (k, layout.loss)))
        overflows: dict[int, float] = {}
        for k, row in enumerate(rows):
            if row.scale is not None and type(row.scale) is not float:
                read_later(row.scale.reshape(1), partial(_set, numbers, (k, layout.scale)))
            elif row.scale is not None:
                numbers[k, layout.scale] = row.scale
            if row.overflow is not None:
                read_later(row.overflow.reshape(1), partial(_set_item, overflows, k))
        measured = [k for k, row in enumerate(rows) if row.has_measurements]
        norms, weights, updates = (np.full((len(measured), params), np.nan) for _ in range(3))
        old_gradients: dict[int, float] = {}
        for at, k in enumerate(measured):
            row = rows[k]
            if isinstance(row.gradients, list):
                for i, vector in zip(row.with_gradient or (), row.gradients, strict=True):
                    read_later(vector, partial(_set, norms, (at, i)))
            elif row.gradients is not None:
                read_later(
                    row.gradients,
                    partial(_set, norms, (at, slice(None) if row.with_gradient is None else list(row.with_gradient))),
                )
            if row.unclipped is not None:
                read_later(row.unclipped, partial(_set_norm, numbers, (k, layout.unclipped)))
            if row.updates is not None:
                read_later(row.weights, partial(_set, weights, (at, slice(None))))
                read_later(row.updates, partial(_set, updates, (at, slice(None))))
            for i, vector in (row.units or {}).items():
                read_later(vector, partial(_set_units, numbers, k, layout.dead.start + i, layout.saturated.start + i))
            if type(row.old_gradient) is float:
                old_gradients[row.step] = row.old_gradient
            elif row.old_gradient is not None:
                read_later(row.old_gradient, partial(_set_item, old_gradients, row.step))
        for array, into in zip(self.gauge.read(vectors) if vectors else (), setters, strict=True):
            into(array)
        if measured:
            for at, k in enumerate(measured):
                updates[at, list(rows[k].not_stepped)] = np.nan
            by_layer = self.target.by_layer
            with silence():
                numbers[measured, layout.gradient] = by_layer(norms)
                numbers[measured, layout.weight] = weight = by_layer(weights)
                ratio = np.where(weight > 0, by_layer(updates) / np.where(weight > 0, weight, 1.0), np.nan)
                numbers[measured, layout.ratio] = ratio
        for k, overflow in overflows.items():
            if overflow:
                numbers[k, layout.gradient] = numbers[k, layout.unclipped] = np.nan
        return numbers, old_gradients

    # ------------------------------------------------------------------------------------------------------------- cost
    @property
    def cost(self) -> tuple[float, float]:
        """Seconds that watching takes per step, and the share of the step itself; after the first steps, which are measured
        completely, if there were more."""
        began, before, first = self._since if self.steps > self._since[2] else (self.began, 0.0, 0)
        spent = self.spent - before
        own = self._last_end[0] - began - spent
        return spent / max(self.steps - first, 1), spent / own if own > 0 else 0.0


def _set(into: np.ndarray, at: Any, numbers: np.ndarray) -> None:
    """Set elements to the numbers read. Non-finite ones become infinity, because NaN means "not measured"."""
    numbers = numbers if into[at].shape else numbers.reshape(-1)[0]
    into[at] = np.where(np.isfinite(numbers), numbers, np.inf)


def _set_norm(into: np.ndarray, at: Any, norms: np.ndarray) -> None:
    """Set an element to the norm of all vectors together."""
    _set(into, at, np.sqrt(np.square(norms).sum(keepdims=True)))


def _set_units(into: np.ndarray, k: int, dead: int, full: int, numbers: np.ndarray) -> None:
    for at, value in ((dead, numbers[0]), (full, numbers[1])):
        if value >= 0:
            into[k, at] = value


def _set_item(into: dict[int, float], step: int, numbers: np.ndarray) -> None:
    into[step] = float(numbers.reshape(-1)[0])


def rate_of(optimizer: Any) -> float:
    """Return an optimizer's learning rate; NaN if reading it would wait for a device."""
    rate = optimizer.param_groups[0].get("lr", np.nan)
    if isinstance(rate, (int, float)):
        return float(rate)
    device = getattr(rate, "device", None)
    return float(rate) if device is None or getattr(device, "type", "cpu") == "cpu" else float("nan")
