"""All nodes and edges of a trace as columns of plain data, so that a view can search and colour them without a kernel.

Texts stand in one table and are told by their numbers, since operations, modules and lines repeat: 10 000 nodes take some 300 kB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.graph.rows import made_text
from gradlab.explore.trace.data import GraphNode, Line, Trace

KINDS = {"leaf": "l", "operation": "o", "output": "u"}
DIGITS = 4  # of a norm


class Texts:
    """A table of texts; the first is ""."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {"": 0}

    def at(self, text: str) -> int:
        """The number of a text."""
        return self.found.setdefault(text, len(self.found))

    @property
    def table(self) -> list[str]:
        return list(self.found)


def columns(trace: Trace, texts: Texts, places: dict[Line, int]) -> dict[str, Any]:
    """The nodes and edges of a trace.

    Parameters
    ----------
    trace : Trace
    texts : Texts
        To which labels, names, operations, modules and shapes are added.
    places : dict of Line to int
        To which the lines are added, with their numbers.

    Returns
    -------
    dict
        "kinds": a letter a node. "label", "name", "operation", "module", "made" (the shape, of a scalar the value): numbers
        of texts. "place", "cell": numbers of lines, −1 for none. "norm": ‖gradient‖, null where it is not known, "NaN" or
        "inf". "odd": the nodes whose value (1) or gradient (2) has a NaN or an infinity. "bytes" of each value. "none": the
        leaves that the sweep brought no gradient. "inputs": for each input of a node, how
        many places before the node it is.
    """
    nodes = trace.nodes
    none = sorted(leaf.node for leaf in trace.leaves if trace.sweep and leaf.gradient is None and leaf.node is not None)
    odd = [[i, how] for i, node in enumerate(nodes) if (how := _odd(node))]
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in trace.edges:
        inputs[edge.target].append(edge.target - edge.source)

    def numbered(place: Line | None) -> int:
        return -1 if place is None else places.setdefault(place, len(places))

    return {
        "kinds": "".join(KINDS.get(node.kind, "o") for node in nodes),
        "label": [texts.at(node.label) for node in nodes],
        "name": [texts.at(node.name) for node in nodes],
        "operation": [texts.at(node.operation) for node in nodes],
        "module": [texts.at(node.layer) for node in nodes],
        "made": [texts.at(made_text(node)) for node in nodes],
        "place": [numbered(node.place) for node in nodes],
        "cell": [numbered(node.cell) for node in nodes],
        "norm": [None if node.gradient is None else rounded(node.gradient.norm) for node in nodes],
        "bytes": [bytes_made(node) for node in nodes],
        "odd": odd,
        "none": none,
        "inputs": [one[0] if len(one) == 1 else one for one in inputs],
    }


def bytes_made(node: GraphNode) -> int:
    """How much memory what a node makes takes, if it still exists."""
    if node.shape is None or node.kind == "output":
        return 0
    try:
        size = np.dtype(node.dtype).itemsize if node.dtype else 0
    except TypeError:
        size = 2 if "16" in node.dtype else 1  # bfloat16, float8
    return math.prod(node.shape) * size


def rounded(number: float) -> float | str:
    """A number of a few digits that JSON can carry."""
    if not math.isfinite(number):
        return "NaN" if number != number else "inf"
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e9 else short


def _odd(node: GraphNode) -> int:
    return (node.value is not None and node.value.odd) + 2 * (node.gradient is not None and node.gradient.odd)


def members_of(stretches: Sequence[int]) -> list[int]:
    """The numbers of stretches [first, length, first, length, …]; see `ranges`."""
    pairs = zip(stretches[::2], stretches[1::2], strict=True)
    return [i for first, many in pairs for i in range(first, first + many)]


def ranges(numbers: Sequence[int]) -> list[int]:
    """Increasing numbers as stretches [first, length, first, length, …]."""
    runs: list[int] = []
    for number in numbers:
        if runs and number == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs
