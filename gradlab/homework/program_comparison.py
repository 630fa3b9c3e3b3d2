"""Compare a program run on a student's own values with the same program on tensors, and find the cause of wrong gradients.

While the student's `backward` ran, the cotangent and the results of each rule were recorded (see `homework.ways.engine`). They
show why a gradient is wrong: a missing contribution, or a rule that ran too early or twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.core.tensor import constant
from gradlab.homework.programs import Program
from gradlab.homework.verdicts import as_array

TOLERANCE = 1e-6  # of the largest entry


def run_on_tensors(program: str, inputs: Mapping[str, Any], calls: Sequence[tuple[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """Run a program on tensors. Return {"values": by name, "grads": by name} of the inputs and lines that were reached."""
    leaves = {name: constant(np.array(array, np.float64)).requires_grad_() for name, array in inputs.items()}
    values = Program(program).run(leaves)
    for tensor in values.values():
        tensor.retain_grad()
    for root, gradient in calls:
        values[root].backward(None if gradient is None else constant(np.array(gradient, np.float64)), retain_graph=True)
    named = leaves | values
    return {
        "values": {name: np.array(tensor.detach().array) for name, tensor in named.items()},
        "grads": {name: np.array(tensor.grad.array) for name, tensor in named.items() if tensor.grad is not None},
    }


class ProgramComparison:
    """The results of a program on tensors and on a student's values.

    Attributes
    ----------
    values, grads : dict
        The results of gradlab, by name.
    own_values, own_grads : dict
        The results of the student; empty if it did not run. The gradient of an input is its `.grad`, that of a line the
        sum of the cotangents passed to its rule.
    """

    def __init__(self, program: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        self.program = Program(program)
        self.values, self.grads = ours["values"], ours["grads"]
        self._theirs = theirs
        self.own_values = theirs.get("values", {})
        self._names: list[str] = theirs.get("names", [])
        self._runs: list[int] = theirs.get("runs", [])
        self._events: list[dict[str, Any]] = theirs.get("events", [])
        self.own_grads = {name: grad for name, grad in theirs.get("grads", {}).items() if name in self.program.inputs}
        for name in self.program.names:
            came = [event["g"] for event in self._events if self._name(event["node"]) == name]
            if came:
                self.own_grads[name] = sum(came[1:], came[0])

    def grad_in_between(self, name: str) -> bool:
        """Return whether the value of a line has a `.grad` after the backward pass."""
        return self._theirs.get("grads", {}).get(name) is not None

    @property
    def refusal(self) -> str:
        """The reason why the program was not run, or ""."""
        return str(self._theirs.get("words", ""))

    def _name(self, node: int) -> str:
        return self._names[node] if 0 <= node < len(self._names) else ""

    def display_name(self, node: int) -> str:
        """Return the name of a value for messages."""
        return f"`{self._name(node)}`" if self._name(node) else "a value in between"

    # ------------------------------------------------------------------------------------------------------ the walk
    def repeated_rule(self, calls: int = 1) -> str:
        """Return a message if a rule ran more than once per call, else ""."""
        node = next((k for k, runs in enumerate(self._runs) if runs > calls), None)
        return "" if node is None else f"the rule of {self.display_name(node)} ran {self._runs[node]} times"

    def early_rule(self) -> str:
        """Return a message if a rule ran before its cotangent was complete, else ""."""
        for at, event in enumerate(self._events):
            later = [e for e in self._events[at + 1 :] if e["call"] == event["call"] and event["node"] in e["to"]]
            if later:
                return f"the rule of {self.display_name(event['node'])} ran before its other user had given its share"
        return ""

    def writing_rule(self) -> str:
        """Return a message if a rule wrote to its cotangent, else ""."""
        node = next(iter(self._theirs.get("wrote", [])), None)
        return (
            ""
            if node is None
            else f"the rule of {self.display_name(node)} wrote into the cotangent that another parent also gets"
        )

    def changed_data(self) -> str:
        """Return a message if the backward pass changed data, else ""."""
        name = next(iter(self._theirs.get("changed", [])), None)
        return "" if name is None else f"`{name}.data` has changed: the walk wrote to it" if name else "data was written to"

    def fault(self, name: str) -> str:
        """Return the cause of a wrong gradient, or ""."""
        own, right = as_array(self.own_grads.get(name)), self.grads.get(name)
        if right is None:
            return ""
        numbers = (
            f": yours is {_format(own)}, expected {_format(right)}" if own is not None and own.ndim == 0 == right.ndim else ""
        )
        if own is None:
            return "" if any(name == self._name(k) for e in self._events for k in e["to"]) else f"no share has reached `{name}`."
        if wrote := self.writing_rule():
            return f"{wrote}."
        if early := self.early_rule():
            return f"{early}{numbers}. When have all users of a value contributed?"
        if own.shape != right.shape:
            return ""
        return self._missing_shares(name, own, right) or self._leftover(name, own, right) or self._shared_array(name)

    def _missing_shares(self, name: str, own: np.ndarray, right: np.ndarray) -> str:
        """Find one share instead of the sum of all, here or upstream; or one call's result instead of all calls'."""
        its = f": {_format(own)}, not {_format(right)}" if own.ndim == 0 else ""
        for at, event in enumerate(self._events):
            shares = self._shares(event["node"], event["call"], at)
            if which := _single_share(event["g"], [shares]):
                far = its and f": `{name}.grad` is {its[2:]}" if self._name(event["node"]) != name else its
                return (
                    f"{self.display_name(event['node'])} is reached by {len(shares)} paths, yours has only the {which} one{far}."
                )
        if name in self.program.inputs and name in self._names:
            leaf = self._names.index(name)
            calls = [self._shares(leaf, call) for call in sorted({event["call"] for event in self._events})]
            if len(calls) > 1 and _is_close(own, _sum(calls[-1])):
                return f"`{name}.grad` has only the result of the last call: a second call must add to it."
            if which := _single_share(own, calls):
                return f"`{name}` is reached by {max(map(len, calls))} paths, yours has only the {which} one{its}."
        return ""

    def _leftover(self, name: str, own: np.ndarray, right: np.ndarray) -> str:
        """Find a second call that starts from intermediate gradients of the first."""
        for at, event in enumerate(self._events):
            shares = self._shares(event["node"], event["call"], at)
            if event["call"] and shares and not _is_close(event["g"], _sum(shares)):
                name = self.display_name(event["node"])
                return f"{name} passed on the gradient left by the first call: only leaves keep and add gradients."
        return ""

    def _shared_array(self, name: str) -> str:
        """Find two gradients that share an array."""
        pair = self._theirs.get("one array", [])
        return f"`{pair[0]}.grad` and `{pair[1]}.grad` are one array: adding to one changes both." if pair else ""

    def _shares(self, node: int, call: int, before: int | None = None) -> list[np.ndarray]:
        """Return the shares that a value received in a call, in order."""
        return [
            share
            for event in self._events[:before]
            if event["call"] == call
            for to, share in zip(event["to"], event["shares"], strict=False)
            if to == node
        ]


def _sum(shares: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(sum(shares[1:], shares[0])) if shares else np.zeros(())


def _single_share(got: Any, calls: Sequence[Sequence[np.ndarray]]) -> str:
    """Return "last" or "first" if `got` is that share of each call instead of the sum of all, else ""."""
    calls = [shares for shares in calls if shares]
    if max(map(len, calls), default=0) < 2 or _is_close(got, _sum([_sum(shares) for shares in calls])):
        return ""
    ends = {word: _sum([shares[at] for shares in calls]) for word, at in (("last", -1), ("first", 0))}
    return next((word for word, end in ends.items() if _is_close(got, end)), "")


def _is_close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= TOLERANCE * max(1.0, float(np.abs(b).max(initial=0)))))


def _format(value: Any) -> str:
    return f"{float(value):.4g}"
