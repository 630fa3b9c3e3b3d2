"""Search a graph: the nodes below its roots, and those among them that a sweep needs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from gradlab.core.node import Node

get_order = attrgetter("order")


class _Last(threading.local):
    """The last result of `orders_to_skip` in this thread, with its arguments."""

    search: tuple[Any, frozenset[int]] = None, frozenset()


last = _Last()


def reachable_nodes(roots: Iterable[Node]) -> list[Node]:
    """Return the roots and all nodes reachable from them, newest first."""
    seen = set(roots)
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=get_order)


def nodes_leading_to(wanted: Iterable[Node], roots: Iterable[Node]) -> set[Node]:
    """Return the nodes on a path from the roots to a wanted node, and the wanted nodes. The others need not be computed."""
    return _add_nodes_above(set(wanted), reachable_nodes(roots))


def _add_nodes_above(wanted: set[Node], nodes: list[Node]) -> set[Node]:
    """Add those of `nodes`, given newest first, that lead to a wanted node."""
    for node in reversed(nodes):
        for edge in node.edges:
            if edge in wanted:
                wanted.add(node)
                break
    return wanted


MAX_KEPT_ORDERS = 10_000


def orders_to_skip(roots: Sequence[tuple[Node, Any]], wanted: frozenset[Node]) -> frozenset[int]:
    """Return the orders of the nodes that are reachable from the roots, (node, cotangent) pairs, and lead to no wanted node.

    They need not be computed. The result is kept for the next call with the same nodes, because the rows of a Jacobian are
    computed one after the other. Orders are unique, and numbers keep no graph alive.
    """
    key = [len(wanted), *map(get_order, wanted)]
    for root, _ in roots:
        key.append(root.order)
    known, skipped = last.search
    if key == known:
        return skipped
    nodes = reachable_nodes([root for root, _ in roots])
    needed = _add_nodes_above(set(wanted), nodes)
    skipped = frozenset([node.order for node in nodes if node not in needed])
    if len(skipped) <= MAX_KEPT_ORDERS:
        last.search = key, skipped
    return skipped
