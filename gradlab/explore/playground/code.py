"""Equivalent code that computes the results of the view with the library's functions."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.explore.playground.descent import OPTIMIZERS
from gradlab.explore.playground.function import Kind
from gradlab.explore.playground.inputs import Call

LONG = 64  # characters of an expression in a heading


class Code:
    """Code for one function.

    Parameters
    ----------
    kind : Kind
    call : Call
    called : str
        The name of the function in code.
    definition : str
        A line that must come first if the function has no name; else "".
    """

    def __init__(self, kind: Kind, call: Call, called: str, definition: str) -> None:
        self._kind, self._call, self._called, self._definition = kind, call, called, definition

    def gradient(self, point: np.ndarray, gradient: np.ndarray | None) -> str:
        """Return code for the gradient by backward."""
        lines = [*self._begin(point), f"{self._call.text(self._called)}.backward()"]
        names = [name for name, _ in self._call.parameters]
        if gradient is None:
            return "\n".join(
                [*self._begin(point), f"{self._call.text(self._called)}.requires_grad  # False: nothing to go back through"]
            )
        shown = ", ".join(f"{name}.grad" for name in names)
        parts = [gradient[columns] for columns in self._call.columns()]
        return "\n".join([*lines, f"{shown}  # {', '.join(_brief(part) for part in parts)}"])

    def difference(self, point: np.ndarray, k: int, h: float) -> str:
        """Return code for the central difference with respect to input number k."""
        owners = [(*parameter, j) for parameter in self._call.parameters for j in range(parameter[1] or 1)]
        name, size, j = owners[k]
        ends = []
        for sign in "+-":
            moved = f"{name} {sign} h" if size is None else f"{name} {sign} h * e"
            swapped = Call(tuple((moved if n == name else n, s) for n, s in self._call.parameters), frozenset())
            parts = [
                f"{n}={m}" if n in self._call.keyword else m
                for (n, _), (m, _) in zip(self._call.parameters, swapped.parameters, strict=True)
            ]
            ends.append(f"{self._called}({', '.join(parts)})")
        unit = [] if size is None else [f"e = {self._tensor(np.eye(size)[j], False)}"]
        return "\n".join([*self._begin(point, False), *unit, f"h = {h!r}", f"({ends[0]} - {ends[1]}) / (2 * h)"])

    def descent(self, start: np.ndarray, optimizer: str, lr: float, steps: int, end: np.ndarray | None) -> str:
        """Return code for the steps of an optimizer."""
        name, options = OPTIMIZERS[optimizer]
        names = ", ".join(n for n, _ in self._call.parameters)
        more = "".join(f", {key}={value!r}" for key, value in options.items())
        parts = [] if end is None else [end[columns] for columns in self._call.columns()]
        said = f"  # {', '.join(map(_brief, parts))}" if parts else ""
        return "\n".join(
            [
                *self._begin(start),
                f"optimizer = {self._kind.alias}.optim.{name}([{names}], lr={lr!r}{more})",
                f"for step in range({max(steps, 1)}):",
                "    optimizer.zero_grad()",
                f"    {self._call.text(self._called)}.backward()",
                "    optimizer.step()",
                f"{names}{said}",
            ]
        )

    def _begin(self, point: np.ndarray, requires_grad: bool = True) -> list[str]:
        lines = [self._definition] if self._definition else []
        for (name, _), columns in zip(self._call.parameters, self._call.columns(), strict=True):
            lines.append(f"{name} = {self._tensor(point[columns], requires_grad)}")
        return lines

    def _tensor(self, numbers: Any, requires_grad: bool) -> str:
        kind, written = self._kind, np.asarray(numbers, float).tolist()
        return (
            f"{kind.alias}.tensor({written!r}, dtype={kind.alias}.{kind.dtype}{', requires_grad=True' if requires_grad else ''})"
        )


def _brief(part: Any) -> str:
    numbers = np.asarray(part, float)
    return f"{float(numbers):.4g}" if numbers.ndim == 0 else f"[{', '.join(f'{n:.4g}' for n in numbers)}]"


def names_in_code(f: Callable[..., Any], call: Call, scopes: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    """Return the name of a function in code, the definition that the code needs first ("" if the caller has this name), and the
    heading: the expression of the function if it is short, else its call."""
    own = next(
        (n for scope in scopes for n, v in scope.items() if v is f and type(n) is str and n[:1] != "_" and n.isidentifier()), ""
    )
    parameters, body = _expression(f)
    taken = {p for p, _ in call.parameters}
    called = own if own and own not in taken else next(n for n in ("f", "g", "func", "function", "_f") if n not in taken)
    definition = (
        ""
        if own == called
        else f"{called} = {own}"
        if own
        else f"{called} = lambda {parameters}: {body}"
        if body
        else f"# {called}: your function"
    )
    heading = body if body and len(body) <= LONG else call.text(called)
    return called, definition, heading


def _expression(f: Callable[..., Any]) -> tuple[str, str]:
    """Return the parameters and the expression of a lambda, or of a function that only returns one; empty if the source is not
    available, has several lines, or there are several functions on its line."""
    try:
        source = textwrap.dedent(inspect.getsource(f))
    except (OSError, TypeError, IndentationError):
        return "", ""
    code = getattr(f, "__code__", None)
    for text in (source, f"({source.strip()})", *_cut(source)):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        functions: list[tuple[ast.arguments, ast.expr]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda) and f.__name__ == "<lambda>":
                functions.append((node.args, node.body))
            elif isinstance(node, ast.FunctionDef) and node.name == f.__name__:
                rest = node.body[1:] if ast.get_docstring(node) is not None else node.body
                if len(rest) == 1 and isinstance(rest[0], ast.Return) and rest[0].value is not None and not node.decorator_list:
                    functions.append((node.args, rest[0].value))
        names = None if code is None else list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        functions = [
            one
            for one in functions
            if names is None or [a.arg for a in (*one[0].posonlyargs, *one[0].args, *one[0].kwonlyargs)] == names
        ]
        if len(functions) == 1:
            body = ast.get_source_segment(text, functions[0][1]) or ""
            return ("", "") if "\n" in body else (ast.unparse(functions[0][0]), body)
        return "", ""
    return "", ""


def _cut(source: str) -> list[str]:
    """Return candidates for the source of a lambda in a longer call: the line from "lambda" on, shorter and shorter."""
    begin = source.find("lambda")
    if begin < 0:
        return []
    text = source[begin:].partition("\n")[0].rstrip()
    return [f"({text[:end]})" for end in range(len(text), 7, -1)]
