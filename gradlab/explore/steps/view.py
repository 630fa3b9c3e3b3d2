"""The data of a view of the steps, which is sent to a widget or stored in a saved page.

Few numbers are sent as they are, more as their norm. A view can show them, and multiply them for another scalar start, because a
reverse sweep is linear in its start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradlab.core.registry import PRIMITIVES
from gradlab.explore.equivalent_code import EquivalentCode, is_code
from gradlab.explore.graph.painting import figure
from gradlab.explore.graph.ports import port_of
from gradlab.explore.libraries import GRADLAB
from gradlab.explore.rule_math import rule_of
from gradlab.explore.source_lines import sources
from gradlab.explore.steps.data import Step
from gradlab.explore.steps.factors import Factor
from gradlab.explore.steps.step_text import local_text
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.values import FEW, Value, summarize

WHOLE = 60  # nodes of a graph that is drawn as a whole
MOST = 2_000  # steps of a view
SIDE = 16  # rows and columns of a local derivative that is sent as numbers

Number = dict[str, Any]  # {"shape": […], "numbers": […]} or {"shape": […], "norm": …}


def number(held: Any) -> Number | None:
    """Return a cotangent as data of a view."""
    if held is None:
        return None
    if isinstance(held, Value) and held.numbers is not None and not any(isinstance(x, complex) for x in held.numbers):
        return {"shape": list(held.shape), "numbers": [_safe(x) for x in held.numbers]}
    if isinstance(held, Value):
        return {"shape": list(held.shape), "norm": _safe(held.norm)}
    array = np.asarray(held)
    if array.size <= FEW and array.dtype.kind in "fiub":
        return {"shape": list(array.shape), "numbers": [_safe(x) for x in array.reshape(-1).tolist()]}
    return {"shape": list(array.shape), "norm": _safe(float(np.linalg.norm(array.reshape(-1))))}


def _safe(x: float) -> float | str:
    """Return a number that JSON can hold, or the name of a number that is not finite."""
    return x if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


def view(
    steps: Sequence[Step],
    trace: Trace,
    *,
    called: str,
    shape: Sequence[int],
    start: Any,
    notes: Sequence[str],
    linear: bool,
    values: bool = True,
) -> dict[str, Any]:
    """Return the data of a view.

    Parameters
    ----------
    called : str
        The name of the output.
    shape : sequence of int
        The shape of the output.
    linear : bool
        True if another start only multiplies all gradients: the start is one number, and no hook changes a gradient.
    values : bool
        False omits all numbers of tensors and the source.
    """
    shown = steps[:MOST]
    whole = len(trace.nodes) <= WHOLE
    places = [step.place for step in shown if step.place is not None] if values else []
    texts, spans = sources(trace, places)
    span = iter(spans)
    return {
        "out": called,
        "library": trace.library,
        "shape": list(shape),
        "start": number(start) if values else None,
        "linear": linear and values,
        "values": values,
        "count": len(steps),
        "figure": _figure(trace, shown, start, values=values) if whole else None,
        "nodes": _nodes(trace, shown, whole, values),
        "root": next((edge.source for edge in trace.edges if trace.nodes[edge.target].kind == "output"), 0),
        "sources": texts,
        "steps": [_step(step, trace, next(span) if values and step.place is not None else None, values) for step in shown],
        "sums": _sums(shown, values),
        "rules": _rules(trace, shown),
        "code": _code(trace, called) if values else "",
        "notes": list(notes),
    }


def _figure(trace: Trace, steps: Sequence[Step], start: Any, *, values: bool) -> dict[str, Any]:
    """Return the figure of the whole graph, with room for all gradients of a node, and without shares, which are known only at
    the end."""
    if values:
        room = _widest(trace, steps, start)
        nodes = [replace(node, gradient=room.get(i)) for i, node in enumerate(trace.nodes)]
    else:
        bare: dict[str, Any] = {"value": None, "gradient": None, "operands": (), "cell": None, "place": None, "detail": ""}
        nodes = [replace(node, **bare) for node in trace.nodes]
    return figure(nodes, [replace(edge, share=None, gradient=None) for edge in trace.edges], stepped=True)


def _widest(trace: Trace, steps: Sequence[Step], start: Any) -> dict[int, Value]:
    """Return the widest gradient of each node in any step."""
    found: dict[int, Value] = {}
    arrivals = [(i, start) for i in trace.outputs]
    for step in steps:
        arrivals += [(step.node, step.upstream), *((share["to"], share["total"]) for share in step.shares)]
    for i, held in arrivals:
        if isinstance(held, tuple):
            held = next((part for part in held if part is not None), None)
        if held is not None:
            value = held if isinstance(held, Value) else summarize(np.asarray(held))
            found[i] = max(found.get(i, value), value, key=lambda value: port_of(None, value, "", "", matrices=True).width)
    return found


def _nodes(trace: Trace, steps: Sequence[Step], whole: bool, values: bool) -> dict[str, list[Any]]:
    """Return [kind, label, name] by node. If the graph is not drawn as a whole, only nodes in the steps, with their values."""
    mentioned = set(range(len(trace.nodes))) if whole else {step.node for step in steps}
    if not whole:
        mentioned |= {share["to"] for step in steps for share in step.shares} | set(trace.outputs)
    nodes = {i: trace.nodes[i] for i in sorted(mentioned)}
    return {
        str(i): [node.kind, node.label, node.name.partition(", ")[0], *([] if whole or not values else [number(node.value)])]
        for i, node in nodes.items()
    }


def _step(step: Step, trace: Trace, span: Any, values: bool) -> dict[str, Any]:
    arrived = step.upstream if isinstance(step.upstream, tuple) else (step.upstream,)
    return {
        "node": step.node,
        "label": step.label,
        "operation": step.operation,
        "name": step.name,
        "line": step.line if values else None,
        "where": step.place.where if values and step.place is not None else "",
        "span": span,
        "module": trace.nodes[step.node].layer,
        "upstream": [number(part) if values else None for part in arrived],
        "hooked": step.hooked,
        "rule": step.rule if values else None,
        "shares": [
            {
                "to": share["to"],
                "name": share["name"],
                "local": _local(share["local"]) if values else None,
                "factor": _factor(share["factor"]) if values else None,
                "downstream": number(share["downstream"]) if values else None,
                "total": number(share["total"]) if values else None,
                "sum": place,
                "term": term,
            }
            for share, (place, term) in zip(step.shares, step.meets, strict=True)
        ],
    }


def _local(local: Any) -> dict[str, Any] | None:
    if local is None:
        return None
    data: dict[str, Any] = {"text": local_text(local)}
    if not isinstance(local, np.ndarray):
        data["number"] = _safe(float(local)) if isinstance(local, (int, float)) else None
    elif local.ndim == 2 and max(local.shape) <= SIDE and local.size > 1 and local.dtype.kind == "f":
        data["matrix"] = [[_safe(x) for x in row] for row in local.tolist()]
    return data


def _factor(factor: Factor | None) -> dict[str, Any] | None:
    return None if factor is None else {**vars(factor), "numbers": number(factor.numbers)}


def _sums(steps: Sequence[Step], values: bool) -> list[list[Any]]:
    """Return the steps and terms of each sum of cotangents, in order."""
    sums: list[list[Any]] = []
    for step in steps:
        for share, (place, _) in zip(step.shares, step.meets, strict=True):
            while len(sums) <= place:
                sums.append([])
            sums[place].append([step.number, number(share["downstream"]) if values else None])
    return [terms if len(terms) > 1 else [] for terms in sums]


def _rules(trace: Trace, steps: Sequence[Step]) -> dict[str, Any]:
    """Return the rules of gradlab's operations as formulas, by the names of the operations."""
    if trace.library != "gradlab":
        return {}
    known = {op.node_name: op for op in reversed(list(PRIMITIVES.values()))}
    rules = {}
    for name in dict.fromkeys(step.operation for step in steps):
        if name in known and (rule := rule_of(GRADLAB, known[name])) is not None:
            rules[name] = rule
    return rules


def _code(trace: Trace, called: str) -> str:
    """Return code that computes the same gradients, with \N{LOZENGE} in place of the start."""
    library = GRADLAB if trace.library == "gradlab" else None
    alias = library.alias if library is not None else "torch"
    leaves = [leaf.name for leaf in trace.leaves if leaf.name and is_code(leaf.name)]
    hand = EquivalentCode(alias, trace.library, called if is_code(called) else "out", "\N{LOZENGE}")
    return hand.gradients(leaves).text() if leaves else ""
