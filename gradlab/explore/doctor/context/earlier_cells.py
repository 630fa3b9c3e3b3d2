"""The state of leaves after earlier cells: a few numbers for each leaf that a sweep has reached, and no tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_LEAVES = 2000  # each takes less than 300 bytes


@dataclass
class LeafRecord:
    """The state of a leaf after the last cell with a sweep.

    Attributes
    ----------
    name : str
    gradient : float or None
        ‖.grad‖
    cells : int
        The number of cells that have added to `.grad` since it was cleared.
    root, operation : str
        The name of the differentiated tensor, and the operation that computed it.
    """

    name: str
    gradient: float | None
    cells: int
    root: str
    operation: str


@dataclass
class Past:
    """The leaves that sweeps of earlier cells have reached, by key."""

    leaves: dict[int, LeafRecord] = field(default_factory=dict)


def remember(past: Past, case: Any) -> None:
    """Store what a cell did to the `.grad` of the leaves that its sweeps reached."""
    trace = case.trace
    if trace is None:
        return
    fresh = set()
    for swept in trace.journal:
        for entry in swept.entries:
            old = past.leaves.get(entry.key)
            added = old is not None and entry.before is not None and old.gradient == entry.before
            cells = old.cells + (entry.key not in fresh) if old is not None and added else 1
            past.leaves.pop(entry.key, None)
            past.leaves[entry.key] = LeafRecord(entry.name, entry.after, cells, swept.root, swept.operation)
            fresh.add(entry.key)
    while len(past.leaves) > MAX_LEAVES:
        del past.leaves[next(iter(past.leaves))]
