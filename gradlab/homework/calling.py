"""Call a student's function in the process of the student's code. The request and the outcome are plain data.

`perform` runs in the notebook's kernel (`%check`), or in the process that runs a submission (see `homework.grading`). It creates
the arguments, sets a time limit, watches for forbidden functions, checks afterwards whether the arguments were modified, and
converts the result to numbers, text and lists of these. It returns an outcome whatever the student's code returns or raises.

A request has these keys:

- "name": the function
- "args": for each {"f": number of a Probe}, {"tensor", "requires_grad", "grad"} or {"data": plain data}
- "way": how it is used: a module of `homework.ways`, "" to call it on the arguments, "value" to return it
- "forbidden": paths of the library
- "given": functions of the notebook that the library's own replace
- "seconds": the time limit
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradlab.autograd.functional_helpers import jacobian_columns, jacobian_rows
from gradlab.autograd.functions import grad
from gradlab.backend.streams import get_states, restore_states
from gradlab.core.fixes import fix_setting
from gradlab.core.modes import enable_grad, mode
from gradlab.core.tensor import Tensor, constant
from gradlab.homework import references, ways
from gradlab.homework.excerpts import abbreviate
from gradlab.homework.forbidden import ForbiddenCalls
from gradlab.homework.probes import Ask, ProbedFunction
from gradlab.homework.time_limits import TimeUp, time_limit
from gradlab.homework.verdicts import Other, describe

DEEPEST, LONGEST, MOST_TEXT, MOST_CODE = 4, 1000, 4000, 200  # of nested lists, a list, a text, a line of code
Outcome = dict[str, Any]


def perform(namespace: dict[str, Any], request: dict[str, Any], ask: Ask) -> Outcome:
    """Call the student's function. Return {"end": "value", "value": …, "changed": […]}, or how else the call ended."""
    name = request["name"]
    if name not in namespace:
        return {"end": "missing"}
    function, way = namespace[name], request.get("way", "")
    if way == "value":
        return {"end": "value", "value": plain(function), "changed": []}
    if not callable(function):
        return {"end": "no function", "words": describe(function)}
    args = [_argument(one, ask) for one in request["args"]]
    use = ways.get_way(way) if way else None
    guards = [_take_snapshot(one) for one in args]
    watch, before, state, shown = ForbiddenCalls(request["forbidden"]), mode.grad, get_states(), fix_setting.shown
    own = {key: watch.exempt(REFERENCES[which]) for key, which in request["given"].items()}
    try:
        with _substitute(namespace, own):
            try:
                fix_setting.shown = False
                with time_limit(request["seconds"]), watch.watching():
                    value = function(*args) if use is None else use(function, *args)
            finally:
                fix_setting.shown = shown
                mode.grad = before
                restore_states(state)
        outcome = {"end": "value", "value": plain(value)}
    except TimeUp:
        outcome = {"end": "time"}
    except BaseException as error:  # noqa: BLE001  (a student's code may raise anything, even SystemExit)
        outcome = _describe_exception(error, function)
    if watch.used is not None:
        return {"end": "borrowed", "used": list(watch.used)}
    return outcome | {"changed": [what for arg, seen in zip(args, guards, strict=True) if (what := _find_change(arg, seen))]}


# ----------------------------------------------------------------------------------------------------------- arguments
def _argument(one: dict[str, Any], ask: Ask) -> Any:
    return ProbedFunction(one["f"], ask) if "f" in one else one["data"] if "data" in one else _tensor(one)


def _tensor(one: dict[str, Any]) -> Tensor:
    tensor = constant(one["tensor"].copy())
    if one["requires_grad"]:
        tensor.requires_grad_()
    if one["grad"] is not None:
        tensor.grad = constant(one["grad"].copy())
    return tensor


