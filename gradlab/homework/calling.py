"""A call of a student's function, where the student's code is: what is asked for and what came of it, both as plain data.

`perform` runs in the notebook's kernel (`%check`), or in the process that runs a submission (see `homework.grading`). It makes
the arguments, sets a time limit, looks out for what is off limits, compares afterwards the tensors that it handed out with
what they were, and takes in what comes back as numbers, text and lists of these. Whatever the student's code returns or
raises, it returns.

A request has "name", and "args": for each {"f": number of a Probe}, {"tensor", "requires_grad", "grad"} or {"data": anything
plain}; "way", how what is called so is to be used (a module of `homework.ways`; "" calls it on the arguments, "value" takes it
as it is); "forbidden", paths of the library; "given", which of the notebook's functions give way to the library's own;
"seconds".
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
from gradlab.homework.probes import Ask, Asked
from gradlab.homework.time_limits import TimeUp, limited
from gradlab.homework.verdicts import Other, described

DEEPEST, LONGEST, MOST_TEXT, MOST_CODE = 4, 1000, 4000, 200  # of lists in lists, of one list, of a text, of a line of code
Outcome = dict[str, Any]


def perform(namespace: dict[str, Any], request: dict[str, Any], ask: Ask) -> Outcome:
    """Call the student's function, and say what came: {"end": "value", "value": …, "changed": […]}, or how else it ended."""
    name = request["name"]
    if name not in namespace:
        return {"end": "missing"}
    function, way = namespace[name], request.get("way", "")
    if way == "value":
        return {"end": "value", "value": plain(function), "changed": []}
    if not callable(function):
        return {"end": "no function", "words": described(function)}
    args = [_argument(one, ask) for one in request["args"]]
    use = ways.named(way) if way else None
    guards = [_seen(one) for one in args]
    watch, before, state, shown = ForbiddenCalls(request["forbidden"]), mode.grad, get_states(), fix_setting.shown
    own = {key: watch.exempt(REFERENCES[which]) for key, which in request["given"].items()}
    try:
        with _in_place_of(namespace, own):
            try:
                fix_setting.shown = False
                with limited(request["seconds"]), watch.watching():
                    value = function(*args) if use is None else use(function, *args)
            finally:
                fix_setting.shown = shown
                mode.grad = before
                restore_states(state)
        outcome = {"end": "value", "value": plain(value)}
    except TimeUp:
        outcome = {"end": "time"}
    except BaseException as error:  # noqa: BLE001  (a student's code may raise anything, SystemExit too; it is quoted)
        outcome = _raised(error, function)
    if watch.used is not None:
        return {"end": "borrowed", "used": list(watch.used)}
    return outcome | {"changed": [what for arg, seen in zip(args, guards, strict=True) if (what := _changed(arg, seen))]}


# ----------------------------------------------------------------------------------------------------------- arguments
def _argument(one: dict[str, Any], ask: Ask) -> Any:
    return Asked(one["f"], ask) if "f" in one else one["data"] if "data" in one else _tensor(one)


def _tensor(one: dict[str, Any]) -> Tensor:
    tensor = constant(one["tensor"].copy())
    if one["requires_grad"]:
        tensor.requires_grad_()
    if one["grad"] is not None:
        tensor.grad = constant(one["grad"].copy())
    return tensor


def _seen(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return None
    return x.array.copy(), x.requires_grad, x.grad, None if x.grad is None else x.grad.array.copy(), x._version


def _changed(x: Any, seen: Any) -> str:
    """What has become of a tensor that was handed out, in words; nothing if it is as it was."""
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
    except Exception:  # noqa: BLE001  (it may be anything by now)
        return "its values"


@contextmanager
def _in_place_of(namespace: dict[str, Any], own: dict[str, Any]) -> Iterator[None]:
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


def _whole(f: Callable[[Tensor], Tensor], x: Tensor, by_rows: bool) -> Tensor:
    with enable_grad():
        at = constant(np.array(x.detach().array)).requires_grad_()
        y = f(at)
        matrix = (
            jacobian_rows(y, [at], traced=False, at_once=1)[0] if by_rows else jacobian_columns([y], [at], traced=False)[0][0]
        )
    assert matrix is not None
    return matrix.reshape((y.array.size, at.array.size))


def _product_with_the_hessian(f: Callable[[Tensor], Tensor], x: Tensor, u: Tensor) -> Tensor:
    with enable_grad():
        at = constant(np.array(x.detach().array)).requires_grad_()
        (slope,) = grad(f(at), at, create_graph=True)
        return grad(slope, at, u.detach())[0]


REFERENCES: dict[str, Callable[..., Any]] = {
    "rows": lambda f, x: _whole(f, x, True),
    "columns": lambda f, x: _whole(f, x, False),
    "hvp": _product_with_the_hessian,
    "unbroadcast": references.unbroadcast,
    "order": references.order,
}


# ------------------------------------------------------------------------------------------------------- what comes back
def plain(value: Any, depth: int = 0) -> dict[str, Any]:
    """A returned value as data: {"tensor": array}, {"array": …}, {"number": …}, {"text": …}, {"list" | "tuple": […]}, {"dict":
    [[key, …], …]}, {"none": …}, or {"other": its kind in words}."""
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
        return {"other": described(value)}
    except Exception as error:  # noqa: BLE001  (a class of the student's may do anything when it is looked at)
        return {"other": f"something that raises {type(error).__name__} when it is looked at"}


def unplain(data: Any) -> Any:
    """The value again, for the check; what `plain` did not take in is an `Other`.

    Raises
    ------
    ValueError
        If this is not what `plain` makes."""
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


def _raised(error: BaseException, function: Any) -> Outcome:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  (the class is the student's)
        text = ""
    try:
        if isinstance(error, NotImplementedError):
            inner = traceback.extract_tb(error.__traceback__)[-1].name
            return {
                "end": "unwritten",
                "words": abbreviate(text, MOST_TEXT),
                "stands": _where_it_stands(error, function),
                "in": inner,
            }
        words = abbreviate(f"{type(error).__name__}: {text}", MOST_TEXT)
        return {"end": "raised", "words": words, "line": _where(error, function)}
    finally:
        error.__traceback__ = None  # it holds the frames, and they what the student's code holds


def _where(error: BaseException, function: Any) -> str:
    """The last line of the student's own code that the exception passed through."""
    code = getattr(getattr(function, "forward", function), "__code__", None)  # a class is known by its methods
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__) if code is not None and frame.filename == code.co_filename
    ]
    return f"line {own[-1].lineno} of its cell: `{abbreviate(own[-1].line, MOST_CODE)}`" if own and own[-1].line else ""


def _where_it_stands(error: BaseException, function: Any) -> str:
    """Of the line `raise NotImplementedError()` in a function that has code besides: "above" or "below" that code."""
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
