"""Find the cells of a notebook that train: they call backward, or a function of this or an earlier cell that calls it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

SWEEPS = ("backward",)


def without_shell(source: str) -> str:
    """Remove shell commands and magics that configure the front end from a cell."""
    source = re.sub(r"(?m)^[ \t]*[!?].*\n?", "", source)
    source = re.sub(r"(?m)^[ \t]*%(?!%)(?:matplotlib|config|load_ext|pip|conda|tensorboard)\b.*\n?", "", source)
    return re.sub(r"(?m)^.*\bset_matplotlib_formats\b.*\n?", "", source)


def training_cells(sources: Sequence[str], sweeps: Iterable[str] = SWEEPS) -> list[int]:
    """Return the numbers of the cells that train.

    Parameters
    ----------
    sources : sequence of str
        The code of each cell, "" for one that is not code.
    sweeps : iterable of str, default: ("backward",)
        Names of functions and methods that run a backward pass.

    Returns
    -------
    list of int
        The cells that call one of `sweeps`, or a function or method, defined up to there, that calls one. Calls in functions that
        the cell only defines are not counted.
    """
    # A function is listed as "train", a method as ".train", because `model.train()` does not call a function of that name.
    sweeping = {f"{dot}{name}" for name in sweeps for dot in ("", ".")}
    training = []
    for number, source in enumerate(sources):
        tree = _tree(source)
        if tree is None:
            continue
        calls = _definitions(tree)
        sweeping -= {name for name in calls if not name.startswith(".")}
        while more := {name for name, called in calls.items() if called & sweeping} - sweeping:
            sweeping |= more
        if _called_names(tree.body) & sweeping:
            training.append(number)
    return training


def _tree(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell, or None if it is not Python."""
    try:
        return ast.parse(re.sub(r"(?m)^[ \t]*[%!?].*$", "", source))
    except SyntaxError:
        return None


def _definitions(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names that each function and each method of a cell calls."""
    calls: dict[str, set[str]] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, dot = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls[f"{dot}{node.name}"] = calls.get(f"{dot}{node.name}", set()) | _called_names(node.body)
        inside = "." if isinstance(node, ast.ClassDef) else ""
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return calls


def _called_names(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that statements call, excluding calls in the functions and classes that they define."""
    called: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            called.add(node.func.id if isinstance(node.func, ast.Name) else f".{getattr(node.func, 'attr', '')}")
            # Functions passed as arguments are called by the function that receives them: `optimizer.step(closure)`.
            called |= {one.id for one in node.args if isinstance(one, ast.Name)}
        waiting += ast.iter_child_nodes(node)
    return called
