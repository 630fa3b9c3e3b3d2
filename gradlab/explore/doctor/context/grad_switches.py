"""The decorator, `with` block or call of `set_grad_enabled(False)` in the source that switches gradients off."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.diagnose.source_locations import SourceLocation, cells, source_of
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.program import Program, own_statements
from gradlab.explore.doctor.context.scene import MAX_FILES, known_files
from gradlab.explore.trace.data import Line

SWITCHES = ("no_grad", "inference_mode", "set_grad_enabled", "_set_grad_enabled")


@dataclass(frozen=True)
class Switch:
    """A decorator, a block or a call that switches gradients off.

    Attributes
    ----------
    node : expression
        `torch.no_grad()`
    how : str
        "decorator", "block" or "call".
    function : str
        The name of the decorated function, or of the function around the call; else "".
    holder : FunctionDef, With or statement
        The function, block or statement that it is a part of.
    """

    node: Any
    how: str
    function: str
    holder: Any

    @property
    def line(self) -> int:
        """The line of the switch in its file."""
        return int(self.node.lineno)

    @property
    def text(self) -> str:
        """Source code: "@torch.no_grad()", "with torch.no_grad():", "torch.set_grad_enabled(False)"."""
        text = source_of(self.node)
        return f"@{text}" if self.how == "decorator" else f"with {text}:" if self.how == "block" else text

    def removal_advice(self, where: str) -> str:
        """Return advice to remove the switch, as a sentence."""
        if self.how == "decorator":
            return f"Remove `{self.text}` {where}."
        if self.how == "block":
            return f"Take it out of the block `{self.text}` {where}."
        enabled = _enabling_call(self.node)
        return f"Switch them on: {instead(enabled, self.text)}." if enabled else f"Remove `{self.text}` {where}."

    @property
    def mode(self) -> str:
        """ "inference_mode" or "no_grad"."""
        return "inference_mode" if "inference_mode" in source_of(self.node) else "no_grad"


def _enabling_call(call: ast.Call) -> str:
    """Return `torch.set_grad_enabled(True)` for `torch.set_grad_enabled(False)`; "" for another call."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if len(given) != 1 or not isinstance(given[0], ast.Constant) or given[0].value is not False:
        return ""
    return source_of(copy.deepcopy(call, {id(given[0]): ast.Constant(True)}))


def switches_off(node: Any) -> bool:
    """Return whether an expression switches gradients off, as `no_grad()` does, or may do so, as `set_grad_enabled(flag)` may."""
    call = node if isinstance(node, ast.Call) else None
    name = source_of(call.func if call is not None else node).rpartition(".")[2]
    if name not in SWITCHES:
        return False
    if call is None:
        return name in ("no_grad", "inference_mode")
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if name in ("no_grad", "inference_mode"):
        return not any(isinstance(one, ast.Constant) and one.value is False for one in given)
    return bool(given) and not any(isinstance(one, ast.Constant) and one.value is True for one in given)


def enclosing_switch(tree: Any, line: int) -> Switch | None:
    """Return the innermost decorator or `with` block around a line that switches gradients off.

    None if there is none, or if an `enable_grad()` inside it is around the line too.
    """
    found: tuple[int, Switch | None] = (0, None)
    for node in ast.walk(tree):
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) if hasattr(node, "lineno") else 0
        if not start or not start <= line <= (getattr(node, "end_lineno", 0) or 0) or start < found[0]:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for one in node.decorator_list:
                if switches_off(one):
                    found = (start, Switch(one, "decorator", node.name, node))
                elif _switches_on(one):
                    found = (start, None)
        elif isinstance(node, (ast.With, ast.AsyncWith)) and (node.lineno < line or node.lineno == line == node.end_lineno):
            for item in node.items:
                if switches_off(item.context_expr):
                    found = (start, Switch(item.context_expr, "block", "", node))
                elif _switches_on(item.context_expr):
                    found = (start, None)
    return found[1]


