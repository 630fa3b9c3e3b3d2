"""Run the parts of a student's own autograd: the class `Value` (`data`, `parents`, `rule`, `grad`), `unbroadcast` and `order`.

The first argument names the task. A program (see `homework.programs`) runs on the student's values, as the check runs it on
tensors. During `backward`, each call of a `rule` is recorded: its cotangent, its result, and what it writes to. The check
compares the results.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gradlab.homework.excerpts import abbreviate
from gradlab.homework.programs import Program
from gradlab.homework.verdicts import describe

MAX_EVENTS = 300  # recorded
MOST_TEXT = 2000  # characters of an error
Calls = list[list[Any]]  # [name, gradient or None], one for each call of backward


class PlainNode:
    """A node for `order` if there is no `Value`: it has the same attributes, and a name."""

    def __init__(self, data: Any, parents: tuple[Any, ...] = (), rule: Any = None) -> None:
        self.data, self.parents, self.rule, self.grad = np.asarray(data, float), parents, rule, None
        self.name = "?"

    def __repr__(self) -> str:
        return f"<{self.name} of {' and '.join(p.name for p in self.parents)}>" if self.parents else f"<{self.name}>"


def use(function: Any, task: str, *args: Any) -> Any:
    """Run a task on a student's function or class."""
    return TASKS[task](function, *args)


def case_arguments(task: str, *args: Any) -> dict[str, Any]:
    """Return inputs that a student can try."""
    if task == "order":
        return {"out": build_nodes(PlainNode, *args)[-1]}
    if task == "unbroadcast":
        return {"g": np.array(args[0]), "shape": tuple(args[1])}
    if task == "long":
        return {
            "f": (lambda a: _double_repeatedly(a, args[1])) if args[0] == "doublings" else (lambda a: _add_repeatedly(a, args[1]))
        }
    inputs = {name: np.array(array) for name, array in args[1].items()}
    cotangent = {"g": np.array(args[2])} if task == "rule" and args[2] is not None else {}
    return {"f": Program(args[0])} | inputs | cotangent


# ---------------------------------------------------------------------------------------------------------------- the parts
def _rule(Value: Any, text: str, inputs: Mapping[str, Any], g: Any, write: bool) -> dict[str, Any]:
    """Run one operation, and its rule on the cotangent g. If `write`, modify the data of the operands in between."""
    leaves = {name: Value(np.array(array)) for name, array in inputs.items()}
    try:
        out = Program(text)(*leaves.values())
    except NotImplementedError:
        return {"unwritten": True}
    except Exception as error:  # noqa: BLE001  (the other rules are still checked)
        return _error(error)
    if not all(hasattr(out, name) for name in ("data", "parents", "rule")):
        return {"words": f"it returns {describe(out)}, not a Value"}
    if (odd := _find_fault(out)) or out.rule is None:
        return {"words": odd or "the new Value has no rule"}
    parents = list(out.parents)
    result: dict[str, Any] = {"value": np.array(out.data)}
    if write:
        for leaf in leaves.values():
            leaf.data += 1
    cotangent = np.array(g, float)
    try:
        shares = out.rule(cotangent)
    except NotImplementedError:
        return {"unwritten": True}
    except Exception as error:  # noqa: BLE001
        return result | _error(error)
    if not np.array_equal(cotangent, g):
        result["wrote"] = True
    if not isinstance(shares, (tuple, list)) or len(shares) != len(parents):
        many = f"{len(parents)} parent{'s' * (len(parents) != 1)}"
        kind = f"a {type(shares).__name__} of {len(shares)}" if isinstance(shares, (tuple, list)) else describe(shares)
        return result | {"words": f"its rule returns {kind} for {many}: return a tuple with one cotangent for each parent"}
    for name, leaf in leaves.items():
        own = [np.asarray(share) for share, parent in zip(shares, parents, strict=True) if parent is leaf]
        if not own:
            return result | {"words": f"`{name}` is not among its parents"}
        result[f"to {name}"] = own[0] if len(own) == 1 else sum(own[1:], own[0])
    return result


def _error(error: Exception) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    line = f" (`{frames[-1].line}`)" if frames and frames[-1].line else ""
    return {"words": f"raised {type(error).__name__}: {abbreviate(str(error), MOST_TEXT)}{line}"}


def _unbroadcast(function: Callable[..., Any], g: Any, shape: Iterable[int]) -> dict[str, Any]:
    cotangent = np.array(g)
    value = function(cotangent, tuple(shape))
    return {"value": value, "wrote": not np.array_equal(cotangent, g)}


def build_nodes(Value: Any, parents: list[list[int]]) -> list[Any]:
    """Return values linked to earlier ones, given by their numbers."""
    nodes: list[Any] = []
    for k, numbers in enumerate(parents):
        of = tuple(nodes[n] for n in numbers)
        nodes.append(Value(0.0, of, (lambda g, of=of: (g,) * len(of)) if of else None))
        if isinstance(nodes[-1], PlainNode):
            nodes[-1].name = chr(ord("a") + k) if len(parents) <= 26 else f"n{k}"
    return nodes


