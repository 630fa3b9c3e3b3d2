"""Which loss moves which optimizer's parameters, and a gradient that one loss leaves in what another optimizer steps on.

The events of a cell are followed in their order. A sweep puts a loss into the `.grad` of the leaves that it reaches: beside the
losses that are there, or alone where the `.grad` was empty before. A step of an optimizer is made of the losses that are then in
the gradients of its parameters; a `.grad` that was cleared in between is not among the gradients of the step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradlab.explore.trace.data import Event, Line, Trace
from gradlab.explore.trace.journal import Entry, Swept

STEP = re.compile(r"([A-Za-z_][\w.]*(?:\[[^\[\]]*\][\w.]*)*)\.step\(\s*([A-Za-z_][\w.]*)?")
BACKWARD = re.compile(r"(.*)\.backward\(")
SAME = 1e-5  # relative: two float32 norms of one gradient


@dataclass(frozen=True)
class Loss:
    """A loss that was differentiated: its name, or its code, and the place of its backward()."""

    name: str
    place: Line | None

    @property
    def where(self) -> str:
        """ "line 12", or another file's; "" if it is not known."""
        return "" if self.place is None else f"line {self.place.line}" if self.place.in_cell else self.place.where


@dataclass(frozen=True)
class Influence:
    """Of a loss on the parameters of an optimizer.

    Attributes
    ----------
    moved : int
        How many of them had its gradient in their `.grad` when the optimizer stepped.
    reached : int
        How many it brought a gradient to.
    """

    moved: int
    reached: int

    def __str__(self) -> str:
        if self.moved:
            return f"moves {self.moved}"
        return f"reaches {self.reached}, not stepped" if self.reached else "–"


@dataclass(frozen=True)
class LossTable:
    """Rows are losses, columns are optimizers that stepped. Plain data.

    Attributes
    ----------
    losses : tuple of Loss
    optimizers : tuple of str
    sizes : tuple of int
        How many parameters each optimizer holds.
    influences : tuple of tuple of Influence
    """

    losses: tuple[Loss, ...]
    optimizers: tuple[str, ...]
    sizes: tuple[int, ...]
    influences: tuple[tuple[Influence, ...], ...]


@dataclass
class Leak:
    """A gradient of one loss that the step of another one's optimizer used.

    Attributes
    ----------
    left, then : Swept
        The sweep that left it, and the one that added to it.
    entry : Entry
        A leaf at the second.
    used : Event
        The step that used the sum.
    keys : set of int
        What tells the leaves.
    rounds : set of int
        The numbers of all sweeps that added to such a gradient.
    """

    left: Swept
    then: Swept
    entry: Entry
    used: Event
    keys: set[int] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Left:
    """A gradient that loss `loss` left in a leaf and loss `then` added to; `movers` is what the optimizers hold that have stepped
    on the first."""

    loss: int
    then: int
    sweeps: tuple[Swept, Swept]
    entry: Entry
    movers: frozenset[int]


