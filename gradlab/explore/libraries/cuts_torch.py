"""Cuts: how a PyTorch call loses the history of its arguments, determined from its name, arguments and result."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gradlab.explore.libraries.forms_torch import node_of

BEHIND = 200  # maximum number of nodes searched behind a cut
CASTS = frozenset(("long", "int", "short", "char", "byte", "bool", "to", "type", "type_as"))
COMPARISONS = frozenset(("gt", "lt", "ge", "le", "eq", "ne", "greater", "less", "isclose"))
BORN = frozenset(
    (
        "_make_subclass",
        "tensor",
        "as_tensor",
        "asarray",
        "from_numpy",
        "scalar_tensor",
        "full",
        "Tensor",
        "new_tensor",
        "new_full",
    )
)
OF_SHAPES = ("new", "_shape_as_tensor", "_pack_padded_sequence", "_pad_packed_sequence")  # create batch sizes and lengths
LEAVE = frozenset(("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__"))


def how_lost(name: str, result: Any) -> str:
    """Return the name of the way in which a call whose arguments have a history made a result without one."""
    if name in ("detach", "detach_"):
        return "detach"
    if name == "grad":  # of torch.autograd
        return "grad()"
    if name in BORN:
        return "Parameter()" if name == "_make_subclass" else "tensor()"
    if not torch.is_grad_enabled():
        return "inference_mode" if torch.is_inference_mode_enabled() else "no_grad"
    if result.is_floating_point() or result.is_complex() or (name not in CASTS and result.dtype is torch.bool):
        return "comparison" if result.dtype is torch.bool else name
    return "cast" if name in CASTS else "comparison" if name.strip("_") in COMPARISONS else "position"


def used_values(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> list[Any]:
    """Return the tensors among the arguments of a call whose values affect a result without history.

    `zeros_like(x)`, `x.new_zeros(2)`, `y.to(x)` and `y.expand_as(x)` use only the shape, the dtype or the device of `x`. A view
    of an argument without history, such as a result of `broadcast_tensors`, does not use the other arguments.
    """
    given = [*args, *kwargs.values()]
    base = result._base
    writes = name.endswith("_") or "out" in kwargs
    own = [x for x in tensors_in(given) if x is result or (base is not None and (x is base or x._base is base))]
    if own and not writes and not own[0].requires_grad:
        return own[:1]
    function = name.rstrip("_")
    model = None
    if function.endswith("_like") or function.startswith("new_") or function in OF_SHAPES:
        model = args[0] if args else kwargs.get("input")
    elif function.endswith("_as") or function == "to":
        model = args[1] if len(args) > 1 else kwargs.get("other")
    return [x for x in tensors_in(given) if x is not model]


def tensors_in(values: Sequence[Any]) -> list[Any]:
    """Return the tensors among the arguments, including those in lists."""
    return [x for x in flat(values) if isinstance(x, torch.Tensor)]


def flat(values: Sequence[Any]) -> Iterator[Any]:
    """Yield the arguments, with lists replaced by their items."""
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from x
        else:
            yield x


def leaves_behind(node: Any) -> list[Any]:
    """Return weak references to the leaf nodes behind a node, among the `BEHIND` nodes nearest to it."""
    leaves: list[Any] = []
    if node is None:
        return leaves
    seen, waiting = {node}, deque([node])
    while waiting and len(seen) < BEHIND:
        node = waiting.popleft()
        if hasattr(node, "variable"):
            leaves.append(LeafOf(node.variable))
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append(source)
    return leaves


class LeafOf:
    """A weak reference to a leaf's node. PyTorch's nodes do not support weak references."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)

    def __call__(self) -> Any:
        tensor = self._tensor()
        return None if tensor is None or not tensor.requires_grad else node_of(tensor)
