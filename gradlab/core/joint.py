"""Primitives with several outputs from one node, such as `var_mean`, as in PyTorch's graph.

Each output is recorded by its own primitive. `Joint` then replaces their nodes by one node with several outputs (see core.ports)
and with their common edges. Its rules apply the rules of the replaced nodes, its *members*, each to the cotangent of its own
output, and add up the results. Members are not part of the graph. They are visible only to formulas and sparsity patterns, which
ask an output for its member, and to observers of recorded operations.

The members hold the saved tensors. `saved` of the joint node shows only whether these are freed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.engine import check_not_overwritten, unbroadcast, unpack_saved
from gradlab.core.errors import size_of
from gradlab.core.node import PUBLIC_MODULE, InputMetadata, Node
from gradlab.core.observers import OBSERVERS, notify_join
from gradlab.core.ports import Bundle, MultiOutputNode
from gradlab.core.primitive import Primitive
from gradlab.core.saved_names import attribute_names
from gradlab.core.storage import FRESH, clock, own_storage, tick
from gradlab.core.tensor import Tensor


class Member(Node):
    """The node of one output, as its primitive recorded it."""

    __slots__ = ("number", "whole")
    number: int
    whole: weakref.ref[Any]  # weak, as the joint node refers to its members

    def output_node(self, number: int) -> Node:
        """Return the node of its output's tensor: that of the joint node, or itself until there is one."""
        whole = self.whole() if hasattr(self, "whole") else None
        return self if whole is None else whole.output_node(self.number)


class JointNode(MultiOutputNode):
    """The one node of all outputs."""

    __slots__ = ("_freed", "members")
    members: tuple[Any, ...]

    @property
    def saved(self) -> Any:  # type: ignore[override]
        """An empty tuple, or the marker left by the sweep that freed it."""
        return self._freed

    @saved.setter
    def saved(self, saved: Any) -> None:
        self._freed = saved
        if type(saved) is not tuple:
            for member in self.members:
                member.saved = saved

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(size_of(m.shape), from_numpy_dtype(m.dtype)) for m in self.members)


class Joint:
    """A primitive with several outputs: `Joint("VarMeanBackward0", var, mean)`.

    It joins the nodes that its `primitives`, in order, recorded from the same arguments. Its properties are those of the first.

    Parameters
    ----------
    node : str
        The name of the joint node.
    *primitives : Primitive
        One for each output.
    tex, formula : str
        As in `Primitive`.
    """

    kind, reads, view, variadic, foreign, accumulate_into = "joint", "all", False, None, False, None
    meta: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    frees = True

    def __init__(self, node: str, *primitives: Primitive, tex: str, formula: str) -> None:
        self.name = self.node_name = node
        self.tex, self.formula, self.args = tex, formula, primitives[0].args
        self.properties = primitives[0].properties
        self.primitives = [member_primitive(op, node) for op in primitives]
        saved: dict[str, Any] = {}
        for i, op in enumerate(self.primitives):
            for name in attribute_names(op):
                saved.setdefault(name, property(partial(saved_by_member, number=i, name=name)))
        self.node_class = type(node, (JointNode,), {"__slots__": (), "op": self, "__module__": PUBLIC_MODULE, **saved})

    def __call__(self, *results: Tensor) -> tuple[Any, ...]:
        """Give the results one common node, and return them."""
        members: tuple[Any, ...] = tuple(t.node for t in results)
        if any(member is None for member in members):
            return results
        whole: JointNode = object.__new__(self.node_class)
        whole.edges, whole.meta, whole.hooks, whole.storage, whole.order = members[0].edges, (), None, FRESH, tick()
        whole.members, whole._freed = members, ()
        whole.set_outputs([(m.shape, m.dtype) for m in members])
        if hasattr(members[0], "site"):
            whole.site = members[0].site
        for number, (t, member) in enumerate(zip(results, members, strict=True)):
            if "out" in member.op.saves:
                own_storage(t)  # its version detects later writes
            member.number, member.whole = number, weakref.ref(whole)
            t.node = port = whole.output_node(number)
            port.storage = t.storage
        if OBSERVERS:
            notify_join(results, members)
        return results

    def vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """Compute the cotangents of the edges from arrays."""
        totals: list[Any] = [None] * len(edges)
        for member, part in zip(node.members, g.parts, strict=True):
            if part is None:
                continue
            op = member.op
            cotangents = apply_rule(
                op.traced_vjp if traced else op.vjp if member.shape else op.scalar_vjp, member, edges, part, lead
            )
            for i, (c, edge) in enumerate(zip(cotangents, edges, strict=True)):
                if c is not None and edge is not None:
                    c = unbroadcast(c, edge, lead, member)
                    if not traced and (c is part or c.base is not None):
                        c = c.copy()  # it may share memory with the Bundle
                    totals[i] = c if totals[i] is None else totals[i] + c
        return totals

    scalar_vjp = vjp

    def traced_vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """Compute the cotangents from Tensors, recorded."""
        return self.vjp(node, edges, g, lead, traced=True)

    def jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """Compute the tangents of the outputs from the tangents of the edges."""
        pushed: list[Any] = []
        for member in node.members:
            parts = apply_rule(member.op.traced_jvp if traced else member.op.jvp, member, tangents, None, lead)
            total: Any = None
            for part in parts:
                total = part if total is None else total if part is None else total + part
            xp = namespace_of[type(total)]
            if total.shape != lead + member.shape:
                total = xp.broadcast_to(total, lead + member.shape)
            pushed.append(total if getattr(total, "array", total).dtype == member.dtype else xp.astype(total, member.dtype))
        return [Bundle(pushed, lead)]

    def traced_jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """Compute the tangents from Tensors, recorded."""
        return self.jvp(node, tangents, g, lead, traced=True)

    def __repr__(self) -> str:
        return f"<joint primitive {self.name}>"


def member_primitive(op: Primitive, node: str) -> Primitive:
    """Return a variant of a primitive that records a `Member` under the name of the joint node."""
    twin = op.with_node(node)
    twin.base = Member
    twin._finish()
    return twin


def saved_by_member(whole: JointNode, number: int, name: str) -> Any:
    """Return a value saved by a member, by its public name."""
    return getattr(whole.members[number], name)


def apply_rule(rule: Callable[..., Any], member: Member, edges: Any, g: Any, lead: tuple[int, ...]) -> Any:
    """Apply a rule to a member, after its saved tensors are unpacked and checked for writes."""
    kept = member.saved
    if type(kept) is not tuple:
        member.saved = unpack_saved(member)
    elif clock.last_write < member.order:
        check_not_overwritten(member)
    try:
        return rule(member, edges, g, lead)
    finally:
        member.saved = kept


def member_of_output(node: Any) -> Any:
    """Return the node whose primitive computed an output: the member for an output of a joint node, otherwise the node itself."""
    whole = node.edges[0] if node.op is not None and node.op.kind == "output" else None
    return whole.members[node.number] if isinstance(whole, JointNode) and hasattr(node, "number") else node
