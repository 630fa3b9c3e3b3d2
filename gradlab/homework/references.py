"""What gives way to a student's own where a slip in an earlier exercise is not to be paid twice."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

import numpy as np


def unbroadcast(g: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The cotangent of an operand of this shape, from that of what it was broadcast to."""
    g = np.asarray(g)
    more = g.ndim - len(shape)
    long = tuple(i for i, n in enumerate(g.shape) if i < more or (shape[i - more] == 1 and n != 1))
    return np.sum(g, axis=long, keepdims=True).reshape(shape) if long else g


def order(out: Any) -> list[Any]:
    """All values that `out` is made of, each before what it is made of."""
    nodes, todo = dict[int, Any](), [out]
    while todo:
        node = todo.pop()
        if id(node) not in nodes:
            nodes[id(node)] = node
            todo.extend(node.parents)
    of = {key: [id(parent) for parent in node.parents] for key, node in nodes.items()}
    return [nodes[key] for key in reversed(list(TopologicalSorter(of).static_order()))]
