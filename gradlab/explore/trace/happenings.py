"""What happened to leaves while a program ran: calls of backward, steps of optimizers, writes in place."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradlab.diagnose.sites import own_site
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.notes import Happening, cell_site, line_of

MOST = 10_000
ALIKE = 100  # tuples of keys that are kept once


class Happenings:
    """A list of them, of which the oldest are forgotten.

    Attributes
    ----------
    forgotten : int
        How many there were before those that are kept.
    """

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self.forgotten = 0
        self._kept: deque[Happening] = deque(maxlen=MOST)
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}

    def __iter__(self) -> Iterator[Happening]:
        return iter(self._kept)

    def clear(self) -> None:
        self._kept.clear()
        self._alike.clear()

    @property
    def count(self) -> int:
        """How many there have been."""
        return self.forgotten + len(self._kept)

    def happened(self, kind: str, site: Any, tensors: Sequence[Any], **more: Any) -> None:
        """Something happened to leaves. What one line writes to the same leaves in two operations, as `p.data -= …`, which reads
        `p.data`, writes to it and binds it again, has happened once."""
        site = own_site(site).site  # a framework may be what calls `backward` and `step`
        keys = self._once(self.identities.keys(tensors))
        if kind == "write" and self._kept and _is_same_write(self._kept[-1], site, keys):
            return
        self.forgotten += len(self._kept) == MOST
        self._kept.append(Happening(kind, site, keys, cell=site and cell_site(), **more))

    def stepped(self, optimizer: Any, site: Any, held: Sequence[Any], moved: Sequence[Any], checked: bool) -> None:
        """An optimizer has made a step: all that it holds, and those of it with a gradient, which is not zero if `checked`."""
        rates = {float(group["lr"]) for group in optimizer.param_groups if "lr" in group}
        self.happened(
            "step",
            site,
            moved,
            optimizer=type(optimizer).__name__,
            rates=tuple(sorted(rates)),
            maximizes=any(group.get("maximize") for group in optimizer.param_groups),
            held=self._once(self.identities.keys(held)),
            whose=self.identities.key(optimizer),
            checked=checked,
        )

    def forget_those_of(self, keys: set[int]) -> None:
        """Forget all up to the last that happened to one of these leaves."""
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
        self._kept = deque(renamed, maxlen=MOST)
        self._alike.clear()

    def _once(self, keys: tuple[int, ...]) -> tuple[int, ...]:
        """Equal keys as one object: thousands of steps name the same hundreds of parameters."""
        if len(self._alike) >= ALIKE:
            self._alike.clear()
        return self._alike.setdefault(keys, keys)


def _is_same_write(last: Happening, site: Any, keys: tuple[int, ...]) -> bool:
    if last.kind != "write" or site is None or last.site is None or last.site[0] is not site[0] or last.site[1] >= site[1]:
        return False
    return last.leaves == keys and line_of(last.site) == line_of(site)
