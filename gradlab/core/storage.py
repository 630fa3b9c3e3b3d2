"""Memory that tensors share, and one logical clock for nodes and writes.

The clock runs *down*: a node takes the next tick when it is recorded, a storage when it is written. So a node is always
smaller (newer) than its inputs, and a min-heap on `order` is a topological order; and "was this saved array overwritten
since it was saved?" is `storage.written < node.order`: one integer comparison, no version kept with each save.

Threads write at once: what a write notes, and who gets a tensor's storage first, is settled under a lock, so that the latest tick
is the one that stands. (A tick that another thread took before must not be set after it.)
"""

from __future__ import annotations

import itertools
import threading
import weakref
from types import SimpleNamespace
from typing import Any

from gradlab.core.observers import OBSERVERS
from gradlab.core.observers import notify_after_write as tell_of_write


class Storage:
    """Memory that views share: how often (`version`) and when (`written`, a tick) it was last overwritten, and which
    differentiable views of it live, so that a write can give them new history."""

    __slots__ = ("limit", "version", "views", "writes", "written")

    def __init__(self) -> None:
        self.version, self.written = 0, 1
        self.views: list[weakref.ref[Any]] = []
        self.limit = 8


class View:
    """How a tensor came out of its base: `base`, and the (primitive, metadata) steps from there to it. `refusal` says why it
    may not be written to: "no_grad" (it was made there), "Output 0 of Split" (with others in one call) or nothing."""

    __slots__ = ("base", "refusal", "steps")

    def __init__(self, base: Any, steps: tuple[tuple[Any, dict[str, Any]], ...], refusal: str) -> None:
        self.base, self.steps, self.refusal = base, steps, refusal


FRESH = Storage()  # stands for "never written, no view": a tensor gets its own storage when it first matters
ticks = itertools.count(0, -1)
tick = ticks.__next__  # atomic under the GIL, so thread-safe
NUMBER = Storage()  # the same, of a Python number that an operation was given
clock = SimpleNamespace(last_write=1)
_noting = threading.RLock()


def now() -> int:
    """The tick that will be taken next, which is not taken by that."""
    return int(repr(ticks).removeprefix("count(").partition(",")[0])


def own_storage(tensor: Any) -> Storage:
    """The tensor's storage, made on first need. Its node has the same, so that a saved `out` is watched too, and every object
    that stands for the node's output has that of the first that needed one."""
    if tensor.storage is FRESH:
        with _noting:
            if tensor.storage is FRESH:
                node = tensor.node
                storage = Storage() if node is None or node.storage is FRESH else node.storage
                if node is not None:
                    node.storage = storage
                tensor.storage = storage
    own: Storage = tensor.storage
    return own


def wrote(tensor: Any) -> None:
    """Every in-place operation calls this after writing."""
    storage = tensor.storage if tensor.storage is not FRESH else own_storage(tensor)
    with _noting:
        storage.version += 1
        storage.written = clock.last_write = tick()
    if OBSERVERS:
        tell_of_write(tensor)


def look_again() -> None:
    """Something else has changed that nodes recorded until now are to be checked for."""
    with _noting:
        clock.last_write = tick()


def view_of(tensor: Any) -> View | None:
    """How the tensor came out of its base, or None if it is no view (the slot is set on views alone).

    A recording function notes (source, primitive, metadata, refusal), which is quick; the chain of sources is followed when
    somebody asks."""
    if tensor.storage is FRESH:
        return None
    noted: Any = getattr(tensor, "view_record", None)
    if type(noted) is not tuple:
        view: View | None = noted
        return view
    steps, refusal, source = [], "", tensor
    while type(noted) is tuple:
        source, op, meta, refused = noted
        steps.append((op, dict(zip(op.meta, meta, strict=True))))
        refusal = graver(refused, refusal)
        noted = getattr(source, "view_record", None)
    steps.reverse()
    tensor.view_record = view = (
        View(source, tuple(steps), refusal)
        if noted is None
        else View(noted.base, (*noted.steps, *steps), graver(noted.refusal, refusal))
    )
    return view


def graver(of_source: str, own: str) -> str:
    """Of two refusals the source's, unless that says only that the source has sisters, and the view's own takes its history
    away."""
    sisters = of_source.startswith("Output") and "custom Function" not in of_source
    return own if not of_source or (sisters and own) else of_source


def forget_dead(storage: Storage) -> None:
    """Drop the views that are gone, now and then: amortised O(1)."""
    views = storage.views
    with _noting:
        count = len(views)  # another thread may append more
        views[:count] = [ref for ref in views[:count] if ref() is not None]
        storage.limit = 2 * len(views) + 8
