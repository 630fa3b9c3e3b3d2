"""Forward mode, step by step: tensors that carry a tangent, and what every operation makes of it as it runs.

A tensor's tangent stands in its slot `_tangent`, which is unset on all others, while a level is open. The level is an observer:
for each result it runs the primitive's own jvp rule on the arguments' tangents, whether the operation was recorded or not, so no
graph is needed and none is kept. Where history is wanted (the result or a tangent has a node, and the grad mode is on), the rule
is run on Tensors instead of arrays: then gradients of tangents, and tangents of gradients, come out.

Tangents share memory as their tensors do. A view's tangent is that view of the tangent; a write into a tensor writes into its
tangent; a base that gets its first tangent by a write through a view starts from zeros, and its other views find theirs
through it. Hence a result never shares its tangent's memory with an argument's, unless it is a view of it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from gradlab.backend.namespaces import is_writable, namespace_of, wrap
from gradlab.core.fresh_thread import LOCALS
from gradlab.core.inplace import check_writable, commit
from gradlab.core.modes import mode
from gradlab.core.node import Node
from gradlab.core.numpy_warnings import silence
from gradlab.core.observers import Observer, add_observer, remove_observer
from gradlab.core.registry import used
from gradlab.core.storage import FRESH, view_of
from gradlab.core.tensor import Tensor, constant

Steps = tuple[tuple[Any, dict[str, Any]], ...]


class Call:
    """Stands for the node of a call, recorded or not, that its jvp rule is run on: everything is saved."""

    __slots__ = ("dtype", "edges", "meta", "saved", "shape", "storage")

    def __init__(self, op: Any, result: Tensor, args: tuple[Tensor, ...], meta: tuple[Any, ...], traced: bool) -> None:
        by_name = dict(zip(op.args, args, strict=True)) if not op.variadic else {}
        self.edges = args if op.variadic else tuple([by_name[a] for a in op.rules])  # asked for their shapes alone
        self.saved = tuple([(same(result) if traced else result.array) if n == "out" else by_name[n] for n in op.saves])
        self.meta = (tuple([x.array.shape for x in args]), *meta) if op.variadic else meta
        self.shape, self.dtype, self.storage = result.array.shape, result.array.dtype, result.storage


def same(x: Tensor) -> Tensor:
    """The tensor's value and history in another object: a tangent that is recorded must not hold the tensor that holds it."""
    twin = constant(x.array)
    twin.node, twin.storage = x.node, x.storage
    return twin


