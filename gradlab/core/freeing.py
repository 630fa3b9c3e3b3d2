"""Free the nodes of a graph one after another instead of recursively. Used only on WebAssembly (Pyodide).

CPython limits the recursion when it frees nested objects, judging its depth by the C stack. On WebAssembly the stack of the
JavaScript engine overflows first, at a chain of about two thousand objects. There the finalizer of a node moves the node's
references to a list, and the outermost finalizer empties the list.
"""

from __future__ import annotations

from typing import Any

PENDING: list[Any] = []
COMMON_SLOTS = frozenset(("dtype", "edges", "hooks", "meta", "note", "order", "saved", "shape", "site", "storage", "__weakref__"))
EXTRA_SLOTS: dict[type, list[str]] = {}  # further slots of each class of nodes


class _State:
    freeing = False


def free_node(node: Any) -> None:
    """Move the references of a node to `PENDING`, as its `__del__`. The outermost call frees them."""
    kind = type(node)
    extra = EXTRA_SLOTS.get(kind)
    if extra is None:
        slots = (slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()))
        extra = EXTRA_SLOTS[kind] = [slot for slot in slots if slot not in COMMON_SLOTS]
    try:
        PENDING.append((node.edges, node.saved, getattr(node, "meta", ())))
        node.edges = node.saved = node.meta = ()
        if extra or node.hooks is not None or kind.__dictoffset__:
            PENDING.append((node.hooks, getattr(node, "__dict__", None), [getattr(node, slot, None) for slot in extra]))
            node.hooks = None
            if kind.__dictoffset__:
                node.__dict__ = {}
            for slot in extra:
                if hasattr(node, slot):
                    delattr(node, slot)
    except AttributeError:  # interrupted while the node was created
        pass
    if not _State.freeing:
        free_pending()


def free_view_source(view: Any) -> None:
    """Free the source of a view in the same way, as the `__del__` of a tensor. (Its node frees itself.)"""
    if getattr(view, "view_record", None) is None:
        return
    PENDING.append(view.view_record)
    del view.view_record
    if not _State.freeing:
        free_pending()


def free_pending() -> None:
    """Free the pending objects, and those that become pending on the way."""
    _State.freeing = True
    try:
        while PENDING:
            PENDING.pop()
    finally:
        _State.freeing = False
