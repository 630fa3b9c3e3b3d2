"""Find the last error of a cell, and decide whether it is still current.

IPython keeps the last exception that it showed, however many cells have run since. The error is current if those cells only
inspected: imports, definitions, loading an extension, printing. Any other cell may have fixed it.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from gradlab.explore.doctor.context.scene import Scene

HARMLESS_CALLS = frozenset(
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
)  # calls that only inspect


def last_failure(shell: Any) -> tuple[BaseException | None, str]:
    """Return the error if it is current, and a sentence on one that is not."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        return None, ""
    texts = shell.user_ns.get("In") or [""]
    scene, numbers = Scene(error), _numbers(shell, texts)
    first = next((step.place for step in scene.frames if step.place.filename in numbers), None)
    at = numbers.get(first.filename) if first is not None else None
    if first is None or at is None or at >= len(texts) or first.lines[first.line - 1].strip() not in texts[at]:
        return (error, "") if first is None and _is_last(shell, error) else (None, "")
    since = [text for text in texts[at + 1 : shell.execution_count] if not only_inspects(shell, text)]
    if not since:
        return error, ""
    what = f"In[{at}] ended with {type(error).__name__}; {len(since)} cell{'s' * (len(since) > 1)} ran since"
    return None, f"{what}, so that error is left out."


def _numbers(shell: Any, texts: list[str]) -> Mapping[str, int]:
    """Return the numbers of cells by file name. IPython before 8 does not store them: there, cells are found by their source."""
    file_names: Mapping[str, int] | None = getattr(shell.compile, "_filename_map", None)
    if file_names is not None:
        return file_names
    at = {shell.transform_cell(text).strip(): k for k, text in enumerate(texts)}
    sources = {
        name: "".join(linecache.getlines(name)).strip()
        for name in list(linecache.cache)
        if "ipykernel_" in name or "<ipython-input" in name
    }
    return {name: at[source] for name, source in sources.items() if source in at}


def _is_last(shell: Any, error: BaseException) -> bool:
    """Return whether the previous cell ended with this error, if no line of a cell is in its traceback."""
    result = getattr(shell, "last_execution_result", None)
    return result is not None and error in (result.error_in_exec, result.error_before_exec)


def only_inspects(shell: Any, text: str) -> bool:
    """Return whether a cell only has imports, definitions, magics and expressions that show something."""
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
                if name not in HARMLESS_CALLS:
                    return False
            if isinstance(node, (ast.AugAssign, ast.Delete, ast.BinOp)) and not isinstance(statement, ast.Expr):
                return False
    return True
