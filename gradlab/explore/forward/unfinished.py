"""The graph of a recorded cell that failed before it called backward: as far as it came, with the call that failed at its end.

What the cell computed is read from the tensors that the failed call was given, as every graph is. So the picture costs nothing
until something fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.forward.failing import FailedCall, find_failed_call
from gradlab.explore.forward.labels import SIGNS
from gradlab.explore.forward.run import describe_given
from gradlab.explore.graph.graphs import Graph
from gradlab.explore.graph.painting import paint
from gradlab.explore.libraries import adapters, library_of
from gradlab.explore.markup import shape_text
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace
from gradlab.explore.trace.lines import Lines

SWEEPS = ("backward", "grad")  # what fails there is no part of a forward pass


class UnfinishedGraph(Graph):
    """The graph of a program that failed. Its last node is the call that did."""

    @property
    def _heading(self) -> str:
        return f"{self.nodes[-1].label}: failed"

    def _painted(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], note: str, alt: str) -> Drawing:
        last = len(self.nodes) - 1
        at = next(i for i, node in enumerate(nodes) if last in (node.members or (i,)))
        return paint(nodes, edges, note=note, text="", alt=alt, looks={at: "failed"}, beside={at: ("failed here",)})


def draw_unfinished(recorder: Any, error: BaseException) -> UnfinishedGraph | None:
    """Return the graph of a recorded program that an error ended, or None if no call on tensors failed.

    Parameters
    ----------
    recorder : Recorder
    error : BaseException
    """
    found = _failed_call(recorder, error)
    if found is None or not found.tensors or found.label in SWEEPS:
        return None
    library = library_of(found.tensors[0])
    assert library is not None
    tensors = [one for one in found.tensors if library.is_tensor(one)]
    made = [one for one in tensors if one.requires_grad and not library.is_leaf(one)]
    trace, names = recorder.unfinished(library, made)
    ends = {edge.target: edge for edge in trace.edges if trace.nodes[edge.target].kind == "output"}
    kept = len(trace.nodes) - len(made)
    nodes = list(trace.nodes[:kept])
    leaves = {node.name: i for i, node in enumerate(nodes) if node.kind == "leaf" and node.name}
    edges = [edge for edge in trace.edges if edge.target < kept]
    sources: list[int] = []
    for tensor in tensors:
        at = next((i for i, one in enumerate(made) if one is tensor), None)
        if at is not None:
            sources.append(ends[kept + at].source)
            continue
        node = library.whole(library.node(tensor))
        name = ", ".join(names.by_node.get(node, ())) if node is not None else names.by_id.get(id(tensor), "")
        if name not in leaves:
            shape, dtype = library.shape_of(tensor), library.dtype_name(tensor)
            text = shape_text(shape) if shape is not None else ""
            leaves[name or f"argument {len(leaves)}"] = at = len(nodes)
            nodes.append(GraphNode("leaf", name or text, name, "", shape, f"{text} {dtype}" if name else dtype, dtype=dtype))
        sources.append(leaves[name] if name in leaves else len(nodes) - 1)
    path = names.models.get(id(found.module), "")
    given = describe_given([(library.shape_of(one), library.dtype_name(one)) for one in tensors])
    place = Lines().line(found.site)
    label = f"{path}: {found.label}" if path else found.label
    failed = len(nodes)
    nodes.append(GraphNode("operation", label, detail=given, place=place, module=path))
    edges += [GraphEdge(source, failed, k, nodes[source].shape) for k, source in enumerate(dict.fromkeys(sources))]
    whole = Trace(library.name, tuple(nodes), tuple(edges), calls=trace.calls, objects=trace.objects, recorded=True)
    return UnfinishedGraph(replace(whole, source=trace.source, program=trace.program), level="operations")


def _failed_call(recorder: Any, error: BaseException) -> FailedCall | None:
    for library in adapters():
        found = find_failed_call(error, library)
        if found is not None and found.tensors:
            break
    else:
        found = None
    known = recorder.failed_call
    if known is not None and known[0] == id(error) and (found is None or found.module is None):
        tensors = [one for ref in known[2] if (one := ref()) is not None]
        if tensors:
            return FailedCall(None, SIGNS.get(known[1], known[1].strip("_")), tensors, None if found is None else found.site)
    if found is not None and found.outside and not isinstance(error, AssertionError):
        return None  # nothing says that tensors are to blame
    return found