class Course:
    """What the sweeps and steps of a trace did to each leaf, in their order."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.losses: list[Loss] = []
        self.sweeps: dict[int, int] = {}  # how many there were of each loss
        self.columns = _columns(trace.events)
        self.moved: dict[tuple[int, int], set[int]] = {}
        self.reached: dict[int, set[int]] = {}
        self.leaks: dict[tuple[int, int, int], Leak] = {}
        self.never_cleared: set[int] = set()  # leaves of which a step was made, and to whose `.grad` the next sweep added
        self._follow()

    def _follow(self) -> None:
        swept_at = {swept.event - 1: swept for swept in self.trace.journal}
        inside: dict[int, dict[int, Swept]] = {}  # by leaf the losses in its `.grad`, and the last sweep of each
        spent: set[int] = set()  # leaves that were stepped since their `.grad` was empty
        stepped: dict[int, set[int]] = {}  # by loss what the optimizers hold that have stepped on its last sweep
        waiting: dict[int, _Left] = {}  # by leaf
        for at, event in enumerate(self.trace.events):
            if event.kind == "backward":
                swept = swept_at.get(at)
                if swept is None:  # nobody looked
                    inside.clear()
                    waiting.clear()
                    continue
                loss = self._loss(swept, event.place)
                for entry in swept.entries:
                    there = inside.get(entry.key, {}) if entry.before else {}
                    if not entry.before:
                        spent.discard(entry.key)
                        waiting.pop(entry.key, None)
                    elif entry.key in spent:
                        self.never_cleared.add(entry.key)
                    elif entry.key not in waiting and entry.arrived > 0:
                        left = _left_behind(entry, there, loss, swept, stepped)
                        if left is not None:
                            waiting[entry.key] = left
                    if entry.arrived > 0:
                        self.reached.setdefault(loss, set()).add(entry.key)
                        there = {**there, loss: swept}
                    inside[entry.key] = there
                stepped[loss] = set()
            elif event.kind == "step":
                column = self.columns[event.whose]
                for key in event.keys:
                    for loss in inside.get(key, {}):
                        self.moved.setdefault((loss, column), set()).add(key)
                        stepped[loss].update(event.held)
                    spent.add(key)
                for key in event.keys:
                    left = waiting.pop(key, None)
                    if left is not None and _is_leak(left, event, stepped):
                        self._leaked(event, column, left)

    def _loss(self, swept: Swept, place: Line | None) -> int:
        text = place.statement or place.source if place is not None else ""
        code = BACKWARD.match(text)
        written = code[1] if code is not None and not code[1].endswith("autograd") else ""
        loss = Loss(swept.root or written or "the result", place)
        if loss not in self.losses:
            self.losses.append(loss)
        at = self.losses.index(loss)
        self.sweeps[at] = self.sweeps.get(at, 0) + 1
        return at

    def _leaked(self, used: Event, column: int, one: _Left) -> None:
        (left, then), entry = one.sweeps, one.entry
        leak = self.leaks.setdefault((one.loss, one.then, column), Leak(left, then, entry, used))
        if then is not leak.then or entry.arrived > leak.entry.arrived:
            leak.left, leak.then, leak.entry, leak.used = left, then, entry, used
        leak.keys.add(entry.key)
        leak.rounds.add(then.number)


def _left_behind(
    entry: Entry, there: Mapping[int, Swept], then: int, sweep: Swept, stepped: Mapping[int, set[int]]
) -> _Left | None:
    """Another loss that alone is in a `.grad`, and that an optimizer which does not hold the leaf has stepped on."""
    if len(there) != 1 or then in there:
        return None
    ((loss, left),) = there.items()
    movers = frozenset(stepped.get(loss, ()))
    return _Left(loss, then, (left, sweep), entry, movers) if movers and entry.key not in movers else None


def _is_leak(one: _Left, used: Event, stepped: Mapping[int, set[int]]) -> bool:
    """Whether the second loss is that of the optimizer that steps: it reaches nothing of a third one's, and the optimizer of the
    first loss has made no step of it. Else the two losses may well be meant to be added up, as in an encoder of several tasks."""
    reached = {entry.key for entry in one.sweeps[1].entries if entry.arrived > 0}
    return reached <= {*used.held, *one.movers} and not stepped.get(one.then, set()) - set(used.held)


def _columns(events: Iterable[Event]) -> dict[int, int]:
    """The column of each optimizer that stepped. Optimizers that one line made steps of, one after the other, share one: a
    function, or a loop over models, makes them anew."""
    spans: dict[int, tuple[Line | None, int, int]] = {}
    for at, event in enumerate(events):
        if event.kind == "step":
            place, first, _ = spans.get(event.whose, (event.place, at, at))
            spans[event.whose] = place, first, at
    columns: dict[int, int] = {}
    last: list[tuple[Line | None, int]] = []
    for whose, (place, start, end) in spans.items():
        free = next((i for i, (line, until) in enumerate(last) if line is not None and line == place and until < start), None)
        if free is None:
            free = len(last)
            last.append((place, end))
        last[free] = place, end
        columns[whose] = free
    return columns


def loss_table(trace: Trace) -> LossTable | None:
    """Return the table of a cell with at least two losses, or two optimizers that stepped; None of any other."""
    course = Course(trace)
    steps = [event for event in trace.events if event.kind == "step"]
    if not course.losses or not steps or (len(course.losses) < 2 and len(set(course.columns.values())) < 2):
        return None
    held: dict[int, set[int]] = {}
    for event in steps:
        held.setdefault(course.columns[event.whose], set()).update(event.held)
    influences = tuple(
        tuple(
            Influence(len(course.moved.get((i, column), ())), len(course.reached.get(i, set()) & held[column]))
            for column in sorted(held)
        )
        for i in range(len(course.losses))
    )
    sizes = [max(len(event.held) for event in steps if course.columns[event.whose] == column) for column in sorted(held)]
    return LossTable(tuple(course.losses), tuple(_names(steps, course.columns)), tuple(sizes), influences)


def _names(steps: Sequence[Event], columns: Mapping[int, int]) -> Iterator[str]:
    """What the columns are called: by the code that steps; with the class and a number where that does not tell them apart."""
    firsts = {columns[event.whose]: event for event in reversed(steps)}
    names = {column: step_receiver(event) for column, event in firsts.items()}
    for column in sorted(names):
        alike = [other for other in sorted(names) if names[other] == names[column]]
        yield names[column] if len(alike) == 1 else f"{names[column]} ({alike.index(column) + 1})"


def step_receiver(event: Event) -> str:
    """What the code of a step calls the optimizer: `opt` of `opt.step()` and of `scaler.step(opt)`; else its class."""
    found = STEP.search(event.place.statement or event.place.source) if event.place is not None else None
    return (found[2] or found[1]) if found is not None else event.optimizer


# ---------------------------------------------------------------------------------------------------------------- the Note
