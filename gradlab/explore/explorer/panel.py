"""The panel of one node of a trace as plain data, with the numbers of the live graph if that is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradlab.core.numpy_warnings import silence
from gradlab.explore.drawing import GRADIENT, VALUE
from gradlab.explore.equivalent_code import EquivalentCode, is_code
from gradlab.explore.explorer.live import Live, NodeSweep
from gradlab.explore.graph.painting import share_text
from gradlab.explore.graph.ports import short_number
from gradlab.explore.heat import heatmap
from gradlab.explore.heat_colours import SIGNED, VALUES
from gradlab.explore.histogram import histogram
from gradlab.explore.markup import count, shape_text, size_text
from gradlab.explore.rule_math import rule_of
from gradlab.explore.statistics import finite_statistics
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace
from gradlab.explore.trace.values import Value

CELLS = 24  # rows and columns of a map
SIDE = 180  # size of a map in pixels
PITCH = 21  # maximal size of a cell in pixels, so that numbers are readable and two maps do not fill the panel
FEW = 12  # numbers that are shown in a row
MANY = 2_000_000  # elements beyond which there is no histogram


def panel(trace: Trace, i: int, live: Live | None, out: Sequence[str], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the details of node `i`.

    Parameters
    ----------
    trace : Trace
    i : int
    live : Live or None
        The graph, if it is held.
    out : sequence of str
        The outputs in code.
    names : mapping of str to str
        "alias" and "package" of the library in code, and "weights".
    """
    node = trace.nodes[i]
    met, trouble = NodeSweep(), ""
    if live is not None:
        try:
            met = live.sweep_node(i)
        except RuntimeError as error:
            trouble = str(error)
    value = live.value(i) if live is not None else None
    ins, outs = _edges(trace, i)
    sections: dict[str, Any] = {
        "node": i,
        "title": node.label,
        "about": _about(node),
        "value": _tensor(value, node.value, "value"),
        "gradient": _tensor(met.arrived, node.gradient, "gradient"),
        "came": _contributions(trace, node, outs),
        "handed": _input_gradients(trace, ins),
        "trouble": trouble,
        "code": _by_hand(node, out, names),
    }
    if not sections["gradient"] and trace.sweep:
        sections["none"] = "no gradient reached this node"
    if live is not None and node.kind == "operation":
        saved = live.saved(i)
        sections["saved"] = {
            "tensors": [[name, shape_text(shape), dtype, size_text(size)] for name, shape, dtype, size in saved],
            "bytes": size_text(sum(size for *_, size in saved)),
        }
        sections["rule"] = rule_of(live.library, live.nodes[i]) if i < len(live.nodes) else None
        sections["local"] = _local(trace, node, live, i, met)
    return sections


def _about(node: GraphNode) -> list[list[str]]:
    """Return the facts below the title, as [word, text]."""
    facts = [["operation", node.operation]] if node.kind == "operation" else [["kind", node.kind]]
    if node.name:
        facts.append(["name", node.name])
    if node.shape is not None:
        facts.append(["shape", " ".join(filter(None, (shape_text(node.shape), node.dtype)))])
    if node.detail and node.kind in ("leaf", "operation"):
        facts.append(["tensor", node.detail])
    if node.place is not None:
        facts.append(["line", f"{node.place.where}: {node.place.source}" if node.place.source else node.place.where])
    if node.layer:
        facts.append(["module", node.layer])
    return facts


def _edges(trace: Trace, i: int) -> tuple[list[GraphEdge], list[GraphEdge]]:
    return [edge for edge in trace.edges if edge.target == i], [edge for edge in trace.edges if edge.source == i]


def _node_text(node: GraphNode) -> str:
    return f"{node.name} = {node.label}" if node.name and node.kind == "operation" else node.label


