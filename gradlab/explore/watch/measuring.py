"""What is measured of a training while it runs: `Measuring` is told by hooks where a step begins and ends, and keeps numbers.

A row belongs to one step, the steps being counted from 0 here. Vectors in it stay where the tensors lie; all rows since the last
frame are read together, once. What costs a pass over tensors has a pace of its own (`pace`): gradients, the updates beside them
(for which the weights are copied before the step), the units of activations, histograms.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.core.numpy_warnings import silence
from gradlab.explore.libraries import library_of
from gradlab.explore.watch.columns import COLUMNS, Columns
from gradlab.explore.watch.histograms import Histograms
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.pace import SEEN, Pace
from gradlab.explore.watch.progress import Speed

# Shares of the program's own time. A look costs two to three times what can be timed of it, since hooks slow down the step and
# the processor's caches hold other things afterwards. Every step costs 60 to 90 µs, for its end, its loss and its `backward`.
# Together they are about 5 % of 2 ms; `benchmarks/watching.py` measures it.
GRADIENTS, UPDATES, UNITS, HISTOGRAMS = 0.0015, 0.0007, 0.0003, 0.0002
SOUND = 0.002  # for whether a sweep of gradlab's went well
FRAME = 0.1  # seconds between two frames at least
FRAMES = 0.001  # share of the time for reading them
ROWS = 2048  # that wait for a frame at most
CELLS = 200_000  # columns × series at most: 8 MB


class StepRow:
    """What was measured of one step; None where it was not.

    The numbers are the class's own until they are measured: most steps have a loss and a learning rate, and nothing else.
    """

    loss: Any = None
    rate = math.nan
    gradients: Any = None  # a norm for each of `which`, in the library's own array
    which: Sequence[int] | None = None  # the parameters with a gradient; None: all
    unclipped: Any = None  # a norm for each parameter with a gradient, before the gradients were clipped
    weights: Any = None
    moved: Any = None
    units: dict[int, Any] | None = None
    still: Sequence[int] = ()  # the parameters that were not to move
    stale: Any = None  # ‖.grad‖ of one parameter, as it was when the next gradient came

    def __init__(self, step: int) -> None:
        self.step = step

    @property
    def is_looked_at(self) -> bool:
        """Whether anything but the loss and the learning rate was measured."""
        return not (self.gradients is None and self.moved is None and self.units is None and self.stale is None)


class SeriesLayout:
    """Which series stands where in a row of numbers."""

    def __init__(self, layers: int, activations: int) -> None:
        stops = np.cumsum([3, layers, layers, layers, activations, activations])
        self.size = int(stops[-1])
        self.loss, self.rate, self.unclipped = 0, 1, 2
        parts = [slice(int(a), int(b)) for a, b in pairwise(stops)]
        self.gradient, self.ratio, self.weight, self.dead, self.saturated = parts


class Measuring:
    """The numbers of a run.

    Parameters
    ----------
    watched : WatchedModel
    every : int
        Steps between two looks at least.

    Attributes
    ----------
    steps : int
        How many are over.
    spent : float
        Seconds that watching took.
    is_full : bool
        Whether steps are looked at in full, however long that takes.
    alarm : callable
        Called with what was found when a gradient or a loss on the host is not finite.
    seen : callable
        Called with the steps and rows of each frame, and the norms that were still in `.grad` when gradients came.
    """

    def __init__(self, watched: WatchedModel, every: int) -> None:
        self.watched, self.gauge = watched, watched.gauge
        self.layout = SeriesLayout(len(watched.layers), len(watched.activations))
        self.columns = Columns(self.layout.size, min(COLUMNS, max(32, CELLS // self.layout.size // 2 * 2)))
        self.histograms = Histograms(watched)
        self.gradients, self.updates = Pace(GRADIENTS, every), Pace(UPDATES, every)
        self.units, self.spread = Pace(UNITS, every), Pace(HISTOGRAMS, every)
        self.steps, self.spent, self.began = 0, 0.0, clock.now()
        self.is_full = False
        self._since = self.began, 0.0, 0  # from when on its cost counts, and what was spent and how many steps were over then
        self.alarm: Callable[[str], None] = lambda what: None
        self.seen: Callable[[np.ndarray, np.ndarray, dict[int, float]], None] = lambda steps, rows, stale: None
        self._swept: tuple[Any, int, float] = lambda: None, 0, 0.0  # the last loss, a weak reference, its version and its number
        self.row = StepRow(0)  # the step that runs
        self.last: StepRow | None = None  # the one before, which may still be told its loss
        self._waiting: list[StepRow] = []
        self._copies: list[Any] | None = None
        self._copied, self._copying = -1, 0.0  # for which step, and what that took
        self._arrived: dict[int, Any] = {}  # of updates by hand: the norms of gradients when they came
        self._before: Any = None  # ‖.grad‖ of one parameter before the gradient that came last
        # Seconds that gradients by hand, gradients before clipping, and units took in this step.
        self._looking, self._clipping, self._looked = 0.0, 0.0, 0.0
        self._next_frame = 0.0
        self._next_look = 0  # the step
        self.speed = Speed(self.began)
        self._own: deque[float] = deque(maxlen=SEEN)  # seconds that steps took by themselves
        self._ended = (self.began, 0.0)  # when the last step was over, and what was spent by then
        self.own = 0.0  # what a step takes by itself, in the median of the last few
        self.suspect = False  # whether a sweep of this step was seen to go wrong: its gradients are looked at in any case
        self._least, self._all = watched.smallest(), Pace(SOUND, every=1)
        unseen = watched.library.unseen
        self._unseen_value, self._unseen_compare = unseen(self._value), unseen(self._compare)

    def look_in_full(self, steps: int) -> None:
        """Look at the gradients, updates, units and histograms of so many steps however long that takes; 0: of no more."""
        self.is_full = steps > 0
        for pace in (self.gradients, self.updates, self.units, self.spread):
            pace.look_in_full(steps)
        self._since = clock.now(), self.spent, self.steps
        self._own.clear()  # of the steps so far, which had more to do
        self._plan()

    def _settle(self) -> None:
        """Learn what a step takes by itself."""
        if self._own:
            self.own = median(self._own)
            for pace in (self.gradients, self.updates, self.units, self.spread, self._all):
                pace.settle(self.own)
            self._plan()

    def _plan(self) -> None:
        """Plan the step at which something is looked at next."""
        self._next_look = min(self.gradients.next, self.updates.next, max(self.spread.next, self.histograms.next))
        if self.watched.activations:
            self._next_look = min(self._next_look, self.units.next)

    @property
    def looks(self) -> bool:
        """Whether anything is looked at in the step that runs, but for its loss."""
        return self.suspect or self.row.step >= self._next_look

    # ----------------------------------------------------------------------------------------------------------- a step
    def before_step(self, *, has_gradients: bool = True) -> None:
        """An optimizer is about to step: the weights are as they were. The gradients are there unless a closure computes them."""
        began = clock.now()
        if has_gradients:
            self._look_at_gradients()
        self._copy(self.row.step)
        self.spent += clock.now() - began

    def before_clipping(self, parameters: Any) -> None:
        """Gradients are about to be clipped. `parameters`: those of the call, as it was given them."""
        if self.row.unclipped is not None or not self.gradients.due(self.row.step):
            return
        began = clock.now()
        clipped = {id(p) for p in parameters} if isinstance(parameters, (list, tuple)) else None
        if clipped is None or any(id(p) in clipped for p in self.watched.params):
            gradients = [p.grad for p in self.watched.params if p.grad is not None]
            if gradients:
                self.row.unclipped = self.gauge.norms(gradients)
        self._clipping = clock.now() - began
        self.spent += self._clipping

    def after_closure(self) -> None:
        """An optimizer has stepped whose closure computed the gradients."""
        began = clock.now()
        if self.row.gradients is None:
            self._look_at_gradients()
        self.spent += clock.now() - began

    def _look_at_gradients(self) -> None:
        began, step = clock.now(), self.row.step
        if self.suspect or self.gradients.due(step):
            gradients = [p.grad for p in self.watched.params]
            which = [i for i, g in enumerate(gradients) if g is not None]
            if which:
                whole = len(which) == len(gradients)
                self.row.which = None if whole else which
                self.row.gradients = self.gauge.norms(gradients if whole else [gradients[i] for i in which])
                self._check(self.row.gradients)
            self.gradients.looked(step, self._clipping + clock.now() - began)
            self._clipping = 0.0
        if self._spreads(step):
            self._spread(step)

    def after_step(self, rate: float, still: Sequence[int] = ()) -> None:
        """The optimizer has stepped; of several those that do not hold the parameters `still`."""
        began = clock.now()
        if self._copied == self.row.step:
            self._unseen_compare()
            self.row.still = still
        self._end(rate, began)

    def arrived(self, i: int) -> None:
        """`.grad` of a parameter was written to, where no optimizer says when it steps."""
        step = self.row.step
        if not self.gradients.due(step):
            return
        began = clock.now()
        gradient = self.watched.params[i].grad
        if gradient is not None:
            self._arrived[i] = self.gauge.norms([gradient])
            self._check(self._arrived[i])
            self._looking += clock.now() - began
            if self._spreads(step):
                self.histograms.note(i, gradient)
        self.spent += clock.now() - began

    def odd_by_hand(self) -> list[int]:
        """The parameters at which something not finite arrived in this step, where no optimizer says when it steps."""
        return [i for i in sorted(self._arrived) if not math.isfinite(float(self._arrived[i].sum()))]

    def moved_by_hand(self) -> None:
        """A step without an optimizer is over."""
        began, step = clock.now(), self.row.step
        if self._arrived:
            which = sorted(self._arrived)
            self.row.gradients = [self._arrived[i] for i in which]
            self.row.which = which
            self._arrived = {}
            self.gradients.looked(step, self._looking)
            self._looking = 0.0
        self._compare()
        if self.watched.held and self._spreads(step):
            self._spread(step)
        self._end(float("nan"), began)
        began = clock.now()
        if self.watched.held:
            self._copy(self.row.step)
        self.spent += clock.now() - began

    def noted(self, loss: Any) -> None:
        """The loss of the step that was just over, or is about to be."""
        began = clock.now()
        swept, version, value = self._swept
        if swept() is not loss or self.gauge.version(loss) != version:
            value = self.value(loss)
            if not math.isfinite(value):
                value = self._unseen_value(loss)
        row = self.row if self.last is None or self.last.loss is not None else self.last
        row.loss = value
        self.spent += clock.now() - began
        if type(value) is float and not math.isfinite(value):
            self.alarm("loss")

    def output(self, i: int, output: Any) -> None:
        """An activation of a model in training gave this."""
        row = self.row
        if not self.units.due(row.step) or library_of(output) is not self.watched.library:
            return
        if row.units is None:
            row.units = {}
        elif i in row.units:
            return
        began = clock.now()
        one = self.watched.activations[i]
        row.units[i] = self.gauge.units(output, one.kind, one.flat)
        self._looked += clock.now() - began
        self.spent += clock.now() - began

    def stale(self, gradient: Any) -> None:
        """What is in `.grad` of one parameter while the next gradient comes, after a step."""
        if self.row.stale is None and self.gradients.due(self.row.step):
            began = clock.now()
            self._before = 0.0 if gradient is None else self.gauge.norms([gradient])
            self.spent += clock.now() - began

    def accumulated(self) -> None:
        """That gradient was added to it. (One that `autograd.grad` computes comes, and is not.)"""
        if self.row.stale is None:
            self.row.stale = self._before

    def is_sound(self) -> bool:
        """Whether gradients are finite after a sweep: of each layer the smallest, and all of them as often as there is time."""
        began, params = clock.now(), self.watched.params
        step = self.row.step
        every = self._all.due(step)
        sound = self.gauge.are_finite([p.grad for p in (params if every else [params[i] for i in self._least])])
        took = clock.now() - began
        if every:
            self._all.looked(step, took)
        self.spent += took
        return sound

    # ----------------------------------------------------------------------------------------------------------- pieces
    def swept(self, loss: Any) -> float:
        """The number of a loss whose `backward` is called, which is remembered; NaN as of `value`."""
        glance = self.gauge.glance(loss)
        if glance is None:
            return self.value(loss)
        value, version = glance
        self._swept = weakref.ref(loss), version, value
        return value

    def value(self, loss: Any) -> float:
        """The number of a loss; NaN if it is not on the host, or not a tensor of one element of the library that is watched."""
        return self.gauge.value(loss) if not self.gauge.waits and self.watched.library.is_tensor(loss) else math.nan

    def _value(self, loss: Any) -> Any:
        """The number of any loss."""
        library = library_of(loss)
        if library is None:
            try:
                return float(loss)
            except (TypeError, ValueError):
                raise TypeError(
                    f"log(loss) takes a number, or a tensor of one, and got {type(loss).__name__}: {loss!r:.80}."
                ) from None
        if loss.numel() != 1:
            raise ValueError(f"log(loss) takes one number, and got a tensor of shape {tuple(loss.shape)}. Log its mean().")
        gauge = self.gauge if library is self.watched.library else library.gauge([loss])
        return gauge.number(loss) if gauge.waits else gauge.value(loss)

    def begin(self) -> None:
        """The first step is about to begin, of updates by hand."""
        self._copy(0)

    def _copy(self, step: int) -> None:
        """Copy the weights before they move, if this step is to be compared."""
        if self.updates.due(step):
            began = clock.now()
            params = self.watched.params
            self._copies = self.gauge.copies(params, self._copies)
            self.row.weights = self.gauge.norms(params)
            self._copied, self._copying = step, clock.now() - began

    def _compare(self) -> None:
        if self._copied == self.row.step and self._copies is not None and self.watched.held:
            began = clock.now()
            self.row.moved = self.gauge.moved(self.watched.params, self._copies)
            self.updates.looked(self.row.step, self._copying + clock.now() - began)

    def _check(self, norms: Any) -> None:
        """Whether gradients are finite, where that can be asked without waiting for a device."""
        if not self.gauge.waits and not math.isfinite(float(norms.sum())):
            self.alarm("gradient")

    def _spreads(self, step: int) -> bool:
        """Whether histograms are made of a step."""
        return step >= self.spread.next and step >= self.histograms.next

    def _spread(self, step: int) -> None:
        began = clock.now()
        self.histograms.take(step)
        self.spread.looked(step, clock.now() - began)

    def _end(self, rate: float, began: float) -> None:
        """The step is over, and since `began` something of it was measured."""
        row = self.row
        row.rate = rate
        if row.units is not None:
            self.units.looked(row.step, self._looked)
            self._looked = 0.0
        if self.last is not None:
            self._waiting.append(self.last)
        looked = row.step >= self._next_look or self.suspect
        self.steps += 1
        self.last, self.row, self.suspect = row, StepRow(self.steps), False
        then, spent = self._ended
        self._own.append(max(began - then - (self.spent - spent), 0.0))
        if looked or len(self._own) == 1:
            self._settle()
        if began >= self._next_frame or len(self._waiting) >= ROWS or self.steps == 8:
            self.frame()
        now = clock.now()
        self.spent += now - began
        self._ended = now, self.spent

    def paused(self, seconds: float) -> None:
        """Time in which nothing ran is nobody's."""
        self.began += seconds
        self._since = self._since[0] + seconds, *self._since[1:]
        self.speed.paused(seconds)
        self._ended = self._ended[0] + seconds, self._ended[1]

    def release(self) -> None:
        """Hold no copy of the weights any more."""
        self._copies = None

    def frame(self, whole: bool = False) -> None:
        """Read what waits, into columns. `whole`: with the last step."""
        began = clock.now()
        if whole and self.last is not None:
            self._waiting.append(self.last)
            self.last = None
        rows, self._waiting = self._waiting, []
        if rows:
            steps = np.array([row.step for row in rows])
            numbers, stale = self._numbers(rows)
            self.columns.add(steps, numbers)
            self.seen(steps, numbers, stale)
        self._settle()
        now = clock.now()
        self.speed.note(now, self.steps)
        self._next_frame = now + max(FRAME, (now - began) / FRAMES)

    def _numbers(self, rows: list[StepRow]) -> tuple[np.ndarray, dict[int, float]]:
        """The rows as numbers, shape (rows, series), and what was stale in which step; everything in one transfer."""
        layout, params = self.layout, len(self.watched.params)
        vectors: list[Any] = []
        put: list[Callable[[np.ndarray], None]] = []

        def later(vector: Any, into: Callable[[np.ndarray], None]) -> None:
            vectors.append(vector)
            put.append(into)

        numbers = np.full((len(rows), layout.size), np.nan)
        numbers[:, layout.rate] = [row.rate for row in rows]
        losses = [row.loss for row in rows]
        numbers[:, layout.loss] = known = [loss if type(loss) is float else math.nan for loss in losses]
        if not all(map(math.isfinite, known)):
            for k, loss in enumerate(losses):
                if type(loss) is float:
                    numbers[k, layout.loss] = loss if math.isfinite(loss) else math.inf
                elif loss is not None:
                    later(loss, partial(_set, numbers, (k, layout.loss)))
        looked = [k for k, row in enumerate(rows) if row.is_looked_at]
        norms, weights, moved = (np.full((len(looked), params), np.nan) for _ in range(3))
        stale: dict[int, float] = {}
        for at, k in enumerate(looked):
            row = rows[k]
            if isinstance(row.gradients, list):
                for i, vector in zip(row.which or (), row.gradients, strict=True):
                    later(vector, partial(_set, norms, (at, i)))
            elif row.gradients is not None:
                later(row.gradients, partial(_set, norms, (at, slice(None) if row.which is None else list(row.which))))
            if row.unclipped is not None:
                later(row.unclipped, partial(_total, numbers, (k, layout.unclipped)))
            if row.moved is not None:
                later(row.weights, partial(_set, weights, (at, slice(None))))
                later(row.moved, partial(_set, moved, (at, slice(None))))
            for i, vector in (row.units or {}).items():
                later(vector, partial(_units, numbers, k, layout.dead.start + i, layout.saturated.start + i))
            if type(row.stale) is float:
                stale[row.step] = row.stale
            elif row.stale is not None:
                later(row.stale, partial(_one, stale, row.step))
        for array, into in zip(self.gauge.read(vectors) if vectors else (), put, strict=True):
            into(array)
        if looked:
            for at, k in enumerate(looked):
                moved[at, list(rows[k].still)] = np.nan
            by_layer = self.watched.by_layer
            with silence():
                numbers[looked, layout.gradient] = by_layer(norms)
                numbers[looked, layout.weight] = weight = by_layer(weights)
                ratio = np.where(weight > 0, by_layer(moved) / np.where(weight > 0, weight, 1.0), np.nan)
                numbers[looked, layout.ratio] = ratio
        return numbers, stale

    # ------------------------------------------------------------------------------------------------------------- cost
    @property
    def cost(self) -> tuple[float, float]:
        """What watching takes of a step, in seconds, and as a share of the step itself; of those after the steps that are looked
        at in full, if there are any."""
        began, before, first = self._since if self.steps > self._since[2] else (self.began, 0.0, 0)
        spent = self.spent - before
        own = self._ended[0] - began - spent
        return spent / max(self.steps - first, 1), spent / own if own > 0 else 0.0


