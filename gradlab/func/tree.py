"""Nested tuples, lists and dictionaries of things: taken apart to a list of leaves and put together again.

The containers are those of `torch.utils._pytree`: tuple, named tuple, list, dict, OrderedDict, defaultdict, deque and Size.
Everything else, None too, is a leaf. A `Tree` is the structure without its leaves; two are equal if they are nested alike, with
the same keys, and it prints as PyTorch prints it, because the errors of `func` show it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gradlab.core.errors import Size


@dataclass(frozen=True)
class Tree:
    """A structure: the kind of the outermost container (None: a leaf), its keys or class, and what it contains."""

    kind: str | None = None
    context: Any = None
    children: tuple[Tree, ...] = ()

    def build(self, leaves: Iterable[Any]) -> Any:
        """The structure with these leaves in it."""
        return self._built(iter(leaves))

    def _built(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        return CONTAINERS[self.kind][2]([child._built(leaves) for child in self.children], self.context)

    def __repr__(self, indent: int = 0) -> str:
        if self.kind is None:
            return "*"
        apart = ",\n" + " " * (indent + 2)
        return f"TreeSpec({self.kind}, {self.context!r}, [{apart.join(c.__repr__(indent + 2) for c in self.children)}])"

    def drawn(self) -> str:
        """The structure as Python writes it, with a star for each leaf."""
        return repr(self.build([Star()] * self.leaves()))

    def leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.leaves() for child in self.children)


class Star:
    """Stands for a leaf."""

    def __repr__(self) -> str:
        return "*"


LEAF = Tree()
# What a container is called: (its keys or class, its parts, how it is put together again).
CONTAINERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[list[Any], Any], Any]]] = {
    "tuple": (lambda x: None, tuple, lambda parts, _: tuple(parts)),
    "list": (lambda x: None, list, lambda parts, _: parts),
    "dict": (list, lambda x: x.values(), lambda parts, keys: dict(zip(keys, parts, strict=True))),
    "namedtuple": (type, tuple, lambda parts, kind: getattr(kind, "_make", kind)(parts)),
    "OrderedDict": (list, lambda x: x.values(), lambda parts, keys: OrderedDict(zip(keys, parts, strict=True))),
    "defaultdict": (
        lambda x: [x.default_factory, list(x)],
        lambda x: x.values(),
        lambda parts, made: defaultdict(made[0], zip(made[1], parts, strict=True)),
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
    """The name of a container's kind; None for a leaf."""
    kind = KINDS.get(type(x))
    return "namedtuple" if kind is None and isinstance(x, tuple) and hasattr(x, "_fields") else kind


def flatten(x: Any) -> tuple[list[Any], Tree]:
    """The leaves, and the structure that they were in."""
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


def mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """The same structure with the function's value in place of each leaf."""
    leaves, tree = flatten(x)
    return tree.build([function(leaf) for leaf in leaves])


def spread(prefix: Any, tree: Tree) -> list[Any] | None:
    """The leaves of `prefix`, each repeated for all leaves of the part of `tree` that it stands for; None if it does not fit."""
    kind = kind_of(prefix)
    if kind is None:
        return [prefix] * tree.leaves()
    context, parts, _ = CONTAINERS[kind]
    if isinstance(prefix, dict) and tree.kind in DICTIONARIES:  # whatever the order of the keys
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
        below = spread(part, child)
        if below is None:
            return None
        leaves += below
    return leaves
