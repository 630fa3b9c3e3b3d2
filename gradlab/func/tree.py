"""Nested tuples, lists and dictionaries: flattening to a list of leaves, and the inverse.

The containers are the same as in `torch.utils._pytree`: tuple, named tuple, list, dict, OrderedDict, defaultdict, deque and Size.
Everything else, including None, is a leaf. A `Tree` is the structure without its leaves. Two trees are equal if they have the
same nesting and the same keys. A tree prints as in PyTorch, because the errors of `func` show it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradlab.core.errors import Size


@dataclass(frozen=True)
class Tree:
    """Structure of nested containers: kind of the outermost container (None for a leaf), its keys or class, and its elements."""

    kind: str | None = None
    context: Any = None
    children: tuple[Tree, ...] = ()

    def build(self, leaves: Iterable[Any]) -> Any:
        """Return the structure filled with `leaves`."""
        return self._build_from(iter(leaves))

    def _build_from(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        return CONTAINERS[self.kind][2]([child._build_from(leaves) for child in self.children], self.context)

    def __repr__(self, indent: int = 0) -> str:
        if self.kind is None:
            return "*"
        apart = ",\n" + " " * (indent + 2)
        return f"TreeSpec({self.kind}, {self.context!r}, [{apart.join(c.__repr__(indent + 2) for c in self.children)}])"

    def format_with_stars(self) -> str:
        """Return the structure in Python syntax, with an asterisk for each leaf."""
        return repr(self.build([Star()] * self.count_leaves()))

    def count_leaves(self) -> int:
        """Return the number of leaves."""
        return 1 if self.kind is None else sum(child.count_leaves() for child in self.children)


class Star:
    """Placeholder for a leaf, printed as an asterisk."""

    def __repr__(self) -> str:
        return "*"


LEAF = Tree()
# For each kind of container, three functions: return its keys or class, return its elements, and build it from these.
CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[list[Any], Any], Any]]] = {
    "tuple": (lambda x: None, tuple, lambda parts, _: tuple(parts)),
    "list": (lambda x: None, list, lambda parts, _: parts),
    "dict": (list, lambda x: x.values(), lambda parts, keys: dict(zip(keys, parts, strict=True))),
    "namedtuple": (type, tuple, lambda parts, kind: getattr(kind, "_make", kind)(parts)),
    "OrderedDict": (list, lambda x: x.values(), lambda parts, keys: OrderedDict(zip(keys, parts, strict=True))),
    "defaultdict": (
        lambda x: [x.default_factory, list(x)],
        lambda x: x.values(),
        lambda parts, context: defaultdict(context[0], zip(context[1], parts, strict=True)),
    ),
    "deque": (lambda x: x.maxlen, list, deque),
    "Size": (lambda x: None, tuple, lambda parts, _: tuple(parts)),
}
DICTIONARIES = "dict", "OrderedDict", "defaultdict"
KINDS: dict[type, str] = {
    tuple: "tuple",
    list: "list",
    dict: "dict",
    OrderedDict: "OrderedDict",
    defaultdict: "defaultdict",
    deque: "deque",
    Size: "Size",
}


def kind_of(x: Any) -> str | None:
    """Return the name of the kind of a container, or None for a leaf."""
    kind = KINDS.get(type(x))
    return "namedtuple" if kind is None and isinstance(x, tuple) and hasattr(x, "_fields") else kind


def flatten(x: Any) -> tuple[list[Any], Tree]:
    """Return the leaves of nested containers, and their structure."""
    kind = kind_of(x)
    if kind is None:
        return [x], LEAF
    context, parts, _ = CONTAINERS[kind]
    leaves: list[Any] = []
    children = []
    for part in parts(x):
        below, child = flatten(part)
        leaves += below
        children.append(child)
    return leaves, Tree(kind, context(x), tuple(children))


def broadcast_prefix(prefix: Any, tree: Tree) -> list[Any] | None:
    """Repeat each leaf of `prefix` for all leaves of the corresponding part of `tree`.

    The result is None if the structures do not match.
    """
    kind = kind_of(prefix)
    if kind is None:
        return [prefix] * tree.count_leaves()
    context, parts, _ = CONTAINERS[kind]
    if isinstance(prefix, dict) and tree.kind in DICTIONARIES:  # the keys may have another order
        keys = tree.context[1] if tree.kind == "defaultdict" else tree.context
        if prefix.keys() != set(keys):
            return None
        parts_of_prefix = [prefix[key] for key in keys]
    elif kind == tree.kind and context(prefix) == tree.context and len(prefix) == len(tree.children):
        parts_of_prefix = list(parts(prefix))
    else:
        return None
    leaves: list[Any] = []
    for part, child in zip(parts_of_prefix, tree.children, strict=True):
        below = broadcast_prefix(part, child)
        if below is None:
            return None
        leaves += below
    return leaves
