"""A log of the events of a program that concern leaves: calls of backward, optimizer steps, in-place operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradlab.diagnose.sites import own_site
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.notes import RecordedEvent, cell_site, line_of

MAX_EVENTS = 10_000
MAX_SHARED = 100  # tuples of keys that are shared


class EventLog:
    """The last `MAX_EVENTS` events.

    Attributes
    ----------
    forgotten : int
        The number of older events, which were removed.
    """

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self.forgotten = 0
        self._kept: deque[RecordedEvent] = deque(maxlen=MAX_EVENTS)
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}

    def __iter__(self) -> Iterator[RecordedEvent]:
        return iter(self._kept)

    def clear(self) -> None:
        self._kept.clear()
        self._shared.clear()

    @property
    def count(self) -> int:
        """The number of all events so far."""
        return self.forgotten + len(self._kept)

    def add(self, kind: str, site: Any, tensors: Sequence[Any], **more: Any) -> None:
        """Add an event. Two writes of one line to the same leaves are one event: `p.data -= …` writes to `p.data` and then
        assigns it."""
        site = own_site(site).site  # a framework may be what calls `backward` and `step`
        keys = self._share(self.identities.keys(tensors))
        if kind == "write" and self._kept and _is_same_write(self._kept[-1], site, keys):
            return
        self.forgotten += len(self._kept) == MAX_EVENTS
        self._kept.append(RecordedEvent(kind, site, keys, cell=site and cell_site(), **more))

    def add_step(self, optimizer: Any, site: Any, held: Sequence[Any], moved: Sequence[Any], checked: bool) -> None:
        """Add a step of an optimizer with the parameters `held`. `moved` are those with a gradient, non-zero if `checked`."""
        rates = {float(group["lr"]) for group in optimizer.param_groups if "lr" in group}
        self.add(
            "step",
            site,
            moved,
            optimizer=getattr(optimizer, "class_name", type(optimizer).__name__),
            rates=tuple(sorted(rates)),
            maximizes=any(group.get("maximize") for group in optimizer.param_groups),
            held=self._share(self.identities.keys(held)),
            whose=self.identities.key(optimizer),
            checked=checked,
        )

    def add_scaling(self, kind: str, optimizer: Any, site: Any, scale: float) -> None:
        """Add a step that a GradScaler skipped ("skip"), or gradients that it divided ("unscale"). For a step that it made, add
        the scale to the last event."""
        if kind != "step":
            held = self._share(self.identities.keys([p for group in optimizer.param_groups for p in group["params"]]))
            whose = self.identities.key(optimizer)
            self.add(kind, site, (), optimizer=type(optimizer).__name__, held=held, whose=whose, scale=scale)
        elif self._kept and self._kept[-1].kind == "step":
            self._kept[-1] = replace(self._kept[-1], scale=scale)

    def forget_those_of(self, keys: set[int]) -> None:
        """Remove all events up to the last one that concerns one of these leaves."""
        last = max((i for i, one in enumerate(self._kept) if not keys.isdisjoint((*one.leaves, *one.held))), default=-1)
        for _ in range(last + 1):
            self._kept.popleft()
        self.forgotten += last + 1

    def rename(self, keys: Mapping[int, int]) -> None:
        """Replace keys with others."""
        same: dict[tuple[int, ...], tuple[int, ...]] = {}

        def new(old: tuple[int, ...]) -> tuple[int, ...]:
            if old not in same:
                same[old] = tuple(keys.get(key, key) for key in old)
            return same[old]

        renamed = [
            replace(one, leaves=new(one.leaves), held=new(one.held), whose=keys.get(one.whose, one.whose)) for one in self._kept
        ]
        self._kept = deque(renamed, maxlen=MAX_EVENTS)
        self._shared.clear()

    def _share(self, keys: tuple[int, ...]) -> tuple[int, ...]:
        """Return one shared tuple for equal keys. Thousands of steps have the same hundreds of parameters."""
        if len(self._shared) >= MAX_SHARED:
            self._shared.clear()
        return self._shared.setdefault(keys, keys)


def _is_same_write(last: RecordedEvent, site: Any, keys: tuple[int, ...]) -> bool:
    if last.kind != "write" or site is None or last.site is None or last.site[0] is not site[0] or last.site[1] >= site[1]:
        return False
    return last.leaves == keys and line_of(last.site) == line_of(site)
