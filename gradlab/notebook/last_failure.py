"""With which error a cell of the notebook ended last, and whether that is still the last word.

IPython keeps the last exception that it showed, however many cells have run since. It still stands if those did nothing but look
about: import, define, load an extension, print. Any other cell may have been the cure.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from gradlab.explore.doctor.context.scene import Scene

LOOKS = frozenset(
    [
        "print",
        "display",
        "len",
        "type",
        "repr",
        "str",
        "list",
        "dict",
        "dir",
        "vars",
        "help",
        "sorted",
        "isinstance",
        "float",
        "int",
        "sum",
        "min",
        "max",
        "any",
        "all",
        "zip",
        "enumerate",
        "range",
        "run_line_magic",
        "get_ipython",
        "doctor",
        "parameters",
        "named_parameters",
        "size",
        "numel",
        "item",
        "tolist",
        "norm",
        "mean",
        "std",
    ]
)  # what may be called for that


def last_failure(shell: Any) -> tuple[BaseException | None, str]:
    """The error, if it still stands; and a sentence on one that does not."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        return None, ""
    texts = shell.user_ns.get("In") or [""]
    scene, numbers = Scene(error), _numbers(shell, texts)
    first = next((step.place for step in scene.frames if step.place.filename in numbers), None)
    at = numbers.get(first.filename) if first is not None else None
    if first is None or at is None or at >= len(texts) or first.lines[first.line - 1].strip() not in texts[at]:
        return (error, "") if first is None and _is_last(shell, error) else (None, "")
    since = [text for text in texts[at + 1 : shell.execution_count] if not only_looks(shell, text)]
    if not since:
        return error, ""
    what = f"In[{at}] ended with {type(error).__name__}; {len(since)} cell{'s' * (len(since) > 1)} ran since"
    return None, f"{what}, so that error is left out."


def _numbers(shell: Any, texts: list[str]) -> Mapping[str, int]:
    """The numbers of cells by the names of their files. Before 8 IPython did not tell: there it is by their texts."""
    told: Mapping[str, int] | None = getattr(shell.compile, "_filename_map", None)
    if told is not None:
        return told
    at = {shell.transform_cell(text).strip(): k for k, text in enumerate(texts)}
    sources = {
        name: "".join(linecache.getlines(name)).strip()
        for name in list(linecache.cache)
        if "ipykernel_" in name or "<ipython-input" in name
    }
    return {name: at[source] for name, source in sources.items() if source in at}


def _is_last(shell: Any, error: BaseException) -> bool:
    """Whether the cell before this one ended with an error that no line of a cell led to."""
    result = getattr(shell, "last_execution_result", None)
    return result is not None and error in (result.error_in_exec, result.error_before_exec)


def only_looks(shell: Any, text: str) -> bool:
    """Whether a cell computes nothing: imports, definitions, magics, and expressions that show something."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(shell.transform_cell(text))
    except (SyntaxError, ValueError):
        return True  # it did not run
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Pass)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name not in LOOKS:
                    return False
            if isinstance(node, (ast.AugAssign, ast.Delete, ast.BinOp)) and not isinstance(statement, ast.Expr):
                return False
    return True
