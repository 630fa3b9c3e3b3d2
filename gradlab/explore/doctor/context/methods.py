"""The methods of the classes of modules, and their sources."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import FunctionType


def methods_of(kind: type) -> Iterator[FunctionType]:
    """Yield the methods of a class, its own first, without those that it inherits from a library's classes."""
    for one in kind.__mro__:
        if str(one.__module__).partition(".")[0] in ("torch", "gradlab", "builtins"):
            continue
        yield from (value for value in vars(one).values() if type(value) is FunctionType)


def parse_method(function: FunctionType) -> tuple[int, ast.AST] | None:
    """Return the first line and the syntax tree of a function; None if its source is not available."""
    try:
        lines, first = inspect.getsourcelines(function.__code__)
        return first, ast.parse(inspect.cleandoc("\n" + "".join(lines)))
    except (OSError, SyntaxError, ValueError, TypeError):
        return None
