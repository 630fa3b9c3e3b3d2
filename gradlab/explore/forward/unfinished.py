"""The graph of a recorded cell that failed before it called backward, with the failed call at the end.

The graph is read from the tensor arguments of the failed call, so the picture has no cost unless a call fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.forward.failing import FailedCall, find_failed_call
from gradlab.explore.forward.labels import label_of
from gradlab.explore.forward.run import describe_given, passes
from gradlab.explore.graph.graphs import Graph
from gradlab.explore.graph.painting import paint
from gradlab.explore.libraries import Library, adapters
from gradlab.explore.markup import shape_text
from gradlab.explore.trace.data import GraphEdge, GraphNode
from gradlab.explore.trace.lines import Lines
from gradlab.explore.trace.reading import Names

SWEEPS = ("backward", "grad")  # these fail in the backward pass


class UnfinishedGraph(Graph):
    """The graph of a program that failed. Its last node is the failed call."""

    @property
    def _heading(self) -> str:
        return f"{self.nodes[-1].label}: failed"

    def _paint(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], note: str, alt: str) -> Drawing:
        last = len(self.nodes) - 1
        at = next(i for i, node in enumerate(nodes) if last in (node.members or (i,)))
        return paint(nodes, edges, note=note, text="", alt=alt, looks={at: "failed"}, beside={at: ("failed here",)})


@dataclass(frozen=True)
class Argument:
    """A tensor argument of the failed call. The tensor may have been deleted."""

    tensor: Any
    shape: tuple[int, ...] | None
    dtype: str


def draw_unfinished(recorder: Any, error: BaseException) -> UnfinishedGraph | None:
    """Return the graph of a recorded program that an error ended, or None if no call on tensors failed.

    Parameters
    ----------
    recorder : Recorder
    error : BaseException
    """
    found = _failed_call(recorder, error) if isinstance(error, Exception) else None
    if found is None:
        return None
    library, call, arguments = found
    if not arguments or call.label in SWEEPS:
        return None
    tensors = [one.tensor for one in arguments if one.tensor is not None]
    made = [one for one in tensors if one.requires_grad and not library.is_leaf(one)]
    trace, names = recorder.trace_unfinished(library, made)
    kept = len(trace.nodes) - len(made)  # the last nodes are outputs
    makers = {edge.target - kept: edge.source for edge in trace.edges if edge.target >= kept}
    nodes, edges = list(trace.nodes[:kept]), [edge for edge in trace.edges if edge.target < kept]
    leaves = {node.name: i for i, node in enumerate(nodes) if node.kind == "leaf" and node.name}
    sources: list[int] = []
    for argument in arguments:
        at = next((makers[i] for i, one in enumerate(made) if one is argument.tensor), None)
        if at is None:
            name = _name_of(argument.tensor, library, names)
            at = leaves.get(name) if name else None
        if at is None:
            at = len(nodes)
            nodes.append(_leaf(argument, name))
            leaves |= {name: at} if name else {}
        sources.append(at)
    path = names.models.get(id(call.module), "")
    given = describe_given([(one.shape, one.dtype) for one in arguments])
    label = f"{path}: {call.label}" if path else call.label
    failed = len(nodes)
    nodes.append(GraphNode("operation", label, detail=given, place=Lines().line(call.site), module=path))
    edges += [GraphEdge(source, failed, k, nodes[source].shape) for k, source in enumerate(dict.fromkeys(sources))]
    return UnfinishedGraph(replace(trace, nodes=tuple(nodes), edges=tuple(edges), recorded=True), level="operations")


def _name_of(tensor: Any, library: Library, names: Names) -> str:
    if tensor is None:
        return ""
    node = library.whole(library.node(tensor))
    return names.by_id.get(id(tensor), "") if node is None else ", ".join(names.by_node.get(node, ()))


def _leaf(argument: Argument, name: str) -> GraphNode:
    shape = shape_text(argument.shape) if argument.shape is not None else "tensor"
    detail = f"{shape} {argument.dtype}" if name else argument.dtype
    return GraphNode("leaf", name or shape, name, "", argument.shape, detail, dtype=argument.dtype)


def _failed_call(recorder: Any, error: Exception) -> tuple[Library, FailedCall, list[Argument]] | None:
    """Return the library, the call that raised an error, and its arguments, from the recorder or else from the traceback."""
    known = recorder.failed_call
    seen = known is not None and known.error == id(error) and passes(error, known.site)
    for library in adapters():
        call = find_failed_call(error, library)
        if call is not None and seen and call.module is None and library.name == "torch":
            arguments = [Argument(ref(), shape, dtype) for ref, shape, dtype in known.given]
            return library, call._replace(label=label_of(known.function, (), {})), arguments
        if call is None or not call.tensors or (call.outside and not isinstance(error, AssertionError)):
            continue  # the error may not be related to tensors
        return library, call, [Argument(one, library.shape_of(one), library.dtype_name(one)) for one in call.tensors]
    return None
