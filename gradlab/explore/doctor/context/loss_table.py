"""Table of losses and the optimizers whose parameters they move, and gradients of one loss that the step of another one uses.

The events of a cell are followed in their order. A sweep adds its loss to the losses in the `.grad` of the leaves that it
reaches, or replaces them if `.grad` was empty. A step of an optimizer uses the losses in the `.grad` of its parameters at that
time; a `.grad` that was cleared since is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradlab.explore.trace.data import Event, Line, Trace
from gradlab.explore.trace.journal import Entry, SweepEntry

STEP = re.compile(r"([A-Za-z_][\w.]*(?:\[[^\[\]]*\][\w.]*)*)\.step\(\s*([A-Za-z_][\w.]*)?")
BACKWARD = re.compile(r"(.*)\.backward\(")
RELATIVE_TOLERANCE = 1e-5  # of two float32 norms of one gradient


@dataclass(frozen=True)
class Loss:
    """A differentiated loss: its name or its code, and the place of its backward()."""

    name: str
    place: Line | None

    @property
    def where(self) -> str:
        """ "line 12", or a place in another file; "" if it is not known."""
        return "" if self.place is None else f"line {self.place.line}" if self.place.in_cell else self.place.where


@dataclass(frozen=True)
class Influence:
    """Influence of a loss on the parameters of an optimizer.

    Attributes
    ----------
    moved : int
        The number of them that had its gradient in their `.grad` when the optimizer stepped.
    reached : int
        The number of them that got a gradient from it.
    """

    moved: int
    reached: int

    def __str__(self) -> str:
        if self.moved:
            return f"moves {self.moved}"
        return f"reaches {self.reached}, not stepped" if self.reached else "–"


@dataclass(frozen=True)
class LossTable:
    """Influences of losses (rows) on the optimizers that stepped (columns).

    Attributes
    ----------
    losses : tuple of Loss
    optimizers : tuple of str
    sizes : tuple of int
        The number of parameters of each optimizer.
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
    left, then : SweepEntry
        The sweep that left the gradient, and the sweep that added to it.
    entry : Entry
        A leaf in the second sweep.
    used : Event
        The step that used the sum.
    keys : set of int
        The keys of the leaves.
    rounds : set of int
        The numbers of all sweeps that added to such a gradient.
    """

    left: SweepEntry
    then: SweepEntry
    entry: Entry
    used: Event
    keys: set[int] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Leftover:
    """A gradient of loss `loss` in a leaf, to which loss `then` added.

    `movers` are the parameters of the optimizers that have stepped on the first loss.
    """

    loss: int
    then: int
    sweeps: tuple[SweepEntry, SweepEntry]
    entry: Entry
    movers: frozenset[int]


class LossTracker:
    """Losses in the `.grad` of each leaf, over the sweeps and steps of a trace.

    Attributes
    ----------
    losses : list of Loss
    sweeps : dict of int to int
        The number of sweeps of each loss.
    columns : dict of int to int
        The column of each optimizer. See `_columns`.
    moved : dict of (int, int) to set of int
        The leaves whose step in a column used a loss, by loss and column.
    reached : dict of int to set of int
        The leaves that got a gradient from each loss.
    leaks : dict of (int, int, int) to Leak
        By the two losses and the column.
    never_cleared : set of int
        The leaves that an optimizer stepped, and to whose `.grad` the next sweep added.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.losses: list[Loss] = []
        self.sweeps: dict[int, int] = {}
        self.columns = _columns(trace.events)
        self.moved: dict[tuple[int, int], set[int]] = {}
        self.reached: dict[int, set[int]] = {}
        self.leaks: dict[tuple[int, int, int], Leak] = {}
        self.never_cleared: set[int] = set()
        self._follow()

    def _follow(self) -> None:
        swept_at = {swept.event - 1: swept for swept in self.trace.journal}
        inside: dict[int, dict[int, SweepEntry]] = {}  # by leaf, the losses in its `.grad` and the last sweep of each
        spent: set[int] = set()  # leaves with a step since their `.grad` was empty
        stepped: dict[int, set[int]] = {}  # by loss, the parameters of the optimizers that used its last sweep
        waiting: dict[int, _Leftover] = {}  # by leaf
        for at, event in enumerate(self.trace.events):
            if event.kind == "backward":
                swept = swept_at.get(at)
                if swept is None:  # this sweep was not recorded
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
                        left = _find_leftover(entry, there, loss, swept, stepped)
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
                        self._add_leak(event, column, left)

    def _loss(self, swept: SweepEntry, place: Line | None) -> int:
        text = place.statement or place.source if place is not None else ""
        code = BACKWARD.match(text)
        source = code[1] if code is not None and not code[1].endswith("autograd") else ""
        loss = Loss(swept.root or source or "the result", place)
        if loss not in self.losses:
            self.losses.append(loss)
        at = self.losses.index(loss)
        self.sweeps[at] = self.sweeps.get(at, 0) + 1
        return at

    def _add_leak(self, used: Event, column: int, one: _Leftover) -> None:
        (left, then), entry = one.sweeps, one.entry
        leak = self.leaks.setdefault((one.loss, one.then, column), Leak(left, then, entry, used))
        if then is not leak.then or entry.arrived > leak.entry.arrived:
            leak.left, leak.then, leak.entry, leak.used = left, then, entry, used
        leak.keys.add(entry.key)
        leak.rounds.add(then.number)


def _find_leftover(
    entry: Entry, there: Mapping[int, SweepEntry], then: int, sweep: SweepEntry, stepped: Mapping[int, set[int]]
) -> _Leftover | None:
    """Return the gradient in a `.grad` if it is of one other loss, which an optimizer without this leaf has stepped on."""
    if len(there) != 1 or then in there:
        return None
    ((loss, left),) = there.items()
    movers = frozenset(stepped.get(loss, ()))
    return _Leftover(loss, then, (left, sweep), entry, movers) if movers and entry.key not in movers else None


def _is_leak(one: _Leftover, used: Event, stepped: Mapping[int, set[int]]) -> bool:
    """Return whether the second loss belongs to the optimizer that steps.

    It must not reach parameters of a third optimizer, and no other optimizer must have stepped on it. Otherwise the sum of the
    two losses may be intended, as in an encoder for several tasks.
    """
    reached = {entry.key for entry in one.sweeps[1].entries if entry.arrived > 0}
    return reached <= {*used.held, *one.movers} and not stepped.get(one.then, set()) - set(used.held)


def _columns(events: Iterable[Event]) -> dict[int, int]:
    """Return the column of each optimizer that stepped.

    Optimizers that step on the same line, one after the other, share a column: a function or a loop over models creates them.
    """
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
    """Return the table of a cell with at least two losses, or two optimizers that stepped; else None."""
    tracker = LossTracker(trace)
    steps = [event for event in trace.events if event.kind == "step"]
    if not tracker.losses or not steps or (len(tracker.losses) < 2 and len(set(tracker.columns.values())) < 2):
        return None
    held: dict[int, set[int]] = {}
    for event in steps:
        held.setdefault(tracker.columns[event.whose], set()).update(event.held)
    influences = tuple(
        tuple(
            Influence(len(tracker.moved.get((i, column), ())), len(tracker.reached.get(i, set()) & held[column]))
            for column in sorted(held)
        )
        for i in range(len(tracker.losses))
    )
    sizes = [max(len(event.held) for event in steps if tracker.columns[event.whose] == column) for column in sorted(held)]
    return LossTable(tuple(tracker.losses), tuple(_names(steps, tracker.columns)), tuple(sizes), influences)


def _names(steps: Sequence[Event], columns: Mapping[int, int]) -> Iterator[str]:
    """Yield the names of the columns: the code of the optimizer, with a number if several have the same."""
    firsts = {columns[event.whose]: event for event in reversed(steps)}
    names = {column: step_receiver(event) for column, event in firsts.items()}
    for column in sorted(names):
        alike = [other for other in sorted(names) if names[other] == names[column]]
        yield names[column] if len(alike) == 1 else f"{names[column]} ({alike.index(column) + 1})"


def step_receiver(event: Event) -> str:
    """Return the optimizer in the code of a step, `opt` of `opt.step()` and of `scaler.step(opt)`; else its class."""
    found = STEP.search(event.place.statement or event.place.source) if event.place is not None else None
    return (found[2] or found[1]) if found is not None else event.optimizer
