"""Call a repaired version of a broken function, and compare its source with the original."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from gradlab.core.tensor import Tensor


def use(function: Callable[..., Any], original: str, numbers: list[float]) -> dict[str, Any]:
    """Return the result, whether it is a leaf that requires grad, and the number of changed lines (None without a source)."""
    value = function(list(numbers))
    leaf = isinstance(value, Tensor) and value.is_leaf and value.requires_grad
    return {"value": value, "leaf": leaf, "lines": count_edits(original, function)}


def case_arguments(original: str, numbers: list[float]) -> dict[str, Any]:
    """Return the numbers."""
    return {"numbers": list(numbers)}


def count_edits(original: str, function: Callable[..., Any]) -> int | None:
    """Count the lines of a function that were changed, added or removed, without comments and blank lines."""
    try:
        before, after = _lines(original), _lines(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(max(there - here, to - of) for what, here, there, of, to in changes if what != "equal")


def _lines(text: str) -> list[str]:
    """Return a function's statements, a line each, as `ast.unparse` writes them."""
    return ast.unparse(ast.parse(textwrap.dedent(text))).splitlines()
