"""The live views of what explorers find. They belong to the notebook layer above, which says here how each is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VIEWS: dict[str, Callable[..., Any]] = {}


def opened(name: str, shown: Any, **options: Any) -> Any:
    """The live view `name` of something, with what the view can be told."""
    return VIEWS[name](shown, **options)
