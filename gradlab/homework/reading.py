"""Which functions a student's code uses: found by reading it, along with everything it calls in the notebook.

A name counts however it is reached: under its own name, as an attribute, imported under another, by `getattr` with the name
as text, or through a variable of the notebook that holds the function.
"""
from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any


class NoSource(Exception):  # noqa: N818  (not an error of the program: a finding about the student's code)
    """A function whose text cannot be read."""


def forbidden_uses(function: Callable[..., Any], names: Iterable[str], namespace: dict[str, Any]) -> list[tuple[str, int, str]]:
    """(name, line, text of the line) of each use of a forbidden name by the function or by what it calls in the notebook.

    Raises
    ------
    NoSource
        If a function was not written with `def` in the notebook.
    """
    banned, found, seen, waiting = frozenset(names), [], set(), [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        tree, first, lines = syntax(one)
        scope = {**namespace, **one.__globals__, **_closure(one)} if isinstance(one, FunctionType) else namespace
        for node, name in _mentions(tree):
            target = _resolved(node, scope) if isinstance(node, (ast.Name, ast.Attribute)) else None
            own = getattr(target, "__name__", "") if callable(target) else ""
            if used := next((n for n in (name, own) if n in banned), None):
                found.append((used, node.lineno + first - 1, lines[node.lineno - 1].strip()))
            elif isinstance(target, FunctionType) and target.__globals__ is function_globals(function):
                waiting.append(target)
    return sorted(set(found), key=lambda use: use[1])


def function_globals(function: Callable[..., Any]) -> Any:
    """The namespace that a function was written in."""
    return getattr(inspect.unwrap(function), "__globals__", None)


def syntax(function: Callable[..., Any]) -> tuple[ast.AST, int, list[str]]:
    """The syntax tree of a function, the number of its first line, and its lines."""
    try:
        source, first = inspect.getsourcelines(inspect.unwrap(function))
        text = textwrap.dedent("".join(source))
        return ast.parse(text), first, text.splitlines()
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise NoSource(getattr(function, "__name__", str(function))) from error


def _mentions(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node, node.id
        elif isinstance(node, ast.Attribute):
            yield node, node.attr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield node, alias.name.rpartition(".")[2]
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value, node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node, node.value


def _resolved(node: ast.AST, scope: dict[str, Any]) -> Any:
    """What a name, or an attribute of a module, stands for; None where that is known only when it runs."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, scope)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


def _closure(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  (an empty cell raises)
    except ValueError:
        return False
    return True
