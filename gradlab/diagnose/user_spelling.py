"""Advice in the user's own words: under which name their code has the library, and what stands behind a name at an error's line.

Advice is code that somebody will type. So it is worded when an error is, with the namespace of the nearest frame outside gradlab
(and the notebook's, while the extension is loaded): `gl.ones_like(y)` for who imported gradlab as gl.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from gradlab.diagnose.sites import is_ours
from gradlab.diagnose.source_locations import notebook

CODE = re.compile(r"`[^`]*`")
USUAL = ("gl", "gradlab", "torch")


def namespaces() -> Iterator[Mapping[str, Any]]:
    """What the user's code can name where it called us: the globals, the notebook's names, and last the locals, which Python
    copies when they are looked at, and keeps for as long as the function runs."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        yield frame.f_globals
    yield notebook.namespace
    if frame is not None and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        yield frame.f_locals


def value_of(name: str) -> Any:
    """What a name such as `self.model` stands for; None where that is not known."""
    first, *rest = name.split(".")
    for known in reversed(list(namespaces())):
        value = known.get(first)
        if value is not None:
            try:
                for part in rest:
                    value = getattr(value, part)
            except Exception:  # noqa: BLE001  (of the user's own attributes)
                return None
            return value
    return None


def library_name(module: str = "gradlab") -> str:
    """What the user's code calls gradlab, or another package; "" if it has no name for it."""
    wanted = sys.modules[module]
    for known in namespaces():
        names = [name for name in USUAL if known.get(name) is wanted]
        names = names or [name for name, value in list(known.items()) if value is wanted and isinstance(name, str)]
        if names:
            return names[0]
    return ""


def spelled(text: str) -> str:
    """A text whose code (between ` and `) says gradlab, in the user's spelling."""
    return CODE.sub(lambda code: in_users_spelling(code[0]), text)


def in_users_spelling(text: str) -> str:
    """A text in which whatever says gradlab is code."""
    name = (library_name() if "gradlab." in text else "") or "gradlab"
    return text if name == "gradlab" else re.sub(r"\bgradlab\.(?=[a-zA-Z])", f"{name}.", text)


def is_module(name: str) -> bool:
    """Whether a name stands for a module of Python's."""
    return issubclass(type(value_of(name)), ModuleType)
