"""Who sees the reverse sweeps of a thread: what a cell's own `backward` does, a path, a student's sweeps, anomaly mode."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from gradlab.core.extent import extent
from gradlab.core.node import Node
from gradlab.core.tensor import Tensor


class Sweep(NamedTuple):
    """What an observer is told of a reverse sweep: the (node, cotangent) pairs it starts from, the batch axes, the wanted
    nodes (None: all leaves), whether it writes `.grad`, and the tensors that `backward` was called on, where it was."""

    roots: tuple[tuple[Node, Any], ...]
    lead: tuple[int, ...]
    wanted: frozenset[Node] | None
    accumulates: bool
    outputs: tuple[Tensor, ...] = ()


class Observer(Protocol):
    """Sees the reverse sweeps of this thread. Arrays are the sweep's own: copy what is kept."""

    def begin(self, sweep: Sweep) -> None:
        """A sweep starts."""

    def visit(self, node: Node, g: Any, cotangents: Sequence[Any]) -> None:
        """`node` turned the cotangent `g` into one cotangent for each of its edges."""

    def end(self, sweep: Sweep, error: BaseException | None) -> None:
        """The sweep is over; `error` is what stopped it, if anything did."""


class _Observers(threading.local):
    active: tuple[Observer, ...] = ()


observers = _Observers()
AnObserver = TypeVar("AnObserver", bound=Observer)


def observe(observer: AnObserver) -> AnObserver:
    """Let `observer` see every reverse sweep that this thread runs from here on."""
    observers.active = (*observers.active, observer)
    return observer


def unobserve(observer: Observer) -> None:
    """Let it see no more, if it does. Others may have come since: anomaly mode, switched on for good."""
    observers.active = tuple([other for other in observers.active if other is not observer])


def observing(observer: AnObserver) -> AbstractContextManager[AnObserver]:
    """Let `observer` see every reverse sweep that this thread runs inside the block."""
    return extent(lambda: observe(observer), lambda: unobserve(observer))
