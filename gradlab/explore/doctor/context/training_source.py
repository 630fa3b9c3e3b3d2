"""The statements of a training in the source: calls of backward, steps, and code that clears, clips or changes gradients."""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import CLEARING_CODE
from gradlab.explore.doctor.context.definitions import LOOPS, enclosing_statements, value_at
from gradlab.explore.doctor.context.program import SCOPES, Program, bound_names, own_statements
from gradlab.explore.names import is_optimizer
from gradlab.explore.trace.data import Line

OPTIMIZER, SCHEDULER, SCALER = "optimizer", "scheduler", "scaler"
BACKWARD, STEP, CLEAR, CLIP, CHANGE, UNSCALE = "backward", "step", "clear", "clip", "change", "unscale"
CLIPPING = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
BLOCKS = (ast.With, ast.AsyncWith)  # their statements run in the order of the text, once each
ARITHMETIC = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class Source:
    """A file that a backward call or a step came from: the cell or the script, or another file.

    Attributes
    ----------
    program : Program
    place : Line or None
        A place in the file; None for the cell or the script itself.
    caller : Line or None
        The line of the cell that led to this place.
    """

    program: Program
    place: Line | None = None
    caller: Line | None = None

    def line(self, node: ast.stmt) -> int | None:
        """Return the line of the cell of a statement, or the one that calls its function."""
        if self.place is None:
            return node.lineno
        return self.caller.line if self.caller is not None and self.caller.in_cell else None

    def place_of(self, node: ast.stmt) -> Line | None:
        """Return the place of a statement in another file; None for a statement of the cell."""
        if self.place is None:
            return None
        where = re.sub(r"\d+$", str(node.lineno), self.place.where)
        text = ast.unparse(node).partition("\n")[0]
        end = node.end_lineno or node.lineno
        return replace(self.place, where=where, line=node.lineno, end=end, columns=None, source=text, statement=text, target="")

    def quote(self, node: ast.stmt) -> str:
        """Return a statement with its line, for a sentence."""
        place = self.place_of(node)
        where = f"on line {node.lineno}" if place is None else f"at {place.where}"
        return f"`{self.text(node)}` {where}"

    def text(self, node: ast.AST) -> str:
        """Return a statement or an expression as it is written, on one line."""
        segment = ast.get_source_segment("\n".join(self.program.lines), node)
        return " ".join((segment or ast.unparse(node)).split())


def sources_of(case: Case) -> list[Source]:
    """Return the cell or the script, and the other files that backward calls, steps and updates by hand came from."""
    if case.sources is None:
        sources, trains = {"": Source(case.program)}, False
        for event in case.trace.events if case.trace is not None else ():
            trains = trains or event.kind != "write"  # leaves are initialised before
            place = event.place
            if trains and place is not None and not place.in_cell and place.file and place.file not in sources:
                sources[place.file] = Source(Program.of_file(place.file), place, event.cell)
        case.sources = [source for source in sources.values() if source.program.text]
    found: list[Source] = case.sources
    return found


def source_of(case: Case, place: Line | None) -> Source | None:
    """Return the source that a place is in."""
    if place is None:
        return None
    if place.in_cell:
        return Source(case.program)
    return next((one for one in sources_of(case) if one.place is not None and one.place.file == place.file), None)


# ---------------------------------------------------------------------------------------------------------------- objects
def role_of(case: Case, source: Source, name: str) -> str:
    """Return whether a dotted name is of an optimizer, a scheduler or a GradScaler; "" if neither value nor source shows it.

    Names in functions have no value after the run. They are known by the calls that they are bound to, if all have one role.
    """
    value = value_of(case, name)
    if value is not None:
        return _role(type(value)) if not isinstance(value, type) else ""
    values = _assigned_values(source, name) or arguments_for(case, source, name)
    roles = {_role_of_value(case, source, value) for value in values}
    return roles.pop() if len(roles) == 1 else ""


def _assigned_values(source: Source, name: str) -> list[ast.expr | None]:
    statements = [node for node in source.program.statements if isinstance(node, (ast.Assign, ast.AnnAssign))]
    return [node.value for node in statements if name in map(ast.unparse, _targets(node))]


def arguments_for(case: Case, source: Source, name: str) -> list[ast.expr | None]:
    """Return the expressions that calls in the cell and in a file pass for a parameter of the functions of the file."""
    found: list[ast.expr | None] = []
    trees = {id(program): program.tree for program in (case.program, source.program)}.values()
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for function in source.program.statements:
        names = [one.arg for one in function.args.args] if isinstance(function, ast.FunctionDef) else []
        if name not in names or not isinstance(function, ast.FunctionDef):
            continue
        for call in (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == function.name):
            given = {one.arg: one.value for one in call.keywords} | dict(zip(names, call.args, strict=False))
            found += [given[name]] if name in given else []
    return found


