"""Live views for explorers. The notebook layer above registers how each is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VIEWS: dict[str, Callable[..., Any]] = {}


def open_view(name: str, shown: Any, **options: Any) -> Any:
    """Open the live view `name` of a result, with the view's options."""
    return VIEWS[name](shown, **options)
