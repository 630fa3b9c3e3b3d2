"""Look up a site: the file, the line, the exact sub-expression, and the statement around it.

The code object has the source position of each instruction (`co_positions`). The source comes from `linecache`, in which IPython
stores its cells too. Lookups happen only when an error message is composed. The statement is parsed to suggest a replacement;
parts that cannot be found or parsed are omitted from the message.
"""

from __future__ import annotations

import ast
import linecache
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

from gradlab.core.fresh_thread import THREAD_LOCALS
from gradlab.core.tensor import Tensor

MAX_QUOTED_LENGTH = 64  # characters of source
CELL_FILE = re.compile(r"<ipython-input-(\d+)-\w+>$|.*ipykernel_\d+[/\\]\d+\.py$")
SIMPLE_STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete, ast.Raise)
MAX_PARSED_LENGTH = 2_000_000  # characters; larger files are not parsed


class RunningCell(threading.local):
    """The `%%grad` cell that this thread runs; front ends may run cells in several threads. A script counts as a cell."""

    current: str | None = None  # its file
    called: str = "the cell"  # "train.py" for a script
    header: str = ""  # its first line, as the user wrote it


class Notebook:
    """Data about a notebook's cells while the extension is loaded.

    These are the cell numbers by file name, the shared namespace, and a function that returns the error of the last cell, or a
    sentence if other cells have run since.
    """

    def __init__(self) -> None:
        self.numbers: Mapping[str, Any] = {}
        self.namespace: Mapping[str, Any] = {}
        self.last_error: Callable[[], tuple[BaseException | None, str]] | None = None


cells, notebook = RunningCell(), Notebook()
THREAD_LOCALS.append(cells)


