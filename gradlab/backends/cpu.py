"""The processor."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """ "DEFAULT": NumPy chooses its instructions by itself (numpy.show_runtime() tells which)."""
    return "DEFAULT"
