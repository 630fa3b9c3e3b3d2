"""The source of a cell, and what is read off it: where a name gets its value, and which value goes where."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any

from gradlab.explore.trace.data import Line

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True)
class Helper:
    """A function of an earlier cell: its name, its source parsed, and the first line of the cell that calls it."""

    name: str
    tree: ast.FunctionDef
    line: int


class Program:
    """The lines of a cell, `%%grad` among them, parsed; nothing is known of lines that Python cannot read."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        self._at: dict[int, ast.stmt | None] = {}
        self._carried: dict[tuple[ast.stmt, bool], set[str]] = {}

    @classmethod
    def of_file(cls, filename: str) -> Program:
        """That of a file, or of a cell by the name that IPython gives it."""
        return cls([line.rstrip("\n") for line in linecache.getlines(filename)])

    @cached_property
    def on_one_line(self) -> str:
        """The text with each run of blanks as one."""
        return " ".join("\n".join(self.lines).split())

    @cached_property
    def tree(self) -> ast.Module:
        text = "\n".join(line if not line.startswith(("%", "!")) else "" for line in self.lines)
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.parse("")

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """All statements, in the order of the text."""
        statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        return sorted(statements, key=lambda node: (node.lineno, node.col_offset))

    def at(self, line: int) -> ast.stmt | None:
        """The innermost statement on a line."""
        if line not in self._at:
            around = [node for node in self.statements if node.lineno <= line <= (node.end_lineno or node.lineno)]
            self._at[line] = around[-1] if around else None
        return self._at[line]

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The names that the cell mentions, also dotted: `model.fc1`."""
        return frozenset(ast.unparse(node) for node in ast.walk(self.tree) if isinstance(node, (ast.Name, ast.Attribute)))

    def assigned(self, name: str) -> list[ast.stmt]:
        """The statements that bind a name, outside of functions and classes, in the order of the text."""
        return [node for node in self.statements if node in self.outer and name in bound(node)]

    @cached_property
    def outer(self) -> set[ast.stmt]:
        """The statements outside of functions and classes."""
        return set(own_statements(self.tree))

    def reads(self, name: str, attribute: str) -> int | None:
        """The line on which `name.attribute` is read."""
        for node in ast.walk(self.tree):
            read_here = isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)
            if isinstance(node, ast.Attribute) and read_here and ast.unparse(node.value) == name:
                return node.lineno
        return None

    def helpers(self, namespace: Mapping[str, Any]) -> list[Helper]:
        """The functions of the notebook that the cell calls by their names, and did not define itself."""
        own = {node.name for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        helpers: dict[str, Helper] = {}
        for node in ast.walk(self.tree):
            name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            function = namespace.get(name)
            if name in own or name in helpers or type(function) is not FunctionType or function.__module__ != "__main__":
                continue
            try:
                tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
            except (OSError, SyntaxError, ValueError, IndexError):
                continue
            if isinstance(tree, ast.FunctionDef) and isinstance(node, ast.Call):
                helpers[name] = Helper(name, tree, node.lineno)
        return list(helpers.values())

    def flows(self, source: Line | None, sink: Line | None) -> bool:
        """Whether a value that a sub-expression gives can get into another one of the same function: the same statement, or by
        the names that statements bind."""
        if source is None or sink is None or (source.in_cell, source.function) != (sink.in_cell, sink.function):
            return False
        if not source.in_cell:
            return source.statement == sink.statement
        last = self.at(sink.line)
        return last is not None and self.leads(source, last)

    def leads(self, source: Line | None, last: ast.stmt) -> bool:
        """Whether a value that a sub-expression of the cell gives can get into a statement, by the names that statements bind."""
        first = self.at(source.line) if source is not None and source.in_cell else None
        if source is None or first is None:
            return False
        if first is last:
            return True
        return not self._names_from(first, source.function == "<module>").isdisjoint(self._exchanged[last][0])

    def _names_from(self, first: ast.stmt, outside: bool) -> set[str]:
        """The names that what a statement computes can get to, `outside` of functions and classes alone."""
        if (first, outside) not in self._carried:
            scope = [pair for node, pair in self._exchanged.items() if not outside or node in self.outer]
            names = carried(first)
            for _ in range(len(scope)):
                more = {name for reads, carries in scope if names & reads for name in carries} - names
                if not more:
                    break
                names |= more
            self._carried[first, outside] = names
        return self._carried[first, outside]

    @cached_property
    def _exchanged(self) -> dict[ast.stmt, tuple[set[str], set[str]]]:
        """The names that each statement reads, and those through which it hands on what it computes."""
        return {node: (read(node), carried(node)) for node in self.statements}


def own_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a file or a function in the order of the text, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, SCOPES):
            yield from own_statements(node)


def bound(statement: ast.stmt) -> set[str]:
    """The plain names that a statement binds by itself."""
    if isinstance(statement, ast.Assign):
        targets: list[Any] = list(statement.targets)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    else:
        targets = []
    return {
        node.id
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def carried(statement: ast.stmt) -> set[str]:
    """The names through which a statement hands on what it computes: those that it binds, writes into or appends to."""
    names = bound(statement)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names |= {root for target in targets if not isinstance(target, ast.Name) and (root := root_of(target))}
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        names.add(root_of(call.func.value))
    return names - {""}


def read(statement: ast.stmt) -> set[str]:
    """The names that a statement reads by itself, not in the statements within it."""
    parts: list[Any] = []
    for _, value in ast.iter_fields(statement):
        parts += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.expr)]
    names = {
        node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    if isinstance(statement, ast.AugAssign):
        names |= bound(statement)
    return names


def root_of(node: Any) -> str:
    """`a` of `a.b[0].c`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