def _switches_on(node: Any) -> bool:
    call = node.func if isinstance(node, ast.Call) else node
    name = source_of(call).rpartition(".")[2]
    on = isinstance(node, ast.Call) and any(isinstance(one, ast.Constant) and one.value is True for one in node.args)
    return name == "enable_grad" or (name == "set_grad_enabled" and on)


def switching_calls(tree: Any) -> list[Switch]:
    """Return the calls `set_grad_enabled(False)` and `no_grad().__enter__()` that are the last switch of their body."""
    found = []
    for body, function in _bodies(tree):
        last: Switch | None = None
        for statement in body:
            call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
            if not isinstance(call, ast.Call):
                continue
            if isinstance(call.func, ast.Attribute) and call.func.attr == "__enter__" and switches_off(call.func.value):
                last = Switch(call, "call", function, statement)
            elif source_of(call.func).rpartition(".")[2] in SWITCHES[2:]:
                last = Switch(call, "call", function, statement) if switches_off(call) else None
        found += [last] if last is not None else []
    return found


def last_switch(trees: Mapping[str, Any]) -> tuple[str, Switch] | None:
    """Return the file and the call that switched gradients off. Files are given newest first. None if several calls may have."""
    for file, tree in trees.items():
        found = switching_calls(tree)
        chosen = [one for one in found if not one.function] or found
        if chosen:
            return (file, chosen[0]) if len(chosen) == 1 else None
    return None


def _bodies(tree: Any, function: str = "") -> Iterator[tuple[list[Any], str]]:
    """Yield the statements of a file and of each function in it, without those of functions in these, and its name."""
    yield list(own_statements(tree)), function
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield list(own_statements(node)), node.name


# ----------------------------------------------------------------------------------------------------- one operation
def find_switch(case: Case, places: Sequence[Line | None]) -> tuple[Switch, str] | None:
    """Return the switch that turned gradients off for a computation, and its place in words; None if it is not known.

    It is a decorator or block around one of `places`, the first that has one, or around the calls of its function. Else it is
    the one call before them that switches gradients off.
    """
    for place in places:
        tree, name = _tree_of(case, place)
        found = enclosing_switch(tree, place.line) if tree is not None and place is not None else None
        if found is not None and place is not None:
            return found, f"on line {found.line}" if place.in_cell else f"at {name} line {found.line}"
    around = _switches_of_callers(case.program.tree, places[0].function) if places and places[0] is not None else []
    if len({one.line for one in around}) == 1:
        return around[0], f"on line {around[0].line}"
    own = [one for one in switching_calls(case.program.tree) if _is_before(one, places)]
    if own:
        return (own[0], f"on line {own[0].line}") if len(own) == 1 else None
    last = last_switch(dict(_other_files(case)))
    return (last[1], f"at {last[0]} line {last[1].line}") if last is not None else None


def _switches_of_callers(tree: Any, function: str) -> list[Switch]:
    """Return the blocks and decorators around the calls of a function."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    lines = [call.lineno for call in calls if source_of(call.func).rpartition(".")[2] == function]
    return [one for one in (enclosing_switch(tree, line) for line in lines) if one is not None]


def _is_before(one: Switch, places: Sequence[Line | None]) -> bool:
    """Return whether a call is before a place of the cell, or in a function."""
    lines = [place.line for place in places if place is not None and place.in_cell]
    return bool(one.function) or not lines or one.line < max(lines)


def _tree_of(case: Case, place: Line | None) -> tuple[Any, str]:
    """Return the syntax tree of the file of a place, and the name of the file; "" for the cell."""
    if place is None:
        return None, ""
    if place.in_cell:
        return case.program.tree, ""
    name = place.where.rpartition(" line ")[0]
    return next(((tree, other) for other, tree in _other_files(case) if other == name), (None, ""))


def _other_files(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield the names and syntax trees of the files of functions and classes in the namespace, and of other cells."""
    for name in list(dict.fromkeys(known_files([case.namespace])))[:MAX_FILES]:
        if is_user_file(name) and name != cells.current:
            place = SourceLocation(name, "", 1, 1, -1, -1)
            yield place.where.rpartition(" line ")[0], Program.of_file(name).tree
