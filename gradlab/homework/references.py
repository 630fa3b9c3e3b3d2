"""Reference functions that replace a student's own, so that a mistake in an earlier exercise does not cost points twice."""

from __future__ import annotations

from typing import Any

import numpy as np


def unbroadcast(g: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Sum the cotangent of a broadcast operand back to the operand's shape."""
    g = np.asarray(g)
    more = g.ndim - len(shape)
    long = tuple(i for i, n in enumerate(g.shape) if i < more or (shape[i - more] == 1 and n != 1))
    return np.sum(g, axis=long, keepdims=True).reshape(shape) if long else g


def order(out: Any) -> list[Any]:
    """Return all values that `out` was computed from, each before its parents."""
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
