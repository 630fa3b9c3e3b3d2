"""Nodes of the graph: one for each recorded operation, with edges to the nodes that created its arguments.

Each primitive has its own subclass of `Node`, whose class attribute `op` is the primitive. A recorded call therefore stores only
what differs between calls, and `type(y.grad_fn).__name__` is the name that PyTorch users expect.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.errors import size_of
from gradlab.core.freeing import free_node
from gradlab.core.properties import ORDINARY
from gradlab.core.storage import tick

CPP_NODE_NAMES = frozenset(("AccumulateGrad", "CopyBackwards", "CopySlices", "Error"))  # torch shows their C++ names
PUBLIC_MODULE = "builtins"  # makes the repr of a node's class that of PyTorch: <class 'MulBackward0'>


class Hooks:
    """Hooks and metadata that a user attached to a node.

    Created on first use. A node without hooks costs one comparison per sweep.
    """

    __slots__ = ("accumulated", "metadata", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}  # called with the cotangent, in the order of registration
        self.retain: weakref.ref[Any] | None = None  # the tensor whose .grad is written, after retain_grad()
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}  # called after a leaf's .grad is written
        self.metadata: dict[Any, Any] = {}


_handle_numbers = itertools.count()


class RemovableHandle:
    """Handle returned by `register_hook`. `remove()`, or leaving a `with` block over the handle, removes the hook."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = next(_handle_numbers)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Remove the hook. Further calls have no effect."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class InputMetadata(NamedTuple):
    """Shape and dtype of the gradient of an output."""

    shape: tuple[int, ...]
    dtype: Any


class Node:
    """One recorded call. `edges` holds the node of each differentiable argument, or None if it requires no gradient."""

    __slots__ = ("__weakref__", "dtype", "edges", "hooks", "meta", "note", "order", "saved", "shape", "site", "storage")
    op: ClassVar[Any] = None  # the Primitive; None for a leaf
    run_alone: ClassVar[Callable[..., Any]]  # how the engine runs one node

    edges: tuple[Node | None, ...]
    hooks: Hooks | None
    order: int
    dtype: Any  # a NumPy dtype
    meta: tuple[Any, ...]
    storage: Any
    saved: Any  # a tuple; PackedItems if hooks hold some of it; or, if freed, the origin of the sweep that freed it, or None
    shape: tuple[int, ...]
    site: Any  # where it was recorded; set only if an observer records sites
    note: Any  # annotation by an explorer; set only if one is active

    if sys.platform == "emscripten":
        __del__ = free_node

    def __repr__(self) -> str:
        return f"<{self.title} object at {id(self):#x}>"

    def __dir__(self) -> list[str]:
        """List the attributes for users, without those of the engine."""
        slots = [slot for kind in type(self).__mro__ for slot in getattr(kind, "__slots__", ())]
        engine = {"op", "run_alone", "real_node", "public", "output_node", "title", "ensure_hooks", *slots}
        return sorted(name for name in object.__dir__(self) if name not in engine)

    def name(self) -> str:
        """Return the node's name in PyTorch: `MulBackward0`, `torch::autograd::CopySlices`."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in CPP_NODE_NAMES else name

    @property
    def title(self) -> str:
        """The name without its namespace, for texts and drawings."""
        return self.name().rpartition("::")[2]

    @property
    def public(self) -> tuple[Any, int]:
        """The (node, output number) that users see: the node itself, except for ports (see core.ports)."""
        return self, 0

    @property
    def real_node(self) -> Node:
        """The node that receives the gradient and holds the hooks: itself, except for a `ports.ReshapedPort`."""
        return self

    def output_node(self, number: int) -> Node:
        """Return the node of output `number`."""
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The (node, output number) of each differentiable argument, or (None, 0) if it requires no gradient."""
        return tuple((None, 0) if edge is None else edge.public for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own data."""
        return self.ensure_hooks().metadata

    def ensure_hooks(self) -> Hooks:
        """The node's hooks, made on first need."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node runs; a returned tuple replaces `grad_inputs`."""
        return RemovableHandle(self.ensure_hooks().post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs; a returned tuple replaces `grad_outputs`."""
        return RemovableHandle(self.ensure_hooks().pre, hook)

    def _sequence_nr(self) -> int:
        """Return the node's sequence number. It grows with time and is largest for leaves."""
        return 2**64 - 1 if self.op is None else -self.order

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """Shape and dtype of the gradient that each output expects."""
        return (InputMetadata(size_of(self.shape), from_numpy_dtype(self.dtype)),)

    def __call__(self, *cotangents: Any) -> Any:
        """Run only this node: take a gradient for each output and return one for each differentiable argument.

        A single result is not wrapped in a tuple. The call is recorded if grad mode is enabled. Saved tensors are not freed.
        """
        return self.run_alone(self, cotangents)


class AccumulateGrad(Node):
    """The node of a leaf, at which a sweep ends.

    It refers to the leaf weakly. Otherwise every leaf would be a reference cycle.
    """

    __slots__ = ("_variable",)
    __module__ = PUBLIC_MODULE

    def __init__(self, tensor: Any) -> None:
        self.edges, self.saved, self.meta, self.hooks = (), (), (), None
        self.shape, self.dtype, self.order = tensor.array.shape, tensor.array.dtype, tick()
        self.storage, self._variable = tensor.storage, weakref.ref(tensor)

    @property
    def variable(self) -> Any:
        """The leaf, or None if it no longer exists."""
        return self._variable()


class _ErrorOp:
    """The "primitive" of nodes that cannot be differentiated: its rules raise the node's error."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "error", "error", "all", False, "inputs", True, None
    meta = saves = frees = args = ()
    properties = ORDINARY

    @staticmethod
    def vjp(node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Any:
        raise RuntimeError(node.meta[0])

    scalar_vjp = traced_vjp = jvp = traced_jvp = vjp


class Error(Node):
    """The node of a tensor that requires a gradient but cannot be differentiated. `why` is the error message."""

    __slots__ = ()
    __module__ = PUBLIC_MODULE
    op = _ErrorOp()

    def __init__(self, edges: tuple[Node, ...], like: Any, why: str) -> None:
        self.edges, self.saved, self.meta, self.hooks = edges, (), (why,), None
        self.shape, self.dtype, self.storage, self.order = like.array.shape, like.array.dtype, like.storage, tick()


class Invalid(Error):  # noqa: N818  (a node's name)
    """The node of a view whose history was invalidated by a write to its base."""

    __slots__ = ()
    __module__ = PUBLIC_MODULE


def walk_graph(roots: Iterable[Node | None]) -> Iterator[Node]:
    """Yield the nodes reachable from `roots`, including the roots, in no particular order."""
    stack = [node for node in roots if node is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
