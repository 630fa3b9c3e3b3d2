"""An autograd graph as plain data: what the explorers draw, fold and print.

The graph is read once, through a `Library`, without recursion; afterwards nothing here refers to a tensor, a node or
an array. Nodes are operations, edges carry tensors. Nodes are numbered *spine first*: each after what it is computed
from, and of its inputs the deepest first. Equal programs give equal numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.labels import written
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.words import count, number, shape_text

Shape = tuple[int, ...]

SETTINGS = ("dim", "dims", "dim0", "dim1", "axis", "axes", "exponent")  # what a label may tell; see `labels.written`
NAMES_SHOWN = 3  # of one node


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of the picture.

    Attributes
    ----------
    kind : str
        "leaf", "operation", "output", or "folded" for many of them.
    label : str
        What the user wrote for the operation: "mean(0)". Of a leaf or an output its name.
    name : str
        The user's name for the tensor, or "".
    operation : str
        "MeanBackward1", "AccumulateGrad"; of an output "".
    shape : tuple of int, or None
        Of the tensor that the node makes, where the library tells.
    detail : str
        What is said below the label besides.
    count : int
        How many nodes this one stands for.
    inside : tuple of str
        Of a node that stands for many the user's names of the leaves among them.
    line, source : str
        Of an operation, where in the program it was recorded ("cell line 3", "x.exp()"), if that was noted.
    members : tuple of int
        The numbers that the nodes it stands for had before folding, where the reader of the graph set them.
    """

    kind: str
    label: str
    name: str = ""
    operation: str = ""
    shape: Shape | None = None
    detail: str = ""
    count: int = 1
    inside: tuple[str, ...] = ()
    members: tuple[int, ...] = ()
    line: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """The tensor that node `source` hands to node `target` as its argument number `argument`."""

    source: int
    target: int
    argument: int
    shape: Shape | None = None


