"""Forward sweep over a recorded graph: Ju. It visits the nodes of the reverse sweep in opposite order and recomputes nothing.

(Tangents that are computed together with the operations are in core.tangents.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.engine import MIN_SIZE_IN_PLACE, check_not_overwritten, unpack_saved
from gradlab.core.modes import mode
from gradlab.core.node import Node
from gradlab.core.numpy_warnings import filter_is_overridden, silence
from gradlab.core.search import reachable_nodes
from gradlab.core.storage import clock


def jvp_sweep(
    outputs: Sequence[Node], tangents: Mapping[Node, Any], lead: tuple[int, ...] = (), *, traced: bool = False
) -> list[Any]:
    """Run the forward sweep from {node: tangent}. Return the tangents of the output nodes, None for those not reached."""
    before = mode.grad
    mode.grad = traced
    try:
        with silence() if filter_is_overridden() else nullcontext():
            return _forward(outputs, tangents, lead, traced)
    finally:
        mode.grad = before


def _forward(outputs: Sequence[Node], tangents: Mapping[Node, Any], lead: tuple[int, ...], traced: bool) -> list[Any]:
    values = dict(tangents)
    nodes = reachable_nodes(outputs)
    readers = Counter(edge for node in nodes for edge in node.edges)  # a tangent is freed after its last reader
    readers.update(outputs)
    for node in reversed(nodes):
        inputs_of_node = [values.get(edge) if edge is not None else None for edge in node.edges]
        for edge in node.edges:
            readers[edge] -= 1
            if edge is not None and not readers[edge]:
                values.pop(edge, None)
        if node.op is None or node in tangents or all(t is None for t in inputs_of_node):
            continue
        kept = node.saved
        if type(kept) is not tuple:
            node.saved = unpack_saved(node)
        elif clock.last_write < node.order:
            check_not_overwritten(node)
        if node.op.kind in ("elementwise", "bilinear"):  # these broadcast: pad between batch axes and own axes
            inputs_of_node = [t if t is None else pad_axes(t, lead, len(node.shape)) for t in inputs_of_node]
        try:
            parts = [
                p for p in (node.op.traced_jvp if traced else node.op.jvp)(node, inputs_of_node, None, lead) if p is not None
            ]
        finally:
            node.saved = kept
        if not parts:
            continue
        t = parts[0]
        owned = not traced and t.size >= MIN_SIZE_IN_PLACE and t.base is None and all(t is not other for other in inputs_of_node)
        for part in parts[1:]:
            if owned and part.shape == t.shape and part.dtype == t.dtype:
                t += part
            else:
                t, owned = t + part, False
        if t.shape != lead + node.shape:
            t = namespace_of[type(t)].broadcast_to(t, lead + node.shape)
        values[node] = t if getattr(t, "array", t).dtype == node.dtype else namespace_of[type(t)].astype(t, node.dtype)
    return [values.get(node) for node in outputs]


def pad_axes(t: Any, lead: tuple[int, ...], ndim: int) -> Any:
    """Insert axes of length 1 between the batch axes and the own axes of a tangent of lower rank."""
    k = len(lead)
    return t if t.ndim >= k + ndim else t.reshape(lead + (1,) * (k + ndim - t.ndim) + t.shape[k:])
