"""Compute the sparsity pattern of a Jacobian from the recorded graph, without evaluating any numbers.

A declaration's `reads` says how the elements of an argument reach the output:

    "own"     an output element reads the input element at its own position, after broadcasting
    "index"   each output element is one input element (views, joins, indexing): the op itself runs on element numbers
    "into"    each input element is added into one output element: the op's transpose runs on element numbers
    "axes"    elements that agree outside the axes in the metadata read one another (reductions, softmax)
    "all"     every output element reads every input element
    function  (argument, its shape, output shape, metadata) -> (groups, source), as `flow` returns them; or a list of these
              if windows overlap, so that one partition of the input is not enough: an output element reads the union

The graph is visited once, oldest node first. Each node gets the sorted set of its (element, input) pairs, stored as integers
element * n + input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import tree_to_host
from gradlab.core.joint import Joint, member_of_output
from gradlab.core.node import Node
from gradlab.core.search import reachable_nodes


def number_elements(shape: tuple[int, ...]) -> np.ndarray:
    """Return the element numbers 0, 1, 2 … in the given shape."""
    return np.arange(prod(shape)).reshape(shape)


def axis_groups(x_shape: tuple[int, ...], out_shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return groups of elements that differ only along the (negative) axes, and the group that each output element reads."""
    groups = number_elements(tuple(1 if i - len(x_shape) in axis else n for i, n in enumerate(x_shape)))
    source = np.broadcast_to(groups, out_shape) if out_shape == x_shape else groups.reshape(out_shape)
    return np.broadcast_to(groups, x_shape), source


Flow = tuple[np.ndarray | None, np.ndarray | None]


def flow(node: Node, arg: str, position: int, edge: Node) -> Flow | list[Flow]:
    """Return (groups, source), which say how the elements of an argument reach the output.

    `groups` gives the group of each input element (None: one group each; -1: dropped). `source` gives the group that each output
    element reads (None: its own; -1: none).
    """
    op, shape = node.op, edge.shape
    meta = dict(zip(op.meta, tree_to_host(node.meta[1:] if op.variadic else node.meta), strict=True)) if op.meta else {}
    if op.reads == "own":
        return None, None if shape == node.shape else np.broadcast_to(number_elements(shape), node.shape)
    if op.reads == "index":
        operands: list[Any] = [np.zeros(s, int) for s in node.meta[0]] if op.variadic else [None]
        operands[position] = number_elements(shape) + 1  # 0 marks elements that do not come from this argument
        return None, np.asarray(op(*operands, **meta)) - 1
    if op.reads == "into":
        return op.cotangent(arg, g=number_elements(node.shape), xp=np, lead=(), **{f"{arg}_shape": shape}, **meta), None
    if op.reads == "axes":
        return axis_groups(shape, node.shape, meta["axis"])
    if op.reads == "all":
        return np.zeros(shape, int), np.zeros(node.shape, int)
    flows: Flow | list[Flow] = op.reads(arg, shape, node.shape, meta)
    return flows


class TooManyError(Exception):
    """Raised if a pattern has more entries than the limit."""


def pattern(output: Node, x: Node, limit: int | None = None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (rows, columns), in row-major order, of the entries of d output / d x that can be nonzero.

    Return None if the pattern of some node on the way has more than `limit` entries.
    """
    n = prod(x.shape)
    sets: dict[Node, np.ndarray] = {x: np.arange(n) * (n + 1)}
    nodes = [
        (node, member_of_output(node)) for node in reachable_nodes([output]) if type(node.op) is not Joint
    ]  # the members of a Joint are visited instead
    waiting = Counter(edge for _, parent in nodes for edge in parent.edges)  # readers left; at 0 the set is dropped
    try:
        for node, parent in reversed(nodes):
            if node.op is not None and node is not x:
                parts = list(_parts(parent, sets, n, limit))
                if parts:
                    sets[node] = parts[0] if len(parts) == 1 else sort_unique(np.concatenate(parts))
            for edge in parent.edges:
                waiting[edge] -= 1
                if edge is not None and not waiting[edge] and edge is not output:
                    sets.pop(edge, None)
    except TooManyError:
        return None
    keys = sets.get(output, np.arange(0))
    return keys // n, keys % n


def _parts(node: Node, sets: dict[Node, np.ndarray], n: int, limit: int | None) -> Iterable[np.ndarray]:
    """Return the contribution of each argument to the pattern of a node, without duplicates."""
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
                keys = sort_unique((into * n + keys % n)[into >= 0])
            keys = keys if source is None else gather_rows(keys, np.asarray(source).ravel(), n, limit)
            parts[id(keys)] = keys
    return parts.values()


def sort_unique(keys: np.ndarray) -> np.ndarray:
    """Sort the keys and remove duplicates."""
    keys.sort(kind="stable")  # a merge sort, fast because the keys consist of sorted runs
    return keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys


def gather_rows(keys: np.ndarray, source: np.ndarray, n: int, limit: int | None = None) -> np.ndarray:
    """Concatenate the rows `source` of a pattern. A row number of -1 gives an empty row."""
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
