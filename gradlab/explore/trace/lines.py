"""Find the source line and the expression of a site (a code object and the offset of an instruction).

`diagnose.source_locations` maps an instruction to the characters it was compiled from. Here each file is parsed once and each
site is looked up once, because the ten thousand operations of a loop come from a few sites.
"""

from __future__ import annotations

import ast
import linecache
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.diagnose.source_locations import (
    MODULE_NAMES,
    SIMPLE_STATEMENTS,
    SourceLocation,
    cells,
    location_of,
    root_name,
    source_of,
)
from gradlab.explore.trace.data import Line

MAX_CHARACTERS = 2_000_000  # of a file that is parsed
MAX_FILES = 64  # in the cache of parsed files
# Positions of keyword arguments of the libraries' functions and losses.
POSITIONS = {"self": 0, "input": 0, "x1": 0, "other": 1, "target": 1, "x2": 1, "mat2": 1, "exponent": 1, "weight": 2}


class Source:
    """A parsed file."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.statements: list[Any] = []
        text = "".join(lines)
        if text and len(text) <= MAX_CHARACTERS:
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
            self.statements = sorted(statements, key=lambda node: (node.lineno, node.col_offset))

    def statement(self, place: SourceLocation) -> Any:
        """Return the innermost simple statement around a place, or the compound statement with the place in its head, or None."""
        start = (place.line, max(place.start_column, 0))
        at = bisect_right(self.statements, start, key=lambda node: (node.lineno, node.col_offset)) - 1
        while at >= 0:
            node = self.statements[at]
            if (node.end_lineno or 0) >= place.end and (isinstance(node, SIMPLE_STATEMENTS) or node.lineno <= place.line):
                return node
            at -= 1
        return None

    def text(self, node: Any) -> str:
        """Return the source of a parsed node on one line, or the first line of a compound statement."""
        last = node.end_lineno if isinstance(node, (ast.expr, *SIMPLE_STATEMENTS)) else node.lineno
        rows = [row.encode() for row in self.lines[node.lineno - 1 : last]]
        if last == node.end_lineno:
            rows[-1] = rows[-1][: node.end_col_offset]
        rows[0] = rows[0][node.col_offset :]
        return " ".join(b" ".join(rows).decode(errors="replace").split())


_parsed: dict[str, Source] = {}  # the last files that were used


class Lines:
    """A cache of the sites of one trace."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Any, int], Line] = {}
        self._nodes: dict[tuple[Any, int], Any] = {}

    def line(self, site: Any) -> Line | None:
        """Return the line of a site; None if there is no site."""
        if site is None:
            return None
        key = site[0], site[1]
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = self._look_up(key)
        return line

    def expression(self, site: Any) -> Any:
        """Return the parsed sub-expression of a site, or the statement for `x += y`; None if it is unknown."""
        if self.line(site) is None:
            return None
        return self._nodes.get((site[0], site[1]))

    def _look_up(self, key: tuple[Any, int]) -> Line:
        place = location_of(key)
        assert place is not None
        source = self._source(place.filename)
        statement = source.statement(place)
        expression = self._nodes[key] = _expression(statement, place)
        columns = None
        if place.start_column >= 0 and len(source.lines) >= place.end:
            columns = (
                _characters(source.lines[place.line - 1], place.start_column),
                _characters(source.lines[place.end - 1], place.end_column),
            )
        return Line(
            place.where,
            place.line,
            place.end,
            columns,
            place.expression,
            "" if statement is None else source.text(statement),
            place.function,
            _target(statement, expression),
            place.filename == cells.current,
            place.filename,
        )

    def _source(self, filename: str) -> Source:
        lines = linecache.getlines(filename)
        source = _parsed.get(filename)
        if source is None or source.lines != lines:
            while len(_parsed) >= MAX_FILES:
                _parsed.pop(next(iter(_parsed), ""), None)
            source = _parsed[filename] = Source(lines)
        return source


def _characters(line: str, column: int) -> int:
    """Convert a column from UTF-8 bytes, as Python counts, to characters."""
    return len(line.encode()[:column].decode(errors="replace"))


def _expression(statement: Any, place: SourceLocation) -> Any:
    span = (place.line, place.start_column, place.end, place.end_column)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.expr) and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == span:
            return node
    return statement if isinstance(statement, ast.AugAssign) else None


def _target(statement: Any, expression: Any) -> str:
    """Return the single name to which a statement assigns the sub-expression, or ""."""
    if (
        isinstance(statement, ast.AugAssign)
        and statement is expression
        and isinstance(statement.target, (ast.Name, ast.Attribute))
    ):
        return source_of(statement.target)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.value is expression:
        target = statement.targets[0]
        return source_of(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
    if isinstance(statement, ast.AnnAssign) and statement.value is expression and isinstance(statement.target, ast.Name):
        return statement.target.id
    return ""


def operands_of(expression: Any) -> list[Any]:
    """Return the parsed operands of an operation in the order of its arguments.

    These are both sides of an operator, or the receiver of a tensor method (not `F` in `F.relu(x)`, not `self` in
    `self.criterion(x, y)`) and the arguments of a call, with keyword arguments at their position.
    """
    if isinstance(expression, ast.BinOp):
        return [expression.left, expression.right]
    if isinstance(expression, ast.AugAssign):
        return [expression.target, expression.value]
    if isinstance(expression, ast.UnaryOp):
        return [expression.operand]
    if isinstance(expression, ast.Compare):
        return [expression.left, *expression.comparators]
    if isinstance(expression, ast.Subscript):
        return [expression.value]
    if isinstance(expression, ast.Call):
        func = expression.func
        method = isinstance(func, ast.Attribute) and root_name(func.value) not in MODULE_NAMES and hasattr(Tensor, func.attr)
        keywords = sorted(expression.keywords, key=lambda keyword: POSITIONS.get(keyword.arg or "", len(POSITIONS)))
        return [*([func.value] if method else []), *expression.args, *(keyword.value for keyword in keywords)]  # type: ignore[attr-defined]
    return []


def literal(node: Any) -> Any:
    """Return the number that a parsed expression is, or None."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (bool, int, float, complex)) else None


def index_of(expression: Any) -> str:
    """Return "[1:, :-1]" for `x[1:, :-1]`, and "" for any other expression."""
    if not isinstance(expression, ast.Subscript):
        return ""
    return (
        f"[{source_of(expression.slice).removeprefix('(').removesuffix(')')}]"
        if isinstance(expression.slice, ast.Tuple)
        else f"[{source_of(expression.slice)}]"
    )
