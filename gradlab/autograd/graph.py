"""Nodes and edges of the graph, and hooks on gradients and saved tensors, with the names of `torch.autograd.graph`."""

from __future__ import annotations

import abc
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gradlab.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from gradlab.core import node as nodes
from gradlab.core.engine import Run, running
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.ports import MultiOutputNode
from gradlab.core.search import nodes_leading_to, reachable_nodes
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor

__all__ = [
    "AccumulateGrad",
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):  # noqa: B024  (the node classes are registered, not derived)
    """Base class of recorded operations, the values of `Tensor.grad_fn`. The node of a custom Function is its `ctx`."""


Node.register(nodes.Node)


class GradientEdge(NamedTuple):
    """Edge of the graph: output number `output_nr` of the operation `node`. `grad` and `backward` accept it like a Tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of the graph through which the gradient of a tensor flows."""
    if tensor.node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*tensor.node.public)


def node_of(x: Tensor | GradientEdge) -> nodes.Node | None:
    """Return the engine's node of a tensor or an edge (see `core.ports`)."""
    if isinstance(x, Tensor):
        return None if x.node is None else x.node.real_node
    node, number = x.node, x.output_nr
    node = getattr(node, "_node", node)  # for the ctx of a custom Function
    if not isinstance(node, nodes.Node):
        raise TypeError(f"GradientEdge: expected a node, as returned by `grad_fn`, got {type(node).__name__}.")
    count = getattr(node, "outputs", 1)
    if not 0 <= number < count:
        outputs = f"{count} output{'s' * (count > 1)}"
        raise IndexError(f"GradientEdge: {node.title} has {outputs}, so output_nr={number} is out of range.")
    return node.output_node(number) if isinstance(node, MultiOutputNode) else node


class MultiHandle:
    """Handle that removes several hooks together."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hooks. Further calls have no effect."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def reached_nodes(sweep: Run) -> set[nodes.Node]:
    """Return the nodes that receive a gradient in a sweep."""
    roots = [root for root, _ in sweep.roots]
    known = set(reachable_nodes(roots))
    return known if sweep.wanted is None else known & nodes_leading_to(sweep.wanted, roots)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> MultiHandle:
    """Register a hook that is called once in each backward pass, with the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensors
        Tensors that require gradients. With mode "any", the others are skipped.
    fn : callable
        Hook. Its return value is ignored.
    mode : {"all", "any"}, default: "all"
        With "all", call `fn(gradients)` when all gradients have been computed. An entry is None if the backward pass does not
        reach the tensor. With "any", call `fn(gradient)` with the gradient that is computed first.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        tensors = [t for t in tensors if t.node is not None]
    elif any(t.node is None for t in tensors):
        raise AssertionError("Expected gradient function to be set, but one of the tensors does not require gradients.")
    edges = [weakref.ref(t.node) for t in tensors if t.node is not None]  # weak references, because the nodes hold the hook
    lock = threading.Lock()
    seen: dict[int, list[Any]] = {}  # for each sweep, the number of missing gradients and the gradients

    def hook_of(i: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            sweep = running.sweep
            assert sweep is not None, "expected this hook to be called inside a backward call"
            key = id(sweep)
            with lock:
                if key not in seen:
                    reached = None if mode == "any" else reached_nodes(sweep)
                    seen[key] = [len(edges) if reached is None else sum(edge() in reached for edge in edges), [None] * len(edges)]
                    sweep.at_end = (*sweep.at_end, lambda: seen.pop(key, None))
                state = seen[key]
                state[0] -= 1
                state[1][i] = g
                now = state[0] == 0 if mode == "all" else state[0] == len(edges) - 1
            if now:
                fn(state[1] if mode == "all" else g)

        return hook

    return MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Increment the version counters of tensors whose memory was modified without autograd noticing."""
    if isinstance(tensor, Tensor):
        tensor = (tensor,)
    if not isinstance(tensor, Iterable):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, not {type(tensor).__name__}")
    for t in tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expects each element of the iterable to be a tensor, not {type(t).__name__}")
        if not t.is_inference():  # inference tensors have no version
            mark_written(t)