class Level(Observer):
    """An open level: keeps the tensors with a tangent, to take it from them when it closes."""

    def __init__(self) -> None:
        self.duals: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
        self.of_outputs: weakref.WeakKeyDictionary[Node, Tensor] = weakref.WeakKeyDictionary()  # by the node that saved it
        self.resting = 0  # tangents are computed with operations that have none themselves

    def on_record(self, op: Any, result: Tensor, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        if self.resting or not mode.forward or result.array.dtype.kind != "f" or not hasattr(op, "rules"):
            return
        operand_tangents = (
            [tangent_of(x) for a, x in zip(op.args, args, strict=True) if a in op.rules]
            if not op.variadic
            else [tangent_of(x) for x in args]
        )
        if any(t is not None for t in operand_tangents):
            with self, silence():
                self.hand(result, tangent := result_tangent(op, result, args, meta, operand_tangents))
            if result.node is not None and "out" in op.saves:
                self.of_outputs[result.node] = tangent
        elif hasattr(args[0], "_tangent") and hasattr(result, "view_record"):  # of a primal
            self.hand(result, None)

    def on_restore(self, result: Tensor) -> None:
        t = None if self.resting or not mode.forward else self.of_outputs.get(result.node)  # type: ignore[arg-type]
        if t is not None:
            self.hand(result, t)

    def on_cast(self, result: Tensor, source: Tensor) -> None:
        t = None if self.resting or not mode.forward or result.array.dtype.kind != "f" else tangent_of(source)
        if t is not None:
            with self:
                self.hand(result, used.astype.record(t, dtype=result.array.dtype))

    def on_alias(self, result: Tensor, source: Tensor) -> None:
        t = None if self.resting or not mode.forward else tangent_of(source)
        if t is not None:
            with self:
                self.hand(result, used.clone.record(t) if mode.grad else t)

    def on_store(self, target: Tensor, region: Steps, value: Tensor) -> None:
        if self.resting or not mode.forward or target.array.dtype.kind != "f":
            return
        have, new = tangent_of(target), tangent_of(value)
        if have is None:
            if new is None:
                return
            view = view_of(target)
            base = target if view is None else view.base
            self.hand(base, constant(namespace_of[type(base.array)].zeros_like(base.array)))
            have = tangent_of(target)
            assert have is not None
        with self:
            write(have, region, constant(namespace_of[type(value.array)].zeros_like(value.array)) if new is None else new)

    def on_become_view(self, tensor: Tensor, old: Tensor, op: Any, meta: dict[str, Any]) -> None:
        tangent = getattr(tensor, "_tangent", None)
        if tangent is not None:
            with self:
                self.hand(old, tangent)
                self.hand(tensor, op.record(tangent, **meta))

    def on_join(self, results: Sequence[Tensor], members: Sequence[Node]) -> None:
        for x, member in zip(results, members, strict=True):
            tangent = self.of_outputs.pop(member, None)
            if tangent is not None and x.node is not None:
                self.of_outputs[x.node] = tangent

    def on_detach(self, result: Tensor, source: Tensor, how: str) -> None:
        if result is source and hasattr(result, "_tangent"):  # `detach_`
            self.hand(result, None)

    def __enter__(self) -> Level:
        self.resting += 1
        return self

    def __exit__(self, *raised: object) -> None:
        self.resting -= 1

    def hand(self, x: Tensor, tangent: Tensor | None) -> None:
        """Make `tangent` the tensor's; None: it has none, whatever its base has."""
        x._tangent = tangent  # type: ignore[assignment]
        self.duals[id(x)] = x

    def close(self) -> None:
        """Take the tangents back."""
        for x in list(self.duals.values()):
            del x._tangent
        self.duals.clear()
        self.of_outputs.clear()

    def without_history(self, g: Tensor) -> Tensor:
        """The tensor and its tangent, without what they were computed from."""
        detached, t = constant(g.array), tangent_of(g)
        if t is not None:
            self.hand(detached, constant(t.array))
        return detached


def result_tangent(
    op: Any, result: Tensor, args: tuple[Tensor, ...], meta: tuple[Any, ...], operand_tangents: Sequence[Tensor | None]
) -> Tensor:
    """The tangent of what `op` made of tensors with the tangents `operand_tangents` (None: it has none)."""
    if hasattr(result, "view_record"):
        seen: Tensor = op.record(operand_tangents[0], **dict(zip(op.meta, meta, strict=True)))
        return seen
    traced = mode.grad and (result.node is not None or any(t is not None and t.node is not None for t in operand_tangents))
    call = Call(op, result, args, meta, traced)
    rules = op.traced_jvp if traced else op.jvp
    parts = [p for p in rules(call, [t if t is None or traced else t.array for t in operand_tangents], None, ()) if p is not None]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    xp = namespace_of[type(total)]
    if total.shape != result.array.shape:
        total = xp.broadcast_to(total, result.array.shape)
    if getattr(total, "array", total).dtype != result.array.dtype:
        total = xp.astype(total, result.array.dtype)
    total = total if traced else constant(wrap(total))
    shared = total.array.base is not None or any(total.array is x.array for x in (*operand_tangents, *args) if x is not None)
    return laid_out(total, result.array, shared)


def laid_out(t: Tensor, like: Any, shared: bool = False) -> Tensor:
    """The tangent, laid out as its tensor is; copied, with its history, where it is not or where it is `shared`."""
    array = t.array
    if not shared and array.strides == like.strides and is_writable(array):
        return t
    copy = constant(namespace_of[type(like)].empty_like(like, dtype=array.dtype))
    copy.array[...] = array
    if t.node is not None and mode.grad:
        copy.node = used.clone.record(t).node
    return copy


def write(t: Tensor, region: Steps, value: Tensor) -> None:
    """Write `value` into the region of a tangent, as it was written into the region of its tensor."""
    check_writable(t)
    part = t.array
    for op, meta in region[:-1]:
        part = op(part, **meta)
    at: Any = ...
    if region:
        op, meta = region[-1]
        at = meta["index"]
    part[at] = value.array
    if value.array.dtype != t.array.dtype:
        value = used.astype.record(value, dtype=t.array.dtype)
    commit(t, region, value)
    if mode.grad and not region and value.node is None and view_of(t) is None:  # all of it is a constant
        t.node = None


class _Open(threading.local):
    level: Level | None = None


opened = _Open()
LOCALS.append(opened)
NONE: Any = object()


def tangent_of(x: Any) -> Tensor | None:
    """The tensor's tangent at the open level, or None: its own, or its base's seen as the tensor sees its base."""
    own: Tensor | None = getattr(x, "_tangent", NONE)
    if own is not NONE:
        return own
    if x.storage is FRESH or opened.level is None:
        return None
    view = view_of(x)
    tangent: Tensor | None = None if view is None else getattr(view.base, "_tangent", None)
    if tangent is not None and view is not None:
        with opened.level as level:
            for op, meta in view.steps:
                tangent = op.record(tangent, **meta)
            level.hand(x, tangent)
    return tangent


def set_tangent(x: Tensor, tangent: Tensor) -> None:
    """Give a tensor, the result of a rule of the user's, its tangent at the open level."""
    assert opened.level is not None
    opened.level.hand(x, tangent)
    if x.node is not None:
        opened.level.of_outputs[x.node] = tangent


def enter() -> None:
    """Open the level: all of it, or nothing if an interrupt comes."""
    opened.level = Level()
    try:
        add_observer(opened.level)
    except KeyboardInterrupt:
        leave()
        raise


def leave() -> None:
    """Close it: no tensor has a tangent afterwards."""
    level = opened.level
    assert level is not None
    remove_observer(level)
    opened.level = None
    level.close()
