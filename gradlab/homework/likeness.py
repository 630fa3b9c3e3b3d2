"""A program run twice, on a student's own values and on tensors: what each made, and what the rules of the student's tell of the
walk through the graph.

While the student's `backward` walked, each rule's cotangent and shares were noted (see `homework.ways.engine`). What a wrong
gradient comes from is read off these: a share that is missing in it, a rule that was asked too early, or twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab.core.tensor import constant
from gradlab.homework.programs import Program
from gradlab.homework.verdicts import as_array

NEAR = 1e-6  # of the largest entry


def on_tensors(program: str, inputs: Mapping[str, Any], calls: Sequence[tuple[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """What gradlab makes of it: {"values": by name, "grads": by name} of all inputs and lines, those that are reached."""
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


class Likeness:
    """What came of a program.

    Attributes
    ----------
    values, grads : dict
        What gradlab has, by name.
    own_values, own_grads : dict
        What the student has; nothing where it did not run. A gradient is `.grad` of an input, and of a line the cotangents that
        its rule was given.
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
        """Whether the value of a line has a `.grad` of its own after the walk."""
        return self._theirs.get("grads", {}).get(name) is not None

    @property
    def refused(self) -> str:
        """Why it was not run, in words, or nothing."""
        return str(self._theirs.get("words", ""))

    def _name(self, node: int) -> str:
        return self._names[node] if 0 <= node < len(self._names) else ""

    def said(self, node: int) -> str:
        """A value by its name."""
        return f"`{self._name(node)}`" if self._name(node) else "a value in between"

    # ------------------------------------------------------------------------------------------------------ the walk
    def often(self, calls: int = 1) -> str:
        """Which rule ran more than once a call, in words; nothing if none did."""
        node = next((k for k, runs in enumerate(self._runs) if runs > calls), None)
        return "" if node is None else f"the rule of {self.said(node)} ran {self._runs[node]} times"

    def early(self) -> str:
        """Which rule was asked before all shares had come, in words."""
        for at, event in enumerate(self._events):
            later = [e for e in self._events[at + 1 :] if e["call"] == event["call"] and event["node"] in e["to"]]
            if later:
                return f"{self.said(event['node'])} was asked before its other user had given its share"
        return ""

    def wrote(self) -> str:
        """Whose rule changed the cotangent that it was given, in words."""
        node = next(iter(self._theirs.get("wrote", [])), None)
        return "" if node is None else f"the rule of {self.said(node)} wrote into the cotangent that another parent also gets"

    def changed(self) -> str:
        """Whose data is another after the walk, in words."""
        name = next(iter(self._theirs.get("changed", [])), None)
        return (
            "" if name is None else f"`{name}.data` is not what it was: the walk wrote to it" if name else "data was written to"
        )

    def fault(self, name: str) -> str:
        """What the walk says about a gradient that is wrong."""
        own, right = as_array(self.own_grads.get(name)), self.grads.get(name)
        if right is None:
            return ""
        numbers = f": yours {_short(own)}, it is {_short(right)}" if own is not None and own.ndim == 0 == right.ndim else ""
        if own is None:
            return "" if any(name == self._name(k) for e in self._events for k in e["to"]) else f"no share has come to `{name}`."
        if wrote := self.wrote():
            return f"{wrote}."
        if early := self.early():
            return f"{early}{numbers}. When have all users of a value given theirs?"
        if own.shape != right.shape:
            return ""
        return self._overwritten(name, own, right) or self._kept(name, own, right) or self._shared(name)

    def _overwritten(self, name: str, own: np.ndarray, right: np.ndarray) -> str:
        """One share in the place of their sum, here or on the way; or what one call gave in the place of what all did."""
        its = f": {_short(own)}, not {_short(right)}" if own.ndim == 0 else ""
        for at, event in enumerate(self._events):
            shares = self._shares(event["node"], event["call"], at)
            if which := _which(event["g"], [shares]):
                far = its and f": `{name}.grad` is {its[2:]}" if self._name(event["node"]) != name else its
                return f"{self.said(event['node'])} is reached by {len(shares)} paths, yours has the {which} one only{far}."
        if name in self.program.inputs and name in self._names:
            leaf = self._names.index(name)
            calls = [self._shares(leaf, call) for call in sorted({event["call"] for event in self._events})]
            if len(calls) > 1 and _near(own, _sum(calls[-1])):
                return f"`{name}.grad` has what the last call gave, and not what was there before: a second call must add."
            if which := _which(own, calls):
                return f"`{name}` is reached by {max(map(len, calls))} paths, yours has the {which} one only{its}."
        return ""

    def _kept(self, name: str, own: np.ndarray, right: np.ndarray) -> str:
        """A second call that goes on from what the first has left in between."""
        for at, event in enumerate(self._events):
            shares = self._shares(event["node"], event["call"], at)
            if event["call"] and shares and not _near(event["g"], _sum(shares)):
                return f"{self.said(event['node'])} passed on what the first call had left there: only leaves keep and add."
        return ""

    def _shared(self, name: str) -> str:
        """Two gradients that are one array."""
        pair = self._theirs.get("one array", [])
        return f"`{pair[0]}.grad` and `{pair[1]}.grad` are one array: what is added to one is added to both." if pair else ""

    def _shares(self, node: int, call: int, before: int | None = None) -> list[np.ndarray]:
        """What has been given to a value in a call, in order."""
        return [
            share
            for event in self._events[:before]
            if event["call"] == call
            for to, share in zip(event["to"], event["shares"], strict=False)
            if to == node
        ]


def _sum(shares: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(sum(shares[1:], shares[0])) if shares else np.zeros(())


def _which(got: Any, calls: Sequence[Sequence[np.ndarray]]) -> str:
    """Whether it is the last share of each call, or the first, in the place of the sum of all."""
    calls = [shares for shares in calls if shares]
    if max(map(len, calls), default=0) < 2 or _near(got, _sum([_sum(shares) for shares in calls])):
        return ""
    ends = {word: _sum([shares[at] for shares in calls]) for word, at in (("last", -1), ("first", 0))}
    return next((word for word, end in ends.items() if _near(got, end)), "")


def _near(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= NEAR * max(1.0, float(np.abs(b).max(initial=0)))))


def _short(value: Any) -> str:
    return f"{float(value):.4g}"
