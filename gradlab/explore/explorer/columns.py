"""All nodes and edges of a trace as columns of plain data, which a view can search and colour without a kernel.

Texts are stored once in a table and referred to by index, because operations, modules and lines repeat: 10 000 nodes take 300 kB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.graph.rows import made_text
from gradlab.explore.trace.data import GraphNode, Line, Trace

KINDS = {"leaf": "l", "operation": "o", "output": "u"}
DIGITS = 4  # significant digits of a norm


class Texts:
    """A table of texts. The first one is ""."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {"": 0}

    def at(self, text: str) -> int:
        """Return the index of a text."""
        return self.found.setdefault(text, len(self.found))

    @property
    def table(self) -> list[str]:
        return list(self.found)


def columns(trace: Trace, texts: Texts, places: dict[Line, int]) -> dict[str, Any]:
    """Return the nodes and edges of a trace.

    Parameters
    ----------
    trace : Trace
    texts : Texts
        Labels, names, operations, modules and shapes are added to it.
    places : dict of Line to int
        The lines are added to it, with their indices.

    Returns
    -------
    dict
        "kinds": a letter for each node. "label", "name", "operation", "module", "made" (the shape, or the value of a scalar):
        indices of texts. "place", "cell": indices of lines, −1 for none. "norm": ‖gradient‖, null if unknown, "NaN" or "inf".
        "odd": the nodes whose value (1) or gradient (2) has a NaN or an infinity. "bytes" of each value. "none": the leaves that
        got no gradient in the sweep. "inputs": for each input of a node, its index relative to the node, backwards.
    """
    nodes = trace.nodes
    none = sorted(leaf.node for leaf in trace.leaves if trace.sweep and leaf.gradient is None and leaf.node is not None)
    odd = [[i, how] for i, node in enumerate(nodes) if (how := _odd(node))]
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in trace.edges:
        inputs[edge.target].append(edge.target - edge.source)

    def place_index(place: Line | None) -> int:
        return -1 if place is None else places.setdefault(place, len(places))

    return {
        "kinds": "".join(KINDS.get(node.kind, "o") for node in nodes),
        "label": [texts.at(node.label) for node in nodes],
        "name": [texts.at(node.name) for node in nodes],
        "operation": [texts.at(node.operation) for node in nodes],
        "module": [texts.at(node.layer) for node in nodes],
        "made": [texts.at(made_text(node)) for node in nodes],
        "place": [place_index(node.place) for node in nodes],
        "cell": [place_index(node.cell) for node in nodes],
        "norm": [None if node.gradient is None else round_digits(node.gradient.norm) for node in nodes],
        "bytes": [bytes_made(node) for node in nodes],
        "odd": odd,
        "none": none,
        "inputs": [one[0] if len(one) == 1 else one for one in inputs],
    }


def bytes_made(node: GraphNode) -> int:
    """Return the memory of the tensor of a node, if it still exists."""
    if node.shape is None or node.kind == "output":
        return 0
    try:
        size = np.dtype(node.dtype).itemsize if node.dtype else 0
    except TypeError:
        size = 2 if "16" in node.dtype else 1  # bfloat16, float8
    return math.prod(node.shape) * size


def round_digits(number: float) -> float | str:
    """Return a number with a few digits that JSON can hold."""
    if not math.isfinite(number):
        return "NaN" if number != number else "inf"
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e9 else short


def _odd(node: GraphNode) -> int:
    return (node.value is not None and node.value.odd) + 2 * (node.gradient is not None and node.gradient.odd)


def members_of(stretches: Sequence[int]) -> list[int]:
    """Return the numbers in ranges [first, length, first, length, …]; see `ranges`."""
    pairs = zip(stretches[::2], stretches[1::2], strict=True)
    return [i for first, many in pairs for i in range(first, first + many)]


def ranges(numbers: Sequence[int]) -> list[int]:
    """Return increasing numbers as ranges [first, length, first, length, …]."""
    runs: list[int] = []
    for number in numbers:
        if runs and number == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs
