"""The picture of the operations with any set of open folds.

At first, the graph is folded to a few nodes (`graph.folding`). To open a fold, its content is folded in the same way, with a box
for the rest of the graph. So folds are nested, and each has an address: "3" is the fourth node of the first picture, "3.1" the
second node inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from gradlab.explore.explorer.columns import ranges
from gradlab.explore.graph.contraction import Group, contract
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.painting import figure
from gradlab.explore.graph.spans import whole_layers, without_moves
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace

GLANCE = 25  # nodes of the first picture
INSIDE = 14  # nodes inside an open fold
MOST = 220  # nodes of a picture with many open folds

Part = tuple[
    str, GraphNode, frozenset[int]
]  # the address, the node, and the indices of the nodes that it represents in the base graph


class Folds:
    """The folds of a trace.

    Parameters
    ----------
    trace : Trace
    limit : int
        The maximal number of nodes of the first picture.
    """

    def __init__(self, trace: Trace, limit: int = GLANCE) -> None:
        self._trace = trace
        numbered = [replace(node, members=(i,)) for i, node in enumerate(trace.nodes)]
        named = len(numbered) > limit and any(node.layer or node.place for node in trace.nodes)
        self._nodes, self._edges = without_moves(numbered, trace.edges, trace.layers) if named else (numbered, trace.edges)
        self._base = {number: k for k, node in enumerate(self._nodes) for number in node.members}
        shown, _ = fold(*whole_layers(self._nodes, self._edges, trace.layers), limit, trace.layers)
        self._top = self._parts(shown, "")
        self._inside: dict[str, list[Part]] = {}
        self._none = frozenset(
            leaf.node for leaf in trace.leaves if trace.sweep and leaf.gradient is None and leaf.node is not None
        )

    def _parts(self, shown: Sequence[GraphNode], prefix: str) -> list[Part]:
        return [
            (f"{prefix}{k}", node, frozenset(self._base[number] for number in node.members))
            for k, node in enumerate(shown)
            if node.kind != "outside"
        ]

    # -------------------------------------------------------------------------------------------------------  open folds
    def visible_folds(self, wanted: Iterable[str]) -> set[str]:
        """Return the addresses of folds that are visible, because all folds around them are open."""
        addresses: set[str] = set()
        for address in sorted(wanted, key=lambda address: address.count(".")):
            parent = address.rpartition(".")[0]
            if (not parent or parent in addresses) and (part := self._part(address)) is not None and len(part[2]) > 1:
                addresses.add(address)
        return addresses

    def around(self, node: int) -> list[str]:
        """Return the folds that must be open to show a node of the trace."""
        at, parts = self._base[node], self._top
        addresses: list[str] = []
        while True:
            part = next((part for part in parts if at in part[2]), None)
            if part is None or len(part[2]) == 1:
                return addresses
            addresses.append(part[0])
            parts = self._children(part)

    def to_depth(self, depth: int) -> set[str]:
        """Return all folds down to a depth, the largest first, while there is room."""
        addresses: set[str] = set()
        level, seen = [part for part in self._top if len(part[2]) > 1], len(self._top)
        for _ in range(depth):
            below: list[Part] = []
            for part in sorted(level, key=lambda part: -len(part[2])):
                inner = self._children(part)
                if seen + len(inner) - 1 > MOST:
                    continue
                seen += len(inner) - 1
                addresses.add(part[0])
                below += [one for one in inner if len(one[2]) > 1]
            level = below
        return addresses

    def _part(self, address: str) -> Part | None:
        parts, child = self._top, None
        for depth in range(address.count(".") + 1):
            prefix = ".".join(address.split(".")[: depth + 1])
            child = next((part for part in parts if part[0] == prefix), None)
            if child is None:
                return None
            if prefix != address:
                if len(child[2]) < 2:
                    return None
                parts = self._children(child)
        return child

    def _children(self, part: Part) -> list[Part]:
        """Return the parts inside a fold."""
        address, _, members = part
        if address not in self._inside:
            order = sorted(members)
            place = {k: at for at, k in enumerate(order)}
            inner = [self._nodes[k] for k in order]
            edges = [
                replace(edge, source=place[edge.source], target=place[edge.target])
                for edge in self._edges
                if edge.source in place and edge.target in place
            ]
            leaving = [
                GraphEdge(place[edge.source], len(inner), n, edge.shape)
                for n, edge in enumerate(edge for edge in self._edges if edge.source in place and edge.target not in place)
            ]
            inner.append(GraphNode("outside", ""))
            limit, calls = INSIDE, self._trace.layers
            graph: tuple[Sequence[GraphNode], Sequence[GraphEdge]] = inner, [*edges, *leaving]
            layers = whole_layers(*graph, calls)
            if len(layers[0]) > 2:  # else it is itself a layer
                graph = layers
            children: list[Part] = []
            while len(children) < 2:  # if the limit is too small for its content, it folds to itself
                shown = fold(*graph, limit, calls)[0] if len(graph[0]) > limit + 1 else graph[0]
                children = self._parts(shown, f"{address}.")
                limit *= 2
            self._inside[address] = children
        return self._inside[address]

    # -------------------------------------------------------------------------------------------------------- the picture
    def figure(self, wanted: Iterable[str] = ()) -> dict[str, Any]:
        """Return the picture with these folds open, for a live view (`painting.figure`).

        A node also has "at", the index of its node in the trace, or of the node with the output of a fold; "members", its nodes
        in the trace; "opens", the address of a fold; "within", the open fold that contains it. "folded" is the number of all
        nodes if some are folded, "open" the open folds.
        """
        open_ = self.visible_folds(wanted)
        seen: list[Part] = []
        waiting = list(self._top)
        while waiting:
            part = waiting.pop()
            if part[0] in open_:
                waiting += self._children(part)
            else:
                seen.append(part)
        groups = [Group(sorted(members), node) for _, node, members in seen if len(members) > 1]
        nodes, edges = contract(self._nodes, self._edges, groups) if groups else (self._nodes, self._edges)
        part_of = {k: (address, len(members)) for address, _, members in seen for k in members}
        picture = figure(nodes, edges, none=self._none)
        for drawn, node in zip(picture["nodes"], nodes, strict=False):
            address, many = part_of[self._base[node.members[0]]]
            drawn["at"] = self._stands_for(node)
            drawn["members"] = ranges(sorted(node.members))
            if many > 1:
                drawn["opens"] = address
                drawn["spoken"] += ", folded"
            if "." in address:
                drawn["within"] = address.rpartition(".")[0]
        total = len(self._trace.nodes)
        picture["folded"] = total if len(nodes) < len(self._nodes) else 0
        picture["open"] = sorted(open_)
        return picture

    def _stands_for(self, node: GraphNode) -> int:
        nodes = self._trace.nodes
        if node.kind == "operation":
            return next(i for i in node.members if nodes[i].operation == node.operation and nodes[i].label == node.label)
        inside = [i for i in node.members if nodes[i].kind != "leaf"] or list(node.members)
        same = [i for i in inside if nodes[i].gradient is not None and nodes[i].gradient is node.gradient]
        return max(same or inside)
