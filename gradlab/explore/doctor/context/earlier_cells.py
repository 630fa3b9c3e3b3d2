"""What is remembered of earlier cells: a few numbers for each leaf that a sweep has reached. Plain data: it holds no tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEAVES = 2000  # of which something is remembered: each takes less than 300 bytes


@dataclass
class Known:
    """A leaf as the last cell with a sweep left it: its name, ‖.grad‖, how many cells have added to it since it was cleared, and
    what they differentiated."""

    name: str
    gradient: float | None
    cells: int
    root: str
    operation: str


@dataclass
class Past:
    """The leaves that sweeps of earlier cells have reached, by what tells them from others."""

    leaves: dict[int, Known] = field(default_factory=dict)


def remembered(past: Past, case: Any) -> None:
    """Take over what a cell did to `.grad` of the leaves that its sweeps have reached."""
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
            past.leaves[entry.key] = Known(entry.name, entry.after, cells, swept.root, swept.operation)
            fresh.add(entry.key)
    while len(past.leaves) > LEAVES:
        del past.leaves[next(iter(past.leaves))]
