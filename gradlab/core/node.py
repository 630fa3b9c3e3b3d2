"""The graph: a node is one recorded operation, an edge leads to the node that made an argument.

Every primitive has a subclass of `Node` of its own, whose class attribute `op` is the primitive, so that a recorded call
stores only what differs from call to call and `type(y.grad_fn).__name__` is what PyTorch users expect.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from gradlab.core.dtypes import known_dtype
from gradlab.core.errors import size_of
from gradlab.core.freeing import let_go
from gradlab.core.storage import tick

NATIVE = frozenset(("AccumulateGrad", "CopyBackwards", "CopySlices", "Error"))  # torch names them by their C++ classes
PUBLIC_MODULE = "builtins"  # so that a node's class is written as torch's is: <class 'MulBackward0'>


class Hooks:
    """What a user attached to a node. Made on first need; a node without any costs one comparison a sweep."""

    __slots__ = ("accumulated", "metadata", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}  # on the cotangent, in the order of registration
        self.retain: weakref.ref[Any] | None = None  # retain_grad(): whose .grad receives it
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}  # after a leaf's .grad was written
        self.metadata: dict[Any, Any] = {}


_handle_numbers = itertools.count()


class RemovableHandle:
    """What `register_hook` returns: `remove()` takes the hook away, and so does leaving a `with` block over it."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self.id = next(_handle_numbers)
        self._hooks = hooks
        hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook away. May be called again."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class InputMetadata(NamedTuple):
    """Shape and dtype of an output's gradient."""

    shape: tuple[int, ...]
    dtype: Any


class Node:
    """One recorded call. `edges` are the nodes of its differentiable arguments (None: no gradient is wanted there)."""

    __slots__ = ("__weakref__", "dtype", "edges", "hooks", "meta", "note", "order", "saved", "shape", "site", "storage")
    op: ClassVar[Any] = None  # the Primitive; None where a sweep ends
    alone: ClassVar[Callable[..., Any]]  # how the engine runs one node

    edges: tuple[Node | None, ...]
    hooks: Hooks | None
    order: int
    dtype: Any  # NumPy's
    meta: tuple[Any, ...]
    storage: Any
    saved: Any  # a tuple; Packed, where hooks have it; or why it is gone
    shape: tuple[int, ...]
    site: Any  # where it was recorded; set only when somebody watches
    note: Any  # what an explorer noted of it; likewise

    if sys.platform == "emscripten":
        __del__ = let_go

    def __repr__(self) -> str:
        return f"<{self.title} object at {id(self):#x}>"

    def __dir__(self) -> list[str]:
        """What users have of a node, and not what the engine keeps there."""
        slots = [slot for kind in type(self).__mro__ for slot in getattr(kind, "__slots__", ())]
        engine = {"op", "alone", "proper", "public", "output_node", "title", "hooks_of_its_own", *slots}
        return sorted(name for name in object.__dir__(self) if name not in engine)

    def name(self) -> str:
        """The node's name as torch has it: `MulBackward0`, `torch::autograd::CopySlices`."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in NATIVE else name

    @property
    def title(self) -> str:
        """The name in words and pictures: without the namespace."""
        return self.name().rpartition("::")[2]

    @property
    def public(self) -> tuple[Any, int]:
        """What users take for this node, and which output of that it is: itself, but for ports (see core.ports)."""
        return self, 0

    @property
    def proper(self) -> Node:
        """Where the gradient of a tensor with this node arrives, and hooks on it are: itself, but see `ports.Reshaped`."""
        return self

    def output_node(self, number: int) -> Node:
        """The node of the tensor that is output `number`."""
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """(node, output number) of each differentiable argument, (None, 0) where no gradient is wanted."""
        return tuple((None, 0) if edge is None else edge.public for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary to attach one's own things to."""
        return self.hooks_of_its_own().metadata

    def hooks_of_its_own(self) -> Hooks:
        """The node's hooks, made on first need."""
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_inputs, grad_outputs)` runs after the node; a tuple it returns replaces `grad_inputs`."""
        return RemovableHandle(self.hooks_of_its_own().post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(grad_outputs)` runs before the node; a tuple it returns replaces `grad_outputs`."""
        return RemovableHandle(self.hooks_of_its_own().pre, hook)

    def _sequence_nr(self) -> int:
        """Later nodes have greater numbers, and leaves the greatest."""
        return 2**64 - 1 if self.op is None else -self.order

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """Of the gradient that each output of the operation expects."""
        return (InputMetadata(size_of(self.shape), known_dtype(self.dtype)),)

    def __call__(self, *cotangents: Any) -> Any:
        """Run the node alone: one gradient for each of its outputs in, one for each differentiable argument out.

        A single result is not packed into a tuple. Recorded where the grad mode is on; what the node saved is kept.
        """
        return self.alone(self, cotangents)


class AccumulateGrad(Node):
    """Where a sweep ends: the node of a leaf. Refers to it weakly, or every leaf would be a cycle that only `gc` frees."""

    __slots__ = ("_variable",)
    __module__ = PUBLIC_MODULE

    def __init__(self, tensor: Any) -> None:
        self.edges, self.saved, self.meta, self.hooks = (), (), (), None
        self.shape, self.dtype, self.order = tensor.array.shape, tensor.array.dtype, tick()
        self.storage, self._variable = tensor.storage, weakref.ref(tensor)

    @property
    def variable(self) -> Any:
        """The leaf, or None when it is gone."""
        return self._variable()


class _Raising:
    """The "primitive" of what cannot be differentiated: its rules raise what the node says."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "error", "error", "all", False, "inputs", True, None
    meta = saves = frees = args = ()

    @staticmethod
    def vjp(node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Any:
        raise RuntimeError(node.meta[0])

    scalar_vjp = traced_vjp = jvp = traced_jvp = vjp


class Error(Node):
    """The node of a tensor that wants a gradient and cannot have one: `why` is the error."""

    __slots__ = ()
    __module__ = PUBLIC_MODULE
    op = _Raising()

    def __init__(self, edges: tuple[Node, ...], like: Any, why: str) -> None:
        self.edges, self.saved, self.meta, self.hooks = edges, (), (why,), None
        self.shape, self.dtype, self.storage, self.order = like.array.shape, like.array.dtype, like.storage, tick()


class Invalid(Error):  # noqa: N818  (a node's name)
    """The node of a view that lost its history with a write to its base."""

    __slots__ = ()
    __module__ = PUBLIC_MODULE


def behind(roots: Iterable[Node | None]) -> Iterator[Node]:
    """The nodes that some nodes lead to, themselves included, in no order."""
    stack = [node for node in roots if node is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for edge in node.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
