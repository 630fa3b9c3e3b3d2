"""From a site to what a reader sees: the file, the line, the very sub-expression, and the statement around it.

A code object knows for each instruction which characters of the source it was compiled from (`co_positions`); the source comes
from `linecache`, where IPython puts its cells too. All of it happens when an error is worded, never while a program runs. The
statement is parsed to say what to write instead; what cannot be found or parsed is left out of the message.
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

from gradlab.core.fresh_thread import LOCALS
from gradlab.core.tensor import Tensor

WIDTH = 64  # characters of source that are quoted
CELL = re.compile(r"<ipython-input-(\d+)-\w+>$|.*ipykernel_\d+[/\\]\d+\.py$")
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete, ast.Raise)
LARGEST = 2_000_000  # characters of a file that is still parsed


class RunningCell(threading.local):
    """The `%%grad` cell that this thread runs: a front end may run cells in several threads at once. A script that is looked at
    is a cell, too."""

    current: str | None = None  # its file
    called: str = "the cell"  # "train.py" of a script
    header: str = ""  # its first line, as the user wrote it


class Notebook:
    """What a notebook tells of its cells while the extension is loaded: their numbers by the names of their files, the names that
    they share, and the error with which the last cell ended. If other cells have run since, a sentence says so in its place."""

    def __init__(self) -> None:
        self.numbers: Mapping[str, Any] = {}
        self.namespace: Mapping[str, Any] = {}
        self.failed: Callable[[], tuple[BaseException | None, str]] | None = None


cells, notebook = RunningCell(), Notebook()
LOCALS.append(cells)


@dataclass(frozen=True)
class SourceLocation:
    """A site, looked up. Lines count from 1, columns are offsets in UTF-8, as Python's are."""

    filename: str
    function: str
    line: int
    end: int
    start_column: int
    end_column: int

    @property
    def where(self) -> str:
        """ "cell line 3", "train.py line 3"."""
        if self.filename.startswith("<%grad"):
            return "%grad"
        if cell := CELL.match(self.filename):
            number = None if self.filename == cells.current else notebook.numbers.get(self.filename, cell[1])
            return f"cell {'' if number is None else f'In[{number}] '}line {self.line}"
        if self.filename.startswith("<"):
            return f"{self.filename} line {self.line}"
        return f"{PurePath(self.filename).name} line {self.line}"

    @property
    def short(self) -> str:
        """ "line 3"; "that line" of what has but one, "In[4] line 3" of another cell."""
        return (
            "that line"
            if self.filename.startswith("<%grad")
            else self.where[self.where.index(" ") + 1 :]
            if CELL.match(self.filename)
            else f"line {self.line}"
        )

    @cached_property
    def lines(self) -> list[str]:
        """The source of the file."""
        return linecache.getlines(self.filename)

    @cached_property
    def expression(self) -> str:
        """The source of the very sub-expression on one line; "" if it is not known."""
        if not self.lines[self.line - 1 : self.end] or self.start_column < 0:
            return ""
        rows = [row.encode() for row in self.lines[self.line - 1 : self.end]]
        rows[-1] = rows[-1][: self.end_column]
        rows[0] = rows[0][self.start_column :]
        return " ".join(b" ".join(rows).decode(errors="replace").split())

    @cached_property
    def statement(self) -> Any:
        """The innermost simple statement around the place, parsed; None if there is no such thing."""
        innermost = None
        for node in ast.walk(self.tree) if self.tree is not None else ():
            if isinstance(node, SIMPLE) and node.lineno <= self.line and (node.end_lineno or 0) >= self.end:
                inside = self.start_column < 0 or (node.lineno, node.col_offset) <= (self.line, self.start_column)
                if inside and (innermost is None or (node.lineno, node.col_offset) >= (innermost.lineno, innermost.col_offset)):
                    innermost = node
        return innermost

    @cached_property
    def tree(self) -> Any:
        """The file, parsed."""
        source = "".join(self.lines)
        if not source or len(source) > LARGEST:
            return None
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def node(self) -> Any:
        """The sub-expression, parsed; None if it is not known."""
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
        """The statement on one line, or the line."""
        if self.statement is not None:
            rows = [row.encode() for row in self.lines[self.statement.lineno - 1 : self.statement.end_lineno]]
            rows[-1] = rows[-1][: self.statement.end_col_offset]
            rows[0] = rows[0][self.statement.col_offset :]
            return " ".join(b" ".join(rows).decode(errors="replace").split())
        return self.lines[self.line - 1].strip() if len(self.lines) >= self.line else ""

    def quoted(self, whole: bool = False) -> str:
        """ "cell line 3: `y = x.exp()`", with the sub-expression before it where that is a small part of it, unless `whole`."""
        text, part = self.text, self.expression
        if not text:
            return f"{self.where}, in {self.function}"
        is_all = part == text or self.node is getattr(self.statement, "value", self) or isinstance(self.statement, ast.AugAssign)
        if part and part in text and not whole and not is_all:
            return f"{self.where}, `{clipped(part)}` in `{clipped(text, part)}`"
        return f"{self.where}: `{clipped(text)}`"


