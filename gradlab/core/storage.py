"""Memory shared between tensors, and one logical clock for nodes and writes.

The clock counts down. A node takes the next tick when it is recorded, a storage when it is written. A node therefore has a
smaller number than its inputs, so that a min-heap on `order` yields a topological order. A saved array was overwritten if
`storage.written < node.order`, which is one integer comparison without a version stored with each saved tensor.

Threads may write at the same time. Writes are registered and storages are created under a lock, so that the latest tick is the
one that remains. (Otherwise a thread could store an earlier tick after a later one.)
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from gradlab.core.observers import OBSERVERS, notify_after_write


class Storage:
    """Memory shared by views.

    `version` counts the writes, `written` is the tick of the last one, and `views` are the live differentiable views, to which a
    write gives a new history.
    """

    __slots__ = ("limit", "version", "views", "writes", "written")

    def __init__(self) -> None:
        self.version, self.written = 0, 1
        self.views: list[weakref.ref[Any]] = []
        self.limit = 8


class Clock:
    """The tick of the last write to any storage."""

    __slots__ = ("last_write",)

    def __init__(self) -> None:
        self.last_write = 1


class View:
    """Derivation of a view: its `base` and the (primitive, metadata) `steps` from there.

    `refusal` says why the view may not be written to: "no_grad" or "inference" (the mode in which it was created), "Output 0 of
    Split" (it is one of several outputs), or the whole message for a view from a custom Function. It is "" if the view may be
    written to.
    """

    __slots__ = ("base", "refusal", "steps")

    def __init__(self, base: Any, steps: tuple[tuple[Any, dict[str, Any]], ...], refusal: str) -> None:
        self.base, self.steps, self.refusal = base, steps, refusal


FRESH = Storage()  # placeholder for "never written, no views"; a tensor gets its own storage on first need
ticks = itertools.count(0, -1)
tick = ticks.__next__  # atomic under the GIL, so thread-safe
NUMBER_STORAGE = Storage()  # placeholder for a Python number that was an operand
clock = Clock()
_write_lock = threading.RLock()


def peek_tick() -> int:
    """Return the next tick without taking it."""
    return int(repr(ticks).removeprefix("count(").partition(",")[0])


def own_storage(tensor: Any) -> Storage:
    """Return the tensor's storage, creating it on first need.

    The node gets the same storage, so that writes to a saved `out` are noticed, and all tensors that represent the node's output
    share it.
    """
    if tensor.storage is FRESH:
        with _write_lock:
            if tensor.storage is FRESH:
                node = tensor.node
                storage = Storage() if node is None or node.storage is FRESH else node.storage
                if node is not None:
                    node.storage = storage
                tensor.storage = storage
    own: Storage = tensor.storage
    return own


def mark_written(tensor: Any) -> None:
    """Register a write. Every in-place operation calls this after writing."""
    storage = tensor.storage if tensor.storage is not FRESH else own_storage(tensor)
    with _write_lock:
        storage.version += 1
        storage.written = clock.last_write = tick()
    if OBSERVERS:
        notify_after_write(tensor)


def force_version_checks() -> None:
    """Make nodes recorded so far check their saved tensors, after a change other than a write."""
    with _write_lock:
        clock.last_write = tick()


def view_of(tensor: Any) -> View | None:
    """Return the derivation of a view from its base, or None if the tensor is not a view.

    A recording function stores only (source, primitive, metadata, refusal), which is fast. The chain of sources is followed here,
    on first use.
    """
    if tensor.storage is FRESH:
        return None
    record: Any = getattr(tensor, "view_record", None)
    if type(record) is not tuple:
        view: View | None = record
        return view
    steps, refusal, source = [], "", tensor
    while type(record) is tuple:
        source, op, meta, refused = record
        steps.append((op, dict(zip(op.meta, meta, strict=True))))
        refusal = choose_refusal(refused, refusal)
        record = getattr(source, "view_record", None)
    steps.reverse()
    tensor.view_record = view = (
        View(source, tuple(steps), refusal)
        if record is None
        else View(record.base, (*record.steps, *steps), choose_refusal(record.refusal, refusal))
    )
    return view


def choose_refusal(of_source: str, own: str) -> str:
    """Return the refusal of a view from that of its source and its own.

    The source's takes precedence, unless it only says that the source is one of several outputs.
    """
    one_of_several = of_source.startswith("Output") and "custom Function" not in of_source
    return own if not of_source or (one_of_several and own) else of_source


def drop_dead_views(storage: Storage) -> None:
    """Remove dead views from the list. Amortised O(1), since the limit for the next call doubles."""
    views = storage.views
    with _write_lock:
        count = len(views)  # another thread may append more
        views[:count] = [ref for ref in views[:count] if ref() is not None]
        storage.limit = 2 * len(views) + 8
