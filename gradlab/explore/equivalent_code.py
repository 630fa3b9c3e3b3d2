"""Equivalent code that reproduces the results of a report.

It uses the user's own names and the user's library, and needs no explorer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

FEW = 4  # names per line
MANY = 12  # leaves from which on the code zeroes gradients by the model's method


def is_code(text: str) -> bool:
    """Return whether a name is valid in code: `x`, `model.weight`, `params[0]`."""
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)


def _list_code(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


class EquivalentCode:
    """Code for one output.

    Parameters
    ----------
    alias : str
        Name of the library in code: "gl" or "torch".
    package : str
        The package imported under that name.
    out : str
        The output: a name, or an expression, which is computed first.
    weights : str
        The expression of the weights; empty for a scalar.
    """

    def __init__(self, alias: str, package: str, out: str, weights: str = "") -> None:
        self.alias, self.package, self.weights = alias, package, weights
        self.lines: list[str] = []
        self._sweeps: list[int] = []  # lines that sweep; all except the last keep the graph
        if not out.isidentifier():
            self.lines.append(f"out = {out}")
            out = "out"
        self.out = out

    def text(self) -> str:
        """Return the code, including the import."""
        lines = list(self.lines)
        for at in self._sweeps[:-1]:
            lines[at] = (
                f"{lines[at].removesuffix(')').removesuffix('(')}{'(' if lines[at].endswith('()') else ', '}retain_graph=True)"
            )
        body = "\n".join(lines)
        if f"{self.alias}." not in body:
            return body
        return f"import {self.package}{f' as {self.alias}' if self.alias != self.package else ''}\n{body}"

    def backward(self, leaves: Sequence[str], *, everything: bool, replace: bool) -> EquivalentCode:
        """Add `backward()` into the `.grad` of `leaves`. `everything`: whether these are all leaves."""
        if replace and leaves:
            models = list(dict.fromkeys(leaf.partition(".")[0].partition("[")[0] for leaf in leaves if "." in leaf))
            if everything and len(leaves) > MANY and models:
                self.lines += [f"{model}.zero_grad()" for model in models]
                leaves = [leaf for leaf in leaves if "." not in leaf]
            if leaves:
                self.lines.append(
                    " = ".join(f"{leaf}.grad" for leaf in leaves) + " = None"
                    if len(leaves) <= FEW
                    else f"for leaf in {_list_code(leaves)}:\n    leaf.grad = None"
                )
        arguments = [self.weights] if self.weights else []
        if not everything:
            arguments.append(f"inputs={_list_code(leaves)}")
        self._sweeps.append(len(self.lines))
        self.lines.append(f"{self.out}.backward({', '.join(arguments)})")
        return self

    def gradients(self, inputs: Sequence[str]) -> EquivalentCode:
        """Add `autograd.grad`, which writes no `.grad`: a tuple `gradients`."""
        if inputs:
            weights = f", {self.weights}" if self.weights else ""
            self._sweeps.append(len(self.lines))
            self.lines.append(f"gradients = {self.alias}.autograd.grad({self.out}, {_list_code(inputs)}{weights})")
        return self

    def jacobian(self, inputs: Sequence[str]) -> EquivalentCode:
        """Add the Jacobian row by row, with one weighted `autograd.grad` each: a matrix `J`."""
        gl, out = self.alias, self.out
        if inputs:
            self._sweeps.append(len(self.lines))  # earlier sweeps keep the graph, and so do the rows
            self.lines += [
                f"J = {gl}.stack([",
                f"    {gl}.cat([g.reshape(-1) for g in {gl}.autograd.grad({out}, {_list_code(inputs)}, v, retain_graph=True)])",
                f"    for v in {gl}.eye({out}.numel(), dtype={out}.dtype).reshape(-1, *{out}.shape)])",
            ]
        return self
