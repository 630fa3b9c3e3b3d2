"""Properties of the processor."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """Return "DEFAULT". NumPy chooses its instruction set itself; `numpy.show_runtime()` shows it."""
    return "DEFAULT"
