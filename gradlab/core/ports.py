"""Nodes with several outputs.

The engine keeps one cotangent per node. Each output tensor of a node with several outputs has its own *port* as its node. The
`Port` of output k has the real node as its only edge, and its rule packs the cotangent into a `Bundle` at position k. Bundles add
up position by position, so the real node receives one Bundle with the cotangents of all its outputs (None for an output without
one). The engine needs no special case, since a Bundle has the attributes that it reads from an array.

Ports are invisible to users: `grad_fn` and `next_functions` show the real node and the output number. Each output has one port,
because sweeps identify nodes by identity. The tensors own it, and the node refers to it weakly.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from gradlab.core.node import AccumulateGrad, Hooks, Node
from gradlab.core.properties import ORDINARY
from gradlab.core.storage import FRESH, own_storage, tick


class BundleType:
    """The dtype of a `Bundle`, with the attribute that the engine reads."""

    type = None


class Bundle:
    """A cotangent (or tangent) for each output of a node, or None. Only the node and its ports read the parts."""

    __slots__ = ("parts", "shape")
    dtype, base, size = BundleType, None, 0

    def __init__(self, parts: Iterable[Any], lead: tuple[int, ...]) -> None:
        self.parts, self.shape = list(parts), lead

    @property
    def array(self) -> Bundle:
        """The bundle itself, whether traced or not."""
        return self

    def __add__(self, other: Bundle) -> Bundle:
        return Bundle(
            (b if a is None else a if b is None else a + b for a, b in zip(self.parts, other.parts, strict=True)), self.shape
        )


class UserSaved(tuple[Any, ...]):
    """Saved values of a node with user-defined rules.

    The engine passes them on unchanged and never writes into the arrays that such rules return.
    """

    __slots__ = ()

    def unpack_items(self, node: Node) -> UserSaved:
        """Return itself."""
        return self


class _PortOp:
    """The "primitive" of ports."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "output", "output", "all", False, "x", False, None
    meta = saves = frees = args = ()
    properties = ORDINARY

    @staticmethod
    def vjp(node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        parts = [None] * node.edges[0].outputs
        parts[node.number] = g
        return (Bundle(parts, lead),)

    scalar_vjp = traced_vjp = vjp

    @staticmethod
    def jvp(node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        return (tangents[0].parts[node.number],)

    traced_jvp = jvp


class Port(Node):
    """The node of one output of a node with several outputs."""

    __slots__ = ("number",)
    op = _PortOp()
    number: int

    def __init__(self, node: MultiOutputNode, number: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.edges, self.saved, self.meta, self.hooks = (node,), (), (), None
        self.shape, self.dtype, self.storage, self.order, self.number = shape, dtype, FRESH, tick(), number

    @property
    def public(self) -> tuple[Any, int]:
        return self.edges[0].public[0], self.number  # type: ignore[union-attr]

    def name(self) -> str:
        return self.edges[0].name()  # type: ignore[union-attr]

    def ensure_hooks(self) -> Hooks:
        self.edges[0].ensure_hooks()  # type: ignore[union-attr]
        return super().ensure_hooks()  # with hooks on the port too, the sweep also looks for those of the real node

    @property
    def site(self) -> Any:
        """The site of the real node."""
        return self.edges[0].site  # type: ignore[union-attr]

    @site.setter
    def site(self, site: Any) -> None:
        self.edges[0].site = site  # type: ignore[union-attr]


class _ReshapedPortOp:
    """The "primitive" of a `ReshapedPort`."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "output", "output", "all", False, "x", False, None
    meta = saves = frees = args = ()
    properties = ORDINARY

    @staticmethod
    def vjp(node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        wanted, got = node.edges[0].shape, node.shape
        if len(got) < len(wanted) or any(n not in (1, m) for n, m in zip(reversed(wanted), reversed(got), strict=False)):
            raise RuntimeError(
                f"The operation after {node.name()} returned an invalid gradient at index 0 - got {list(got)} but "
                f"expected shape compatible with {list(wanted)}. The tensor was reshaped in place under no_grad, which "
                "is not recorded."
            )
        return (g,)  # the sweep sums it to the shape of the edge

    scalar_vjp = traced_vjp = vjp

    @staticmethod
    def jvp(node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        return (tangents[0].reshape(lead + node.shape),)

    traced_jvp = jvp


class ReshapedPort(Port):
    """The node of a tensor whose shape was changed in place without recording.

    The operation that created the tensor is unchanged and expects gradients of the old shape. Later operations are recorded with
    this node as their input.
    """

    __slots__ = ()
    op = _ReshapedPortOp()  # type: ignore[assignment]

    def __init__(self, node: Node, tensor: Any) -> None:
        super().__init__(node.real_node, 0, tensor.array.shape, node.dtype)  # type: ignore[arg-type]
        self.storage = tensor.storage

    @property
    def real_node(self) -> Node:
        return self.edges[0]  # type: ignore[return-value]

    @property
    def public(self) -> tuple[Any, int]:
        return self.real_node.public

    def ensure_hooks(self) -> Hooks:
        return self.real_node.ensure_hooks()


def replace_array(tensor: Any, array: Any) -> None:
    """Replace the array of a tensor without recording. The shape and dtype may change.

    Gradients of a leaf have the new shape from now on. The operation that created a tensor is unchanged.
    """
    tensor.array, node = array, tensor.node
    if isinstance(node, AccumulateGrad):
        node.shape, node.dtype = array.shape, array.dtype
    elif node is not None and node.shape != array.shape:
        own_storage(tensor)  # shared with the node, which may have saved its result
        tensor.node = ReshapedPort(node, tensor)


class MultiOutputNode(Node):
    """A node with several outputs, described by `kinds`: a (shape, dtype) pair, or None if the output is not a tensor."""

    __slots__ = ("kinds", "outputs", "ports")

    def set_outputs(self, kinds: list[tuple[tuple[int, ...], Any] | None]) -> None:
        """Set the number, shapes and dtypes of the outputs."""
        self.outputs, self.kinds, self.shape, self.dtype = len(kinds), kinds, (), Bundle.dtype
        self.ports: list[Any] = [None] * len(kinds)

    def output_node(self, number: int) -> Node:
        """Return the port of an output, creating it if none is alive. A node with one output is its own port."""
        if self.shape is not None and self.dtype is not Bundle.dtype:
            return self
        ref = self.ports[number]
        port = None if ref is None else ref()
        if port is None:
            kind = self.kinds[number]
            assert kind is not None
            port = Port(self, number, *kind)
            self.ports[number] = weakref.ref(port)
        return port