def _take_snapshot(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return None
    return x.array.copy(), x.requires_grad, x.grad, None if x.grad is None else x.grad.array.copy(), x._version


def _find_change(x: Any, seen: Any) -> str:
    """Return the modified part of an argument, in words, or ""."""
    if seen is None:
        return ""
    array, wanted, grad, of_grad, version = seen
    try:
        if x.array.shape != array.shape or x.array.dtype != array.dtype or not np.array_equal(x.array, array, equal_nan=True):
            return "its values"
        if x.grad is not grad or (grad is not None and not np.array_equal(grad.array, of_grad, equal_nan=True)):
            return "its `.grad`"
        if x.requires_grad != wanted:
            return "its `requires_grad`"
        return "written to" if x._version != version else ""
    except Exception:  # noqa: BLE001  (the student's code may have replaced any attribute)
        return "its values"


@contextmanager
def _substitute(namespace: dict[str, Any], own: dict[str, Any]) -> Iterator[None]:
    missing = object()
    kept = {key: namespace.get(key, missing) for key in own}
    namespace.update(own)
    try:
        yield
    finally:
        for key, value in kept.items():
            if value is missing:
                namespace.pop(key, None)
            else:
                namespace[key] = value


def _jacobian(f: Callable[[Tensor], Tensor], x: Tensor, by_rows: bool) -> Tensor:
    with enable_grad():
        at = constant(np.array(x.detach().array)).requires_grad_()
        y = f(at)
        matrix = (
            jacobian_rows(y, [at], traced=False, at_once=1)[0] if by_rows else jacobian_columns([y], [at], traced=False)[0][0]
        )
    assert matrix is not None
    return matrix.reshape((y.array.size, at.array.size))


def _hessian_product(f: Callable[[Tensor], Tensor], x: Tensor, u: Tensor) -> Tensor:
    with enable_grad():
        at = constant(np.array(x.detach().array)).requires_grad_()
        (slope,) = grad(f(at), at, create_graph=True)
        return grad(slope, at, u.detach())[0]


REFERENCES: dict[str, Callable[..., Any]] = {
    "rows": lambda f, x: _jacobian(f, x, True),
    "columns": lambda f, x: _jacobian(f, x, False),
    "hvp": _hessian_product,
    "unbroadcast": references.unbroadcast,
    "order": references.order,
}


# ------------------------------------------------------------------------------------------------------- what comes back
def plain(value: Any, depth: int = 0) -> dict[str, Any]:
    """Convert a returned value to data.

    One of {"tensor": array}, {"array": …}, {"number": …}, {"text": …}, {"list" | "tuple": […]}, {"dict": [[key, …], …]},
    {"none": …}, or {"other": its kind in words}.
    """
    try:
        if value is None:
            return {"none": True}
        if isinstance(value, Tensor):
            return {"tensor": np.array(value.detach().cpu().array)}
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
            return {"array": np.array(value)}
        if isinstance(value, (bool, int, float)) and not (isinstance(value, int) and abs(value) > 2**53):
            return {"number": value}
        if isinstance(value, str):
            return {"text": abbreviate(str(value), MOST_TEXT)}
        if isinstance(value, dict) and depth < DEEPEST and len(value) <= LONGEST and {type(key) for key in value} <= {str, int}:
            return {"dict": [[key, plain(part, depth + 1)] for key, part in value.items()]}
        if isinstance(value, (list, tuple)) and depth < DEEPEST and len(value) <= LONGEST:
            return {"tuple" if isinstance(value, tuple) else "list": [plain(part, depth + 1) for part in value]}
        return {"other": describe(value)}
    except Exception as error:  # noqa: BLE001  (a student's class may raise on any access)
        return {"other": f"a value that raises {type(error).__name__} on access"}


def unplain(data: Any) -> Any:
    """Restore a value from data. A value that `plain` could not convert is an `Other`.

    Raises
    ------
    ValueError
        If `data` does not come from `plain`.
    """
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("not a value")
    ((kind, content),) = data.items()
    if kind in ("tensor", "array") and isinstance(content, np.ndarray):
        return constant(content) if kind == "tensor" else content
    if kind in ("list", "tuple") and isinstance(content, list):
        return (tuple if kind == "tuple" else list)(unplain(part) for part in content)
    if kind == "dict" and isinstance(content, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in content):
        if not all(type(key) in (str, int) for key, _ in content):
            raise ValueError("not a value")
        return {key: unplain(part) for key, part in content}
    if kind == "number" and isinstance(content, (bool, int, float)):
        return content
    if kind == "text" and isinstance(content, str):
        return content
    if kind == "none":
        return None
    if kind == "other" and isinstance(content, str):
        return Other(abbreviate(content, 200))
    raise ValueError("not a value")


def _describe_exception(error: BaseException, function: Any) -> Outcome:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  (a student's class)
        text = ""
    try:
        if isinstance(error, NotImplementedError):
            inner = traceback.extract_tb(error.__traceback__)[-1].name
            return {
                "end": "unwritten",
                "words": abbreviate(text, MOST_TEXT),
                "position": _placeholder_position(error, function),
                "in": inner,
            }
        words = abbreviate(f"{type(error).__name__}: {text}", MOST_TEXT)
        return {"end": "raised", "words": words, "line": _last_own_line(error, function)}
    finally:
        error.__traceback__ = None  # it keeps the frames alive, and their variables


def _last_own_line(error: BaseException, function: Any) -> str:
    """Return the last line of the student's own code in the traceback."""
    code = getattr(getattr(function, "forward", function), "__code__", None)  # a class is identified by its methods
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__) if code is not None and frame.filename == code.co_filename
    ]
    return f"line {own[-1].lineno} of its cell: `{abbreviate(own[-1].line, MOST_CODE)}`" if own and own[-1].line else ""


def _placeholder_position(error: BaseException, function: Any) -> str:
    """Return whether `raise NotImplementedError()` is "above" or "below" a function's other code; "" if it is alone."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    if not isinstance(tree, ast.FunctionDef):
        return ""
    body = [one for one in tree.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    at = next((i for i, one in enumerate(body) if isinstance(one, ast.Raise) and "NotImplementedError" in ast.unparse(one)), None)
    if at is None or len(body) == 1:
        return ""
    return "above" if at < len(body) - 1 else "below"
