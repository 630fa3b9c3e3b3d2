"""`record_sites`: let errors and graphs name the lines of the program."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["record_sites"]


@contextmanager
def record_sites() -> Iterator[None]:
    """Note for every operation in the block where it stands in the source: a context manager and a decorator.

    An error about a gradient then names the lines it comes from (which operation saved a tensor, what wrote to it, where the
    history was lost, which call freed the graph), and `gradlab.graph` shows them; also after the block, as long as the graph
    lives. A `%%grad` cell does it by itself. It concerns this thread, and costs about 1 µs an operation. Without it nothing
    is noted.

    Examples
    --------
    >>> with gradlab.record_sites():
    ...     y = x.exp()
    ...     y += 1
    ...     y.sum().backward()           # the error names both lines
    """
    from gradlab.core.sites import recording

    with recording():
        yield
