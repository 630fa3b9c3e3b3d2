"""Apple's MPS, for which gradlab has no backend."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


def is_built() -> bool:
    """Return False."""
    return False
