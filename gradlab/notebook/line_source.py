"""The source of `%grad` lines, which tracebacks and reports read from `linecache`.

A graph, a traceback or a finding that quotes the line holds one of its code objects. Its source is therefore kept as long as one
of them exists, and removed when the next line runs.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterator
from types import CodeType

_CODES: dict[str, list[weakref.ref[CodeType]]] = {}  # by the name of the source


def compile_line(expression: str) -> CodeType:
    """Compile the expression of a `%grad` line, under a name by which its source is found."""
    remove_unused()
    name = f"<%grad {expression}>"
    code = compile(expression, name, "eval")
    linecache.cache[name] = (len(expression), None, [f"{expression}\n"], name)
    _CODES.setdefault(name, []).extend([weakref.ref(one) for one in nested_codes(code)])
    return code


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of its lambdas and comprehensions, which may outlive it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def remove_unused() -> None:
    """Remove the sources of lines whose code is gone."""
    for name, codes in list(_CODES.items()):
        codes[:] = [code for code in codes if code() is not None]
        if not codes:
            del _CODES[name]
            linecache.cache.pop(name, None)
