"""Paths of modules and parameters from the user's name for a model, as in code: `net.layers[0].weight`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


def is_model(value: Any) -> bool:
    """Return whether a value is a module like PyTorch's, and not a class."""
    return not issubclass(type(value), type) and callable(getattr(type(value), "named_modules", None))


COMPILED = "_orig_mod"  # the name of a compiled module in the one that `torch.compile` returns
CALL = ", call "  # before the number of a call of a module that is called several times: "net.block, call 2"
STEP = re.compile(r"\.?[^.\[\]]+|\[[^\]]*\]")


def attribute(name: str, path: str, model: Any = None) -> str:
    """Return the path of a module or parameter of a model as in code: "0.weight" of `net` as `net[0].weight`, "heads.1" as
    `net.heads['1']` if `heads` is a dictionary of modules.

    A module made by `torch.compile` passes attributes on to the one inside, but not items: "_orig_mod.fc" is `net.fc`, and
    "_orig_mod.0" is `net._orig_mod[0]`."""
    for part in path.split(".") if path else ():
        children = getattr(model, "_modules", None)
        keyed = callable(getattr(type(model), "keys", None))
        model = children.get(part) if isinstance(children, dict) else None
        if part == COMPILED and model is not None and not hasattr(type(model), "__getitem__"):
            continue
        name += f".{part}" if part.isidentifier() else f"[{part}]" if part.isdecimal() and not keyed else f"[{part!r}]"
    return name


def prefixes(path: str) -> list[str]:
    """Return the path of a module and those of the modules around it: `net`, `net.layers`, `net.layers[0]` for
    "net.layers[0]"."""
    return list(_prefixes(path))


@lru_cache(maxsize=4096)
def _prefixes(path: str) -> tuple[str, ...]:
    return tuple(path[: step.end()] for step in STEP.finditer(path))


def last_step(path: str) -> str:
    """Return "[0]" for "net.layers[0]", "attn" for "net.attn"."""
    steps = STEP.findall(path)
    return str(steps[-1]).removeprefix(".") if steps else path


def is_below(path: str, module: str) -> bool:
    """Return whether a path leads to a parameter of a module, or to a module inside it."""
    return path.startswith((f"{module}.", f"{module}["))


def without_root(path: str, root: str) -> str:
    """Remove the model's name from a path: "fc1.weight" for "net.fc1.weight". The path is unchanged if the name is part of a
    step."""
    return path.removeprefix(f"{root}.") if root else path


def path_range(first: str, last: str) -> str:
    """Return a path for modules with consecutive numbers, "net.layers[0–3]" for "net.layers[0]" and "net.layers[3]", or
    "net.block, calls 1–4" for calls of one module."""
    start, end = first.removesuffix("]"), "]" if last.endswith("]") else ""
    if CALL in last_step(last):
        return f"{start.replace(CALL, ', calls ')}–{last.rpartition(CALL)[2].removesuffix(']')}{end}"
    return f"{start}–{last_step(last).strip('[]')}{end}"
