"""Run a repaired training loop for a number of steps, and compare its source with the original.

For a run that raises, the function's variables show the cause.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from gradlab.core.tensor import Tensor
from gradlab.homework.excerpts import abbreviate

MOST_TEXT = 2000  # characters of an error


def use(function: Callable[..., Any], original: str, kept: list[str], runs: list[list[int]]) -> dict[str, Any]:
    """Return the result of each run (a seed, a number of steps) up to the first that raises, the number of changed lines, and
    which lines of `kept` are missing (both None without a source)."""
    runs_done: list[dict[str, Any]] = []
    for seed, steps in runs:
        runs_done.append(_run(function, seed, steps))
        if runs_done[-1]["raised"]:
            break
    lines, gone = edits(original, function, kept)
    return {"runs": runs_done, "lines": lines, "gone": gone}


def case_arguments(original: str, kept: list[str], runs: list[list[int]]) -> dict[str, int]:
    """Return the seed and the number of steps of the first run."""
    seed, steps = runs[0]
    return {"seed": seed, "steps": steps}


def edits(original: str, function: Callable[..., Any], kept: list[str]) -> tuple[int | None, list[str] | None]:
    """Count the lines of a function that were changed, added or removed, and return which of `kept` are missing.

    Indentation, comments, blank lines and the docstring do not count: a line that moves into a `with` is the same line.
    """
    try:
        before, after = _lines(original), _lines(inspect.getsource(function))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None, None
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    count = sum(max(there - here, to - of) for what, here, there, of, to in changes if what != "equal")
    return count, [line for line in kept if line not in after]


def _lines(text: str) -> list[str]:
    """Return a function's statements, a line each, as `ast.unparse` writes them, without indentation."""
    function = ast.parse(textwrap.dedent(text)).body[0]
    if not isinstance(function, ast.FunctionDef):
        raise ValueError("not a function")
    if ast.get_docstring(function) is not None:
        function.body = function.body[1:] or [ast.Pass()]
    return [line.strip() for line in ast.unparse(function).splitlines()]


def _run(function: Callable[..., Any], seed: int, steps: int) -> dict[str, Any]:
    none: dict[str, Any] = {"raised": "", "line": "", "loss": None, "weights": [], "nodes": 0, "loss_is_leaf": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            returned = function(seed, steps)
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001  (a student's code may raise anything)
            left, line = _final_variables(error.__traceback__, function)
            return none | {
                "raised": abbreviate(f"{type(error).__name__}: {error}", MOST_TEXT),
                "line": line,
                "loss_is_leaf": _loss_is_leaf(left),
            }
    if not (isinstance(returned, (tuple, list)) and len(returned) == 2):
        return none
    loss, weights = returned
    weights = list(weights) if isinstance(weights, (list, tuple)) else [weights]
    if not all(isinstance(one, Tensor) for one in (loss, *weights)) or loss.array.size != 1:
        return none
    return none | {
        "loss": float(loss.item()),
        "weights": [np.array(one.detach().cpu().array, dtype=np.float64) for one in weights],
        "nodes": count_nodes(loss),
        "loss_is_leaf": loss.is_leaf and loss.requires_grad and all(one.grad is None for one in weights),
    }


def _final_variables(trace: TracebackType | None, function: Callable[..., Any]) -> tuple[dict[str, Any], str]:
    """Return the variables of the function when it raised, and the line."""
    code, left, line = getattr(function, "__code__", None), dict[str, Any](), ""
    while trace is not None:
        if trace.tb_frame.f_code is code:
            left = dict(trace.tb_frame.f_locals)
            source = _source(function)
            at = trace.tb_lineno - trace.tb_frame.f_code.co_firstlineno
            line = source[at].strip() if at < len(source) else ""
        trace = trace.tb_next
    return left, line


def _source(function: Callable[..., Any]) -> list[str]:
    try:
        return inspect.getsource(function).splitlines()
    except (OSError, TypeError):
        return []


def _loss_is_leaf(left: dict[str, Any]) -> bool:
    """Return whether the loss is a leaf with its own gradient, so that no weight can have received one."""
    loss = left.get("loss")
    return isinstance(loss, Tensor) and loss.is_leaf and loss.requires_grad and loss.grad is not None


def count_nodes(loss: Tensor) -> int:
    """Return the number of nodes that a sweep from here visits."""
    seen, waiting = set[Any](), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return len(seen)
