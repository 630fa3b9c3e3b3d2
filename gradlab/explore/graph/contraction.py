"""Contraction: replace each group of nodes by one node that summarises its members and their result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from gradlab.explore.labels import part_of_model, shorten, strip_numbers
from gradlab.explore.markup import count
from gradlab.explore.trace.data import GraphEdge, GraphNode, Operand, renumber

INPUTS = 2  # data inputs that one node shows
CUTS = 3

Nodes = Sequence[GraphNode]
Edges = Sequence[GraphEdge]


class Group(NamedTuple):
    """Nodes, and the node that replaces them."""

    members: Sequence[int]
    node: GraphNode


def contract(nodes: Nodes, edges: Edges, groups: Sequence[Group]) -> tuple[list[GraphNode], list[GraphEdge]]:
    """Replace each group by one node.

    The new node takes the position of the group's last member, or a later one if it must follow its inputs.

    Raises
    ------
    ValueError
        If the groups make a cycle.
    """
    place = list(range(len(nodes)))
    changed = list(nodes)
    for members, node in groups:
        last = max(members)
        changed[last] = node
        for member in members:
            place[member] = last
    kept = [i for i in range(len(nodes)) if place[i] == i]
    grouped = {max(members) for members, _ in groups}
    used_outside: dict[int, set[int]] = {}  # members whose tensors are used outside the node
    for edge in edges:
        if place[edge.source] != place[edge.target]:
            used_outside.setdefault(place[edge.source], set()).add(edge.source)
    merged: dict[tuple[int, int, int], GraphEdge] = {}
    for edge in edges:
        source, target = place[edge.source], place[edge.target]
        if source == target:
            continue
        key = source, target, 0 if source in grouped or target in grouped else edge.argument
        share = edge.share if len(used_outside[source]) == 1 else None  # shares of different tensors cannot be compared
        before = merged.get(key)
        if before is None:
            merged[key] = GraphEdge(source, target, edge.argument, edge.shape, edge.gradient, share)
        else:  # two uses of one tensor, drawn as one
            both = None if share is None or before.share is None else before.share + share
            merged[key] = replace(before, gradient=None, share=both)
    merged_edges = list(merged.values())
    return renumber({i: changed[i] for i in kept}, merged_edges, _topological_order(kept, merged_edges))


def _topological_order(kept: Sequence[int], edges: Edges) -> list[int]:
    after: dict[int, list[int]] = {i: [] for i in kept}
    missing = dict.fromkeys(kept, 0)
    for source, target in {(edge.source, edge.target) for edge in edges}:
        after[source].append(target)
        missing[target] += 1
    ready = [i for i in kept if not missing[i]]
    heapify(ready)
    ordered: list[int] = []
    while ready:
        i = heappop(ready)
        ordered.append(i)
        for target in after[i]:
            missing[target] -= 1
            if not missing[target]:
                heappush(ready, target)
    if len(ordered) < len(kept):
        raise ValueError("the groups make a cycle")
    return ordered


Uses = Sequence[Sequence[int]]


def uses_of(nodes: Nodes, edges: Edges) -> list[list[int]]:
    """Return the targets of each node's edges."""
    uses: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        uses[edge.source].append(edge.target)
    return uses


def group_of(
    nodes: Nodes,
    uses: Uses,
    members: Sequence[int],
    label: str = "",
    detail: str = "",
    *,
    copies: Sequence[Sequence[int]] = (),
) -> Group:
    """Make the group of `members`, with the value and the gradient of their result.

    Parameters
    ----------
    nodes
    uses : sequence of sequence of int
        See `uses_of`.
    members : sequence of int
    label, detail : str
        By default, the group is named after its parameters or its operations.
    copies : sequence of sequence of int
        The members of each of several equal parts. The norms of their gradients are list_leaves.
    """
    inside = [nodes[member] for member in members]
    leaves = [node for node in inside if node.kind == "leaf"]
    operations = [node for node in inside if node.kind != "leaf"]
    many, names = sum(node.count for node in inside), tuple(name for node in inside for name in names_in(node))
    numbers = tuple(number for node in inside for number in node.members)
    if not operations:
        label = label or f"{count(many, 'leaf', 'leaves')}"
        return Group(
            members, GraphNode("leaf", label, detail=detail or list_leaves(leaves), count=many, inside=names, members=numbers)
        )
    if not label:
        signs = [strip_numbers(node.label) for node in operations]
        said = " ".join(signs) if len(signs) <= 4 else f"{signs[0]} {signs[1]} … {signs[-1]}"
        label = part_of_model(names) or shorten(said, 30)
    end = nodes[last_used_outside(nodes, uses, members)]
    ends = [
        nodes[last_used_outside(nodes, uses, copy)] for copy in copies if any(nodes[member].kind != "leaf" for member in copy)
    ]
    norms = tuple(node.gradient.norm for node in ends if node.gradient is not None)
    cells = {node.cell for node in operations}
    return Group(
        members,
        GraphNode(
            "folded",
            label,
            name="" if copies else end.name,
            shape=end.shape,
            detail=detail or count(many, "node"),
            count=many,
            inside=names,
            members=numbers,
            cell=cells.pop() if len(cells) == 1 else None,
            module=operations[-1].module,
            object=operations[-1].object,
            dtype=end.dtype,
            value=end.value,
            gradient=end.gradient,
            operands=_operands(operations),
            norms=norms if 1 < len(norms) == len(ends) else (),
        ),
    )


def last_used_outside(nodes: Nodes, uses: Uses, members: Sequence[int]) -> int:
    """Return the last member whose tensor is used outside the group."""
    inside = set(members)
    operations = [i for i in members if nodes[i].kind != "leaf"]
    return max((i for i in operations if any(user not in inside for user in uses[i])), default=max(operations))


def _operands(operations: Sequence[GraphNode]) -> tuple[Operand, ...]:
    """Return the data inputs and the cuts among the operands."""
    inputs: dict[str, Operand] = {}
    cuts: dict[object, Operand] = {}
    for node in operations:
        for operand in node.operands:
            if operand.kind == "input" and operand.text.replace(".", "").isidentifier():
                inputs.setdefault(operand.text, operand)
            elif operand.cut is not None:
                cuts.setdefault((operand.cut.how, operand.cut.place), operand)
    return (*list(inputs.values())[:INPUTS], *list(cuts.values())[:CUTS])


def names_in(node: GraphNode) -> tuple[str, ...]:
    """Return the names of the leaves that a node is or replaces."""
    return (node.name,) if node.kind == "leaf" and node.name else node.inside


def list_leaves(leaves: Sequence[GraphNode]) -> str:
    return shorten(", ".join(leaf.label for leaf in leaves[:3]) + (", …" if len(leaves) > 3 else ""), 32)
