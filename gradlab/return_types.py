"""The types of results with named parts, as `gradlab.return_types.max`; declared in `gradlab.ops`."""

from __future__ import annotations

from gradlab.ops.results import TYPES, Result


def __getattr__(name: str) -> type[Result]:
    try:
        return TYPES[name]
    except KeyError:
        raise AttributeError(
            f"module 'gradlab.return_types' has no attribute {name!r}. It has: {', '.join(sorted(TYPES))}."
        ) from None


def __dir__() -> list[str]:
    return sorted(TYPES)
