"""Path of one sweep through a graph: which nodes a row's cotangent reaches, or a column's tangent.

The graph is drawn once, folded if it is large. A sweep then highlights nodes and edges of that drawing: a node is highlighted if
a nonzero value arrives there in this very sweep, so rows that take different paths highlight different nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.painting import figure, without_numbers
from gradlab.explore.libraries import Library
from gradlab.explore.trace.reading import spine_first, trace_of

LIMIT = 24  # maximum number of nodes in the drawing
MOST = 5_000  # maximum number of nodes in the graph


class SweepPath:
    """The graph behind outputs, and the parts of it that a sweep highlights.

    Parameters
    ----------
    library : Library
    outputs, inputs : sequence of Tensor
    names : mapping of str to Tensor
        Names of tensors.
    """

    def __init__(self, library: Library, outputs: Sequence[Any], inputs: Sequence[Any], names: Mapping[str, Any]) -> None:
        self._library, self._inputs = library, list(inputs)
        self._outputs = list(outputs)
        recorded = [y for y in outputs if library.node(y) is not None]
        trace = trace_of(recorded, names)
        nodes, edges = trace.nodes, trace.edges
        walked, _ = spine_first(library, [library.whole(library.node(y)) for y in recorded])
        self._number = {node: i for i, node in enumerate(walked)}
        self._roots = {id(y): len(walked) + k for k, y in enumerate(recorded)}  # the drawn outputs, after all nodes
        marked = [replace(node, members=(i,)) for i, node in enumerate(nodes)]
        shown, self._edges = fold(marked, edges, LIMIT)
        self._members = [frozenset(node.members) for node in shown]
        self.figure: dict[str, Any] = figure(without_numbers(shown), self._edges)
        self.figure["folded"] = len(nodes) if len(shown) < len(nodes) else 0

    def of_row(self, weights: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
        """Return the drawn nodes and edges that carry the cotangent of vᵀJ, for v in parts of the outputs' shapes.

        This runs a private sweep.
        """
        library = self._library
        reached: set[tuple[int, int]] = set()

        def see(node: Any, _: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
            for source, cotangent in zip(sources, cotangents, strict=False):
                if source is not None and _something(cotangent):
                    reached.add((self._at(source), self._at(node)))

        used = [(y, v) for y, v in zip(self._outputs, weights, strict=True) if id(y) in self._roots and np.any(v)]
        if used:
            with library.watching(list(self._number), see):
                library.grad([y for y, _ in used], self._inputs, [library.tensor(v, like=y) for y, v in used])
        return self._lit(reached | {(self._at(library.node(y)), self._roots[id(y)]) for y, _ in used})

    def of_column(self, tangents: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
        """Return the drawn nodes and edges that carry the tangent of Ju, for u in parts of the inputs' shapes.

        For a library without a forward sweep over a recorded graph (PyTorch), these are all that depend on inputs where u is not
        zero.
        """
        library = self._library
        reached = self._with_tangent(tangents) if library.has_forward else None
        live = {self._at(library.node(x)) for x, u in zip(self._inputs, tangents, strict=True) if u.any()}
        pairs: set[tuple[int, int]] = set()
        for node, number in self._number.items():  # each comes after its inputs
            sources = {self._at(source) for source in library.inputs(node)} & live
            if sources and (reached is None or number in reached):
                live.add(number)
                pairs |= {(source, number) for source in sources}
        ends = {(self._at(library.node(y)), self._roots[id(y)]) for y in self._outputs if id(y) in self._roots}
        return self._lit(pairs | {(node, end) for node, end in ends if node in live})

    def _with_tangent(self, tangents: Sequence[np.ndarray]) -> set[int]:
        """Return the nodes with a nonzero tangent, from one forward sweep to all of them."""
        nodes = list(self._number)
        tangents_out = self._library.tangents(nodes, self._inputs, tangents)
        return {self._number[node] for node, t in zip(nodes, tangents_out, strict=True) if _something(t)}

    def _at(self, node: Any) -> int:
        return -1 if node is None else self._number.get(self._library.whole(node), -1)

    def _lit(self, reached: set[tuple[int, int]]) -> tuple[list[int], list[int]]:
        place = {number: k for k, members in enumerate(self._members) for number in members}
        pairs = {(place.get(source), place.get(target)) for source, target in reached}
        nodes = {k for pair in pairs for k in pair if k is not None}
        return sorted(nodes), [k for k, edge in enumerate(self._edges) if (edge.source, edge.target) in pairs]


def path_of(library: Library, outputs: Sequence[Any], inputs: Sequence[Any], names: Mapping[str, Any]) -> SweepPath | None:
    """Return the path of a graph that is small enough to be walked for a small drawing; else None."""
    seen: set[Any] = set()
    waiting = [library.node(y) for y in outputs]
    while waiting and len(seen) <= MOST:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += library.inputs(node)
    return None if len(seen) > MOST else SweepPath(library, outputs, inputs, names)


def _something(cotangent: Any) -> bool:
    """Return whether there is a cotangent that is not zero everywhere."""
    return cotangent is not None and bool((cotangent != 0).any() if hasattr(cotangent, "any") else cotangent != 0)
