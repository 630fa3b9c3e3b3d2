"""Which cells of a notebook train: those that call backward, or a function that does, of this cell or an earlier one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

SWEEPS = ("backward",)


def without_shell(source: str) -> str:
    """A cell without lines for a shell, and without the magics that set a front end up."""
    source = re.sub(r"(?m)^[ \t]*[!?].*\n?", "", source)
    source = re.sub(r"(?m)^[ \t]*%(?!%)(?:matplotlib|config|load_ext|pip|conda|tensorboard)\b.*\n?", "", source)
    return re.sub(r"(?m)^.*\bset_matplotlib_formats\b.*\n?", "", source)


def training_cells(sources: Sequence[str], sweeps: Iterable[str] = SWEEPS) -> list[int]:
    """Number the cells that train.

    Parameters
    ----------
    sources : sequence of str
        The code of each cell, "" for one that is not code.
    sweeps : iterable of str, default: ("backward",)
        The functions and methods that sweep.

    Returns
    -------
    list of int
        The cells in which something that runs, and is not only defined there, calls one of `sweeps`, or calls a function or a
        method that does and that was defined up to there.
    """
    # A function is known as "train", a method as ".train": `model.train()` calls no function of that name.
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
        if _called(tree.body) & sweeping:
            training.append(number)
    return training


def _tree(source: str) -> ast.Module | None:
    """None of a cell that is no Python."""
    try:
        return ast.parse(re.sub(r"(?m)^[ \t]*[%!?].*$", "", source))
    except SyntaxError:
        return None


def _definitions(tree: ast.Module) -> dict[str, set[str]]:
    """What each function and each method of a cell calls."""
    calls: dict[str, set[str]] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, dot = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls[f"{dot}{node.name}"] = calls.get(f"{dot}{node.name}", set()) | _called(node.body)
        inside = "." if isinstance(node, ast.ClassDef) else ""
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return calls


def _called(body: Sequence[ast.stmt]) -> set[str]:
    """What statements call, without the functions and classes that they only define."""
    called: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            called.add(node.func.id if isinstance(node.func, ast.Name) else f".{getattr(node.func, 'attr', '')}")
            # What is handed over is called by whom it is handed to: `optimizer.step(closure)`.
            called |= {one.id for one in node.args if isinstance(one, ast.Name)}
        waiting += ast.iter_child_nodes(node)
    return called
