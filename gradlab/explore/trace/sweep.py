"""A reverse sweep while it is recorded."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from gradlab.explore.libraries import Library
from gradlab.explore.pooled_matrix import PooledMatrix
from gradlab.explore.trace.data import Leaf, Trace
from gradlab.explore.trace.notes import RecordedCut, times
from gradlab.explore.trace.reading import Names, RecordedValues, Root
from gradlab.explore.trace.slopes import open_slope
from gradlab.explore.trace.values import Value


@dataclass
class RecordedLeaf:
    """A leaf during its sweep."""

    node: Any
    tensor: Any  # until it has been read
    device: str
    before: Value | None
    value: Value | None = None
    gradient: Value | None = None
    sample: Any = None  # of the gradient of this sweep
    losses: tuple[RecordedCut, ...] = ()  # the cuts, if it was created from other tensors
    key: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    form: str = ""  # a description if it is not an ordinary dense tensor
    gradient_form: str = ""
    version: int = 0


@dataclass
class SweepSummary:
    """The data of a sweep that is kept in addition to its trace: the keys of the leaves that it reached, the keys of those with a
    NaN or an infinity in the gradient, and whether the values of a leaf were not finite."""

    reached: set[int]
    odd: set[int]
    from_odd_leaves: bool


@dataclass
class RecordedSweep:
    """A recorded reverse sweep. It holds nodes, so the graph lives until the next sweep of the same loss, until another training
    begins, or until the recorder is cleared."""

    library: Library
    number: int
    roots: list[Root]
    outputs: list[Any]  # weak references to the tensors on which backward was called
    names: Names
    site: Any
    late: bool = False  # `.grad` is written at the end of the sweep
    private: bool = False  # `.grad` is not written
    seen: RecordedValues = field(default_factory=RecordedValues)
    leaves: dict[Any, RecordedLeaf] = field(default_factory=dict)
    error: BaseException | None = None
    events: int = 0  # the number of events before it
    time: int = field(default_factory=lambda: next(times))  # of its begin
    maps: list[tuple[Any, PooledMatrix]] = field(default_factory=list)  # of matrix-shaped gradients, by leaf
    retains: bool = False
    nodes: set[Any] = field(default_factory=set)  # all behind the roots
    uses: Counter[Any] = field(default_factory=Counter)  # the number of edges to a node
    parts: dict[Any, list[tuple[Any, int, int, Any]]] = field(default_factory=dict)  # cotangents that wait for the rest of a sum
    waiting: int = 0  # bytes of these
    owners: dict[str, Any] = field(default_factory=dict)  # models, optimizers and leaves of the running functions, by name
    training: Any = None  # the Training that it belongs to
    begins: bool = False  # whether it is the first of that training
    scale: float = 1.0  # by which the loss was multiplied; all gradients are divided by it
    trace: Trace | None = None  # plain data, once the graph has been released
    _summary: SweepSummary | None = None  # of its leaves, once the graph has been released

    @property
    def from_odd_leaves(self) -> bool:
        """True if the values of a leaf were not finite."""
        if self._summary is not None:
            return self._summary.from_odd_leaves
        return any(leaf.value is not None and not isfinite(leaf.value.norm) for leaf in self.leaves.values())

    @property
    def reached_keys(self) -> set[int]:
        """The keys of the leaves that got a gradient."""
        if self._summary is not None:
            return self._summary.reached
        return {leaf.key for node, leaf in self.leaves.items() if node in self.seen.gradients}

    @property
    def odd(self) -> set[int]:
        """The keys of the leaves whose gradient has a NaN or an infinity."""
        if self._summary is not None:
            return self._summary.odd
        return {leaf.key for node, leaf in self.leaves.items() if (g := self.seen.gradients.get(node)) is not None and g.odd}

    @property
    def named_maps(self) -> list[tuple[str, PooledMatrix]]:
        """The maps of the leaves that have a name, with the name."""
        if self.trace is not None:
            return self.maps
        return [(name, matrix) for node, matrix in self.maps for name in self.names.by_node.get(node, ())[:1]]

    def rename(self, keys: Mapping[int, int]) -> None:
        """Replace keys of leaves."""
        for leaf in self.leaves.values():
            leaf.key = keys.get(leaf.key, leaf.key)
        if self._summary is not None:
            self._summary.reached = {keys.get(key, key) for key in self._summary.reached}
            self._summary.odd = {keys.get(key, key) for key in self._summary.odd}

    def release(self, trace: Trace) -> None:
        """Keep the plain data and release the graph."""
        self._summary = SweepSummary(self.reached_keys, self.odd, self.from_odd_leaves)
        self.maps, self.trace = self.named_maps, trace
        self.nodes, self.uses, self.leaves, self.seen = set(), Counter(), {}, RecordedValues()
        self.roots, self.names, self.owners = [], Names(), {}

    def reduce(self) -> None:
        """Read all pending values from the device in one transfer."""
        seen = self.seen
        tables = (seen.values, seen.gradients, seen.given, seen.slopes)
        values = [*(x for table in tables for x in table.values()), *(one for pair in seen.handed.values() for one in pair)]
        settled = iter(self.library.read_pending(values))
        for table in tables:
            for node in table:
                table[node] = next(settled)
        for key in seen.handed:
            seen.handed[key] = next(settled), next(settled)
        if self.scale != 1.0:
            seen.gradients = {node: self.unscale(one) for node, one in seen.gradients.items()}
            seen.handed = {key: (self.unscale(one), share) for key, (one, share) in seen.handed.items()}

    def unscale(self, gradient: Value | None) -> Value | None:
        """Return a gradient of the loss, from one of the scaled loss."""
        return None if gradient is None else gradient.divided_by(self.scale)


def uses_of(library: Library, roots: Sequence[Any]) -> tuple[set[Any], Counter[Any]]:
    """Return the nodes behind some roots, including the roots, and the number of edges to each. If there are more nodes than the
    library allows to touch, the nearest ones are returned."""
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
    """Return the nodes for which only the upstream gradient must be recorded: each of their inputs has a single edge, so the
    gradient that they return is the upstream gradient of the input, and they are not activations, whose slopes are recorded.
    Empty for a sweep of gradlab's own."""
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
    """Return the leaves that a sweep reached as data of a trace, in the order of the user's names."""
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
