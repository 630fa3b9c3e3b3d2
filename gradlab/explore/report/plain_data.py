"""A report as plain data that JSON can hold, for `Report.to_dict`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any, TypedDict

from gradlab.explore.markup import to_text
from gradlab.explore.report.table import TensorRow
from gradlab.explore.statistics import Statistics
from gradlab.explore.trace.data import GraphEdge, GraphNode, Leaf, Trace
from gradlab.explore.trace.values import FEW, Value

if TYPE_CHECKING:
    from gradlab.explore.doctor.findings import Finding

VERSION = 1
Numbers = Any  # a number, nested lists of numbers, or None; numbers that JSON does not have are strings


class StatisticsData(TypedDict):
    """Statistics of the elements of an array, or of their absolute values if they are complex. Minimum, maximum and mean ignore
    elements that are not finite."""

    size: int
    norm: float | str
    minimum: float | str
    maximum: float | str
    mean: float | str
    nans: int
    infs: int
    zeros: int


class NodeData(TypedDict):
    """An operation, a leaf or an output of the graph. Lines are counted from 1, `%%grad` being line 1; columns from 0."""

    id: int
    name: str | None
    label: str
    operation: str | None
    line: int | None
    columns: list[int] | None
    source: str | None
    module: str | None
    shape: list[int] | None
    dtype: str | None
    value: Numbers
    gradient: Numbers
    value_stats: StatisticsData | None
    gradient_stats: StatisticsData | None


class EdgeData(TypedDict):
    """The gradient that went back along an edge. `source` and `target` are the `id` of nodes. The shares of all edges from a node
    sum to 1; a share may be negative."""

    source: int
    target: int
    argument: int
    shape: list[int] | None
    gradient: Numbers
    gradient_stats: StatisticsData | None
    share: float | str | None


class LeafData(TypedDict):
    """A leaf. `before` is the `.grad` before the sweep, `arrived` the gradient that was added to it; `node` is its node's
    `id`."""

    name: str | None
    node: int | None
    shape: list[int] | None
    dtype: str
    device: str
    value: Numbers
    gradient: Numbers
    before: Numbers
    arrived: Numbers
    value_stats: StatisticsData | None
    gradient_stats: StatisticsData | None
    before_stats: StatisticsData | None
    arrived_stats: StatisticsData | None


class RowData(TypedDict):
    """A row of the report's table of tensors. `remarks` are sentences."""

    name: str
    shape: list[int]
    dtype: str
    device: str
    is_leaf: bool
    value: Numbers
    gradient: Numbers
    value_stats: StatisticsData | None
    gradient_stats: StatisticsData | None
    remarks: list[str]


class FindingData(TypedDict):
    """A finding; the keys are the attributes of `Finding`. `severity` is "problem" or "note", `node` the `id` of its node."""

    kind: str
    severity: str
    message: str
    fix: str
    line: int | None
    lines: list[int]
    node: int | None
    model: str
    times: int
    evidence: dict[str, Any]


class ReportData(TypedDict):
    """A report as plain data. A change that could break a reader increases `version`. `scale` is the factor by which a GradScaler
    had multiplied the loss; all gradients are divided by it."""

    version: int
    scale: float | str
    leaves: list[LeafData]
    nodes: list[NodeData]
    edges: list[EdgeData]
    rows: list[RowData]
    findings: list[FindingData]
    remarks: list[FindingData]


def plain(trace: Trace, rows: Sequence[TensorRow], findings: Sequence[Finding], remarks: Sequence[Finding]) -> ReportData:
    """Return a report as plain data; see `Report.to_dict`."""
    return {
        "version": VERSION,
        "scale": safe(trace.scale),
        "leaves": [_leaf(leaf) for leaf in trace.leaves],
        "nodes": [_node(i, node) for i, node in enumerate(trace.nodes)],
        "edges": [_edge(edge) for edge in trace.edges],
        "rows": [_row(row) for row in rows],
        "findings": [finding_data(finding) for finding in findings],
        "remarks": [finding_data(finding) for finding in remarks],
    }


def safe(x: Any) -> Any:
    """Return a value that JSON can hold. Numbers that are not finite become "NaN", "Infinity" and "-Infinity", a complex number
    {"real": …, "imag": …}, and an unknown object its `str`."""
    if x is None or isinstance(x, (bool, str)):
        return x
    if isinstance(x, Integral):
        return int(x)
    if isinstance(x, Real):
        x = float(x)
        return x if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"
    if isinstance(x, Complex):
        return {"real": safe(x.real), "imag": safe(x.imag)}
    if isinstance(x, Mapping):
        return {str(key): safe(value) for key, value in x.items()}
    if isinstance(x, (Sequence, set, frozenset)) and not isinstance(x, (bytes, bytearray)):
        return [safe(item) for item in x]
    return str(x)


