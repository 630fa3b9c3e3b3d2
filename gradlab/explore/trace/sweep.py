"""A reverse sweep while it is being seen."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from gradlab.explore.libraries import Library
from gradlab.explore.pooled_matrix import PooledMatrix
from gradlab.explore.trace.data import Leaf, Trace
from gradlab.explore.trace.notes import Severed, times
from gradlab.explore.trace.reading import Names, Root, Seen
from gradlab.explore.trace.slopes import open_slope
from gradlab.explore.trace.values import Value


@dataclass
class LeafSeen:
    """A leaf while its sweep runs."""

    node: Any
    tensor: Any  # until it has been read
    device: str
    before: Value | None
    value: Value | None = None
    gradient: Value | None = None
    sample: Any = None  # of what arrived
    losses: tuple[Severed, ...] = ()  # the history of what it was made of
    key: int = 0  # its identity
    shape: tuple[int, ...] = ()
    dtype: str = ""
    form: str = ""  # what it is if it is not an ordinary dense tensor
    gradient_form: str = ""
    version: int = 0


@dataclass
class Kept:
    """What stays of a sweep beside its trace: keys of the leaves that it reached, and of those at which a NaN or an infinity
    arrived, and whether a leaf was not finite itself."""

    reached: set[int]
    odd: set[int]
    from_odd_leaves: bool


@dataclass
class RecordedSweep:
    """A reverse sweep, as it was seen. Holds nodes: the graph lives until the next of the same loss, until another training
    begins, or until the recorder forgets."""

    library: Library
    number: int
    roots: list[Root]
    outputs: list[Any]  # weak references to what backward was called on
    names: Names
    site: Any
    late: bool = False  # `.grad` is written when the sweep is over
    private: bool = False  # `.grad` is not written
    seen: Seen = field(default_factory=Seen)
    leaves: dict[Any, LeafSeen] = field(default_factory=dict)
    error: BaseException | None = None
    events: int = 0  # how many events had happened
    time: int = field(default_factory=lambda: next(times))  # when it began
    maps: list[tuple[Any, PooledMatrix]] = field(default_factory=list)  # of matrix-shaped gradients, by leaf
    retains: bool = False
    nodes: set[Any] = field(default_factory=set)  # all behind the roots
    uses: Counter[Any] = field(default_factory=Counter)  # how many edges lead to a node
    parts: dict[Any, list[tuple[Any, int, int, Any]]] = field(default_factory=dict)  # waiting for the rest of a sum
    waiting: int = 0  # bytes of them
    owners: dict[str, Any] = field(default_factory=dict)  # of the functions that ran: models, optimizers, leaves, by name
    training: Any = None  # the Training that it belongs to
    begins: bool = False  # whether that begins with it
    trace: Trace | None = None  # plain data, once the graph has been let go
    _kept: Kept | None = None  # and what is known of its leaves

    @property
    def from_odd_leaves(self) -> bool:
        """Whether a leaf was not finite itself."""
        if self._kept is not None:
            return self._kept.from_odd_leaves
        return any(leaf.value is not None and not isfinite(leaf.value.norm) for leaf in self.leaves.values())

    @property
    def reached(self) -> set[int]:
        """The identities of the leaves that got a gradient."""
        if self._kept is not None:
            return self._kept.reached
        return {leaf.key for node, leaf in self.leaves.items() if node in self.seen.gradients}

    @property
    def odd(self) -> set[int]:
        """Those of them at which a NaN or an infinity arrived."""
        if self._kept is not None:
            return self._kept.odd
        return {leaf.key for node, leaf in self.leaves.items() if (g := self.seen.gradients.get(node)) is not None and g.odd}

    @property
    def named_maps(self) -> list[tuple[str, PooledMatrix]]:
        """The maps of the leaves that have a name, by it."""
        if self.trace is not None:
            return self.maps
        return [(name, matrix) for node, matrix in self.maps for name in self.names.by_node.get(node, ())[:1]]

    def rename(self, keys: Mapping[int, int]) -> None:
        """Keys of leaves are replaced with others."""
        for leaf in self.leaves.values():
            leaf.key = keys.get(leaf.key, leaf.key)
        if self._kept is not None:
            self._kept.reached = {keys.get(key, key) for key in self._kept.reached}
            self._kept.odd = {keys.get(key, key) for key in self._kept.odd}

    def let_go(self, trace: Trace) -> None:
        """Keep the plain data, and let go of the graph."""
        self._kept = Kept(self.reached, self.odd, self.from_odd_leaves)
        self.maps, self.trace = self.named_maps, trace
        self.nodes, self.uses, self.leaves, self.seen = set(), Counter(), {}, Seen()
        self.roots, self.names, self.owners = [], Names(), {}

    def reduce(self) -> None:
        """Read what lies on a device, in one transfer."""
        seen = self.seen
        tables = (seen.values, seen.gradients, seen.given, seen.slopes)
        values = [*(x for table in tables for x in table.values()), *(one for pair in seen.handed.values() for one in pair)]
        settled = iter(self.library.settled(values))
        for table in tables:
            for node in table:
                table[node] = next(settled)
        for key in seen.handed:
            seen.handed[key] = next(settled), next(settled)


def uses_of(library: Library, roots: Sequence[Any]) -> tuple[set[Any], Counter[Any]]:
    """The nodes behind some roots, these among them, and how many edges lead to each. Of more than the library lets us touch
    those nearest to the roots."""
    uses: Counter[Any] = Counter()
    seen, waiting = set(roots), deque(roots)
    while waiting and (library.touches is None or len(seen) < library.touches):
        for source in library.inputs(waiting.popleft()):
            if source is not None:
                uses[source] += 1
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
    return seen, uses


def arrivals_of(sweep: RecordedSweep) -> frozenset[Any]:
    """The nodes of which no more is wanted than what arrives at them: what they hand on is all that arrives at their inputs, and
    they are no activations, of which it is wanted what they passed on. None of a sweep of our own."""
    if sweep.private:
        return frozenset()
    library, uses = sweep.library, sweep.uses
    return frozenset(
        node
        for node in sweep.nodes
        if open_slope(library.name_of(node)) is None
        and all(source is None or uses[source] == 1 for source in library.inputs(node))
    )


def leaves_of(sweep: RecordedSweep, trace: Trace) -> tuple[Leaf, ...]:
    """The leaves that a sweep reached, in the order of their names, as the trace tells of them."""
    numbers = {node.name.partition(", ")[0]: i for i, node in enumerate(trace.nodes) if node.kind == "leaf" and node.name}
    order = {node: i for i, node in enumerate(sweep.names.by_node)}
    leaves = []
    for node, leaf in sorted(sweep.leaves.items(), key=lambda item: order.get(item[0], len(order))):
        name = next(iter(sweep.names.by_node.get(node, ())), "")
        if leaf.value is not None or leaf.form:
            arrived = sweep.seen.gradients.get(node)
            if sweep.private:
                leaf.gradient, leaf.before = arrived, None
            leaves.append(
                Leaf(
                    name,
                    numbers.get(name),
                    leaf.shape,
                    leaf.dtype,
                    leaf.device,
                    leaf.value,
                    leaf.gradient,
                    leaf.before,
                    arrived,
                    leaf.key,
                    leaf.form,
                    leaf.gradient_form,
                    leaf.version,
                )
            )
    return tuple(leaves)
