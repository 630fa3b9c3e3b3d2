"""Nodes are freed one after another, rather than each inside of the one before, where CPython itself does not see to that.

CPython puts off what is nested too deep when it frees objects, and judges the depth by the stack of C. On WebAssembly that is
not the stack that runs out: the calls are on the JavaScript engine's, which ends at a chain of some two thousand objects, and
Pyodide with it. So there a node hands over what it holds before it goes, and the outermost lets go of all that. Elsewhere
nothing of this is in use.
"""

from __future__ import annotations

from typing import Any

WAITING: list[Any] = []
USUAL = frozenset(("dtype", "edges", "hooks", "meta", "note", "order", "saved", "shape", "site", "storage", "__weakref__"))
MORE: dict[type, list[str]] = {}  # what nodes of a class hold beside the usual


class _Outermost:
    at_work = False


def let_go(node: Any) -> None:
    """A node's `__del__`: empty it, and free what it held, if no other node is being freed around it."""
    kind = type(node)
    more = MORE.get(kind)
    if more is None:
        slots = (slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()))
        more = MORE[kind] = [slot for slot in slots if slot not in USUAL]
    try:
        WAITING.append((node.edges, node.saved, getattr(node, "meta", ())))
        node.edges = node.saved = node.meta = ()
        if more or node.hooks is not None or kind.__dictoffset__:
            WAITING.append((node.hooks, getattr(node, "__dict__", None), [getattr(node, slot, None) for slot in more]))
            node.hooks = None
            if kind.__dictoffset__:
                node.__dict__ = {}
            for slot in more:
                if hasattr(node, slot):
                    delattr(node, slot)
    except AttributeError:  # an interrupt came while it was made
        pass
    if not _Outermost.at_work:
        free()


def let_go_of_source(view: Any) -> None:
    """A tensor's `__del__`: if it is a view, free what it was made from, likewise. (What made it is the node's affair.)"""
    if getattr(view, "view_record", None) is None:
        return
    WAITING.append(view.view_record)
    del view.view_record
    if not _Outermost.at_work:
        free()


def free() -> None:
    """Let go of what waits, and of what comes to wait by that."""
    _Outermost.at_work = True
    try:
        while WAITING:
            WAITING.pop()
    finally:
        _Outermost.at_work = False
