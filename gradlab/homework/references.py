"""What gives way to a student's own where a slip in an earlier exercise is not to be paid twice."""

from __future__ import annotations

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
    users, todo = {id(out): 0}, [out]
    while todo:
        for parent in todo.pop().parents:
            if id(parent) not in users:
                users[id(parent)] = 0
                todo.append(parent)
            users[id(parent)] += 1
    ordered, ready = list[Any](), [out]
    while ready:
        ordered.append(node := ready.pop())
        for parent in node.parents:
            users[id(parent)] -= 1
            if not users[id(parent)]:
                ready.append(parent)
    return ordered