def inputs_of(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> list[list[int]]:
    """The sources of each node's edges, in the order of the edges."""
    inputs: list[list[int]] = [[] for _ in nodes]
    for edge in edges:
        inputs[edge.target].append(edge.source)
    return inputs


def renumbered(
    nodes: Sequence[GraphNode] | Mapping[int, GraphNode], edges: Sequence[GraphEdge], order: Sequence[int]
) -> tuple[list[GraphNode], list[GraphEdge]]:
    """The graph with its nodes in another order; edges by target and argument."""
    place = {node: i for i, node in enumerate(order)}
    moved = [GraphEdge(place[e.source], place[e.target], e.argument, e.shape) for e in edges]
    return [nodes[node] for node in order], sorted(moved, key=lambda e: (e.target, e.argument))


def read(
    outputs: Sequence[Any], names: Mapping[str, Any], most: int | None = None
) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
    """The nodes and edges behind tensors that require grad; of a graph of more than `most` nodes the `most` + 1 nearest to the
    outputs, and one for each output."""
    library = library_of(outputs[0])
    assert library is not None
    roots = [library.whole(library.node(output)) for output in outputs]
    nodes, inputs = spine_first(library, roots, most)
    index = {node: i for i, node in enumerate(nodes)}
    named = _names_of_nodes(library, names)
    shapes = [library.shape(node) for node in nodes]
    found: list[GraphNode] = []
    edges: list[GraphEdge] = []
    leaves = 0
    for i, node in enumerate(nodes):
        operation, name = library.name_of(node), ", ".join(named.get(node, ())[:NAMES_SHOWN])
        if operation == "AccumulateGrad" or (not inputs[i] and library.variable(node) is not None):
            leaves += not name
            found.append(GraphNode("leaf", name or f"leaf {leaves}", name, operation, shapes[i]))
            continue
        first = next((shapes[index[source]] for source in inputs[i] if source is not None), None)
        label = written(operation, _settings(library, node), None if first is None else len(first))
        line, source = library.place(node)
        found.append(GraphNode("operation", label, name, operation, shapes[i], line=line, source=source))
        edges += [
            GraphEdge(index[source], i, argument, shapes[index[source]])
            for argument, source in enumerate(inputs[i])
            if source is not None
        ]
    own: dict[int, str] = {}
    for name, tensor in names.items():
        own.setdefault(id(tensor), name)
    uses = Counter(edge.source for edge in edges)
    for position, (output, root) in enumerate(zip(outputs, roots, strict=True), start=1):
        name, shape = own.get(id(output), ""), tuple(output.shape)
        label = name or ("output" if len(outputs) == 1 else f"output {position}")
        made_by = found[index[root]]
        if made_by.kind == "operation" and made_by.name == name and not uses[index[root]]:
            found[index[root]] = replace(made_by, name="")  # it is said next door
        edges.append(GraphEdge(index[root], len(found), 0, shape))
        found.append(GraphNode("output", label, name, "", shape, _value(library, output)))
    return tuple(found), tuple(edges)


def spine_first(library: Library, roots: Sequence[Any], most: int | None = None) -> tuple[list[Any], list[list[Any]]]:
    """All nodes behind `roots`, each after its inputs and the deepest of these first; and the inputs of each. Of more than `most`
    nodes those nearest to the roots; what is further away is None among the inputs.

    An operation's parameters so come just before it, and the layers of a network are intervals one after another. The
    result holds every node, so that identities stay valid.
    """
    inputs: dict[Any, list[Any]] = {}
    kept = None if most is None else _nearest(library, roots, most)

    def sources(node: Any) -> list[Any]:
        inputs[node] = [library.whole(source) for source in library.inputs(node)]
        if kept is not None:
            inputs[node] = [source if source in kept else None for source in inputs[node]]
        return [source for source in inputs[node] if source is not None]

    depth: dict[Any, int] = {}
    for node in _after_their_sources(roots, sources):
        depth[node] = max((depth[source] + 1 for source in inputs[node] if source is not None), default=0)
    ordered = _after_their_sources(
        roots, lambda node: sorted((source for source in inputs[node] if source is not None), key=lambda source: -depth[source])
    )
    return ordered, [inputs[node] for node in ordered]


def _nearest(library: Library, roots: Sequence[Any], most: int) -> set[Any] | None:
    """The nodes that take the fewest steps from the roots, one more than `most` of them; None if there are no more."""
    found: dict[Any, None] = dict.fromkeys(roots)
    order = list(found)
    for node in order:  # grows while it is read
        for source in library.inputs(node):
            source = library.whole(source)
            if source is not None and source not in found:
                found[source] = None
                order.append(source)
                if len(order) > most:
                    return set(order)
    return None


def _after_their_sources(roots: Sequence[Any], sources: Callable[[Any], list[Any]]) -> list[Any]:
    """A depth-first search: each node after its sources, the first of these first. Each is asked for once."""
    ordered: list[Any] = []
    seen: set[Any] = set()
    waiting: list[tuple[Any, bool]] = [(root, False) for root in reversed(roots)]
    while waiting:
        node, done = waiting.pop()
        if done:
            ordered.append(node)
        elif node not in seen:
            seen.add(node)
            waiting.append((node, True))
            waiting += [(source, False) for source in reversed(sources(node)) if source not in seen]
    return ordered


def _names_of_nodes(library: Library, names: Mapping[str, Any]) -> dict[Any, list[str]]:
    """The names of the tensors that each node made; of two names for one tensor the first."""
    found: dict[Any, list[str]] = {}
    seen: set[int] = set()
    for name, tensor in names.items():
        if id(tensor) not in seen and library_of(tensor) is library:
            seen.add(id(tensor))
            node = library.whole(library.node(tensor))
            if node is not None:
                found.setdefault(node, []).append(name)
    return found


def _settings(library: Library, node: Any) -> dict[str, Any]:
    """The axes and the exponent that a node keeps."""
    found: dict[str, Any] = {}
    for key in SETTINGS:
        value = library.setting(node, key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found[key] = value
        elif isinstance(value, (tuple, list)) and value and all(isinstance(axis, int) for axis in value):
            found[key] = tuple(value)
    return found


def _value(library: Library, output: Any) -> str:
    """ "scalar −0.2749" of a tensor with one element, "3 elements" of a vector, "6×4" of others."""
    shape = tuple(output.shape)
    if math.prod(shape) != 1:
        return shape_text(shape) if len(shape) > 1 else count(shape[0], "element")
    value = library.array(output).reshape(-1)[0]
    said = f"{complex(value):.4g}" if value.dtype.kind == "c" else number(float(value))
    return f"{shape_text(shape)} {said}" if not shape else f"{shape_text(shape)}: {said}"
