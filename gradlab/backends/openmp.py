"""A library that torch may use, and gradlab does not."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