class Positions(threading.local):
    """The positions of the code that was asked for last: the nodes of a graph come from few."""

    code: Any = None
    found: list[Any] = []  # noqa: RUF012  (replaced, never changed)


positions = Positions()


def location_of(site: Any) -> SourceLocation | None:
    """A site looked up; None of none."""
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


def quoted(site: Any) -> str:
    """A site in words; "" of none."""
    location = location_of(site)
    return "" if location is None else location.quoted()


def clipped(text: str, around: str = "") -> str:
    """Source of at most so many characters, those around a part of it."""
    text = text.replace("`", "'")
    if len(text) <= WIDTH:
        return text
    at = max(text.find(around), 0) if around else 0
    start = max(0, min(at - 8, len(text) - WIDTH))
    return ("…" if start else "") + text[start : start + WIDTH] + ("…" if start + WIDTH < len(text) else "")


def root_name(node: Any) -> str:
    """`y` of `y[0].diagonal()`; "" where there is no name at the root."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def source_of(node: Any) -> str:
    """The code of a parsed expression, on one line."""
    return " ".join(ast.unparse(node).split())


def operands(location: SourceLocation | None, names: list[str]) -> dict[str, str]:
    """What the source calls the arguments of an operation, where it is written with a sign: {"input": "a", "other": "b"}."""
    node = None if location is None else location.node
    if isinstance(node, ast.BinOp) and len(names) == 2:
        return dict(zip(names, (source_of(node.left), source_of(node.right)), strict=True))
    if isinstance(node, ast.BinOp) and len(names) == 1:
        return {names[0]: source_of(node.left)}
    if isinstance(node, ast.UnaryOp) and len(names) == 1:
        return {names[0]: source_of(node.operand)}
    return {}


def names_in(location: SourceLocation | None) -> list[str]:
    """The variables that a sub-expression reads, `w` or `self.w`, as they stand; what is called, and modules, left out."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    return [] if node is None else list(dict.fromkeys(variables(node)))


def variables(node: Any) -> Iterator[str]:
    """The same for a parsed expression, with repetitions."""
    if isinstance(node, ast.Name):
        if node.id not in MODULES:
            yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)) and not hasattr(Tensor, node.attr):
        if root_name(node) not in MODULES:
            yield source_of(node)
    else:
        called = node.func if isinstance(node, ast.Call) else None
        for child in ast.iter_child_nodes(node):
            if child is not called:
                yield from variables(child)
            elif isinstance(called, ast.Attribute):
                yield from variables(called.value) if hasattr(Tensor, called.attr) else ()


def hands_on(source: SourceLocation | None, reader: SourceLocation | None) -> bool:
    """Whether a statement assigns to a name, or appends to what has a name, that another statement of the same code reads."""
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
    targets_named = {root_name(target) for target in targets} - {"", *MODULES}
    read = getattr(reader.statement, "value", None)
    return read is not None and any(isinstance(child, ast.Name) and child.id in targets_named for child in ast.walk(read))


MODULES = {"gl", "gradlab", "torch", "F", "nn", "np"}


def receiver(location: SourceLocation | None, method: str) -> str:
    """`y` of `y.backward()`, if that is what stands there."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    for child in ast.walk(node) if node is not None else ():
        attribute = child.func if isinstance(child, ast.Call) else child
        if isinstance(attribute, ast.Attribute) and attribute.attr == method:
            return before_a_dot(attribute.value)
    return ""


def before_a_dot(node: Any) -> str:
    """The code of an expression such that `.sum()` can stand behind it."""
    text = source_of(node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple)) else f"({text})"


def called_in(location: SourceLocation | None) -> list[str]:
    """What a sub-expression calls, `model` or `self.net`, outermost first."""
    node = None if location is None else location.node or getattr(location.statement, "value", None)
    calls = [child.func for child in ast.walk(node) if isinstance(child, ast.Call)] if node is not None else []
    return list(dict.fromkeys(source_of(call) for call in calls if set(map(type, ast.walk(call))) <= NAMING))


NAMING = {ast.Name, ast.Attribute, ast.Load}


def rebinding(location: SourceLocation | None, name: str) -> tuple[SourceLocation, str] | None:
    """Where the file of a place binds `name` anew by a step, `w = w - rate * w.grad`, and that as an update of the very `w`:
    `w -= rate * w.grad`. The place itself is looked at first."""
    if location is None:
        return None
    all_of = ast.walk(location.tree) if location.tree is not None else iter(())
    for statement in (location.statement, *all_of):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and (update := as_update(statement, name)):
            return replace(location, line=statement.lineno, end=statement.end_lineno or statement.lineno, start_column=-1), update
    return None


def as_update(statement: ast.Assign, name: str) -> str:
    """The update that an assignment to `name` with its own `.grad` in it is; "" of another."""
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
