"""Named tuples returned by functions with several results, such as `gradlab.return_types.max`. Declared in `gradlab.ops`."""

from __future__ import annotations

from gradlab.ops.results import RESULT_TYPES, Result


def __getattr__(name: str) -> type[Result]:
    try:
        return RESULT_TYPES[name]
    except KeyError:
        raise AttributeError(
            f"module 'gradlab.return_types' has no attribute {name!r}. It has: {', '.join(sorted(RESULT_TYPES))}."
        ) from None


def __dir__() -> list[str]:
    return sorted(RESULT_TYPES)
