"""Flags of cuDNN, which gradlab does not use: they can be set, and do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled, deterministic, benchmark, allow_tf32, benchmark_limit = True, False, False, True, 10


def is_available() -> bool:
    """False: gradlab's GPU is CuPy's."""
    return False


def version() -> int | None:
    """None: there is no cuDNN here."""
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    **others: Any,
) -> Iterator[None]:
    """The flags set for a block, and put back after it."""
    settings = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    before = {name: globals()[name] for name in settings}
    try:
        globals().update(settings)
        yield
    finally:
        globals().update(before)
