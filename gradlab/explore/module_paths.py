"""Paths of modules and parameters from the user's name for a model, as one writes them: `net.layers[0].weight`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


def is_model(value: Any) -> bool:
    """Whether a value is a module as torch's are, no class of such."""
    return not issubclass(type(value), type) and callable(getattr(type(value), "named_modules", None))


STEP = re.compile(r"\.?[^.\[\]]+|\[[^\]]*\]")


def attribute(name: str, path: str, model: Any = None) -> str:
    """The path of a module or a parameter in a model as one writes it: "0.weight" of `net` as `net[0].weight`, "heads.1" where
    `heads` is a dictionary of modules as `net.heads['1']`."""
    for part in path.split(".") if path else ():
        children = getattr(model, "_modules", None)
        keyed = callable(getattr(type(model), "keys", None))
        model = children.get(part) if isinstance(children, dict) else None
        name += f".{part}" if part.isidentifier() else f"[{part}]" if part.isdecimal() and not keyed else f"[{part!r}]"
    return name


def prefixes(path: str) -> list[str]:
    """The modules around one, and itself: `net`, `net.layers`, `net.layers[0]` of "net.layers[0]"."""
    return list(_prefixes(path))


@lru_cache(maxsize=4096)
def _prefixes(path: str) -> tuple[str, ...]:
    return tuple(path[: step.end()] for step in STEP.finditer(path))


def last_step(path: str) -> str:
    """ "[0]" of "net.layers[0]", "attn" of "net.attn"."""
    steps = STEP.findall(path)
    return str(steps[-1]).removeprefix(".") if steps else path
