"""The parsed source of a cell: where names are bound, and where values can get to."""

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
    """A function of an earlier cell: its name, its parsed source, and the first line of the cell that calls it."""

    name: str
    tree: ast.FunctionDef
    line: int


class Program:
    """The lines of a cell, `%%grad` among them, and their syntax tree. The tree is empty if Python cannot parse the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        self._statements_at: dict[int, ast.stmt | None] = {}
        self._reached_names: dict[tuple[ast.stmt, bool], set[str]] = {}

    @classmethod
    def of_file(cls, filename: str) -> Program:
        """Return the program of a file, or of a cell by the name that IPython gives it."""
        return cls([line.rstrip("\n") for line in linecache.getlines(filename)])

    @cached_property
    def on_one_line(self) -> str:
        """The text with each run of white space replaced by one blank."""
        return " ".join("\n".join(self.lines).split())

    @cached_property
    def _text_and_tree(self) -> tuple[str, ast.Module]:
        """The text that Python can parse, which may lack the magics and shell commands of a cell, and its syntax tree."""
        first = 1 if self.lines[:1] and self.lines[0].startswith("%%") else 0
        magics = [i for i, line in enumerate(self.lines) if line.startswith(("%", "!"))]
        for blank in (range(first), magics):
            text = "\n".join("" if i in blank else line for i, line in enumerate(self.lines))
            try:
                return text, ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                pass
        return "", ast.parse("")

    @property
    def text(self) -> str:
        """The text without magics and shell commands, or "" if Python cannot parse it."""
        return self._text_and_tree[0]

    @property
    def tree(self) -> ast.Module:
        return self._text_and_tree[1]

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """All statements, in the order of the text."""
        statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        return sorted(statements, key=lambda node: (node.lineno, node.col_offset))

    def statement_at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement on a line."""
        if line not in self._statements_at:
            around = [node for node in self.statements if node.lineno <= line <= (node.end_lineno or node.lineno)]
            self._statements_at[line] = around[-1] if around else None
        return self._statements_at[line]

    def simple_statement_at(self, line: int) -> ast.stmt | None:
        """Return the innermost statement on a line; None if it contains others."""
        statement = self.statement_at(line)
        return None if statement is None or hasattr(statement, "body") else statement

    @cached_property
    def mentioned_names(self) -> frozenset[str]:
        """The names in the cell, also dotted: `model.fc1`."""
        return frozenset(ast.unparse(node) for node in ast.walk(self.tree) if isinstance(node, (ast.Name, ast.Attribute)))

    def assignments(self, name: str) -> list[ast.stmt]:
        """Return the statements that bind a name outside functions and classes, in the order of the text."""
        return [node for node in self.statements if node in self.outer and name in bound_names(node)]

    @cached_property
    def outer(self) -> set[ast.stmt]:
        """The statements outside functions and classes."""
        return set(own_statements(self.tree))

    def line_that_reads(self, name: str, attribute: str) -> int | None:
        """Return the first line that reads `name.attribute`."""
        for node in ast.walk(self.tree):
            read_here = isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)
            if isinstance(node, ast.Attribute) and read_here and ast.unparse(node.value) == name:
                return node.lineno
        return None

    def helpers(self, namespace: Mapping[str, Any]) -> list[Helper]:
        """Return the functions of the notebook that the cell calls by their names and does not define."""
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

    def can_reach(self, source: Line | None, sink: Line | None) -> bool:
        """Return whether the value of one sub-expression can reach another one in the same function.

        It can within a statement, or through names that statements bind.
        """
        if source is None or sink is None or (source.in_cell, source.function) != (sink.in_cell, sink.function):
            return False
        if not source.in_cell:
            return source.statement == sink.statement
        last = self.statement_at(sink.line)
        return last is not None and self.can_reach_statement(source, last)

    def can_reach_statement(self, source: Line | None, last: ast.stmt) -> bool:
        """Return whether the value of a sub-expression of the cell can reach a statement, through names that statements bind."""
        first = self.statement_at(source.line) if source is not None and source.in_cell else None
        if source is None or first is None:
            return False
        if first is last:
            return True
        return not self._names_from(first, source.function == "<module>").isdisjoint(self._reads_and_changes[last][0])

    def _names_from(self, first: ast.stmt, outside: bool) -> set[str]:
        """Return the names that the result of a statement can reach; with `outside`, only outside functions and classes."""
        if (first, outside) not in self._reached_names:
            scope = [pair for node, pair in self._reads_and_changes.items() if not outside or node in self.outer]
            names = changed_names(first)
            for _ in range(len(scope)):
                more = {name for reads, changes in scope if names & reads for name in changes} - names
                if not more:
                    break
                names |= more
            self._reached_names[first, outside] = names
        return self._reached_names[first, outside]

    @cached_property
    def _reads_and_changes(self) -> dict[ast.stmt, tuple[set[str], set[str]]]:
        """The names that each statement reads, and the names that it changes."""
        return {node: (read_names(node), changed_names(node)) for node in self.statements}


def own_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a file or a function in the order of the text, without those in nested functions and classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, SCOPES):
            yield from own_statements(node)


def bound_names(statement: ast.stmt) -> set[str]:
    """Return the plain names that a statement binds itself."""
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


def changed_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds, writes into or appends to."""
    names = bound_names(statement)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names |= {root for target in targets if not isinstance(target, ast.Name) and (root := root_of(target))}
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        names.add(root_of(call.func.value))
    return names - {""}


def read_names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement reads itself, without the statements in it."""
    parts: list[Any] = []
    for _, value in ast.iter_fields(statement):
        parts += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.expr)]
    names = {
        node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    if isinstance(statement, ast.AugAssign):
        names |= bound_names(statement)
    return names


def root_of(node: Any) -> str:
    """Return the first name of an expression: `a` of `a.b[0].c`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