@dataclass(frozen=True)
class SourceLocation:
    """The source location of a site. Lines count from 1; columns are offsets in UTF-8, as in Python."""

    filename: str
    function: str
    line: int
    end: int
    start_column: int
    end_column: int

    @property
    def where(self) -> str:
        """File and line: "cell line 3", "train.py line 3"."""
        if self.filename.startswith("<%grad"):
            return "%grad"
        if cell := CELL_FILE.match(self.filename):
            number = None if self.filename == cells.current else notebook.numbers.get(self.filename, cell[1])
            return f"cell {'' if number is None else f'In[{number}] '}line {self.line}"
        if self.filename.startswith("<"):
            return f"{self.filename} line {self.line}"
        return f"{PurePath(self.filename).name} line {self.line}"

    @property
    def short(self) -> str:
        """The line alone: "line 3", "that line" for a one-line magic, "In[4] line 3" for another cell."""
        return (
            "that line"
            if self.filename.startswith("<%grad")
            else self.where[self.where.index(" ") + 1 :]
            if CELL_FILE.match(self.filename)
            else f"line {self.line}"
        )

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return linecache.getlines(self.filename)

    @cached_property
    def expression(self) -> str:
        """The source of the exact sub-expression on one line, or "" if it is unknown."""
        if not self.lines[self.line - 1 : self.end] or self.start_column < 0:
            return ""
        rows = [row.encode() for row in self.lines[self.line - 1 : self.end]]
        rows[-1] = rows[-1][: self.end_column]
        rows[0] = rows[0][self.start_column :]
        return " ".join(b" ".join(rows).decode(errors="replace").split())

    @cached_property
    def statement(self) -> Any:
        """The innermost simple statement around the location, parsed, or None."""
        innermost = None
        for node in ast.walk(self.tree) if self.tree is not None else ():
            if isinstance(node, SIMPLE_STATEMENTS) and node.lineno <= self.line and (node.end_lineno or 0) >= self.end:
                inside = self.start_column < 0 or (node.lineno, node.col_offset) <= (self.line, self.start_column)
                if inside and (innermost is None or (node.lineno, node.col_offset) >= (innermost.lineno, innermost.col_offset)):
                    innermost = node
        return innermost

    @cached_property
    def tree(self) -> Any:
        """The parsed file, or None."""
        source = "".join(self.lines)
        if not source or len(source) > MAX_PARSED_LENGTH:
            return None
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def node(self) -> Any:
        """The parsed sub-expression, or None if it is unknown."""
        for node in ast.walk(self.statement) if self.statement is not None else ():
            if isinstance(node, ast.expr) and (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == (
                self.line,
                self.start_column,
                self.end,
                self.end_column,
            ):
                return node
        return None

    @cached_property
    def text(self) -> str:
        """The statement on one line, or the line if there is no statement."""
        if self.statement is not None:
            rows = [row.encode() for row in self.lines[self.statement.lineno - 1 : self.statement.end_lineno]]
            rows[-1] = rows[-1][: self.statement.end_col_offset]
            rows[0] = rows[0][self.statement.col_offset :]
            return " ".join(b" ".join(rows).decode(errors="replace").split())
        return self.lines[self.line - 1].strip() if len(self.lines) >= self.line else ""

    def quote(self, whole: bool = False) -> str:
        """Return "cell line 3: `y = x.exp()`". Unless `whole`, a sub-expression is quoted before its statement."""
        text, part = self.text, self.expression
        if not text:
            return f"{self.where}, in {self.function}"
        is_all = part == text or self.node is getattr(self.statement, "value", self) or isinstance(self.statement, ast.AugAssign)
        if part and part in text and not whole and not is_all:
            return f"{self.where}, `{clip(part)}` in `{clip(text, part)}`"
        return f"{self.where}: `{clip(text)}`"


class Positions(threading.local):
    """Cache of the positions in the last code object: the nodes of a graph come from few."""

    code: Any = None
    found: list[Any] = []  # noqa: RUF012  (replaced, never changed)


positions = Positions()


def location_of(site: Any) -> SourceLocation | None:
    """Return the location of a site, or None if the site is None."""
    if site is None:
        return None
    code, offset = site[:2]
    if positions.code is not code:
        positions.code, positions.found = code, list(code.co_positions())
    at = max(offset, 0) // 2
    line, end, start, stop = positions.found[at] if at < len(positions.found) else (None,) * 4
    line = line or code.co_firstlineno
    if end is None or start is None or stop is None:  # python -X no_debug_ranges
        end, start, stop = line, -1, -1
    return SourceLocation(code.co_filename, code.co_name, line, end, start, stop)


def quote_site(site: Any) -> str:
    """Return the quoted location of a site, or "" if the site is None."""
    location = location_of(site)
    return "" if location is None else location.quote()


def clip(text: str, around: str = "") -> str:
    """Shorten source to `MAX_QUOTED_LENGTH` characters, so that the part `around` remains visible."""
    text = text.replace("`", "'")
    if len(text) <= MAX_QUOTED_LENGTH:
        return text
    at = max(text.find(around), 0) if around else 0
    start = max(0, min(at - 8, len(text) - MAX_QUOTED_LENGTH))
    return (
        ("…" if start else "") + text[start : start + MAX_QUOTED_LENGTH] + ("…" if start + MAX_QUOTED_LENGTH < len(text) else "")
    )


def root_name(node: Any) -> str:
    """Return `y` for `y[0].diagonal()`, or "" if there is no name at the root."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def source_of(node: Any) -> str:
    """Return the code of a parsed expression on one line."""
    return " ".join(ast.unparse(node).split())


def operands(location: SourceLocation | None, names: list[str]) -> dict[str, str]:
    """Return the source of the operands of an operator expression: {"input": "a", "other": "b"}."""
    node = None if location is None else location.node
    if isinstance(node, ast.BinOp) and len(names) == 2:
        return dict(zip(names, (source_of(node.left), source_of(node.right)), strict=True))
    if isinstance(node, ast.BinOp) and len(names) == 1:
        return {names[0]: source_of(node.left)}
    if isinstance(node, ast.UnaryOp) and len(names) == 1:
        return {names[0]: source_of(node.operand)}
    return {}


def names_in(location: SourceLocation | None) -> list[str]:
    """Return the variables that a sub-expression reads, such as `w` or `self.w`, without called functions and modules."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    return [] if node is None else list(dict.fromkeys(variables(node)))


def variables(node: Any) -> Iterator[str]:
    """Yield the variables that a parsed expression reads, with repetitions."""
    if isinstance(node, ast.Name):
        if node.id not in MODULE_NAMES:
            yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)) and not hasattr(Tensor, node.attr):
        if root_name(node) not in MODULE_NAMES:
            yield source_of(node)
    else:
        called = node.func if isinstance(node, ast.Call) else None
        for child in ast.iter_child_nodes(node):
            if child is not called:
                yield from variables(child)
            elif isinstance(called, ast.Attribute):
                yield from variables(called.value) if hasattr(Tensor, called.attr) else ()