def value_of(case: Case, name: str) -> Any:
    """Return the value of a dotted name in the namespace; None if there is none."""
    if name in case.namespace:
        return case.namespace[name]
    first, *rest = name.split(".")
    value = case.namespace.get(first)
    for step in rest:
        value = getattr(value, "__dict__", {}).get(step)
    return value


def _targets(node: ast.stmt) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def _role(kind: type) -> str:
    names = {one.__name__ for one in kind.__mro__}
    if "Optimizer" in names:
        return OPTIMIZER
    if names & {"LRScheduler", "_LRScheduler", "ReduceLROnPlateau"}:
        return SCHEDULER
    return SCALER if "GradScaler" in names else ""


def _role_of_value(case: Case, source: Source, value: ast.expr | None) -> str:
    """Return the role of the object that an expression gives: a name, or a call of a class of the library."""
    if not isinstance(value, (ast.Name, ast.Attribute)):
        return _role_of_call(case, value)
    name = ast.unparse(value)
    known = value_of(case, name)
    roles = {_role_of_call(case, one) for one in _assigned_values(source, name)} if known is None else {_role(type(known))}
    return roles.pop() if len(roles) == 1 else ""


def _role_of_call(case: Case, call: ast.expr | None) -> str:
    """Return the role of the object that a call of a class of the library makes."""
    library = sys.modules.get(case.trace.library) if case.trace is not None else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)) or library is None:
        return ""
    name = ast.unparse(call.func).rpartition(".")[2]
    optim = getattr(library, "optim", None)
    for module in (optim, getattr(optim, "lr_scheduler", None), getattr(library, "amp", None)):
        kind = getattr(module, name, None)
        if isinstance(kind, type):
            return _role(kind)
    return ""


def optimizer_named(case: Case, whose: int) -> str:
    """Return the name of an optimizer in the namespace, or ""."""
    return next((one.name for one in case.optimizers if one.whose == whose), "")


def scheduled_optimizer(case: Case, source: Source, name: str) -> str:
    """Return the name or the first argument of the optimizer whose learning rates a scheduler sets; "" if it is not known."""
    owner = getattr(value_of(case, name), "optimizer", None)
    if owner is not None and is_optimizer(owner):
        return optimizer_named(case, id(owner))
    for node in source.program.statements:
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets) and isinstance(node.value, ast.Call):
            given = [*node.value.args[:1], *(one.value for one in node.value.keywords if one.arg == "optimizer")]
            return ast.unparse(given[0]) if given else ""
    return ""


# ------------------------------------------------------------------------------------------------------------- statements
def call_of(node: ast.stmt) -> ast.Call | None:
    """Return the call that a simple statement is, or whose value it assigns."""
    value = node.value if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign)) else None
    return value if isinstance(value, ast.Call) else None


def method_of(node: ast.stmt) -> tuple[str, str]:
    """Return the object and the method that a simple statement calls: ("opt", "step"); ("", "f") for a function."""
    call = call_of(node)
    if call is None or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return "", ""
    base, _, method = ast.unparse(call.func).rpartition(".")
    return base, method


def kind_of(case: Case, source: Source, node: ast.stmt) -> str:
    """Return what a simple statement does to gradients: one of the kinds above, or ""."""
    base, method = method_of(node)
    if method == "backward":
        return BACKWARD
    if method in CLIPPING:
        return CLIP
    if method == "unscale_":
        return UNSCALE
    if method == "step" and base:
        return STEP if role_of(case, source, base) in (OPTIMIZER, SCALER) else ""
    if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)):
        if CLEARING_CODE.search(ast.unparse(node)):
            return CLEAR
        if changes_gradient(node):
            return CHANGE
    return ""


GRADIENT = re.compile(r"\.grad(\.data)?(\[.*\])?$")


def changes_gradient(node: ast.stmt) -> bool:
    """Return whether a statement writes to a `.grad`: `p.grad *= 0`, `p.grad.clamp_(-1, 1)`, `p.grad = None`."""
    if isinstance(node, ast.AugAssign):
        return bool(GRADIENT.search(ast.unparse(node.target)))
    if isinstance(node, ast.Assign):
        return any(GRADIENT.search(ast.unparse(target)) for target in node.targets)
    base, method = method_of(node)
    return method.endswith("_") and not method.startswith("_") and bool(GRADIENT.search(base))


