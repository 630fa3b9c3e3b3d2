"""Something that holds for the extent of a block, and surely ends with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def scoped(begin: Callable[[], T], end: Callable[[], object]) -> Iterator[T]:
    """`begin()`, the block, `end()`, which does nothing where there is nothing to end.

    An interrupt (Python raises it between any two calls) that comes while it ends is raised when it has ended: `end` is called
    again. And should `__exit__` not even begin, the generator is closed with the last reference."""
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
