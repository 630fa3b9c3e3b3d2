"""Group the sweeps of a program into trainings: those of one model, or of several models whose losses share parameters.

A sweep belongs to the training with which it shares a leaf. A sweep that shares leaves with two trainings merges them. The leaves
are the `Parameter`s if there are any, else the probable weights of a model written by hand: several leaves with two or more
dimensions that two sweeps reach. A sweep that reaches neither does not begin a training.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.explore.keras_layers import own_parameters
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import is_optimizer, modules_in
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.labels import Identity, labels
from gradlab.explore.trace.loops import Progress
from gradlab.explore.trace.notes import RecordedCall
from gradlab.explore.trace.sweep import RecordedSweep

MAX_TRAININGS = 12  # that are always recorded
MAX_LOSSES = 4  # lines that call backward
MAX_OVERFLOWS = 8  # sweeps with an overflow of a scaled loss that are read, of a training; later only the 16th, the 32nd, …
MAX_VISITED = 200  # nodes behind a loss that are searched for a leaf


@dataclass(eq=False)
class Training:
    """The sweeps of one model.

    Attributes
    ----------
    keys : set of int
        The keys (`Identities`) of its leaves.
    sweeps : int
        The number of sweeps.
    last : RecordedSweep or None
        The last recorded sweep.
    nonfinite_sweep : RecordedSweep or None
        The first sweep with a NaN or an infinity in its result or at its leaves, unless a leaf got a finite gradient since.
    losses : dict
        The last recorded sweep for each line that calls backward, the latest last.
    beginning : RecordedSweep or None
        The first sweep, until another one has been recorded.
    first : Trace or None
        The plain data of the first sweep from then on.
    identity : Identity
        The properties that distinguish it from other trainings.
    owners : dict of str to object
        The models, optimizers and leaves by their names at the last sweep; empty once the training is over.
    overflow : Trace or None
        The plain data of the last recorded sweep of a scaled loss (`RecordedSweep.scale`) that was not finite, if finite ones
        followed.
    over : bool
        True if its leaves had no name any more when another training began, or if the program has ended.
    diagnosis : object
        The diagnosis of the doctor when it was over.
    """

    keys: set[int] = field(default_factory=set)
    sweeps: int = 0
    last: RecordedSweep | None = None
    nonfinite_sweep: RecordedSweep | None = None
    losses: dict[Any, RecordedSweep] = field(default_factory=dict)
    beginning: RecordedSweep | None = None
    first: Trace | None = None
    overflow: Trace | None = None
    identity: Identity = field(default_factory=Identity)
    owners: dict[str, Any] = field(default_factory=dict)
    over: bool = False
    diagnosis: Any = None
    progress: Progress = field(default_factory=Progress)
    _overflows: int = 0  # sweeps of a scaled loss that were not finite, before finite ones

    @property
    def shown_sweep(self) -> RecordedSweep | None:
        """The sweep that reports show: the first one that is not finite, else the last."""
        return self.last if self.nonfinite_sweep is None else self.nonfinite_sweep

    def is_of(self, library: Library) -> bool:
        """Return True if its sweeps are of this library."""
        return self.shown_sweep is not None and self.shown_sweep.library is library

    @property
    def trace(self) -> Trace | None:
        """The plain data of the shown sweep, once it exists."""
        trace = None if self.shown_sweep is None else self.shown_sweep.trace
        return None if trace is None else self.with_count(trace)

    def with_count(self, trace: Trace) -> Trace:
        """Return a trace of one of its sweeps with the current number of sweeps."""
        return trace if trace.sweeps == self.sweeps else replace(trace, sweeps=self.sweeps)

    def first_trace_for(self, trace: Trace | None) -> Trace | None:
        """Return the trace of the first sweep: the given one if it is the first; None if the first was not recorded, or if it
        shares no leaf with the given one."""
        if self.first is None:
            return trace if self.beginning is not None and self.beginning is self.shown_sweep else None
        keys = {leaf.key for leaf in self.first.leaves}
        return self.first if trace is not None and any(leaf.key in keys for leaf in trace.leaves) else None

    @property
    def kept_sweeps(self) -> list[RecordedSweep]:
        """All sweeps that are stored, each once."""
        several = (self.last, self.nonfinite_sweep, self.beginning, *self.losses.values())
        return list({id(one): one for one in several if one is not None}.values())

    @property
    def other_losses(self) -> list[RecordedSweep]:
        """The sweeps of other losses than the shown one."""
        shown = self.shown_sweep
        return [one for one in self.losses.values() if shown is not None and one.site != shown.site]

    def record(self, sweep: RecordedSweep) -> None:
        """Store a recorded sweep that has ended."""
        if sweep.number == 1 and sweep.error is None:
            self.beginning = sweep
        self.last = sweep
        if sweep.site is not None and not sweep.retains:
            self.losses.pop(sweep.site, None)
            self.losses[sweep.site] = sweep
            if len(self.losses) > MAX_LOSSES:
                del self.losses[next(iter(self.losses))]

    def judge(self, sweep: RecordedSweep, read: Callable[[RecordedSweep], Trace]) -> None:
        """Update `nonfinite_sweep`: set it to the first sweep that is not finite, and reset it once the gradients are finite
        again. `read` returns the trace of a sweep."""
        if self.nonfinite_sweep is not None and self.nonfinite_sweep.odd & (sweep.reached_keys - sweep.odd):
            before, self.nonfinite_sweep = self.nonfinite_sweep, None
            if before.scale != 1.0:
                self._overflows += 1
                if self._overflows <= MAX_OVERFLOWS or not self._overflows & (self._overflows - 1):
                    self.overflow = before.trace or read(before)
        odd = sweep.odd or any(root.value.odd for root in sweep.roots if root.value)
        if self.nonfinite_sweep is None and sweep.error is None and odd:
            self.nonfinite_sweep = sweep

    def forget(self) -> None:
        """Release the sweeps, which refer to this training, and the objects of the program."""
        self.last = self.nonfinite_sweep = self.beginning = None
        self.losses.clear()
        self.owners.clear()

    def merge(self, other: Training) -> None:
        """Merge another training into this one."""
        for sweep in other.kept_sweeps:
            sweep.training = self
        self.keys |= other.keys
        self.losses |= other.losses
        self.sweeps += other.sweeps
        self.last, self.nonfinite_sweep = other.last or self.last, self.nonfinite_sweep or other.nonfinite_sweep
        if self.first is None and self.beginning is None:
            self.first, self.beginning = other.first, other.beginning
        self.owners |= other.owners
        self.overflow = self.overflow or other.overflow

    def release(self, read: Callable[[RecordedSweep], Trace]) -> None:
        """Keep only the plain data, and no nodes of a graph. `read` returns the trace of a sweep."""
        self.last = self.shown_sweep
        for sweep in self.kept_sweeps:
            if sweep.trace is None:
                sweep.release(read(sweep))


class Trainings:
    """The trainings of a program.

    Attributes
    ----------
    known : list of Training
        The first trainings and the last one, in the order of their begin.
    left_out : int
        The number of other trainings.
    rest : Training
        The sweeps that belong to no training.
    """

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self.known: list[Training] = []
        self.left_out = 0
        self.rest = Training()
        self._once: deque[set[int]] = deque(maxlen=MAX_TRAININGS)  # keys of weights without a model that one sweep has reached
        self._passed: set[int] = set()  # keys of leaves of trainings that were left out

    def clear(self) -> None:
        for training in self.all:
            training.forget()
        self.known.clear()
        self._passed.clear()
        self._once.clear()
        self.left_out = 0
        self.rest = Training()

    def rename(self, names: Mapping[int, int]) -> None:
        """Replace keys."""
        for training in self.all:
            training.keys = {names.get(key, key) for key in training.keys}
            for sweep in training.kept_sweeps:
                sweep.rename(names)
        self._passed = {names.get(key, key) for key in self._passed}
        for once in self._once:
            replaced = {names.get(key, key) for key in once}
            once.clear()
            once |= replaced

    def _of_leaves(self, library: Library, leaves: Iterable[Any], *, looking: bool) -> tuple[Training, bool]:
        """Return the training of a sweep that reaches these leaves, and whether the training begins with it."""
        leaves = list(leaves)
        keys = set(self.identities.keys(_weights(library, leaves)))
        if not keys:
            return next(iter(self._sharing(set(self.identities.keys(leaves)))), self.rest), False
        several = self._sharing(keys)
        if several:
            first, *others = several
            for other in others:
                first.merge(other)
                self.known.remove(other)
            first.keys |= keys
            return first, False
        before = any(keys & once for once in self._once)
        if not before and not any(map(library.is_parameter, leaves)):
            self._once.append(keys)
            return self.rest, False
        if keys & self._passed or (len(self.known) >= MAX_TRAININGS and not looking):
            self.left_out += not keys & self._passed
            self._passed |= keys
            return self.rest, False
        if len(self.known) >= MAX_TRAININGS:
            self._passed |= self.known.pop().keys
            self.left_out += 1
        begun = [sweep for sweep in self.rest.kept_sweeps if not keys.isdisjoint(sweep.reached_keys)] if before else []
        self.known.append(Training(keys, sweeps=int(before), beginning=min(begun, key=lambda one: one.time, default=None)))
        return self.known[-1], True

    def of_nodes(self, library: Library, nodes: Iterable[Any]) -> tuple[Training, bool]:
        """Return the training of a recorded sweep from all nodes behind its roots, and whether the training begins with it."""
        return self._of_leaves(library, [leaf for node in nodes if (leaf := library.variable(node)) is not None], looking=True)

    @property
    def has_room(self) -> bool:
        """True if another training would always be recorded."""
        return len(self.known) < MAX_TRAININGS

    def near(self, library: Library, roots: Iterable[Any]) -> tuple[Training, bool]:
        """Return the same for a sweep that is not recorded, from the nearest known leaf, or the leaves up to the first
        `Parameter`."""
        leaves: list[Any] = []
        for leaf in leaves_near(library, roots):
            key = self.identities.key(leaf)
            for training in self.known:
                if key in training.keys:
                    return training, False
            leaves.append(leaf)
            if library.is_parameter(leaf):
                break
        return self._of_leaves(library, leaves, looking=False)

    def has_part(self, value: Any, keys: set[int]) -> bool:
        """Return True if a model or an optimizer has one of these leaves, or if the value is one of them."""
        if is_model(value):
            parts = [part for _, module in modules_in("", value) for _, part in own_parameters("", module)]
        elif is_optimizer(value):
            parts = [part for group in value.param_groups for part in group["params"]]
        else:
            parts = [value] if library_of(value) is not None else []
        return any(self.identities.key(part) in keys for part in parts if part is not None)

    def calls_of_others(self, calls: Iterable[RecordedCall], keys: set[int]) -> Iterator[RecordedCall]:
        """Yield the calls of existing modules that have none of these leaves."""
        has_part: dict[int, bool] = {}  # by the id of a module
        for call in calls:
            module = call.module()
            if module is not None and id(module) not in has_part:
                has_part[id(module)] = self.has_part(module, keys)
            if module is not None and not has_part[id(module)]:
                yield call

    def _sharing(self, keys: set[int]) -> list[Training]:
        return [training for training in self.known if not training.keys.isdisjoint(keys)]

    @property
    def all(self) -> list[Training]:
        """The known trainings and `rest`."""
        return [*self.known, self.rest]

    def labels(self) -> list[str]:
        """Return a label for each known training; see `labels.labels`."""
        return labels([training.identity for training in self.known])

    def label_of(self, training: Training | None) -> str:
        """Return the label of a known training; "" for any other."""
        return next((label for one, label in zip(self.known, self.labels(), strict=True) if one is training), "")

    def others(self, than: Training) -> list[Training]:
        return [training for training in self.known if training is not than]


def _weights(library: Library, leaves: Sequence[Any]) -> list[Any]:
    """Return the leaves that identify a model."""
    parameters = [leaf for leaf in leaves if library.is_parameter(leaf)]
    if parameters:
        return parameters
    matrices = [leaf for leaf in leaves if len(library.shape_of(leaf) or ()) > 1]
    return matrices if len(matrices) > 1 else []


def leaves_near(library: Library, roots: Iterable[Any]) -> Iterator[Any]:
    """Yield the leaves behind some nodes, depth first."""
    waiting = [*roots]
    seen: set[Any] = set()
    while waiting and len(seen) < MAX_VISITED:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = library.variable(node)
        if leaf is not None:
            yield leaf
        waiting.extend(source for source in reversed(library.inputs(node)) if source is not None)
