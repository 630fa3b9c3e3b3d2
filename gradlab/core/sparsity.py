"""Which entries of a Jacobian can be nonzero, from the recorded graph alone: no number is sampled.

A declaration's `reads` says how an argument's elements reach the output:

    "own"     output elements read the element at their own place, after broadcasting
    "index"   each output element is one input element (views, joins, picks): the op itself runs on element numbers
    "into"    each input element is added into one output element: the op's transpose runs on element numbers
    "axes"    elements that agree outside the axes in the metadata read one another (reductions, softmax)
    "all"     every output element reads every input element
    function  (argument, its shape, output shape, metadata) -> (groups, source), as `flow` returns them, or a list of these
              where windows overlap and one partition of the input does not do: an output element reads what any of them says

One pass over the graph, oldest node first, carries for each node the sorted set of (element, input) pairs as integers
element * n + input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import on_host
from gradlab.core.engine import reachable
from gradlab.core.joint import Joint, single
from gradlab.core.node import Node


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """The element numbers 0, 1, 2 … in a shape."""
    return np.arange(prod(shape)).reshape(shape)


def axis_groups(x_shape: tuple[int, ...], out_shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Groups of elements that differ in the (negative) axes alone, and which group each output element reads."""
    groups = numbered(tuple(1 if i - len(x_shape) in axis else n for i, n in enumerate(x_shape)))
    source = np.broadcast_to(groups, out_shape) if out_shape == x_shape else groups.reshape(out_shape)
    return np.broadcast_to(groups, x_shape), source


Flow = tuple[np.ndarray | None, np.ndarray | None]


def flow(node: Node, arg: str, position: int, edge: Node) -> Flow | list[Flow]:
    """How an argument's elements reach the output: merged into `groups` (None: each its own; -1: nowhere), of which each
    output element reads one `source` (None: its own; -1: none)."""
    op, shape = node.op, edge.shape
    meta = dict(zip(op.meta, on_host(node.meta[1:] if op.variadic else node.meta), strict=True)) if op.meta else {}
    if op.reads == "own":
        return None, None if shape == node.shape else np.broadcast_to(numbered(shape), node.shape)
    if op.reads == "index":
        operands: list[Any] = [np.zeros(s, int) for s in node.meta[0]] if op.variadic else [None]
        operands[position] = numbered(shape) + 1  # 0 is what comes from elsewhere, or from nowhere
        return None, np.asarray(op(*operands, **meta)) - 1
    if op.reads == "into":
        return op.cotangent(arg, g=numbered(node.shape), xp=np, lead=(), **{f"{arg}_shape": shape}, **meta), None
    if op.reads == "axes":
        return axis_groups(shape, node.shape, meta["axis"])
    if op.reads == "all":
        return np.zeros(shape, int), np.zeros(node.shape, int)
    flows: Flow | list[Flow] = op.reads(arg, shape, node.shape, meta)
    return flows


class TooManyError(Exception):
    """A pattern has more entries than are wanted."""


def pattern(output: Node, x: Node, limit: int | None = None) -> tuple[np.ndarray, np.ndarray] | None:
    """(rows, columns), row-major, of the entries of d output / d x that can be nonzero; None if some node on the way has more
    than `limit`."""
    n = prod(x.shape)
    sets: dict[Node, np.ndarray] = {x: np.arange(n) * (n + 1)}
    nodes = [(node, single(node)) for node in reachable([output]) if type(node.op) is not Joint]  # its members are read
    waiting = Counter(edge for _, parent in nodes for edge in parent.edges)  # a set is kept for those that still read it
    try:
        for node, parent in reversed(nodes):
            if node.op is not None and node is not x:
                parts = list(_parts(parent, sets, n, limit))
                if parts:
                    sets[node] = parts[0] if len(parts) == 1 else distinct(np.concatenate(parts))
            for edge in parent.edges:
                waiting[edge] -= 1
                if edge is not None and not waiting[edge] and edge is not output:
                    sets.pop(edge, None)
    except TooManyError:
        return None
    keys = sets.get(output, np.arange(0))
    return keys // n, keys % n


def _parts(node: Node, sets: dict[Node, np.ndarray], n: int, limit: int | None) -> Iterable[np.ndarray]:
    """What each argument brings to a node's pattern, each set once."""
    parts: dict[int, np.ndarray] = {}
    args = [node.op.variadic] * len(node.edges) if node.op.variadic else list(node.op.rules)
    for position, (arg, edge) in enumerate(zip(args, node.edges, strict=True)):
        if edge is None or edge not in sets:
            continue
        flows = flow(node, arg, position, edge)
        for groups, source in flows if isinstance(flows, list) else [flows]:
            keys = sets[edge]
            if groups is not None:
                into = np.asarray(groups).ravel()[keys // n]
                keys = distinct((into * n + keys % n)[into >= 0])
            keys = keys if source is None else gathered(keys, np.asarray(source).ravel(), n, limit)
            parts[id(keys)] = keys
    return parts.values()


def distinct(keys: np.ndarray) -> np.ndarray:
    """The keys sorted, each once."""
    keys.sort(kind="stable")  # they are sorted runs, which this merges
    return keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys


def gathered(keys: np.ndarray, source: np.ndarray, n: int, limit: int | None = None) -> np.ndarray:
    """Rows `source` of a pattern, one after the other; a row -1 is empty."""
    start = np.searchsorted(keys, np.arange(source.max(initial=-1) + 2) * n)
    first_of = np.where(source >= 0, start[source], 0)
    count = np.where(source >= 0, start[source + 1] - first_of, 0)
    first = np.cumsum(count) - count
    total = int(count.sum())
    if limit is not None and total > limit:
        raise TooManyError
    at = np.arange(total) + np.repeat(first_of - first, count)
    elements: np.ndarray = np.repeat(np.arange(source.size), count) * n + keys[at] % n
    return elements
