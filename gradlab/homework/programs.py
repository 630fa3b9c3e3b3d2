"""A program of a few lines that runs on tensors and on a student's own values.

    program = Program("b = a + a\\nc = b + b")
    program(gl.tensor(1.0))                  # the value of its last line
    program(Value(1.0))

Its text is data: it is sent to another process and interpreted there, never executed. A line assigns an expression to a name.
Expressions have names, numbers, + - * / @ **, the transpose `.T`, and method calls with integers or None.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.MatMult: operator.matmul,
    ast.Pow: operator.pow,
}
METHODS = frozenset(("exp", "log", "sum", "mean", "std", "diagonal"))


class Program:
    """A parsed program.

    Parameters
    ----------
    text : str
        The lines.

    Attributes
    ----------
    inputs : tuple of str
        The names that no line assigns, in the order of their first use.
    names : tuple of str
        The names that the lines assign.

    Raises
    ------
    ValueError
        If a line is not such an assignment.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self._lines: list[tuple[str, ast.expr]] = []
        inputs: list[str] = []
        for line in ast.parse(self.text).body:
            if not (isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name)):
                raise ValueError(f"{ast.unparse(line)!r}: a line of a program must assign to a name.")
            _validate(line.value)
            used = sorted((n for n in ast.walk(line.value) if isinstance(n, ast.Name)), key=lambda n: n.col_offset)
            assigned = [name for name, _ in self._lines]
            inputs += [n.id for n in used if n.id not in assigned and n.id not in inputs]
            self._lines.append((line.targets[0].id, line.value))
        if not self._lines:
            raise ValueError("a program must have at least one line.")
        self.inputs, self.names = tuple(dict.fromkeys(inputs)), tuple(name for name, _ in self._lines)

    def __call__(self, *inputs: Any) -> Any:
        """Return the value of the last line for these inputs."""
        if len(inputs) != len(self.inputs):
            raise TypeError(f"this program takes {', '.join(self.inputs)}, got {len(inputs)} inputs.")
        return self.run(dict(zip(self.inputs, inputs, strict=True)))[self.names[-1]]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of each line, by name."""
        space = dict(inputs)
        for name, what in self._lines:
            space[name] = _evaluate(what, space)
        return {name: space[name] for name in self.names}

    def __repr__(self) -> str:
        return f"<{', '.join(self.inputs)}: {'; '.join(self.text.splitlines())}>"


def _validate(what: ast.expr) -> None:
    """Raise an error for an unknown operation, before anything is computed."""
    inner: list[ast.expr] = []
    match what:
        case ast.Name() | ast.Constant(value=int() | float()):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=one) | ast.Attribute(value=one, attr="T"):
            inner = [one]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            inner = [left, right]
        case ast.Call(func=ast.Attribute(value=one, attr=method), args=args, keywords=[]) if method in METHODS and all(
            isinstance(arg, ast.Constant) and isinstance(arg.value, (int, type(None))) for arg in args
        ):
            inner = [one]
        case _:
            raise ValueError(f"{ast.unparse(what)!r} is not allowed in a program.")
    for one in inner:
        _validate(one)


def _evaluate(what: ast.expr, space: Mapping[str, Any]) -> Any:
    match what:
        case ast.Name(id=name):
            return space[name]
        case ast.Constant(value=number):
            return number
        case ast.UnaryOp(operand=inner):
            return -_evaluate(inner, space)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATIONS[type(op)](_evaluate(left, space), _evaluate(right, space))
        case ast.Attribute(value=inner):
            return _evaluate(inner, space).T
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=args):
            return getattr(_evaluate(inner, space), method)(*(ast.literal_eval(arg) for arg in args))
    raise AssertionError(what)
