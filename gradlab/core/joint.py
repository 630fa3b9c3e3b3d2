"""Primitives that are one node together, as `var_mean`, whose results torch's graph has from one node with two outputs.

Each result is recorded by a primitive of its own, as any. `Joint` then puts one node in the place of theirs: a node with several
outputs (see core.ports) whose edges are those that they have in common. Theirs, its *members*, are what its rules are made of: a
member's cotangents come of its own output's, and add up. Members are in no graph, save that a formula or a pattern of nonzeros
asks an output for the member that stands for it; whoever sees operations as they are recorded sees members.

What is freed is what the members saved. `saved` of the whole says only whether they have it still.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import known_dtype
from gradlab.core.engine import check_unwritten, fit, unpacked
from gradlab.core.errors import size_of
from gradlab.core.node import PUBLIC_MODULE, InputMetadata, Node
from gradlab.core.observers import OBSERVERS, notify_join
from gradlab.core.ports import Bundle, Several
from gradlab.core.primitive import Primitive
from gradlab.core.saved_names import names
from gradlab.core.storage import FRESH, clock, own_storage, tick
from gradlab.core.tensor import Tensor


class Member(Node):
    """The node of one output, as its primitive recorded it."""

    __slots__ = ("number", "whole")
    number: int
    whole: weakref.ref[Any]  # it has this one: not both ways

    def output_node(self, number: int) -> Node:
        """The node of its output's tensor; its own, as long as there is none of all."""
        whole = self.whole() if hasattr(self, "whole") else None
        return self if whole is None else whole.output_node(self.number)


class Whole(Several):
    """The node of all."""

    __slots__ = ("_freed", "members")
    members: tuple[Any, ...]

    @property
    def saved(self) -> Any:  # type: ignore[override]
        """An empty tuple, or what the sweep left that freed it."""
        return self._freed

    @saved.setter
    def saved(self, saved: Any) -> None:
        self._freed = saved
        if type(saved) is not tuple:
            for member in self.members:
                member.saved = saved

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple(InputMetadata(size_of(m.shape), known_dtype(m.dtype)) for m in self.members)


class Joint:
    """What stands for a primitive: `Joint("VarMeanBackward0", var, mean)` joins what its `primitives`, which are those in order
    under the node's name, have recorded of the same arguments. `tex` and `formula` are as a primitive's."""

    kind, reads, view, variadic, foreign, accumulate_into = "joint", "all", False, None, False, None
    meta: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    frees = True

    def __init__(self, node: str, *primitives: Primitive, tex: str, formula: str) -> None:
        self.name = self.node_name = node
        self.tex, self.formula, self.args = tex, formula, primitives[0].args
        self.primitives = [one_of_several(op, node) for op in primitives]
        saved: dict[str, Any] = {}
        for i, op in enumerate(self.primitives):
            for name in names(op):
                saved.setdefault(name, property(partial(of_member, number=i, name=name)))
        self.node_class = type(node, (Whole,), {"__slots__": (), "op": self, "__module__": PUBLIC_MODULE, **saved})

    def __call__(self, *results: Tensor) -> tuple[Any, ...]:
        """The results, with one node."""
        members: tuple[Any, ...] = tuple(t.node for t in results)
        if any(member is None for member in members):
            return results
        whole: Whole = object.__new__(self.node_class)
        whole.edges, whole.meta, whole.hooks, whole.storage, whole.order = members[0].edges, (), None, FRESH, tick()
        whole.members, whole._freed = members, ()
        whole.of_outputs([(m.shape, m.dtype) for m in members])
        if hasattr(members[0], "site"):
            whole.site = members[0].site
        for number, (t, member) in enumerate(zip(results, members, strict=True)):
            if "out" in member.op.saves:
                own_storage(t)  # by which it is known if it is written to
            member.number, member.whole = number, weakref.ref(whole)
            t.node = port = whole.output_node(number)
            port.storage = t.storage
        if OBSERVERS:
            notify_join(results, members)
        return results

    def vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """The cotangents of the edges, from arrays."""
        totals: list[Any] = [None] * len(edges)
        for member, part in zip(node.members, g.parts, strict=True):
            if part is None:
                continue
            op = member.op
            cotangents = ruled(op.traced_vjp if traced else op.vjp if member.shape else op.scalar_vjp, member, edges, part, lead)
            for i, (c, edge) in enumerate(zip(cotangents, edges, strict=True)):
                if c is not None and edge is not None:
                    c = fit(c, edge, lead, member)
                    if not traced and (c is part or c.base is not None):
                        c = c.copy()  # it may be a part of the Bundle, or a view of one
                    totals[i] = c if totals[i] is None else totals[i] + c
        return totals

    scalar_vjp = vjp

    def traced_vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """The same from Tensors, recorded."""
        return self.vjp(node, edges, g, lead, traced=True)

    def jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """The tangents of the outputs, from those of the edges."""
        pushed: list[Any] = []
        for member in node.members:
            parts = ruled(member.op.traced_jvp if traced else member.op.jvp, member, tangents, None, lead)
            total: Any = None
            for part in parts:
                total = part if total is None else total if part is None else total + part
            xp = namespace_of[type(total)]
            if total.shape != lead + member.shape:
                total = xp.broadcast_to(total, lead + member.shape)
            pushed.append(total if getattr(total, "array", total).dtype == member.dtype else xp.astype(total, member.dtype))
        return [Bundle(pushed, lead)]

    def traced_jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """The same from Tensors, recorded."""
        return self.jvp(node, tangents, g, lead, traced=True)

    def __repr__(self) -> str:
        return f"<joint primitive {self.name}>"


def one_of_several(op: Primitive, node: str) -> Primitive:
    """The primitive under the name of a node of several, recorded as a member of one."""
    twin = op.named(node)
    twin.base = Member
    twin._finish()
    return twin


def of_member(whole: Whole, number: int, name: str) -> Any:
    """What a member saved."""
    return getattr(whole.members[number], name)


def ruled(rule: Callable[..., Any], member: Member, edges: Any, g: Any, lead: tuple[int, ...]) -> Any:
    """What a member's rule makes, once what it saved is unpacked, and none of it found overwritten."""
    kept = member.saved
    if type(kept) is not tuple:
        member.saved = unpacked(member)
    elif clock.last_write < member.order:
        check_unwritten(member)
    try:
        return rule(member, edges, g, lead)
    finally:
        member.saved = kept


def single(node: Any) -> Any:
    """The node whose primitive says what an output is: its member of a joint node's port, itself else."""
    whole = node.edges[0] if node.op is not None and node.op.kind == "output" else None
    return whole.members[node.number] if isinstance(whole, Whole) and hasattr(node, "number") else node
