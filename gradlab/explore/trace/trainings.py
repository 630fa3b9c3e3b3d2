"""Which of a program's sweeps belong together: those of one model, or of several whose losses share parameters.

A sweep belongs to the training with which it shares a leaf; one that joins two makes one of them. Leaves are `Parameter`s where
there are any, else what may be the weights of a model written by hand: several leaves, each a matrix or more, that two sweeps
reach. A sweep that reaches neither is of no training of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradlab.explore.libraries import Library, library_of
from gradlab.explore.module_paths import is_model
from gradlab.explore.names import is_optimizer, modules_in
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.labels import Identity, labels
from gradlab.explore.trace.loops import Progress
from gradlab.explore.trace.notes import Called
from gradlab.explore.trace.sweep import RecordedSweep

MOST = 12  # trainings that are looked at in any case
LOSSES = 4  # places from which backward is called
NEAR = 200  # nodes behind a loss that are looked at for a leaf


@dataclass(eq=False)
class Training:
    """The sweeps of one model.

    Attributes
    ----------
    keys : set of int
        What tells its leaves from others (`Identities`).
    sweeps : int
        How many there were.
    last : RecordedSweep or None
        The last that was looked at.
    spoilt : RecordedSweep or None
        The first with a NaN or an infinity in its result or at its leaves, while none of these got a finite gradient since.
    losses : dict
        The last sweep that was looked at of each place from which backward is called, the latest last.
    beginning : RecordedSweep or None
        The first sweep, until another one has been looked at.
    first : Trace or None
        The plain data of the first sweep from then on.
    identity : Identity
        What tells it from others.
    owners : dict of str to object
        The models, optimizers and leaves by the names they had at its last sweep; empty once it is over.
    over : bool
        Whether its leaves had no name any more when another training began, or the program has ended.
    said : object
        What a doctor said of it then.
    """

    keys: set[int] = field(default_factory=set)
    sweeps: int = 0
    last: RecordedSweep | None = None
    spoilt: RecordedSweep | None = None
    losses: dict[Any, RecordedSweep] = field(default_factory=dict)
    beginning: RecordedSweep | None = None
    first: Trace | None = None
    identity: Identity = field(default_factory=Identity)
    owners: dict[str, Any] = field(default_factory=dict)
    over: bool = False
    said: Any = None
    progress: Progress = field(default_factory=Progress)

    @property
    def shown(self) -> RecordedSweep | None:
        """The sweep that is told of."""
        return self.last if self.spoilt is None else self.spoilt

    def is_of(self, library: Library) -> bool:
        """Whether its sweeps are a library's."""
        return self.shown is not None and self.shown.library is library

    @property
    def trace(self) -> Trace | None:
        """The plain data of that sweep, once it has been made."""
        trace = None if self.shown is None else self.shown.trace
        return None if trace is None else self.counted(trace)

    def counted(self, trace: Trace) -> Trace:
        """A trace of one of its sweeps with the number of those that there have been by now."""
        return trace if trace.sweeps == self.sweeps else replace(trace, sweeps=self.sweeps)

    def first_beside(self, trace: Trace | None) -> Trace | None:
        """Return the trace of the first sweep: the given one if that is the first; None if the first was not looked at, or has
        none of the leaves of the given one."""
        if self.first is None:
            return trace if self.beginning is not None and self.beginning is self.shown else None
        keys = {leaf.key for leaf in self.first.leaves}
        return self.first if trace is not None and any(leaf.key in keys for leaf in trace.leaves) else None

    @property
    def kept(self) -> list[RecordedSweep]:
        """All sweeps that are kept of it, each once."""
        several = (self.last, self.spoilt, self.beginning, *self.losses.values())
        return list({id(one): one for one in several if one is not None}.values())

    @property
    def other_losses(self) -> list[RecordedSweep]:
        """Those of other losses than the one that is told of."""
        shown = self.shown
        return [one for one in self.losses.values() if shown is not None and one.site != shown.site]

    def record(self, sweep: RecordedSweep) -> None:
        """Keep a sweep that was looked at, and has ended."""
        if sweep.number == 1 and sweep.error is None:
            self.beginning = sweep
        self.last = sweep
        if sweep.site is not None and not sweep.retains:
            self.losses.pop(sweep.site, None)
            self.losses[sweep.site] = sweep
            if len(self.losses) > LOSSES:
                del self.losses[next(iter(self.losses))]

    def judge(self, sweep: RecordedSweep) -> None:
        """Whether a sweep is the first that went wrong, or tells that the program has come back from one."""
        if self.spoilt is not None and self.spoilt.odd & (sweep.reached - sweep.odd):
            self.spoilt = None
        odd = sweep.odd or any(root.value.odd for root in sweep.roots if root.value)
        if self.spoilt is None and sweep.error is None and odd:
            self.spoilt = sweep

    def forget(self) -> None:
        """Let go of the sweeps, which refer to this, and of the program."""
        self.last = self.spoilt = self.beginning = None
        self.losses.clear()
        self.owners.clear()

    def merge(self, other: Training) -> None:
        """Take over another, which is the same one."""
        for sweep in other.kept:
            sweep.training = self
        self.keys |= other.keys
        self.losses |= other.losses
        self.sweeps += other.sweeps
        self.last, self.spoilt = other.last or self.last, self.spoilt or other.spoilt
        if self.first is None and self.beginning is None:
            self.first, self.beginning = other.first, other.beginning
        self.owners |= other.owners


