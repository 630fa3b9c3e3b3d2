"""Context managers that end reliably, even if an interrupt occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def scope_guard(begin: Callable[[], T], end: Callable[[], object]) -> Iterator[T]:
    """Call `begin()`, run the block, and call `end()`, which must do nothing if there is nothing to end.

    Python may raise KeyboardInterrupt between any two calls. If one occurs during `end()`, `end` is called again, and the
    interrupt is raised afterwards. If `__exit__` does not even start, the generator is closed with its last reference.
    """
    try:
        yield begin()
    finally:
        interrupt = None
        while True:
            try:
                end()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt
