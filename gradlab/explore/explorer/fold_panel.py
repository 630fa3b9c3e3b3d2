"""The panel of a group of nodes, such as a module or a line of code: its inputs, outputs and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.graph.chips import operand_text
from gradlab.explore.graph.ports import elements, short_number
from gradlab.explore.graph.rows import total
from gradlab.explore.graph.spans import is_parameter
from gradlab.explore.labels import steps_of
from gradlab.explore.markup import count, shape_text
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace

LISTED = 24  # parameters
DATA = 4  # inputs that need no gradient


def fold_panel(trace: Trace, members: Sequence[int]) -> dict[str, Any]:
    """Return the data of the panel of a group of nodes.

    Parameters
    ----------
    trace : Trace
    members : sequence of int
        Indices of nodes, with or without the leaves that only they use.

    Returns
    -------
    dict
        "about": [word, text] pairs. "inputs": for each input, its node (−1 if it requires no gradient), name, shape, and the
        gradient from this group, or its norm. "of": the module that contains all parameters. "parameters": for each parameter,
        its node, name in that module, shape, ‖gradient‖, ‖weights‖ and their ratio; if there are several, the last row is for all
        together.
    """
    nodes = trace.nodes
    inside = {i for i in members if nodes[i].kind not in ("leaf", "output")}
    entering: dict[int, list[GraphEdge]] = {}
    shared: set[int] = set()
    for edge in trace.edges:
        if edge.target in inside and edge.source not in inside:
            entering.setdefault(edge.source, []).append(edge)
        elif edge.source not in inside:
            shared.add(edge.source)  # used outside too
    path = _common_module([nodes[i].layer for i in inside])
    parameters = {i for i in entering if i not in shared and _is_parameter(nodes[i], path)}
    inputs = [
        [i, _node_text(nodes[i]), _shape(nodes[i]), _input_gradient(nodes[i], edges, i in shared)]
        for i, edges in sorted(entering.items())
        if i not in parameters
    ]
    within = path or _common_module(["".join(steps_of(nodes[i].label)[:-1]) for i in parameters])
    texts = dict.fromkeys(operand_text(one) for i in sorted(inside) for one in nodes[i].operands if one.kind == "input")
    inputs += [[-1, text, "", ""] for text in filter(None, texts)][:DATA]
    return {
        "about": _about(trace, sorted(inside), path),
        "inputs": inputs,
        "of": within if parameters else "",
        "parameters": _parameters(nodes, sorted(parameters), within),
    }


def _about(trace: Trace, inside: Sequence[int], path: str) -> list[list[str]]:
    kinds = {call.path: call.kind for call in trace.layers}
    facts = [["kind", kinds[path]]] if kinds.get(path) else []
    facts.append(["size", count(len(inside), "operation")])
    places = {place for i in inside if (place := trace.nodes[i].cell or trace.nodes[i].place) is not None}
    if len(places) == 1:
        [place] = places
        facts.append(["line", f"{place.where}: {place.statement or place.source}"])
    return [*facts, ["module", path]] if path else facts


def _common_module(paths: Sequence[str]) -> str:
    """Return the innermost module that contains all paths; "" if there is none."""
    parts = [steps_of(path) for path in paths]
    shared = 0
    while parts and all(len(one) > shared and one[shared] == parts[0][shared] for one in parts):
        shared += 1
    return "".join(parts[0][:shared]) if shared else ""


def _is_parameter(node: GraphNode, path: str) -> bool:
    """Return True if a leaf belongs to the module of the nodes, or to any module if the nodes are of several."""
    return node.kind == "leaf" and (is_parameter(node, path) if path else len(steps_of(node.label)) > 1)


def _node_text(node: GraphNode) -> str:
    return f"{node.name} = {node.label}" if node.name and node.kind == "operation" else node.label


def _shape(node: GraphNode) -> str:
    return "" if node.shape is None else shape_text(node.shape)


def _input_gradient(node: GraphNode, edges: Sequence[GraphEdge], shared: bool) -> str:
    """Return the gradient that the group passed to an input; "" if it has several parts whose sum is unknown."""
    gradient = node.gradient if not shared else edges[0].gradient if len(edges) == 1 else None
    if gradient is None:
        return ""
    numbers = elements(gradient)
    return f"gradient {numbers[0]}" if len(numbers) == 1 else f"‖gradient‖ {short_number(gradient.norm)}"


def _parameters(nodes: Sequence[GraphNode], parameters: Sequence[int], path: str) -> list[list[Any]]:
    norms = [
        (None if node.gradient is None else node.gradient.norm, None if node.value is None else node.value.norm)
        for node in (nodes[i] for i in parameters)
    ]
    rows = [
        [i, _relative(nodes[i].label, path), _shape(nodes[i]), *_figures(*pair)]
        for i, pair in zip(parameters, norms, strict=True)
    ]
    left = len(rows) - LISTED
    if len(rows) > 1:
        both = (total([pair[k] for pair in norms]) for k in (0, 1))
        more = f"all {len(rows)}, of which {left} are not listed" if left > 0 else "all"
        return [*rows[:LISTED], [-1, more, "", *_figures(*both)]]
    return rows


def _relative(name: str, path: str) -> str:
    """Return a name relative to its module: "weight" for "net[0].weight" in "net[0]"."""
    rest = name.removeprefix(path)
    return rest.removeprefix(".") if rest[:1] in (".", "[") else name


def _figures(gradient: float | None, value: float | None) -> list[str]:
    """Return ‖gradient‖, ‖weights‖ and their ratio as texts."""
    ratio = short_number(gradient / value, 2) if gradient is not None and value else ""
    return ["" if gradient is None else short_number(gradient), "" if value is None else short_number(value), ratio]
