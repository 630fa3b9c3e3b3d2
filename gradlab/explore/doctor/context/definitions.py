"""The statements of this cell or an earlier one that bind the name of a tensor or a module."""

from __future__ import annotations

import ast

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.program import Program, bound_names, own_statements

LOOPS = (ast.For, ast.AsyncFor, ast.While)


def find_definition(case: Case, name: str) -> ast.stmt | None:
    """Return the statement that assigns to a plain name.

    None if the statement is in a function or a loop, or if another statement of its cell binds the name: code after it would
    not run exactly once.
    """
    if not name.isidentifier() or name not in case.namespace:
        return None
    program = program_of(case, name)
    found = program.assignments(name) if program is not None else []
    once = len(found) == 1 and isinstance(found[0], ast.Assign)
    return found[0] if program is not None and once and found[0] not in _in_loops(program) else None


def program_of(case: Case, name: str) -> Program | None:
    """Return the newest cell that binds a plain name."""
    return next((program for program in case.programs if program.assignments(name)), None)


def find_attribute_definition(case: Case, path: str) -> ast.stmt | None:
    """Return the statement `self.w = …` that creates the parameter `net.w`, if the class of `net` has one such statement."""
    owner, _, last = path.rpartition(".")
    for program in case.programs:
        assignments = [node for node in program.statements if isinstance(node, ast.Assign)]
        found = [node for node in assignments if f"self.{last}" in map(ast.unparse, node.targets)]
        found = [node for node in found if enclosing_class(program, node) == module_class(case, owner)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def module_class(case: Case, path: str) -> str | None:
    """Return the name of the class of a module by its path, "net" or "net.layers[0]"; None for other paths."""
    first, *rest = path.replace("[", ".").replace("]", "").split(".")
    module = case.models.get(first)
    for step in rest:
        module = dict(module.named_children()).get(step) if module is not None else None
    return None if module is None else type(module).__name__


def enclosing_class(program: Program, statement: ast.stmt) -> str:
    """Return the name of the innermost class around a statement; "" outside classes."""
    around = [
        node
        for node in program.statements
        if isinstance(node, ast.ClassDef) and node.lineno <= statement.lineno <= (node.end_lineno or 0)
    ]
    return around[-1].name if around else ""


def find_calls(case: Case, name: str) -> list[ast.Call]:
    """Return all calls in the cell that ran and in the cell that binds a plain name."""
    several = {id(program): program for program in (case.program, program_of(case, name)) if program is not None}
    return [node for program in several.values() for node in ast.walk(program.tree) if isinstance(node, ast.Call)]


def _in_loops(program: Program) -> set[ast.stmt]:
    inside: set[ast.stmt] = set()
    for loop in program.statements:
        if isinstance(loop, LOOPS):
            inside |= {node for node in ast.walk(loop) if isinstance(node, ast.stmt)}
    return inside


def enclosing_statements(program: Program, line: int) -> list[ast.stmt]:
    """Return the statements of the innermost function around a line, or all outside functions, in the order of the text."""
    around: list[ast.AST] = [
        node
        for node in ast.walk(program.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    body: ast.AST = max(around, key=lambda node: getattr(node, "lineno", 0)) if around else program.tree
    return sorted(own_statements(body), key=lambda node: (node.lineno, node.col_offset))


def value_at(program: Program, name: str, line: int) -> tuple[ast.expr, int] | None:
    """Return the expression that gives a name its value on a line of the cell, and the line of that expression's statement.

    None if the expression may have another value there: the name is bound twice, below the line or in a tuple, or a name in
    the expression is bound in between.
    """
    own = enclosing_statements(program, line)
    binding = [node for node in own if name in bound_names(node)]
    if len(binding) != 1 or not isinstance(binding[0], ast.Assign) or binding[0].lineno > line:
        return None
    definition = binding[0]
    if len(definition.targets) != 1 or not isinstance(definition.targets[0], ast.Name):
        return None
    value, start = definition.value, definition.lineno
    return (value, start) if is_same_at(own, value, start, line) else None


def is_same_at(own: list[ast.stmt], value: ast.expr, start: int, line: int) -> bool:
    """Return whether an expression has the same value on a later line: no name in it is bound from its own statement on."""
    read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return not any(read & bound_names(node) for node in own if start <= node.lineno <= line)
