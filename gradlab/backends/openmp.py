"""OpenMP, which PyTorch may use and gradlab does not."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False
