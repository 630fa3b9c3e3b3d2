"""What a cell does with `backward` itself: how often it is called, and what the last call left in `.grad`.

A watcher of the reverse sweeps of gradlab's engine. A cell that trains zeroes `.grad` between its calls, so the gradients are
copied when a call ends; only the last call's copies are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gradlab.core.watching import Watcher


@dataclass
class Call:
    """One `backward`: what it started from, the cotangents there, and each leaf that it reached."""

    outputs: tuple[Any, ...]  # the tensors it was called on
    roots: tuple[Any, ...]
    weights: tuple[Any, ...]  # arrays
    leaves: dict[Any, Leaf] = field(default_factory=dict)  # by accumulator node
    late: bool = False  # `.grad` is written after the sweep (inputs=…)


@dataclass
class Leaf:
    """What a call did to one leaf."""

    tensor: Any  # None once it is gone
    added: bool  # whether there was a gradient to add to
    gradient: Any = None  # a copy of `.grad`'s array after the call


class CellWatcher(Watcher):
    """Sees the sweeps of one cell."""

    def __init__(self) -> None:
        self.calls = 0
        self.last: Call | None = None
        self._running: list[Call | None] = []  # a hook may call backward: sweeps nest

    def begin(self, sweep: Any) -> None:
        """A sweep starts; only those that write `.grad` are looked at."""
        self.settle()
        if not sweep.accumulates:
            self._running.append(None)
            return
        call = Call(
            sweep.outputs,
            tuple(node for node, _ in sweep.roots),
            tuple(_copied(g) for _, g in sweep.roots),
            late=sweep.wanted is not None,
        )
        self._running.append(call)
        for node in (*call.roots, *(sweep.wanted or ())):
            self._meet(call, node)

    def visit(self, node: Any, g: Any, cotangents: Any) -> None:
        """A node hands its cotangents on: note the leaves among its edges, before their `.grad` is written."""
        call = self._running[-1]
        if call is None or call.late:
            return
        for edge in node.edges:
            if edge is not None and edge.op is None and edge not in call.leaves:
                self._meet(call, edge)

    def end(self, sweep: Any, error: BaseException | None) -> None:
        """A sweep is over."""
        call = self._running.pop()
        if call is None or error is not None:
            return
        self.calls += 1
        self.last = call
        if not call.late:
            self._copy(call)

    def settle(self) -> None:
        """Read the gradients of a call that wrote them after its sweep."""
        if self.last is not None and self.last.late:
            self.last.late = False
            self._copy(self.last)

    def _meet(self, call: Call, node: Any) -> None:
        tensor = getattr(node, "variable", None)
        if tensor is not None:
            call.leaves[node] = Leaf(tensor, added=tensor.grad is not None)

    def _copy(self, call: Call) -> None:
        for leaf in call.leaves.values():
            if leaf.tensor.grad is not None:
                leaf.gradient = _copied(leaf.tensor.grad)


def _copied(value: Any) -> Any:
    """A copy of an array, or of a tensor's, where it lies."""
    return getattr(value, "array", value).copy()