def _numbers(value: Value | None) -> Any:
    """Return a number for a scalar, nested lists for up to `FEW` elements, else None."""
    return None if value is None or value.size > FEW else safe(value.nested_numbers)


def stats(value: Value | Statistics | None) -> StatisticsData | None:
    """Return the statistics of an array as plain numbers, or None if there is no array."""
    if value is None:
        return None
    if isinstance(value, Value) and value.numbers is not None:
        return _of_few(value)
    s = value.statistics if isinstance(value, Value) else value
    return {
        "size": s.size,
        "norm": safe(float(value.norm)),
        "minimum": safe(s.minimum),
        "maximum": safe(s.maximum),
        "mean": safe(s.mean),
        "nans": s.nans,
        "infs": s.infs,
        "zeros": s.zeros,
    }


def _of_few(value: Value) -> StatisticsData:
    """Return the statistics of stored numbers without creating an array. Complex numbers count by their absolute values."""
    numbers = [abs(x) if isinstance(x, complex) else float(x) for x in value.numbers or ()]
    finite = [x for x in numbers if math.isfinite(x)]
    return {
        "size": len(numbers),
        "norm": safe(float(value.norm)),
        "minimum": min(finite, default="NaN"),
        "maximum": max(finite, default="NaN"),
        "mean": math.fsum(finite) / len(finite) if finite else "NaN",
        "nans": value.nans,
        "infs": value.infs,
        "zeros": value.zeros,
    }


def _shape(shape: Sequence[int] | None) -> list[int] | None:
    return None if shape is None else list(shape)


def _node(i: int, node: GraphNode) -> NodeData:
    place = next((p for p in (node.cell, node.place) if p is not None and p.in_cell), None)
    source = place or node.place
    return {
        "id": i,
        "name": node.name or None,
        "label": node.label,
        "operation": node.operation or None,
        "line": None if place is None else place.line,
        "columns": None if place is None or place.columns is None else list(place.columns),
        "source": (source.source or None) if source is not None else None,
        "module": node.layer or None,
        "shape": _shape(node.shape),
        "dtype": node.dtype or None,
        "value": _numbers(node.value),
        "gradient": _numbers(node.gradient),
        "value_stats": stats(node.value),
        "gradient_stats": stats(node.gradient),
    }


def _edge(edge: GraphEdge) -> EdgeData:
    return {
        "source": edge.source,
        "target": edge.target,
        "argument": edge.argument,
        "shape": _shape(edge.shape),
        "gradient": _numbers(edge.gradient),
        "gradient_stats": stats(edge.gradient),
        "share": safe(edge.share),
    }


def _leaf(leaf: Leaf) -> LeafData:
    return {
        "name": leaf.name or None,
        "node": leaf.node,
        "shape": _shape(leaf.shape),
        "dtype": leaf.dtype,
        "device": leaf.device,
        "value": _numbers(leaf.value),
        "gradient": _numbers(leaf.gradient),
        "before": _numbers(leaf.before),
        "arrived": _numbers(leaf.arrived),
        "value_stats": stats(leaf.value),
        "gradient_stats": stats(leaf.gradient),
        "before_stats": stats(leaf.before),
        "arrived_stats": stats(leaf.arrived),
    }


def _row(row: TensorRow) -> RowData:
    def few(numbers: tuple[Any, ...] | None) -> Any:
        return None if numbers is None else safe(Value(row.shape, row.dtype, numbers).nested_numbers)

    return {
        "name": row.name,
        "shape": list(row.shape),
        "dtype": row.dtype,
        "device": row.device,
        "is_leaf": row.is_leaf,
        "value": few(row.value_numbers),
        "gradient": few(row.gradient_numbers),
        "value_stats": stats(row.value),
        "gradient_stats": stats(row.gradient),
        "remarks": [to_text(note.text) for note in row.notes],
    }


def finding_data(finding: Finding) -> FindingData:
    """Return a finding as plain data."""
    return {
        "kind": finding.kind,
        "severity": "note" if finding.remark else "problem",
        "message": finding.message,
        "fix": finding.fix,
        "line": finding.line,
        "lines": list(finding.lines),
        "node": finding.node,
        "model": finding.model,
        "times": finding.times,
        "evidence": safe(finding.evidence),
    }
