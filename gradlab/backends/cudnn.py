"""Flags of cuDNN, which gradlab does not use: they can be set, and do nothing."""
from __future__ import annotations

enabled, deterministic, benchmark, allow_tf32, benchmark_limit = True, False, False, True, 10


def is_available() -> bool:
    """False: gradlab's GPU is CuPy's."""
    return False


def version() -> int | None:
    """None: there is no cuDNN here."""
    return None
