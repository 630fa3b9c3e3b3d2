"""What tells objects from each other while a program runs, though Python gives a new one the id of a dead one."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from itertools import count
from typing import Any

FRESH = count(1)  # of one process: keys of different recordings differ, too


class Identities:
    """Gives each object a key: its id, or a negative number if that is the key of an object that lived before it.

    Keys are for a while: `settle` tells which have to be replaced so that those of living objects are their ids, and those of
    dead ones are not the id of any object.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._gone: set[int] = set()  # keys of dead objects that are ids

    def key(self, one: Any) -> int:
        """The key of an object; the same as long as it lives."""
        number = id(one)
        known = self._known.get(number)
        if known is not None and known[0]() is one:
            return known[1]
        key = number
        if known is not None:
            if known[1] == number:
                self._gone.add(number)
            key = -next(FRESH)
        try:
            self._known[number] = weakref.ref(one), key
        except TypeError:  # it takes no weak reference
            return number
        return key

    def keys(self, several: Iterable[Any]) -> tuple[int, ...]:
        """The keys of several objects."""
        return tuple(map(self.key, several))

    def settle(self) -> dict[int, int]:
        """What each key has to be replaced with, everywhere where it is kept; most stay."""
        renamed = {key: -next(FRESH) for key in self._gone}
        self._gone.clear()
        for number, (ref, key) in list(self._known.items()):
            if ref() is None:
                if key == number:
                    renamed[key] = -next(FRESH)
                del self._known[number]
            elif key != number:
                renamed[key] = number
                self._known[number] = ref, number
        return renamed
