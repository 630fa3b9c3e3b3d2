"""Seeing operations as they are recorded, and tensors as they are written to or cut off.

Source lines, hooks on saved tensors, forward-mode tangents and inference mode all need to know of every operation, and none of
them may cost anything while nobody asks. So a recording function ends with `if WATCHED:`, a global list that is empty unless
some thread watches: 5 ns. What then follows asks for the watchers of the thread at hand, outermost first.

A watcher sees the finished result and may change what it holds: its node, what the node saved, its storage. It is the twin of
the engine's observer, which sees the reverse sweeps.
"""
from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from gradlab.core.extent import extent

WATCHED: list[Watcher] = []                                # one entry for each watcher at work in any thread


class Watcher:
    """What may be seen; each method does nothing unless a subclass says otherwise."""

    def recorded(self, op: Any, made: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """The primitive `op` made the tensor `made` of the tensors `args` and the metadata; with `made.node`, if recorded."""

    def writing(self, tensor: Any) -> None:
        """The memory of `tensor` is about to be written to in place."""

    def wrote(self, tensor: Any) -> None:
        """The memory of `tensor` was written to in place."""

    def cut(self, made: Any, source: Any, how: str) -> None:
        """`made` was made of `source` without its history, by `how`: "detach", "data" …"""

    def left(self, source: Any, how: str) -> None:
        """The values of `source` went on as Python numbers or as a NumPy array, by `how`: "item()", "numpy()" …"""

    def born(self, made: Any) -> None:
        """A tensor was made that no operation made."""

    def shadowed(self, made: Any, source: Any) -> None:
        """`made` is `source` in another object, with its history: what a write in place is computed from."""

    def recast(self, made: Any, source: Any) -> None:
        """`made` is `source` in another dtype, with its node: a promotion."""

    def became(self, tensor: Any, old: Any, op: Any, meta: Any) -> None:
        """`tensor` became the view `op` of itself, in place; `old` is what it was."""

    def stored(self, target: Any, region: Any, value: Any) -> None:
        """The tensor `value` was written into `target`, where the (primitive, metadata) steps of `region` lead."""

    def remade(self, made: Any) -> None:
        """`made` is the output of its node in another object, for a rule that is recorded."""

    def rebased(self, node: Any) -> None:
        """`node` was made for a tensor that was overwritten, in part or whole."""

    def swept(self) -> Any:
        """A reverse sweep starts: what it shall leave in the nodes that it frees, or None."""


class _Watchers(threading.local):
    active: tuple[Watcher, ...] = ()


watchers = _Watchers()
EVERYWHERE: list[Watcher] = []                             # those that see every thread, if anything is seen at all
W = TypeVar("W", bound=Watcher)


def watch(watcher: W) -> W:
    """Let `watcher` see what this thread does from here on."""
    watchers.active = (*watchers.active, watcher)
    WATCHED.append(watcher)
    return watcher


def unwatch(watcher: Watcher) -> None:
    """Let it see no more, if it does. Others may have come since."""
    active = watchers.active
    last = max([i for i, other in enumerate(active) if other is watcher], default=None)
    if last is not None:
        watchers.active = (*active[:last], *active[last + 1:])
        WATCHED.remove(watcher)                            # an interrupt comes before both steps or after both: see `extent`


def watching(watcher: W) -> AbstractContextManager[W]:
    """Let `watcher` see what this thread does inside the block. An interrupt finds it at work or not, never in between."""
    outer = watchers.active.count(watcher)

    def end() -> None:
        if watchers.active.count(watcher) > outer:
            unwatch(watcher)
    return extent(lambda: watch(watcher), end)


def recorded(op: Any, made: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
    """Tell this thread's watchers of an operation."""
    for watcher in (*EVERYWHERE, *watchers.active):
        watcher.recorded(op, made, args, meta)


def cut(made: Any, source: Any, how: str) -> None:
    """Tell this thread's watchers of a tensor without the history of its source."""
    for watcher in watchers.active:
        watcher.cut(made, source, how)


def writing(tensor: Any) -> None:
    """Tell this thread's watchers of a write in place, before it is done."""
    for watcher in (*EVERYWHERE, *watchers.active):
        watcher.writing(tensor)


def wrote(tensor: Any) -> None:
    """Tell this thread's watchers of a write in place."""
    for watcher in (*EVERYWHERE, *watchers.active):
        watcher.wrote(tensor)


def born(made: Any) -> Any:
    """Tell this thread's watchers of a tensor that no operation made. Returns it."""
    for watcher in (*EVERYWHERE, *watchers.active):
        watcher.born(made)
    return made


def shadowed(made: Any, source: Any) -> None:
    """Tell this thread's watchers of a tensor that stands for another in a write."""
    for watcher in watchers.active:
        watcher.shadowed(made, source)


def recast(made: Any, source: Any) -> None:
    """Tell this thread's watchers of a promotion."""
    for watcher in (*EVERYWHERE, *watchers.active):
        watcher.recast(made, source)


def became(tensor: Any, old: Any, op: Any, meta: Any) -> None:
    """Tell this thread's watchers of a tensor that became a view of itself."""
    for watcher in watchers.active:
        watcher.became(tensor, old, op, meta)


def stored(target: Any, region: Any, value: Any) -> None:
    """Tell this thread's watchers of what was written where."""
    for watcher in watchers.active:
        watcher.stored(target, region, value)


def remade(made: Any) -> None:
    """Tell this thread's watchers of a saved output that is a Tensor again."""
    for watcher in watchers.active:
        watcher.remade(made)


def rebased(node: Any) -> None:
    """Tell this thread's watchers of the node of an overwritten tensor."""
    for watcher in watchers.active:
        watcher.rebased(node)


def left(source: Any, how: str) -> None:
    """Tell this thread's watchers of values that leave autograd."""
    for watcher in watchers.active:
        watcher.left(source, how)


def swept() -> Any:
    """What a reverse sweep that starts here leaves in the nodes that it frees: where it was called, if sites are recorded."""
    return next((freed for watcher in watchers.active if (freed := watcher.swept()) is not None), None)
