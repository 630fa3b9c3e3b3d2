"""Merge two graphs into one that shows removed and new nodes, and changed gradients and values.

Leaves are matched by name. Operations are matched by the longest common subsequence of their types and of the user's names for
their results, so the graph of a program with an additional line is the old graph plus the operations of that line. Both orders
put each node after its inputs and agree on the matched nodes, so the union has no cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from gradlab.explore.drawing import Drawing
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.listing import first_lines
from gradlab.explore.graph.painting import EdgeMark, paint
from gradlab.explore.markup import count, number
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace, inputs_of, renumber
from gradlab.explore.trace.reading import deepest_first
from gradlab.explore.trace.values import Value

MAX_NODES = 3_000  # of a graph that is compared
MAX_NODES_DRAWN = 25
TOLERANCE = 1e-6  # relative to the norm


@dataclass(frozen=True)
class Union:
    """The union of two graphs.

    Attributes
    ----------
    nodes : list of GraphNode
        The nodes of the second graph, and those that only the first graph has. `members` of a node is its own index.
    edges : list of GraphEdge
        Sorted by target and argument.
    states : list of str
        "same", "changed", "gone" or "new" for each node.
    words : list of str
        The change of each node, "gradient 4 → 2".
    edge_states : list of str
        "same", "gone" or "new" for each edge.
    """

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    states: list[str]
    words: list[str]
    edge_states: list[str]


def merge_graphs(before: Trace, after: Trace) -> Union:
    """Return the union of two graphs."""
    first, second = before.nodes, after.nodes
    pairs = _match_nodes(first, second)
    partner = dict(pairs)
    back = {k: i for i, k in pairs}
    order: list[tuple[int | None, int | None]] = []
    for kind in (True, False):  # leaves first
        ours = [i for i, node in enumerate(first) if (node.kind == "leaf") is kind]
        theirs = [k for k, node in enumerate(second) if (node.kind == "leaf") is kind]
        at = 0
        for k in theirs:
            if k in back:
                if not kind:
                    while at < len(ours) and ours[at] != back[k]:
                        if ours[at] not in partner:
                            order.append((ours[at], None))
                        at += 1
                    at += 1
                order.append((back[k], k))
            else:
                order.append((None, k))
        order += [(i, None) for i in ours[at:] if i not in partner]
    nodes, states, words = [], [], []
    for was, now in order:
        node = second[now] if now is not None else first[was]  # type: ignore[index]
        nodes.append(node)
        said = ""
        if was is not None and now is not None:
            said = _change(first[was], second[now])
        words.append(said)
        states.append("new" if was is None else "gone" if now is None else "changed" if said else "same")
    of_first = {one: n for n, (one, _) in enumerate(order) if one is not None}
    of_second = {one: n for n, (_, one) in enumerate(order) if one is not None}
    by_ends: dict[tuple[int, int, int], GraphEdge] = {}
    seen: dict[tuple[int, int, int], str] = {}
    for e in before.edges:
        key = of_first[e.source], of_first[e.target], e.argument
        by_ends[key], seen[key] = GraphEdge(*key, e.shape), "gone"
    for e in after.edges:
        key = of_second[e.source], of_second[e.target], e.argument
        seen[key] = "same" if key in by_ends else "new"
        by_ends[key] = GraphEdge(*key, e.shape, e.gradient, e.share)
    edges = [by_ends[key] for key in by_ends]
    inputs = inputs_of(nodes, edges)
    used = {edge.source for edge in edges}
    tops = [i for i in range(len(nodes)) if i not in used]
    line = deepest_first(tops, inputs.__getitem__)
    nodes, edges = renumber(nodes, edges, line)
    place = {node: i for i, node in enumerate(line)}
    edge_states = {(place[source], place[target], argument): state for (source, target, argument), state in seen.items()}
    return Union(
        [replace(node, members=(i,)) for i, node in enumerate(nodes)],
        edges,
        [states[i] for i in line],
        [words[i] for i in line],
        [edge_states[edge.source, edge.target, edge.argument] for edge in edges],
    )


def _match_nodes(first: Sequence[GraphNode], second: Sequence[GraphNode]) -> list[tuple[int, int]]:
    """Return the pairs of nodes that are the same, by index."""
    leaves = {node.label: k for k, node in enumerate(second) if node.kind == "leaf"}
    pairs = [(i, leaves[node.label]) for i, node in enumerate(first) if node.kind == "leaf" and node.label in leaves]
    numbers = [[i for i, node in enumerate(nodes) if node.kind != "leaf"] for nodes in (first, second)]
    keys = [
        [(nodes[i].kind, nodes[i].label if nodes[i].kind != "output" else "", nodes[i].operation, nodes[i].name) for i in those]
        for nodes, those in zip((first, second), numbers, strict=True)
    ]
    for block in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks():
        pairs += [(numbers[0][block.a + n], numbers[1][block.b + n]) for n in range(block.size)]
    return pairs


def _change(a: GraphNode, b: GraphNode) -> str:
    """Return the change of a node, or "" if there is none."""
    if not _same(a.gradient, b.gradient):
        what = "gradient" if _one(a.gradient) and _one(b.gradient) else "‖gradient‖"
        return f"{what} {_said(a.gradient)} → {_said(b.gradient)}"
    if not _same(a.value, b.value):
        what = "value" if _one(a.value) and _one(b.value) else "‖value‖"
        return f"{what} {_said(a.value)} → {_said(b.value)}"
    return ""


def _one(value: Value | None) -> bool:
    return value is None or value.size == 1


def _said(value: Value | None) -> str:
    if value is None:
        return "None"
    single = value.numbers[0] if value.size == 1 and value.numbers else None
    return number(single if isinstance(single, (int, float)) else value.norm, 3)


def _same(a: Value | None, b: Value | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.numbers is not None and b.numbers is not None and len(a.numbers) == len(b.numbers):
        pairs = list(zip(a.numbers, b.numbers, strict=True))
        largest = max((abs(y) for _, y in pairs if y == y), default=0.0)
        return all(x == y or (x != x and y != y) or abs(x - y) <= TOLERANCE * largest for x, y in pairs)
    x, y = a.norm, b.norm
    return x == y or (x != x and y != y) or abs(x - y) <= TOLERANCE * max(abs(x), abs(y))


def drawing_of(before: Trace, after: Trace, text: str) -> Drawing | None:
    """Draw both graphs in one picture. Return None if one of them is missing or too large to compare."""
    if not before.nodes or not after.nodes or max(len(before.nodes), len(after.nodes)) > MAX_NODES:
        return None
    both = merge_graphs(before, after)
    nodes, states = both.nodes, both.states
    seen, links = fold(nodes, both.edges, MAX_NODES_DRAWN, after.calls) if len(nodes) > MAX_NODES_DRAWN else (nodes, both.edges)
    place = {member: i for i, node in enumerate(seen) for member in node.members}
    looks: dict[int, str] = {}
    beside: dict[int, tuple[str, ...]] = {}
    for i, node in enumerate(seen):
        kinds = [states[member] for member in node.members]
        if set(kinds) in ({"new"}, {"gone"}):
            looks[i] = kinds[0]
        elif len(kinds) == 1 and both.words[node.members[0]]:
            beside[i] = (both.words[node.members[0]],)
        elif set(kinds) != {"same"}:
            beside[i] = tuple(f"{kinds.count(kind)} {kind}" for kind in ("changed", "new", "gone") if kind in kinds)
    drawn: dict[tuple[int | None, int | None], set[str]] = {}
    for edge, state in zip(both.edges, both.edge_states, strict=True):
        drawn.setdefault((place.get(edge.source), place.get(edge.target)), set()).add(state)
    marks = {}
    for i, edge in enumerate(links):
        kinds_of = drawn.get((edge.source, edge.target), {"same"})
        marks[i] = EdgeMark(1.0 if kinds_of == {"gone"} else 2.4 if kinds_of == {"new"} else 1.2, against=kinds_of == {"gone"})
    counted = ", ".join(f"{states.count(kind)} {kind}" for kind in ("changed", "new", "gone") if kind in states)
    note = f"before and after: {count(len(nodes), 'node')}, {counted or 'nothing changed'}"
    said = {"new": "heavy: new", "gone": "faded, dashed: gone"}
    shown = {*looks.values(), *("gone" for mark in marks.values() if mark.against)}
    legend = " · ".join(text_ for kind, text_ in said.items() if kind in shown)
    alt = first_lines(f"{note}\n{text}", 2_000)
    return paint(seen, links, note=note, text=text, alt=alt, marks=marks, beside=beside, looks=looks, legend=legend)