class Trainings:
    """Those of a program.

    Attributes
    ----------
    known : list of Training
        In the order in which they began: the first of them, and the last.
    left_out : int
        How many others there were.
    rest : Training
        The sweeps that belong to none.
    """

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self.known: list[Training] = []
        self.left_out = 0
        self.rest = Training()
        self._once: deque[set[int]] = deque(maxlen=MOST)  # keys of weights without a model that one sweep has reached
        self._passed: set[int] = set()  # keys of leaves of those that were left out

    def clear(self) -> None:
        for training in self.all:
            training.forget()
        self.known.clear()
        self._passed.clear()
        self._once.clear()
        self.left_out = 0
        self.rest = Training()

    def rename(self, names: Mapping[int, int]) -> None:
        """Keys are replaced with others."""
        for training in self.all:
            training.keys = {names.get(key, key) for key in training.keys}
            for sweep in training.kept:
                sweep.rename(names)
        self._passed = {names.get(key, key) for key in self._passed}
        for once in self._once:
            replaced = {names.get(key, key) for key in once}
            once.clear()
            once |= replaced

    def _of_leaves(self, library: Library, leaves: Iterable[Any], *, looking: bool) -> tuple[Training, bool]:
        """The training of a sweep that reaches these leaves."""
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
        if keys & self._passed or (len(self.known) >= MOST and not looking):
            self.left_out += not keys & self._passed
            self._passed |= keys
            return self.rest, False
        if len(self.known) >= MOST:
            self._passed |= self.known.pop().keys
            self.left_out += 1
        begun = [sweep for sweep in self.rest.kept if not keys.isdisjoint(sweep.reached)] if before else []
        self.known.append(Training(keys, sweeps=int(before), beginning=min(begun, key=lambda one: one.time, default=None)))
        return self.known[-1], True

    def of_nodes(self, library: Library, nodes: Iterable[Any]) -> tuple[Training, bool]:
        """The training of a sweep that is looked at, by all nodes behind its roots; and whether it begins with it."""
        return self._of_leaves(library, [leaf for node in nodes if (leaf := library.variable(node)) is not None], looking=True)

    @property
    def has_room(self) -> bool:
        """Whether another one would be looked at in any case."""
        return len(self.known) < MOST

    def near(self, library: Library, roots: Iterable[Any]) -> tuple[Training, bool]:
        """The same of a sweep that is not looked at: by the nearest leaf that is known, or by those up to the first
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
        """Whether a model or an optimizer has one of these leaves, or is one."""
        if is_model(value):
            parts = [part for _, module in modules_in("", value) for part in vars(module).get("_parameters", {}).values()]
        elif is_optimizer(value):
            parts = [part for group in value.param_groups for part in group["params"]]
        else:
            parts = [value] if library_of(value) is not None else []
        return any(self.identities.key(part) in keys for part in parts if part is not None)

    def calls_of_others(self, calls: Iterable[Called], keys: set[int]) -> Iterator[Called]:
        """The calls of living modules that have none of these leaves."""
        has_part: dict[int, bool] = {}  # by the identity of a module
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
        """Those that are known, and what belongs to none."""
        return [*self.known, self.rest]

    def labels(self) -> list[str]:
        """What tells the known ones from each other; see `labels.labels`."""
        return labels([training.identity for training in self.known])

    def label_of(self, training: Training | None) -> str:
        """That of one of them; "" of another."""
        return next((label for one, label in zip(self.known, self.labels(), strict=True) if one is training), "")

    def others(self, than: Training) -> list[Training]:
        return [training for training in self.known if training is not than]


def _weights(library: Library, leaves: Sequence[Any]) -> list[Any]:
    """Those of some leaves that a model is known by."""
    parameters = [leaf for leaf in leaves if library.is_parameter(leaf)]
    if parameters:
        return parameters
    matrices = [leaf for leaf in leaves if len(library.shape_of(leaf) or ()) > 1]
    return matrices if len(matrices) > 1 else []


def leaves_near(library: Library, roots: Iterable[Any]) -> Iterator[Any]:
    """The leaves behind some nodes, depth first."""
    waiting = [*roots]
    seen: set[Any] = set()
    while waiting and len(seen) < NEAR:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = library.variable(node)
        if leaf is not None:
            yield leaf
        waiting.extend(source for source in reversed(library.inputs(node)) if source is not None)
