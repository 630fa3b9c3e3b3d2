"""Keys that identify objects while a program runs, although Python reuses the ids of deleted objects."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from itertools import count
from typing import Any

FRESH = count(1)  # of one process: keys of different recordings differ, too


class Identities:
    """A table of the keys of objects: the id, or a negative number if the id is the key of an object that was deleted.

    Keys are temporary: `settle` returns replacements after which the keys of living objects are their ids, and the keys of
    deleted objects are not the id of any object.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._gone: set[int] = set()  # keys of deleted objects that are ids

    def key(self, one: Any) -> int:
        """Return the key of an object. It does not change while the object lives, except by `settle`."""
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
        except TypeError:  # does not support weak references
            return number
        return key

    def keys(self, several: Iterable[Any]) -> tuple[int, ...]:
        """Return the keys of several objects."""
        return tuple(map(self.key, several))

    def settle(self) -> dict[int, int]:
        """Return the keys that must be replaced wherever they are stored, with their replacements."""
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