def _order(function: Callable[..., Any], parents: list[list[int]]) -> dict[str, Any]:
    """Return the numbers of the values in the order of the function's result; -1 for an unknown value."""
    Value = getattr(function, "__globals__", {}).get("Value", PlainNode)
    try:
        nodes = build_nodes(Value, parents)
    except Exception:  # noqa: BLE001  (a mistake in the class costs points elsewhere)
        nodes = build_nodes(PlainNode, parents)
    began = time.perf_counter()
    try:
        came = function(nodes[-1])
    except RecursionError:
        return {"deep": True}
    if came is None or isinstance(came, (str, dict)):
        return {"words": "the function returned None. Does it end with `return`?" if came is None else describe(came)}
    try:
        walk = list(came)
    except TypeError:
        return {"words": f"a list was expected, got {describe(came)}"}
    number = {id(node): k for k, node in enumerate(nodes)}
    return {"order": np.array([number.get(id(one), -1) for one in walk], int), "seconds": time.perf_counter() - began}


# ---------------------------------------------------------------------------------------------------------------- all of it
def _run(Value: Any, text: str, inputs: Mapping[str, Any], calls: Calls) -> dict[str, Any]:
    """Run a program and call `backward`. Return values, gradients, and the recorded calls of the rules."""
    program = Program(text)
    leaves = {name: Value(np.array(array)) for name, array in inputs.items()}
    values = program.run(leaves)
    named = leaves | values
    nodes = _reachable_values(list(named.values()))
    for node in nodes:
        if odd := _find_fault(node):
            return {"words": odd}
    watched = _RuleWatcher(nodes)
    before = [np.array(node.data) for node in nodes]
    for at, (root, gradient) in enumerate(calls):
        watched.call = at
        if gradient is None:
            values[root].backward()
        else:
            values[root].backward(np.array(gradient))
    names = {id(value): name for name, value in named.items()}
    number = {id(node): k for k, node in enumerate(nodes)}
    return {
        "values": {name: np.array(before[number[id(value)]]) for name, value in named.items()},
        "grads": {name: _grad(value) for name, value in named.items()},
        "names": [names.get(id(node), "") for node in nodes],
        "runs": watched.runs,
        "events": watched.events,
        "wrote": watched.wrote,
        "changed": [
            names.get(id(node), "") for node, was in zip(nodes, before, strict=True) if not np.array_equal(node.data, was)
        ],
        "one array": _one_array(leaves),
    }


def _grad(value: Any) -> Any:
    grad = value.grad
    return np.array(grad) if isinstance(grad, np.ndarray) else grad


def _one_array(leaves: Mapping[str, Any]) -> list[str]:
    """Return the names of two leaves whose gradients share memory."""
    own = [(name, leaf.grad) for name, leaf in leaves.items() if isinstance(leaf.grad, np.ndarray)]
    for i, (name, grad) in enumerate(own):
        for other, its in own[:i]:
            if np.shares_memory(grad, its):
                return [other, name]
    return []


def _find_fault(node: Any) -> str:
    """Return what is wrong with a `Value`, in words, or ""."""
    data = getattr(node, "data", None)
    if isinstance(data, (np.ndarray, np.generic, float, int)):
        return ""
    return f"`data` of a Value is {describe(data)}: it must be a NumPy array, without an autograd of its own"


def _reachable_values(roots: list[Any]) -> list[Any]:
    """Return all values that these were computed from, each once."""
    seen, todo = dict[int, Any](), list(roots)
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            todo.extend(getattr(node, "parents", ()))
    return list(seen.values())


class _RuleWatcher:
    """Wraps rules to record their calls."""

    def __init__(self, nodes: list[Any]) -> None:
        self.call, self.events, self.wrote, self.runs = 0, list[dict[str, Any]](), list[int](), [0] * len(nodes)
        self._number = {id(node): k for k, node in enumerate(nodes)}
        for k, node in enumerate(nodes):
            if node.rule is not None:
                node.rule = self._wrap(k, node.rule, [self._number[id(parent)] for parent in node.parents])

    def _wrap(self, k: int, rule: Callable[[Any], Any], parents: list[int]) -> Callable[[Any], Any]:
        def watched_rule(g: Any) -> Any:
            cotangent = np.array(g, copy=True)
            self.runs[k] += 1
            shares = rule(g)
            if not np.array_equal(np.asarray(g), cotangent):
                self.wrote.append(k)
            if len(self.events) < MAX_EVENTS and isinstance(shares, (tuple, list)):
                self.events.append(
                    {"call": self.call, "node": k, "g": cotangent, "to": parents, "shares": [np.array(one) for one in shares]}
                )
            return shares

        return watched_rule


def _backward_error(Value: Any, text: str, inputs: Mapping[str, Any], root: str) -> dict[str, Any]:
    """Return the error of a call of `backward` without an argument."""
    values = Program(text).run({name: Value(np.array(array)) for name, array in inputs.items()})
    try:
        values[root].backward()
    except Exception as error:  # noqa: BLE001  (the error is the result)
        return {"error": type(error).__name__, "words": abbreviate(str(error), MOST_TEXT)}
    return {"error": ""}


def _long(Value: Any, kind: str, count: int) -> dict[str, Any]:
    """Return the gradient of a leaf through many additions or doublings."""
    leaf = Value(np.array(1.5))
    out = _double_repeatedly(leaf, count) if kind == "doublings" else _add_repeatedly(leaf, count)
    began = time.perf_counter()
    try:
        out.backward()
    except RecursionError:
        return {"deep": True}
    return {"grad": leaf.grad, "seconds": time.perf_counter() - began}


def _double_repeatedly(a: Any, count: int) -> Any:
    for _ in range(count):
        a = a + a
    return a


def _add_repeatedly(a: Any, count: int) -> Any:
    out = a
    for _ in range(count):
        out = out + a
    return out


TASKS: dict[str, Callable[..., Any]] = {
    "rule": _rule,
    "unbroadcast": _unbroadcast,
    "order": _order,
    "run": _run,
    "refused": _backward_error,
    "long": _long,
}
