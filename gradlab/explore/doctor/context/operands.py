"""The arguments of an operation in the user's source."""

from __future__ import annotations

import ast
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.explore.doctor.context.code_edits import instead, parenthesize, parse_expression, parse_statement
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.trace.lines import operands_of

# Functions whose name is not that of the operation they record.
SYNONYMS = {"Sub": ("subtract",), "Mul": ("multiply",), "Div": ("divide", "true_divide"), "Mm": ("matmul",), "Bmm": ("matmul",)}


def argument_text(flow: Flow, i: int, argument: int) -> str:
    """Return the source of one argument of the operation at node `i`; "" if the source does not show it.

    Parameters
    ----------
    argument : int
        0 for the left side, the receiver of a method or `input`; 1 for the right side, `other` or `target`.
    """
    place = flow.nodes[i].place
    node = _arguments(flow, i).get(argument)
    return "" if place is None or node is None else ast.get_source_segment(place.source, node) or ""


def replace_argument(flow: Flow, i: int, argument: int, method: str) -> str:
    """Return advice to call a method of an argument of the operation at node `i`: "`x.squeeze(1)` in place of `x`".

    The whole operation is printed if the argument occurs more than once in its statement, and "" if the source does not show it
    or belongs to an installed package.
    """
    place, node = flow.nodes[i].place, _arguments(flow, i).get(argument)
    if place is None or node is None or not is_user_file(place.file):
        return ""
    text = ast.get_source_segment(place.source, node) or ast.unparse(node)
    whole = parse_statement(place.statement)
    occurrences = [one for one in ast.walk(whole or node) if isinstance(one, ast.expr) and ast.unparse(one) == ast.unparse(node)]
    if len(occurrences) == 1 or not place.source:
        return instead(f"{parenthesize(text)}.{method}", text)
    start = _offset(place.source, node.lineno, node.col_offset)
    new = place.source[:start] + f"{parenthesize(text)}.{method}" + place.source[start + len(text) :]
    return instead(new, place.source)


def _offset(source: str, line: int, column: int) -> int:
    """Return where a node begins in a source, in characters."""
    rows = source.splitlines(keepends=True)
    return sum(map(len, rows[: line - 1])) + len(rows[line - 1].encode()[:column].decode(errors="replace"))


def _arguments(flow: Flow, i: int) -> dict[int, Any]:
    """Return the parsed arguments of the operation at node `i`, by position."""
    place = flow.nodes[i].place
    tree = None if place is None else parse_expression(place.source) or parse_statement(place.source)
    if isinstance(tree, ast.Call) and (not _is_call_of(flow, i, tree) or any(isinstance(one, ast.Starred) for one in tree.args)):
        return {}
    return dict(enumerate(operands_of(tree)))


def is_loss(call: ast.Call) -> bool:
    """Return whether a call computes a loss, by its name: `F.mse_loss(…)`, `self.criterion(…)`, `nn.MSELoss()(…)`."""
    name = ast.unparse(call.func).rpartition(".")[2] if not isinstance(call.func, ast.Call) else ast.unparse(call.func.func)
    return any(word in name.lower() for word in ("loss", "criterion", "crit", "cross_entropy", "kl_div"))


def is_written(flow: Flow, i: int) -> bool:
    """Return whether the program computes a node by an operator or by a function of its name, not in a library's function."""
    place = flow.nodes[i].place
    tree = parse_expression(place.source) if place is not None else None
    if isinstance(tree, ast.BinOp):
        return True
    function = tree.func if isinstance(tree, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name.rstrip("_").removeprefix("arc").lower() in (flow.ops[i].lower(), flow.ops[i].lower().removeprefix("a"))


def _is_call_of(flow: Flow, i: int, call: ast.Call) -> bool:
    """Return whether the arguments of a call are the arguments of the operation at node `i`, not of a function around it."""
    word = flow.ops[i]
    if flow.nodes[i].module:
        return "Loss" in flow.kinds.get(flow.nodes[i].module, "") or is_loss(call)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    known = {word.lower(), flow.properties[i].short_name, *SYNONYMS.get(word, ())}
    return name.rstrip("_") in known or is_loss(call)