def _contributions(trace: Trace, node: GraphNode, outs: Sequence[GraphEdge]) -> dict[str, Any]:
    """Return the contribution of each use of a node to its gradient: norm, share, and the sum if it is scalar."""
    rows = []
    for edge in outs:
        target = trace.nodes[edge.target]
        share = share_text(edge.share) if edge.share is not None and len(outs) > 1 else ""
        rows.append([edge.target, _node_text(target), "" if edge.gradient is None else short_number(edge.gradient.norm), share])
    total = ""
    parts = [edge.gradient for edge in outs]
    if len(parts) > 1 and node.gradient is not None:
        if all(part is not None and part.numbers is not None and len(part.numbers) == 1 for part in parts):
            terms = [short_number(part.numbers[0]) for part in parts if part is not None and part.numbers is not None]
            numbers = node.gradient.numbers
            if numbers:
                total = " + ".join(terms).replace("+ −", "− ") + f" = {short_number(numbers[0])}"
        elif node.gradient.all_zero and any(part is not None and part.norm > 0 for part in parts):
            total = " and ".join(short_number(part.norm) for part in parts if part is not None) + " cancel"
    return {"rows": rows, "sum": total}


def _input_gradients(trace: Trace, ins: Sequence[GraphEdge]) -> list[list[Any]]:
    """Return the gradient of each input from this node: its norm, and its share in the gradient of the input."""
    return [
        [
            edge.source,
            _node_text(trace.nodes[edge.source]),
            "" if edge.gradient is None else short_number(edge.gradient.norm),
            share_text(edge.share) if edge.share is not None and abs(edge.share - 1) > 1e-6 else "",
        ]
        for edge in ins
    ]


# -------------------------------------------------------------------------------------------------------------- numbers
def _tensor(array: np.ndarray | None, known: Value | None, kind: str) -> dict[str, Any] | None:
    """Return the data of a value or a gradient: norm, range, and the numbers if there are few, else a map and a histogram."""
    if array is None and known is None:
        return None
    if array is not None and array.dtype.kind not in "fiub":
        array = None if known is not None else np.abs(array)
    facts: dict[str, Any] = {"kind": kind}
    if known is not None:
        facts["norm"] = short_number(known.norm)
        facts["odd"] = ", ".join(
            count(many, word) for many, word in ((known.nans, "NaN"), (known.infs, "infinity")) if many
        ).replace("NaNs", "NaN")
    numbers = known.nested_numbers if known is not None else None
    if array is None:
        if numbers is not None and known is not None:
            array = np.array(known.numbers).reshape(known.shape)
        elif known is not None and known.summary is not None:
            least, most, mean = (
                short_number(float(x)) for x in (known.summary.minimum, known.summary.maximum, known.summary.mean)
            )
            facts["range"] = _range(least, most, mean, known.zeros, known.size)
            if any(known.summary.bins):
                facts["bars"] = _bars(known.summary.bins, (least, most), kind)
            return facts
    if array is None or array.dtype.kind not in "fiub":
        facts["text"] = str(numbers)
        return facts
    array = np.asarray(array)
    facts.setdefault("norm", short_number(float(np.linalg.norm(array.astype(np.float64).reshape(-1)))))
    if array.size == 1:
        facts["text"] = short_number(array.reshape(-1)[0].item(), 6)
        return facts
    matrix = array.reshape(-1, array.shape[-1]) if array.ndim > 2 else array
    if array.size:
        facts["map"] = _map(matrix, kind)
        if max(matrix.shape) > FEW and array.size <= MANY:
            summary = finite_statistics(array.astype(np.float64).reshape(-1), histogram=True)
            if summary is not None:
                least, most, mean = (short_number(x) for x in (summary.minimum, summary.maximum, summary.mean))
                facts["range"] = _range(least, most, mean, summary.zeros, summary.size)
                facts["bars"] = _bars(summary.bins, (least, most), kind)
    return facts


def _map(matrix: np.ndarray, kind: str, name: str = "") -> str:
    """Return a heat map as SVG. Values have other colours than gradients."""
    anchors, what = VALUES if kind == "value" else SIGNED, "derivative" if name else kind
    drawing = heatmap(matrix, limit=CELLS, separate=CELLS**2, side=SIDE, pitch=PITCH, anchors=anchors, tips=True, what=what)
    return replace(drawing, alt=f"{name or kind}, {shape_text(matrix.shape)}\n{drawing.text}").inline()


