"""The graph: a node is one recorded operation, an edge leads to the node that made an argument.

Every primitive has a subclass of `Node` of its own, whose class attribute `op` is the primitive, so that a recorded call
stores only what differs from call to call and `type(y.grad_fn).__name__` is what PyTorch users expect.
"""
from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from gradlab.core.storage import tick


class Hooks:
    """What a user attached to a node. Made on first need; a node without any costs one comparison a sweep."""

    __slots__ = ("accumulated", "metadata", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[..., Any]] = {}           # on the cotangent, in the order of registration
        self.retain: weakref.ref[Any] | None = None               # retain_grad(): whose .grad receives it
        self.pre: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.accumulated: dict[int, Callable[..., Any]] = {}      # after a leaf's .grad was written
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


class Node:
    """One recorded call. `edges` are the nodes of its differentiable arguments (None: no gradient is wanted there)."""

    __slots__ = ("__weakref__", "dtype", "edges", "hooks", "meta", "order", "saved", "shape", "storage")
    op: ClassVar[Any] = None                                            # the Primitive; None where a sweep ends

    edges: tuple[Node | None, ...]
    hooks: Hooks | None
    order: int
    dtype: Any                                                           # NumPy's
    meta: tuple[Any, ...]
    storage: Any
    saved: tuple[Any, ...] | None
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    def name(self) -> str:
        """The node's name, as `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """(node, output number) of each differentiable argument, (None, 0) where no gradient is wanted."""
        return tuple((edge, 0) for edge in self.edges)

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


class AccumulateGrad(Node):
    """Where a sweep ends: the node of a leaf. Refers to it weakly, or every leaf would be a cycle that only `gc` frees."""

    __slots__ = ("_variable",)

    def __init__(self, tensor: Any) -> None:
        self.edges, self.saved, self.meta, self.hooks = (), (), (), None
        self.shape, self.dtype, self.order = tensor.array.shape, tensor.array.dtype, tick()
        self.storage, self._variable = tensor.storage, weakref.ref(tensor)

    @property
    def variable(self) -> Any:
        """The leaf, or None when it is gone."""
        return self._variable()
