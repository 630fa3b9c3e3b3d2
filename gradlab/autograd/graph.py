"""The graph: its nodes and edges, hooks on several gradients, hooks on what is saved, as `torch.autograd.graph` spells them."""

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
from gradlab.core.engine import Run, leading_to, reachable, running
from gradlab.core.node import AccumulateGrad, RemovableHandle
from gradlab.core.ports import Several
from gradlab.core.storage import wrote
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


class Node(abc.ABC):  # noqa: B024  (nodes are registered: they are made elsewhere)
    """What `grad_fn` is an instance of: a recorded operation. Nodes of a custom Function are its `ctx`."""


Node.register(nodes.Node)


class GradientEdge(NamedTuple):
    """Where a gradient arrives: output number `output_nr` of the operation `node`. `grad` and `backward` take it for a tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which the gradient of a tensor arrives."""
    if tensor.node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*tensor.node.public)


def node_of(x: Tensor | GradientEdge) -> nodes.Node | None:
    """The engine's node behind a tensor or an edge (see core.ports)."""
    if isinstance(x, Tensor):
        return None if x.node is None else x.node.proper
    node, number = x.node, x.output_nr
    node = getattr(node, "_node", node)  # of the ctx of a custom Function
    if not isinstance(node, nodes.Node):
        raise TypeError(f"GradientEdge: the node is {type(node).__name__}, and should be what `grad_fn` gives.")
    count = getattr(node, "outputs", 1)
    if not 0 <= number < count:
        raise IndexError(f"GradientEdge: {node.title} has {count} output{'s' * (count > 1)}, and there is no number {number}.")
    return node.output_node(number) if isinstance(node, Several) else node


class MultiHandle:
    """The handles of several hooks as one."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hooks away. May be called again."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> MultiHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def arriving(sweep: Run) -> set[nodes.Node]:
    """The nodes at which a cotangent arrives in a sweep."""
    roots = [root for root, _ in sweep.roots]
    known = set(reachable(roots))
    return known if sweep.wanted is None else known & leading_to(sweep.wanted, roots)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> MultiHandle:
    """Call `fn` once a sweep, with the gradients of several tensors. What it returns is ignored.

    Parameters
    ----------
    tensors : sequence of Tensors
        All require gradients ("any" skips those that do not).
    fn : callable
        With mode "all" `fn(gradients)` is called when the last of them has arrived; None stands for a tensor that this sweep
        does not reach. With "any" `fn(gradient)` is called with the first that arrives.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        tensors = [t for t in tensors if t.node is not None]
    elif any(t.node is None for t in tensors):
        raise AssertionError("Expected gradient function to be set: a tensor among them does not require gradients.")
    edges = [weakref.ref(t.node) for t in tensors if t.node is not None]  # weakly: the nodes have the hook
    lock = threading.Lock()
    seen: dict[int, list[Any]] = {}  # by sweep: how many are missing, and the gradients

    def hook_of(i: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            sweep = running.sweep
            assert sweep is not None, "expected this hook to be called inside a backward call"
            key = id(sweep)
            with lock:
                if key not in seen:
                    reached = None if mode == "any" else arriving(sweep)
                    seen[key] = [len(edges) if reached is None else sum(edge() in reached for edge in edges), [None] * len(edges)]
                    sweep.forget = (*sweep.forget, lambda: seen.pop(key, None))
                state = seen[key]
                state[0] -= 1
                state[1][i] = g
                now = state[0] == 0 if mode == "all" else state[0] == len(edges) - 1
            if now:
                fn(state[1] if mode == "all" else g)

        return hook

    return MultiHandle([t.register_hook(hook_of(i)) for i, t in enumerate(tensors)])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tell autograd that the memory of tensors was written to behind its back."""
    if isinstance(tensor, Tensor):
        tensor = (tensor,)
    if not isinstance(tensor, Iterable):
        raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, not {type(tensor).__name__}")
    for t in tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expects each element of the iterable to be a tensor, not {type(t).__name__}")
        if not t.is_inference():  # which have no version
            wrote(t)
