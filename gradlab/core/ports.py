"""Nodes with several outputs.

The engine keeps one cotangent a node. A node with several outputs hands its tensors out through *ports*: the node of output
number k is a `Port` whose one edge is the node proper, and whose rule packs the cotangent into a `Bundle` at place k. Bundles add
up by place, so what arrives at the node proper is one Bundle with the cotangents of all its outputs, None where there is none.
The engine need not know: a Bundle answers what it asks of an array.

To users ports are transparent: `grad_fn` and `next_functions` tell the node proper and the number. There is one port for each
output (its identity is what a sweep goes by), held weakly by the node, for the tensors hold it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from gradlab.core.node import AccumulateGrad, Hooks, Node
from gradlab.core.storage import FRESH, own_storage, tick


class Bundle:
    """A cotangent (or tangent) for each output of a node, None where there is none. Only its owners look inside."""

    __slots__ = ("parts", "shape")
    dtype, base, size = "bundle", None, 0

    def __init__(self, parts: Iterable[Any], lead: tuple[int, ...]) -> None:
        self.parts, self.shape = list(parts), lead

    @property
    def array(self) -> Bundle:
        """Itself, traced or not."""
        return self

    def __add__(self, other: Bundle) -> Bundle:
        return Bundle(
            (b if a is None else a if b is None else a + b for a, b in zip(self.parts, other.parts, strict=True)), self.shape
        )


class Own(tuple[Any, ...]):
    """What a node with rules of a user's has saved. The engine leaves it alone, and takes what the rules return for borrowed."""

    __slots__ = ()

    def unpacked(self, node: Node) -> Own:
        """Itself."""
        return self


class _Handing:
    """The "primitive" of ports."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "output", "output", "all", False, "x", False, None
    meta = saves = frees = args = ()

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
    """The node of one output of a node with several."""

    __slots__ = ("number",)
    op = _Handing()
    number: int

    def __init__(self, node: Several, number: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.edges, self.saved, self.meta, self.hooks = (node,), (), (), None
        self.shape, self.dtype, self.storage, self.order, self.number = shape, dtype, FRESH, tick(), number

    @property
    def public(self) -> tuple[Any, int]:
        return self.edges[0].public[0], self.number  # type: ignore[union-attr]

    def name(self) -> str:
        return self.edges[0].name()  # type: ignore[union-attr]

    def hooks_of_its_own(self) -> Hooks:
        self.edges[0].hooks_of_its_own()  # type: ignore[union-attr]
        return super().hooks_of_its_own()  # so that the sweep asks for hooks where the node proper is

    @property
    def site(self) -> Any:
        """The call is the node's."""
        return self.edges[0].site  # type: ignore[union-attr]

    @site.setter
    def site(self, site: Any) -> None:
        self.edges[0].site = site  # type: ignore[union-attr]


class _Reshaping:
    """The "primitive" of `Reshaped`."""

    name, kind, reads, view, variadic, foreign, accumulate_into = "output", "output", "all", False, "x", False, None
    meta = saves = frees = args = ()

    @staticmethod
    def vjp(node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        wanted, got = node.edges[0].shape, node.shape
        if len(got) < len(wanted) or any(n not in (1, m) for n, m in zip(reversed(wanted), reversed(got), strict=False)):
            raise RuntimeError(
                f"The operation after {node.name()} returned an invalid gradient at index 0 - got {list(got)} but "
                f"expected shape compatible with {list(wanted)}. The tensor got its shape in place where nothing "
                "was recorded, under no_grad."
            )
        return (g,)  # the sweep sums it to the shape of the edge

    scalar_vjp = traced_vjp = vjp

    @staticmethod
    def jvp(node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> tuple[Any, ...]:
        return (tangents[0].reshape(lead + node.shape),)

    traced_jvp = jvp


class Reshaped(Port):
    """The node of a tensor that got another shape in place where nothing was recorded: its operation stays what it was, and
    expects gradients of the shape that it had. What is recorded from now on is recorded from this node."""

    __slots__ = ()
    op = _Reshaping()  # type: ignore[assignment]

    def __init__(self, node: Node, tensor: Any) -> None:
        super().__init__(node.proper, 0, tensor.array.shape, node.dtype)  # type: ignore[arg-type]
        self.storage = tensor.storage

    @property
    def proper(self) -> Node:
        return self.edges[0]  # type: ignore[return-value]

    @property
    def public(self) -> tuple[Any, int]:
        return self.proper.public

    def hooks_of_its_own(self) -> Hooks:
        return self.proper.hooks_of_its_own()


def hold(tensor: Any, array: Any) -> None:
    """Let a tensor hold another array, perhaps of another shape and dtype, where nothing is recorded: gradients of a leaf are of
    that shape from now on, the operation that made a tensor stays what it was."""
    tensor.array, node = array, tensor.node
    if isinstance(node, AccumulateGrad):
        node.shape, node.dtype = array.shape, array.dtype
    elif node is not None and node.shape != array.shape:
        own_storage(tensor)  # the node's too, which may have saved its result
        tensor.node = Reshaped(node, tensor)


class Several(Node):
    """A node with `outputs` outputs, of the given (shape, dtype) each or None for what is no tensor."""

    __slots__ = ("kinds", "outputs", "ports")

    def of_outputs(self, kinds: list[tuple[tuple[int, ...], Any] | None]) -> None:
        """Settle what the outputs are."""
        self.outputs, self.kinds, self.shape, self.dtype = len(kinds), kinds, (), Bundle.dtype
        self.ports: list[Any] = [None] * len(kinds)

    def output_node(self, number: int) -> Node:
        """The node of an output's tensor: its port, made where there is none alive; the node itself where it has one output."""
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
