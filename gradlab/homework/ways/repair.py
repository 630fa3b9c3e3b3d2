"""A function that was handed out broken, to be mended in few lines: it is called, and its text is compared with what was
handed out."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from gradlab.core.tensor import Tensor


def use(function: Callable[..., Any], original: str, numbers: list[float]) -> dict[str, Any]:
    """What comes back, whether it is a leaf that asks for a gradient, and how many lines are not as they were (None: its text
    cannot be had)."""
    value = function(list(numbers))
    leaf = isinstance(value, Tensor) and value.is_leaf and value.requires_grad
    return {"value": value, "leaf": leaf, "lines": edited(original, function)}


def shown(original: str, numbers: list[float]) -> dict[str, Any]:
    """The numbers."""
    return {"numbers": list(numbers)}


def edited(original: str, function: Callable[..., Any]) -> int | None:
    """How many lines of a function are not as they were: changed, put in or taken out; comments and blank lines do not count."""
    try:
        before, after = _lines(original), _lines(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(there - here, to - of) for what, here, there, of, to in changes if what != "equal")


def _lines(text: str) -> list[str]:
    """A function's lines as Python would write them: a statement of a line each."""
    return ast.unparse(ast.parse(textwrap.dedent(text))).splitlines()