def _set(into: np.ndarray, at: Any, numbers: np.ndarray) -> None:
    """Put in what was read; what is not finite is an infinity there, since NaN stands for nothing measured."""
    numbers = numbers if into[at].shape else numbers.reshape(-1)[0]
    into[at] = np.where(np.isfinite(numbers), numbers, np.inf)


def _total(into: np.ndarray, at: Any, norms: np.ndarray) -> None:
    """Put in the norm of several vectors together."""
    _set(into, at, np.sqrt(np.square(norms).sum(keepdims=True)))


def _units(into: np.ndarray, k: int, dead: int, full: int, numbers: np.ndarray) -> None:
    for at, value in ((dead, numbers[0]), (full, numbers[1])):
        if value >= 0:
            into[k, at] = value


def _one(into: dict[int, float], step: int, numbers: np.ndarray) -> None:
    into[step] = float(numbers.reshape(-1)[0])


def rate_of(optimizer: Any) -> float:
    """An optimizer's learning rate; NaN where reading it would wait for a device."""
    rate = optimizer.param_groups[0].get("lr", np.nan)
    if isinstance(rate, (int, float)):
        return float(rate)
    device = getattr(rate, "device", None)
    return float(rate) if device is None or getattr(device, "type", "cpu") == "cpu" else float("nan")