def clears_between(case: Case, start: Line | None, stop: Line | None) -> bool:
    """Return whether gradients are cleared between two places of one function."""
    source = source_of(case, stop)
    if source is None or start is None or stop is None or (start.file, start.function) != (stop.file, stop.function):
        return False
    between = [node for node in function_statements(source, stop.line) if start.line <= node.lineno <= stop.line]
    return any(kind_of(case, source, node) == CLEAR for node in between)


def function_statements(source: Source, line: int) -> list[ast.stmt]:
    """Return the statements of the innermost function around a line, in the order of the text."""
    return enclosing_statements(source.program, line)


def loop_body(source: Source, line: int) -> list[ast.stmt]:
    """Return the statements of the innermost loop or function around a line that run in each iteration, in the order of the text.

    A `with` block is replaced with its statements. Other compound statements are kept, because they may not run.
    """
    body: Sequence[ast.stmt] = source.program.tree.body
    while True:
        around = next((node for node in body if node.lineno <= line <= (node.end_lineno or node.lineno)), None)
        inner = _body_around(around, line) if around is not None else None
        if inner is None:
            return list(_flat(body))
        body = inner


def _body_around(node: ast.stmt, line: int) -> Sequence[ast.stmt] | None:
    """Return the body of a loop, function or class around a line, in a statement or in a block in it."""
    for _, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value or not isinstance(value[0], ast.stmt):
            continue
        if not any(one.lineno <= line <= (one.end_lineno or one.lineno) for one in value):
            continue
        if isinstance(node, (*LOOPS, *SCOPES)):
            return value
        inside = next(one for one in value if one.lineno <= line <= (one.end_lineno or one.lineno))
        return _body_around(inside, line)
    return None


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, BLOCKS):
            yield from _flat(node.body)
        else:
            yield node


def statements_inside(node: ast.stmt) -> list[ast.stmt]:
    """Return a statement and the statements in it, without those in functions."""
    return [node, *own_statements(node)] if not isinstance(node, SCOPES) else [node]


def conditions_around(statements: Sequence[ast.stmt], node: ast.stmt) -> list[ast.If]:
    """Return the `if` statements around a statement, outermost first."""
    tests = [one for one in statements if isinstance(one, ast.If) and one is not node]
    return [one for one in tests if one.lineno <= node.lineno <= (one.end_lineno or 0)]


# ---------------------------------------------------------------------------------------------------------------- numbers
def number_at(case: Case, source: Source, node: ast.expr | None, line: int) -> float | None:
    """Return the number that an expression has on a line, if constants, arithmetic and names that are bound once give it."""
    if isinstance(node, ast.Constant):
        return _plain_number(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = number_at(case, source, node.operand, line)
        return None if value is None else -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        a, b = number_at(case, source, node.left, line), number_at(case, source, node.right, line)
        try:
            return None if a is None or b is None else float(ARITHMETIC[type(node.op)](a, b))
        except (ArithmeticError, ValueError):
            return None
    if isinstance(node, ast.Call) and ast.unparse(node) in ("float('inf')", 'float("inf")'):
        return float("inf")
    if isinstance(node, ast.Name):
        found = value_at(source.program, node.id, line)
        if found is not None and found[0] is not node:
            return number_at(case, source, found[0], found[1])
        if found is None and node.id not in _bound_around(source, line) and len(source.program.assignments(node.id)) <= 1:
            return _plain_number(value_of(case, node.id))
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        bound = _bound_to_attribute(source, node.attr)
        return number_at(case, source, bound[0].value, bound[0].lineno) if len(bound) == 1 else None
    if isinstance(node, ast.Attribute):
        return _plain_number(value_of(case, ast.unparse(node)))
    return None


def _bound_to_attribute(source: Source, name: str) -> list[ast.Assign]:
    """Return the assignments to an attribute of the objects of a file, in their methods or in their class."""
    of_objects = [node for node in source.program.statements if isinstance(node, ast.Assign)]
    of_classes = {part for node in source.program.statements if isinstance(node, ast.ClassDef) for part in node.body}
    return [
        node
        for node in of_objects
        for target in node.targets
        if ast.unparse(target) == f"self.{name}" or (node in of_classes and ast.unparse(target) == name)
    ]


def _plain_number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None


def _bound_around(source: Source, line: int) -> set[str]:
    """Return the names that the innermost function around a line binds, or the program if there is none."""
    functions = [
        node
        for node in source.program.statements
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not functions:
        return {name for node in source.program.outer for name in bound_names(node)}
    names = {one.arg for one in ast.walk(functions[-1].args) if isinstance(one, ast.arg)}
    return names | {one.id for one in ast.walk(functions[-1]) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
