"""Spell advice with the user's names: the name under which their code imported the library, and the values of their variables.

Advice is code that users will type. It is therefore composed together with the error, from the namespace of the nearest frame
outside gradlab (and of the notebook, while the extension is loaded): `gl.ones_like(y)` if gradlab was imported as gl.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.diagnose.source_locations import notebook

QUOTED_CODE = re.compile(r"`[^`]*`")
USUAL_NAMES = ("gl", "gradlab", "torch")


def namespaces() -> Iterator[Mapping[str, Any]]:
    """Yield the namespaces of the user's frame: its globals, the notebook's namespace, and its locals.

    The locals come last, because Python copies them when they are read and keeps the copy as long as the function runs.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and is_gradlab_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        yield frame.f_globals
    yield notebook.namespace
    if frame is not None and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        yield frame.f_locals


def value_of(name: str) -> Any:
    """Return the value of a name such as `self.model`, or None if it is unknown."""
    first, *rest = name.split(".")
    for known in reversed(list(namespaces())):
        value = known.get(first)
        if value is not None:
            try:
                for part in rest:
                    value = getattr(value, part)
            except Exception:  # noqa: BLE001  (the attributes are the user's)
                return None
            return value
    return None


def library_name(module: str = "gradlab") -> str:
    """Return the user's name for gradlab or another package, or "" if there is none."""
    wanted = sys.modules[module]
    for known in namespaces():
        names = [name for name in USUAL_NAMES if known.get(name) is wanted]
        names = names or [name for name, value in list(known.items()) if value is wanted and isinstance(name, str)]
        if names:
            return names[0]
    return ""


def spell_code(text: str) -> str:
    """Replace "gradlab." by the user's name in the code of a text, which is between backticks."""
    return QUOTED_CODE.sub(lambda code: spell_text(code[0]), text)


def spell_text(text: str) -> str:
    """Replace "gradlab." by the user's name everywhere in a text."""
    name = (library_name() if "gradlab." in text else "") or "gradlab"
    return text if name == "gradlab" else re.sub(r"\bgradlab\.(?=[a-zA-Z])", f"{name}.", text)


def is_module(name: str) -> bool:
    """Return True if the value of a name is a Python module, also in a script that has ended."""
    value = value_of(name)
    if value is None:
        value = getattr(sys.modules.get("__main__"), "__dict__", {}).get(name)
    return issubclass(type(value), ModuleType)