def feeds_into(source: SourceLocation | None, reader: SourceLocation | None) -> bool:
    """Return True if a statement assigns to a name, or calls its method, and another one of the same code reads that name."""
    if source is None or reader is None or (source.filename, source.function) != (reader.filename, reader.function):
        return False
    statement = source.statement
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [statement.target]
        if isinstance(statement, (ast.AugAssign, ast.AnnAssign))
        else [statement.value]
        if isinstance(statement, ast.Expr)
        else []
    )
    targets_named = {root_name(target) for target in targets} - {"", *MODULE_NAMES}
    read = getattr(reader.statement, "value", None)
    return read is not None and any(isinstance(child, ast.Name) and child.id in targets_named for child in ast.walk(read))


MODULE_NAMES = {"gl", "gradlab", "torch", "F", "nn", "np"}


def receiver(location: SourceLocation | None, method: str) -> str:
    """Return the source of `y` in a call `y.method()` or attribute `y.method` at a location, or ""."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    for child in ast.walk(node) if node is not None else ():
        attribute = child.func if isinstance(child, ast.Call) else child
        if isinstance(attribute, ast.Attribute) and attribute.attr == method:
            return parenthesize(attribute.value)
    return ""


def parenthesize(node: Any) -> str:
    """Return the code of an expression, in parentheses if that is necessary before `.sum()`."""
    text = source_of(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple)) else f"({text})"


def callees_in(location: SourceLocation | None) -> list[str]:
    """Return the names that a sub-expression calls, such as `model` or `self.net`, outermost first."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    calls = [child.func for child in ast.walk(node) if isinstance(child, ast.Call)] if node is not None else []
    return list(dict.fromkeys(source_of(call) for call in calls if set(map(type, ast.walk(call))) <= NAME_NODES))


NAME_NODES = {ast.Name, ast.Attribute, ast.Load}


def find_rebinding(location: SourceLocation | None, name: str) -> tuple[SourceLocation, str] | None:
    """Find an update step that rebinds `name`, such as `w = w - rate * w.grad`, in the file of a location.

    Return its location and the same step in place, `w -= rate * w.grad`. The given location is tried first.
    """
    if location is None:
        return None
    all_of = ast.walk(location.tree) if location.tree is not None else iter(())
    for statement in (location.statement, *all_of):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and (update := as_update(statement, name)):
            return replace(location, line=statement.lineno, end=statement.end_lineno or statement.lineno, start_column=-1), update
    return None


def as_update(statement: ast.Assign, name: str) -> str:
    """Return the in-place update for an assignment to `name` that reads its `.grad`, or ""."""
    target, value = statement.targets[0], statement.value
    pairs = (
        list(zip(target.elts, value.elts, strict=False))
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        else [(target, value)]
    )
    for one, new in pairs:
        if source_of(one) == name and any(
            isinstance(child, ast.Attribute) and child.attr == "grad" and source_of(child.value) == name
            for child in ast.walk(new)
        ):
            whole = isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))
            if whole and isinstance(new, ast.BinOp) and source_of(new.left) == name:
                return source_of(ast.AugAssign(one, new.op, new.right))  # type: ignore[arg-type]
            return f"{name}.copy_({source_of(new)})"
    return ""
