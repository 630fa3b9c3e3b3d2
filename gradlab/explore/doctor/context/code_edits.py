"""Advice as code that can be typed: what to write in place of what stands there, or before it.

A fix that is code has one of three forms, "`new` in place of `old`", "`new` before `old`" and "`new` after `old`", where `old` is
an expression or a statement of the user's as written in the source. Pieces joined by "and" are one change. Where a place is not
known, or what is right depends on what was meant, advice is a sentence. A fix after which the loss has another value says so.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Sequence
from typing import Any

from gradlab.explore.doctor.context.program import Program

# What is added to a number that may be 0 before its root or its logarithm is taken, by dtype: above the least normal number
# (IEEE 754: 6e-5 of float16, 1e-38 of float32 and bfloat16), far below what is usually there.
SMALL = {"float16": "1e-4"}


def small(dtype: str) -> str:
    """A small number that a dtype can hold."""
    return SMALL.get(dtype, "1e-12")


def instead(new: str, old: str) -> str:
    """ "`new` in place of `old`"; "" if one of them is not known."""
    return f"`{new}` in place of `{old}`" if new and old else ""


def before(new: str, old: str) -> str:
    """ "`new` before `old`"; "" if one of them is not known."""
    return f"`{new}` before `{old}`" if new and old else ""


def after(new: str, old: str) -> str:
    """ "`new` after `old`"; "" if one of them is not known."""
    return f"`{new}` after `{old}`" if new and old else ""


OLD = re.compile(r"(` (?:in place of|before|after) `)([^`]+)(?=`)")


def as_written(fix: str, programs: Sequence[Program]) -> str:
    """A fix that quotes the source as it is written: `3e4 * x`, where Python would write `30000.0 * x`."""

    def written(found: re.Match[str]) -> str:
        how, old = found.groups()
        if any(old in program.on_one_line for program in programs) or (tree := statement(old)) is None:
            return found[0]
        own: Any = tree.value if isinstance(tree, ast.Expr) else tree
        for program in programs:
            for node in ast.walk(program.tree):
                if type(node) is type(own) and ast.unparse(node) == ast.unparse(own):
                    segment = ast.get_source_segment("\n".join(program.lines), node)
                    return how + (" ".join(segment.split()) if segment else old)
        return found[0]

    return OLD.sub(written, fix)


def expression(source: str) -> Any:
    """A parsed expression; None of what is none."""
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def statement(source: str) -> Any:
    """A parsed statement; None of what is none, or more than one."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def grouped(source: str) -> str:
    """An expression that may be followed by a dot or stand beside a sign: in brackets unless it is a name, a call or an item."""
    return source if isinstance(expression(source), (ast.Name, ast.Call, ast.Attribute, ast.Subscript)) else f"({source})"


def argument(source: str) -> str:
    """What a call, a method's call or an attribute is of: "x" of `torch.log(x)`, `x.log()`, `x.data` and `float(x)`."""
    tree = expression(source)
    if isinstance(tree, ast.Attribute):
        return ast.unparse(tree.value)
    if not isinstance(tree, ast.Call):
        return ""
    if isinstance(tree.func, ast.Attribute) and not is_function(tree):
        return ast.unparse(tree.func.value)
    return ast.unparse(tree.args[0]) if tree.args else ""


def is_function(call: ast.Call) -> bool:
    """Whether it is a function of a module, `torch.log(x)`, and no method, `x.log()`."""
    func = call.func
    return isinstance(func, ast.Attribute) and ast.unparse(func.value) in MODULES


NAMES = ("torch", "gl", "gradlab", "F", "nn", "np")
MODULES = frozenset((*NAMES, *(f"{name}nn{part}" for name in ("", "torch.", "gl.", "gradlab.") for part in ("", ".functional"))))


def replaced(source: str, old: str, new: str) -> str:
    """A source in which an expression stands in place of each that reads as `old`; "" if there is none."""
    tree, wanted, replacement = expression(source), expression(old), expression(new)
    if tree is None or wanted is None or replacement is None:
        return ""
    seen, text = [False], ast.unparse(wanted)

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            if isinstance(node, ast.expr) and ast.unparse(node) == text:
                seen[0] = True
                return copy.deepcopy(replacement)
            return self.generic_visit(node)

    done = Replace().visit(tree)
    return ast.unparse(ast.fix_missing_locations(done)) if seen[0] else ""


def protected(source: str, name: str, by: Callable[[str], str]) -> str:
    """A call in which what it is given is replaced: `torch.log(p.clamp(min=1e-12))` of `torch.log(p)`."""
    own = argument(source) or name
    return replaced(source, own, by(grouped(own))) if own else ""


def turned(source: str) -> str:
    """A step with its sign turned round: `w -= rate * w.grad` of `w += rate * w.grad`; "" where no sign is seen."""
    tree = statement(source)
    if isinstance(tree, ast.AugAssign) and isinstance(tree.op, (ast.Add, ast.Sub)):
        tree.op = _other(tree.op)
        return ast.unparse(tree)
    if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.BinOp) and isinstance(tree.value.op, (ast.Add, ast.Sub)):
        tree.value.op = _other(tree.value.op)
        return ast.unparse(tree)
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call) and isinstance(tree.value.func, ast.Attribute):
        other = {"add_": "sub_", "sub_": "add_"}.get(tree.value.func.attr)
        if other:
            tree.value.func.attr = other
            return ast.unparse(tree)
    return ""


def _other(op: ast.operator) -> ast.operator:
    return ast.Sub() if isinstance(op, ast.Add) else ast.Add()


def negated(source: str) -> str:
    """An assignment of the number with the other sign."""
    tree = statement(source)
    if not isinstance(tree, ast.Assign):
        return ""
    value = tree.value
    for node in ast.walk(value):  # -((a - b) ** 2).mean(): the minus is the outermost or stands before a product
        if node is value and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            tree.value = node.operand
            return ast.unparse(tree)
    tree.value = ast.UnaryOp(ast.USub(), value)
    return ast.unparse(ast.fix_missing_locations(tree))


CLEARS = re.compile(r"zero_grad\(|\.grad\.zero_\(|\.grad\s*=\s*None")


def cleared(update: str, source: str) -> str:
    """A step by hand, `w -= rate * w.grad`, that clears the gradient where nothing in a source does: a new tensor had none, and
    backward() adds to that of the leaf."""
    tree = statement(update)
    if not isinstance(tree, ast.AugAssign) or CLEARS.search(source):
        return update
    gradient = f"{ast.unparse(tree.target)}.grad"
    return f"{update}; {gradient} = None" if gradient in source else update
