"""Find in a program's source where it sets requires_grad: `requires_grad=True`, `requires_grad_()`, `Parameter(…)`."""

from __future__ import annotations

import ast
from typing import Any


def requires_grad_in(value: Any) -> bool:
    """Return True if an expression creates a leaf that requires grad, or a list of such leaves."""
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(requires_grad_in(item) for item in value.elts)
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        return requires_grad_in(value.elt)
    if not isinstance(value, ast.Call):
        return False
    last = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return last in ("requires_grad_", "Parameter") or any(_is_request(keyword) for keyword in value.keywords)


def requires_grad_inside(statement: Any) -> bool:
    """Return True if an expression creates a leaf and computes with it: `randn(3, requires_grad=True) * 0.01`."""
    value = getattr(statement, "value", None)
    if value is None or requires_grad_in(value) or not isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute)):
        return False
    if isinstance(value, ast.Call) and not (
        isinstance(value.func, ast.Attribute) and any(map(requires_grad_in, ast.walk(value.func)))
    ):
        return False
    return any(requires_grad_in(node) for node in ast.walk(value) if node is not value)


def move_request_last(value: Any) -> str:
    """Return the code of an expression with requires_grad_() at its end: `(randn(3) * 0.01).requires_grad_()`."""
    return f"({ast.unparse(_RemoveRequests().visit(ast.parse(ast.unparse(value), mode='eval')))}).requires_grad_()"


class _RemoveRequests(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            return node.func.value
        node.keywords = [keyword for keyword in node.keywords if not _is_request(keyword)]
        return node


def _is_request(keyword: ast.keyword) -> bool:
    return keyword.arg == "requires_grad" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True


def find_rebound_leaf(statement: Any, name: str) -> str:
    """Return how a statement assigns to the name of a leaf a tensor computed from it, so that the leaf is lost.

    The result is "asked too early" (requires_grad was set inside the expression), "computed from itself", or "" if the name is
    not rebound in this way.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    if not isinstance(statement.targets[0], ast.Name) or statement.targets[0].id != name:
        return ""
    if requires_grad_inside(statement):
        return "asked too early"
    read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    return "computed from itself" if name in read else ""


FIX_EARLY_REQUEST = "call requires_grad_() last: `{name} = {value}`"
FIX_REBOUND_NAME = "give the result another name, or compute it before requires_grad is set, and keep `{name}` for the leaf"