def _bars(bins: Sequence[int], ends: tuple[str, str], kind: str) -> str:
    """Return a histogram as SVG."""
    return histogram(bins, ends, VALUE if kind == "value" else GRADIENT, f"histogram of the {kind}").inline()


def _range(least: str, most: str, mean: str, zeros: int, size: int) -> str:
    """Return the range of many numbers as text."""
    return f"from {least} to {most}, mean {mean}" + (f", {zeros:,} of {size:,} zero" if zeros else "")


def _local(trace: Trace, node: GraphNode, live: Live, i: int, met: NodeSweep) -> list[dict[str, Any]]:
    """Return the local Jacobian with respect to each input: its numbers, or its structure."""
    blocks = []
    for (source, handed), matrix in zip(met.handed, live.local(i, met), strict=True):
        label = _node_text(trace.nodes[source]) if 0 <= source < len(trace.nodes) else ""
        shape = None if met.arrived is None or handed is None else [met.arrived.size, handed.size]
        entry: dict[str, Any] = {"to": label, "node": source, "shape": shape}
        if matrix is not None:
            if matrix.dtype.kind in "fiub":
                entry["map"] = _map(matrix, "gradient", f"local Jacobian by {label}")
            entry["words"] = _structure(matrix)
        elif shape is not None:
            entry["words"] = _structure_by_shapes(node, trace, source, met, handed)
        blocks.append(entry)
    return blocks


def _structure(matrix: np.ndarray) -> str:
    """Return the structure of a matrix as text; "" if it has none."""
    if matrix.size == 1:
        return ""
    if not matrix.any():
        return "all zero"
    square = matrix.shape[0] == matrix.shape[1]
    with silence():
        beside = matrix - np.diag(np.diag(matrix)) if square else matrix
    if square and not beside.any():
        diagonal = np.diag(matrix)
        if (diagonal == diagonal[0]).all():
            return "the identity" if diagonal[0] == 1 else f"{short_number(diagonal[0].item())} times the identity"
        return "a diagonal"
    rows = (matrix != 0).sum(axis=1)
    if set(np.unique(matrix)) <= {0, 1} and (rows == 1).all():
        return "a selection: one 1 in each row"
    if (matrix == matrix.reshape(-1)[0]).all():
        return f"{short_number(matrix.reshape(-1)[0].item())} everywhere"
    zeros = 1 - np.count_nonzero(matrix) / matrix.size
    return f"{zeros:.0%} zeros" if zeros > 0.2 else ""


def _structure_by_shapes(node: GraphNode, trace: Trace, source: int, met: NodeSweep, handed: np.ndarray | None) -> str:
    """Return the structure of a large local Jacobian, if it follows from the kind of the operation."""
    from gradlab.core.registry import PRIMITIVES

    if met.arrived is None or handed is None:
        return ""
    kinds = {op.kind for op in PRIMITIVES.values() if op.node_name == node.operation}
    if kinds == {"elementwise"}:
        if met.arrived.shape == handed.shape:
            return "a diagonal: each element depends only on the corresponding one"
        return "a diagonal that is summed over the broadcast axes"
    return ""


# ----------------------------------------------------------------------------------------------------------------- code
def _by_hand(node: GraphNode, out: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return code that computes the node's gradient without an explorer, or the reason why there is none."""
    name = node.name.partition(", ")[0]
    if len(out) != 1:
        return {"says": "Code is written for one output; this view has several."}
    if not name or not is_code(name):
        where = f" on {node.place.where}" if node.place is not None else ""
        source = f" ({node.place.source})" if node.place is not None and node.place.source else ""
        return {"says": f"This tensor has no name. Give it one{where}{source} and run the cell again to see its code."}
    if node.kind == "output":
        return {"says": "The sweep starts here."}
    hand = EquivalentCode(names["alias"], names["package"], out[0], names.get("weights", ""))
    return {"code": hand.gradients([name]).text()}
