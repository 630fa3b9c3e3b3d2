"""Equivalent code: what a reader can run to get what the report shows.

It is written from the user's own names, in the spelling of the library at hand, and nothing in it needs an explorer.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

FEW = 4  # names on a line
MANY = 12  # leaves, from which on a model empties its gradients itself


def is_code(text: str) -> bool:
    """Whether a name can be written in code: `x`, `model.weight`, `params[0]`."""
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return False
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name)


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


class EquivalentCode:
    """Code for one output.

    Parameters
    ----------
    alias : str
        What the library is called in code: "gl" or "torch".
    package : str
        What is imported under that name.
    out : str
        The output: a name, or an expression, which is then computed first.
    weights : str
        The expression of the weights; empty for a scalar.
    """

    def __init__(self, alias: str, package: str, out: str, weights: str = "") -> None:
        self.alias, self.package, self.weights = alias, package, weights
        self.lines: list[str] = []
        self._sweeps: list[int] = []  # the lines that sweep; each but the last keeps the graph for the next
        if not out.isidentifier():
            self.lines.append(f"out = {out}")
            out = "out"
        self.out = out

    def text(self) -> str:
        """The code, with the import it needs."""
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
        """`backward()` into the `.grad` of `leaves`; `everything`: they are all the leaves that there are."""
        if replace and leaves:
            models = list(dict.fromkeys(leaf.partition(".")[0].partition("[")[0] for leaf in leaves if "." in leaf))
            if everything and len(leaves) > MANY and models:
                self.lines += [f"{model}.zero_grad()" for model in models]
                leaves = [leaf for leaf in leaves if "." not in leaf]
            if leaves:
                self.lines.append(
                    " = ".join(f"{leaf}.grad" for leaf in leaves) + " = None"
                    if len(leaves) <= FEW
                    else f"for leaf in {_listed(leaves)}:\n    leaf.grad = None"
                )
        arguments = [self.weights] if self.weights else []
        if not everything:
            arguments.append(f"inputs={_listed(leaves)}")
        self._sweeps.append(len(self.lines))
        self.lines.append(f"{self.out}.backward({', '.join(arguments)})")
        return self

    def gradients(self, inputs: Sequence[str]) -> EquivalentCode:
        """`autograd.grad`, which writes no `.grad`: a tuple `gradients`."""
        if inputs:
            weights = f", {self.weights}" if self.weights else ""
            self._sweeps.append(len(self.lines))
            self.lines.append(f"gradients = {self.alias}.autograd.grad({self.out}, {_listed(inputs)}{weights})")
        return self

    def jacobian(self, inputs: Sequence[str]) -> EquivalentCode:
        """The Jacobian row by row, one weighted `autograd.grad` each: a matrix `J`."""
        gl, out = self.alias, self.out
        if inputs:
            self._sweeps.append(len(self.lines))  # what comes before keeps the graph; the rows keep it for each other
            self.lines += [
                f"J = {gl}.stack([",
                f"    {gl}.cat([g.reshape(-1) for g in {gl}.autograd.grad({out}, {_listed(inputs)}, v, retain_graph=True)])",
                f"    for v in {gl}.eye({out}.numel(), dtype={out}.dtype).reshape(-1, *{out}.shape)])",
            ]
        return self
