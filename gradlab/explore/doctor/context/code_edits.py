"""Advice as code: edits of the user's source, in words.

A fix that is code has one of three forms, "`new` in place of `old`", "`new` before `old`" and "`new` after `old`", where `old` is
an expression or a statement in the user's source. Pieces joined by "and" are one edit. If the place is not known, or the right
edit depends on the user's intention, a fix is a sentence. A fix that changes the value of the loss says so.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Sequence
from typing import Any

from gradlab.diagnose.user_spelling import is_module
from gradlab.explore.doctor.context.program import Program

# Added to a number that may be 0 before its root or logarithm. Above the least normal number of a dtype (IEEE 754: 6e-5 for
# float16, 1e-38 for float32 and bfloat16), far below usual values.
SMALL_NUMBERS = {"float16": "1e-4"}


def small_number(dtype: str) -> str:
    """Return the code of a small number that a dtype can represent."""
    return SMALL_NUMBERS.get(dtype, "1e-12")


def instead(new: str, old: str) -> str:
    """Return "`new` in place of `old`", or "" if one of them is empty."""
    return f"`{new}` in place of `{old}`" if new and old else ""


def before(new: str, old: str) -> str:
    """Return "`new` before `old`", or "" if one of them is empty."""
    return f"`{new}` before `{old}`" if new and old else ""


def after(new: str, old: str) -> str:
    """Return "`new` after `old`", or "" if one of them is empty."""
    return f"`{new}` after `{old}`" if new and old else ""


OLD = re.compile(r"(` (?:in place of|before|after) `)([^`]+)(?=`)")


def quote_as_written(fix: str, programs: Sequence[Program]) -> str:
    """Return a fix with the spelling of the source, `3e4 * x`, where `ast.unparse` writes `30000.0 * x`."""

    def restore(found: re.Match[str]) -> str:
        how, old = found.groups()
        if any(old in program.on_one_line for program in programs) or (tree := parse_statement(old)) is None:
            return found[0]
        own: Any = tree.value if isinstance(tree, ast.Expr) else tree
        for program in programs:
            for node in ast.walk(program.tree):
                if type(node) is type(own) and ast.unparse(node) == ast.unparse(own):
                    segment = ast.get_source_segment("\n".join(program.lines), node)
                    return how + (" ".join(segment.split()) if segment else old)
        return found[0]

    return OLD.sub(restore, fix)


def parse_expression(source: str) -> Any:
    """Return a parsed expression; None if the source is not an expression."""
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def parse_statement(source: str) -> Any:
    """Return a parsed statement; None if the source is not one statement."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def parenthesize(source: str) -> str:
    """Put an expression in parentheses unless it is a name, a call, an attribute or an item."""
    return source if isinstance(parse_expression(source), (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else f"({source})"


def argument(source: str) -> str:
    """Return the first operand of a call or an attribute: "x" of `torch.log(x)`, `x.log()`, `x.data` and `float(x)`."""
    tree = parse_expression(source)
    if isinstance(tree, ast.Attribute):
        return ast.unparse(tree.value)
    if not isinstance(tree, ast.Call):
        return ""
    if isinstance(tree.func, ast.Attribute) and not is_function(tree):
        return ast.unparse(tree.func.value)
    return ast.unparse(tree.args[0]) if tree.args else ""


def is_function(call: ast.Call) -> bool:
    """Return whether a call is of a function in a module, `torch.log(x)`, not of a method, `x.log()`."""
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    owner = ast.unparse(func.value)
    return owner in MODULES or is_module(owner)


NAMES = ("torch", "gl", "gradlab", "F", "nn", "np")
MODULES = frozenset((*NAMES, *(f"{name}nn{part}" for name in ("", "torch.", "gl.", "gradlab.") for part in ("", ".functional"))))


def replace_expression(source: str, old: str, new: str) -> str:
    """Replace each occurrence of an expression in a source; "" if there is none."""
    tree, wanted, replacement = parse_expression(source), parse_expression(old), parse_expression(new)
    if tree is None or wanted is None or replacement is None:
        return ""
    found, text = [False], ast.unparse(wanted)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if isinstance(node, ast.expr) and ast.unparse(node) == text:
                found[0] = True
                return copy.deepcopy(replacement)
            return self.generic_visit(node)

    edited = Replace().visit(tree)
    return ast.unparse(ast.fix_missing_locations(edited)) if found[0] else ""


def wrap_argument(source: str, name: str, by: Callable[[str], str]) -> str:
    """Replace the first operand of a call by code that contains it: `torch.log(p.clamp(min=1e-12))` for `torch.log(p)`.

    `name` is what the graph knows the operand by.
    """
    call, known = parse_expression(source), parse_expression(name)
    given = [ast.unparse(one) for one in call.args] if isinstance(call, ast.Call) else []
    own = ast.unparse(known) if known is not None else name
    own = own if own in given else argument(source) or name
    return replace_expression(source, own, by(parenthesize(own))) if own else ""


def flip_sign(source: str) -> str:
    """Flip the sign of a step: `w -= rate * w.grad` for `w += rate * w.grad`; "" if the statement is not a step."""
    tree = parse_statement(source)
    if isinstance(tree, ast.AugAssign) and isinstance(tree.op, (ast.Add, ast.Sub)):
        tree.op = _opposite(tree.op)
        return ast.unparse(tree)
    if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.BinOp) and isinstance(tree.value.op, (ast.Add, ast.Sub)):
        tree.value.op = _opposite(tree.value.op)
        return ast.unparse(tree)
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call) and isinstance(tree.value.func, ast.Attribute):
        other = {"add_": "sub_", "sub_": "add_"}.get(tree.value.func.attr)
        if other:
            tree.value.func.attr = other
            return ast.unparse(tree)
    return ""


def _opposite(op: ast.operator) -> ast.operator:
    return ast.Sub() if isinstance(op, ast.Add) else ast.Add()


def negate(source: str) -> str:
    """Negate the value of an assignment, of a return, or of what `backward()` is called on; "" for other statements."""
    tree = parse_statement(source)
    if isinstance(tree, (ast.Assign, ast.Return)) and tree.value is not None:
        tree.value = _opposite_value(tree.value)
    elif isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call) and isinstance(tree.value.func, ast.Attribute):
        if tree.value.func.attr != "backward":
            return ""
        tree.value.func.value = _opposite_value(tree.value.func.value)
    else:
        return ""
    return ast.unparse(ast.fix_missing_locations(tree))


def _opposite_value(value: ast.expr) -> ast.expr:
    """Return an expression without its minus, `-((a - b) ** 2).mean()` or `-1 * x`, or with one."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return value.operand
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for number, other in ((value.left, value.right), (value.right, value.left)):
            if ast.unparse(number) in ("-1", "-1.0"):
                return other
    return ast.UnaryOp(ast.USub(), value)


CLEARING_CODE = re.compile(r"zero_grad\(|\.grad\.zero_\(|\.grad\s*=\s*None")


def clear_gradient_after(update: str, source: str) -> str:
    """Return a step, `w -= rate * w.grad`, that also clears the gradient if no code in a source does.

    backward() adds to the gradient of a leaf. If the code made a new tensor in each step, it had no gradient to clear.
    """
    tree = parse_statement(update)
    if not isinstance(tree, ast.AugAssign) or CLEARING_CODE.search(source):
        return update
    gradient = f"{ast.unparse(tree.target)}.grad"
    return f"{update}; {gradient} = None" if gradient in source else update
