"""A student's own autograd, part by part: the class `Value` (`data`, `parents`, `rule`, `grad`), `unbroadcast` and `order`.

The first argument says what is done with it. A program (see `homework.programs`) is run on values of the student's, as the
check runs it on tensors; while `backward` walks, each `rule` is looked over: how often it runs, with which cotangent, what it
gives back, and what it writes to. Nothing is judged here.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gradlab.homework.excerpts import abbreviate
from gradlab.homework.programs import Program
from gradlab.homework.verdicts import described

MOST = 300  # events that are told of
MOST_TEXT = 2000  # characters of an error
Calls = list[list[Any]]  # [name, gradient or None], one for each call of backward


class PlainNode:
    """What `order` is tried on where there is no `Value`: it has what a value has, and a name."""

    def __init__(self, data: Any, parents: tuple[Any, ...] = (), rule: Any = None) -> None:
        self.data, self.parents, self.rule, self.grad = np.asarray(data, float), parents, rule, None
        self.name = "?"

    def __repr__(self) -> str:
        return f"<{self.name} of {' and '.join(p.name for p in self.parents)}>" if self.parents else f"<{self.name}>"


def use(function: Any, task: str, *args: Any) -> Any:
    """Do it."""
    return TASKS[task](function, *args)


def shown(task: str, *args: Any) -> dict[str, Any]:
    """What a student can try it with."""
    if task == "order":
        return {"out": linked(PlainNode, *args)[-1]}
    if task == "unbroadcast":
        return {"g": np.array(args[0]), "shape": tuple(args[1])}
    if task == "long":
        return {"f": (lambda a: _doubled(a, args[1])) if args[0] == "doublings" else (lambda a: _added(a, args[1]))}
    inputs = {name: np.array(array) for name, array in args[1].items()}
    cotangent = {"g": np.array(args[2])} if task == "rule" and args[2] is not None else {}
    return {"f": Program(args[0])} | inputs | cotangent


# ---------------------------------------------------------------------------------------------------------------- the parts
def _rule(Value: Any, text: str, inputs: Mapping[str, Any], g: Any, write: bool) -> dict[str, Any]:
    """What one operation makes, and what its rule gives each operand for the cotangent g; its data is written to before, if
    `write`."""
    leaves = {name: Value(np.array(array)) for name, array in inputs.items()}
    try:
        out = Program(text)(*leaves.values())
    except NotImplementedError:
        return {"unwritten": True}
    except Exception as error:  # noqa: BLE001  (the other rules are looked at all the same)
        return _error(error)
    if not all(hasattr(out, name) for name in ("data", "parents", "rule")):
        return {"words": f"it returns {described(out)}, not a Value"}
    if (odd := _odd(out)) or out.rule is None:
        return {"words": odd or "the new Value has no rule"}
    parents = list(out.parents)
    told: dict[str, Any] = {"value": np.array(out.data)}
    if write:
        for leaf in leaves.values():
            leaf.data += 1
    cotangent = np.array(g, float)
    try:
        shares = out.rule(cotangent)
    except NotImplementedError:
        return {"unwritten": True}
    except Exception as error:  # noqa: BLE001
        return told | _error(error)
    if not np.array_equal(cotangent, g):
        told["wrote"] = True
    if not isinstance(shares, (tuple, list)) or len(shares) != len(parents):
        many = f"{len(parents)} parent{'s' * (len(parents) != 1)}"
        kind = f"a {type(shares).__name__} of {len(shares)}" if isinstance(shares, (tuple, list)) else described(shares)
        return told | {"words": f"its rule gives {kind} for {many}: a tuple with one cotangent for each parent is wanted"}
    for name, leaf in leaves.items():
        own = [np.asarray(share) for share, parent in zip(shares, parents, strict=True) if parent is leaf]
        if not own:
            return told | {"words": f"`{name}` is not among its parents"}
        told[f"to {name}"] = own[0] if len(own) == 1 else sum(own[1:], own[0])
    return told


def _error(error: Exception) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    line = f" (`{frames[-1].line}`)" if frames and frames[-1].line else ""
    return {"words": f"raised {type(error).__name__}: {abbreviate(str(error), MOST_TEXT)}{line}"}


def _unbroadcast(function: Callable[..., Any], g: Any, shape: Iterable[int]) -> dict[str, Any]:
    cotangent = np.array(g)
    value = function(cotangent, tuple(shape))
    return {"value": value, "wrote": not np.array_equal(cotangent, g)}


def linked(Value: Any, parents: list[list[int]]) -> list[Any]:
    """Values that are made of earlier ones, those of the given numbers."""
    nodes: list[Any] = []
    for k, numbers in enumerate(parents):
        of = tuple(nodes[n] for n in numbers)
        nodes.append(Value(0.0, of, (lambda g, of=of: (g,) * len(of)) if of else None))
        if isinstance(nodes[-1], PlainNode):
            nodes[-1].name = chr(ord("a") + k) if len(parents) <= 26 else f"n{k}"
    return nodes


def _order(function: Callable[..., Any], parents: list[list[int]]) -> dict[str, Any]:
    """The numbers of the values, in the order that comes back; -1 is a stranger."""
    Value = getattr(function, "__globals__", {}).get("Value", PlainNode)
    try:
        nodes = linked(Value, parents)
    except Exception:  # noqa: BLE001  (a slip in the class is paid elsewhere)
        nodes = linked(PlainNode, parents)
    began = time.perf_counter()
    try:
        came = function(nodes[-1])
    except RecursionError:
        return {"deep": True}
    if came is None or isinstance(came, (str, dict)):
        return {"words": "the function returned None. Does it end with `return`?" if came is None else described(came)}
    try:
        walk = list(came)
    except TypeError:
        return {"words": f"a list was expected; what came is {described(came)}"}
    number = {id(node): k for k, node in enumerate(nodes)}
    return {"order": np.array([number.get(id(one), -1) for one in walk], int), "seconds": time.perf_counter() - began}


# ---------------------------------------------------------------------------------------------------------------- all of it
def _run(Value: Any, text: str, inputs: Mapping[str, Any], calls: Calls) -> dict[str, Any]:
    """A program run, and `backward` called: values, gradients, and what each rule did."""
    program = Program(text)
    leaves = {name: Value(np.array(array)) for name, array in inputs.items()}
    values = program.run(leaves)
    named = leaves | values
    nodes = _reached(list(named.values()))
    for node in nodes:
        if odd := _odd(node):
            return {"words": odd}
    watched = _Watched(nodes)
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
    """Two leaves whose gradients are one array."""
    own = [(name, leaf.grad) for name, leaf in leaves.items() if isinstance(leaf.grad, np.ndarray)]
    for i, (name, grad) in enumerate(own):
        for other, its in own[:i]:
            if np.shares_memory(grad, its):
                return [other, name]
    return []


def _odd(node: Any) -> str:
    """What is wrong with a value that is no value, in words."""
    data = getattr(node, "data", None)
    if isinstance(data, (np.ndarray, np.generic, float, int)):
        return ""
    return f"`data` of a Value is {described(data)}: a NumPy array is wanted, and nothing that has an autograd of its own"


def _reached(roots: list[Any]) -> list[Any]:
    """All values that these are made of, each once."""
    seen, todo = dict[int, Any](), list(roots)
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            todo.extend(getattr(node, "parents", ()))
    return list(seen.values())


class _Watched:
    """Rules that are looked over while they run."""

    def __init__(self, nodes: list[Any]) -> None:
        self.call, self.events, self.wrote, self.runs = 0, list[dict[str, Any]](), list[int](), [0] * len(nodes)
        self._number = {id(node): k for k, node in enumerate(nodes)}
        for k, node in enumerate(nodes):
            if node.rule is not None:
                node.rule = self._over(k, node.rule, [self._number[id(parent)] for parent in node.parents])

    def _over(self, k: int, rule: Callable[[Any], Any], parents: list[int]) -> Callable[[Any], Any]:
        def asked(g: Any) -> Any:
            cotangent = np.array(g, copy=True)
            self.runs[k] += 1
            shares = rule(g)
            if not np.array_equal(np.asarray(g), cotangent):
                self.wrote.append(k)
            if len(self.events) < MOST and isinstance(shares, (tuple, list)):
                self.events.append(
                    {"call": self.call, "node": k, "g": cotangent, "to": parents, "shares": [np.array(one) for one in shares]}
                )
            return shares

        return asked


def _refused(Value: Any, text: str, inputs: Mapping[str, Any], root: str) -> dict[str, Any]:
    """What is raised by a call of `backward` without an argument."""
    values = Program(text).run({name: Value(np.array(array)) for name, array in inputs.items()})
    try:
        values[root].backward()
    except Exception as error:  # noqa: BLE001  (that is what is asked for)
        return {"error": type(error).__name__, "words": abbreviate(str(error), MOST_TEXT)}
    return {"error": ""}


def _long(Value: Any, kind: str, count: int) -> dict[str, Any]:
    """The gradient of a leaf through many additions or doublings."""
    leaf = Value(np.array(1.5))
    out = _doubled(leaf, count) if kind == "doublings" else _added(leaf, count)
    began = time.perf_counter()
    try:
        out.backward()
    except RecursionError:
        return {"deep": True}
    return {"grad": leaf.grad, "seconds": time.perf_counter() - began}


def _doubled(a: Any, count: int) -> Any:
    for _ in range(count):
        a = a + a
    return a


def _added(a: Any, count: int) -> Any:
    out = a
    for _ in range(count):
        out = out + a
    return out


TASKS: dict[str, Callable[..., Any]] = {
    "rule": _rule,
    "unbroadcast": _unbroadcast,
    "order": _order,
    "run": _run,
    "refused": _refused,
    "long": _long,
}
