"""Flags of cuDNN, which gradlab does not use. They can be set and have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

enabled, deterministic, benchmark, allow_tf32, benchmark_limit = True, False, False, True, 10


def is_available() -> bool:
    """Return False. On GPUs gradlab uses CuPy, without cuDNN."""
    return False


def version() -> int | None:
    """Return None, because cuDNN is not used."""
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
    """Set the flags inside a `with` block and restore them afterwards."""
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
