"""Forward mode: dual tensors, whose tangents every operation propagates as it runs.

While a level is open, the tangent of a dual tensor is in its slot `_tangent`, which is unset on all other tensors. The level is
an observer. For each result it runs the primitive's jvp rule on the tangents of the arguments, whether or not the operation was
recorded, so no graph is needed. If the result or a tangent has a node and grad mode is enabled, the rule runs on Tensors instead
of arrays, which gives gradients of tangents and tangents of gradients.

Tangents share memory as their tensors do. The tangent of a view is that view of the tangent, and a write into a tensor also
writes into its tangent. A base that gets its first tangent by a write through a view starts from zeros, and its other views then
get their tangents from it. Hence the tangents of a result and an argument never share memory unless one is a view of the other.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from gradlab.backend.namespaces import is_writable, namespace_of, wrap
from gradlab.core.fresh_thread import THREAD_LOCALS
from gradlab.core.inplace import check_writable, commit
from gradlab.core.modes import mode
from gradlab.core.node import Node
from gradlab.core.numpy_warnings import silence
from gradlab.core.observers import Observer, add_observer, remove_observer
from gradlab.core.registry import core_primitives
from gradlab.core.storage import FRESH, view_of
from gradlab.core.tensor import Tensor, constant

Steps = tuple[tuple[Any, dict[str, Any]], ...]


class RecordedCall:
    """A substitute for the node of a call, recorded or not, on which its jvp rule runs. It saves all values."""

    __slots__ = ("dtype", "edges", "meta", "saved", "shape", "storage")

    def __init__(self, op: Any, result: Tensor, args: tuple[Tensor, ...], meta: tuple[Any, ...], traced: bool) -> None:
        by_name = dict(zip(op.args, args, strict=True)) if not op.variadic else {}
        self.edges = args if op.variadic else tuple([by_name[a] for a in op.rules])  # only their shapes are read
        self.saved = tuple([(make_alias(result) if traced else result.array) if n == "out" else by_name[n] for n in op.saves])
        self.meta = (tuple([x.array.shape for x in args]), *meta) if op.variadic else meta
        self.shape, self.dtype, self.storage = result.array.shape, result.array.dtype, result.storage


def make_alias(x: Tensor) -> Tensor:
    """Return a new Tensor with the same value and history, so that a recorded tangent does not refer to its own tensor."""
    alias = constant(x.array)
    alias.node, alias.storage = x.node, x.storage
    return alias


class Level(Observer):
    """An open level. It keeps track of the dual tensors, to delete their tangents when it closes."""

    def __init__(self) -> None:
        self.duals: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
        self.output_tangents: weakref.WeakKeyDictionary[Node, Tensor] = weakref.WeakKeyDictionary()  # of saved outputs, by node
        self.suspended = 0  # > 0 while tangents are computed, whose own operations must not get tangents

    def on_record(self, op: Any, result: Tensor, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        if self.suspended or not mode.forward or result.array.dtype.kind != "f" or not hasattr(op, "rules"):
            return
        operand_tangents = (
            [tangent_of(x) for a, x in zip(op.args, args, strict=True) if a in op.rules]
            if not op.variadic
            else [tangent_of(x) for x in args]
        )
        if any(t is not None for t in operand_tangents):
            with self, silence():
                self.assign(result, tangent := result_tangent(op, result, args, meta, operand_tangents))
            if result.node is not None and "out" in op.saves:
                self.output_tangents[result.node] = tangent
        elif hasattr(args[0], "_tangent") and hasattr(result, "view_record"):  # a view of a primal has no tangent either
            self.assign(result, None)

    def on_restore(self, result: Tensor) -> None:
        t = None if self.suspended or not mode.forward else self.output_tangents.get(result.node)  # type: ignore[arg-type]
        if t is not None:
            self.assign(result, t)

    def on_cast(self, result: Tensor, source: Tensor) -> None:
        t = None if self.suspended or not mode.forward or result.array.dtype.kind != "f" else tangent_of(source)
        if t is not None:
            with self:
                self.assign(result, core_primitives.astype.record(t, dtype=result.array.dtype))

    def on_alias(self, result: Tensor, source: Tensor) -> None:
        t = None if self.suspended or not mode.forward else tangent_of(source)
        if t is not None:
            with self:
                self.assign(result, core_primitives.clone.record(t) if mode.grad else t)

    def on_store(self, target: Tensor, region: Steps, value: Tensor) -> None:
        if self.suspended or not mode.forward or target.array.dtype.kind != "f":
            return
        have, new = tangent_of(target), tangent_of(value)
        if have is None:
            if new is None:
                return
            view = view_of(target)
            base = target if view is None else view.base
            self.assign(base, constant(namespace_of[type(base.array)].zeros_like(base.array)))
            have = tangent_of(target)
            assert have is not None
        with self:
            write_tangent(have, region, constant(namespace_of[type(value.array)].zeros_like(value.array)) if new is None else new)

    def on_become_view(self, tensor: Tensor, old: Tensor, op: Any, meta: dict[str, Any]) -> None:
        tangent = getattr(tensor, "_tangent", None)
        if tangent is not None:
            with self:
                self.assign(old, tangent)
                self.assign(tensor, op.record(tangent, **meta))

    def on_join(self, results: Sequence[Tensor], members: Sequence[Node]) -> None:
        for x, member in zip(results, members, strict=True):
            tangent = self.output_tangents.pop(member, None)
            if tangent is not None and x.node is not None:
                self.output_tangents[x.node] = tangent

    def on_detach(self, result: Tensor, source: Tensor, how: str) -> None:
        if result is source and hasattr(result, "_tangent"):  # `detach_`
            self.assign(result, None)

    def __enter__(self) -> Level:
        self.suspended += 1
        return self

    def __exit__(self, *raised: object) -> None:
        self.suspended -= 1

    def assign(self, x: Tensor, tangent: Tensor | None) -> None:
        """Set the tangent of `x`. None means that it has no tangent, even if its base does."""
        x._tangent = tangent  # type: ignore[assignment]
        self.duals[id(x)] = x

    def close(self) -> None:
        """Delete all tangents."""
        for x in list(self.duals.values()):
            del x._tangent
        self.duals.clear()
        self.output_tangents.clear()

    def without_history(self, g: Tensor) -> Tensor:
        """Return the tensor and its tangent without their history."""
        detached, t = constant(g.array), tangent_of(g)
        if t is not None:
            self.assign(detached, constant(t.array))
        return detached


def result_tangent(
    op: Any, result: Tensor, args: tuple[Tensor, ...], meta: tuple[Any, ...], operand_tangents: Sequence[Tensor | None]
) -> Tensor:
    """Return the tangent of `result`, which `op` computed from tensors with the given tangents (None: no tangent)."""
    if hasattr(result, "view_record"):
        seen: Tensor = op.record(operand_tangents[0], **dict(zip(op.meta, meta, strict=True)))
        return seen
    traced = mode.grad and (result.node is not None or any(t is not None and t.node is not None for t in operand_tangents))
    call = RecordedCall(op, result, args, meta, traced)
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
    return match_layout(total, result.array, shared)


def match_layout(t: Tensor, like: Any, shared: bool = False) -> Tensor:
    """Return the tangent with the memory layout of its tensor.

    It is copied, with its history, if the layout differs or if its memory is `shared`.
    """
    array = t.array
    if not shared and array.strides == like.strides and is_writable(array):
        return t
    copy = constant(namespace_of[type(like)].empty_like(like, dtype=array.dtype))
    copy.array[...] = array
    if t.node is not None and mode.grad:
        copy.node = core_primitives.clone.record(t).node
    return copy


def write_tangent(t: Tensor, region: Steps, value: Tensor) -> None:
    """Write `value` into a region of a tangent, after a write into the same region of its tensor."""
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
        value = core_primitives.astype.record(value, dtype=t.array.dtype)
    commit(t, region, value)
    if mode.grad and not region and value.node is None and view_of(t) is None:  # a constant replaced all of it
        t.node = None


class _CurrentLevel(threading.local):
    level: Level | None = None


level_state = _CurrentLevel()
THREAD_LOCALS.append(level_state)
UNSET: Any = object()


def tangent_of(x: Any) -> Tensor | None:
    """Return the tensor's tangent at the open level, or None. A view without its own gets a view of its base's tangent."""
    own: Tensor | None = getattr(x, "_tangent", UNSET)
    if own is not UNSET:
        return own
    if x.storage is FRESH or level_state.level is None:
        return None
    view = view_of(x)
    tangent: Tensor | None = None if view is None else getattr(view.base, "_tangent", None)
    if tangent is not None and view is not None:
        with level_state.level as level:
            for op, meta in view.steps:
                tangent = op.record(tangent, **meta)
            level.assign(x, tangent)
    return tangent


def set_tangent(x: Tensor, tangent: Tensor) -> None:
    """Set the tangent, at the open level, of a tensor computed by a user-defined rule."""
    assert level_state.level is not None
    level_state.level.assign(x, tangent)
    if x.node is not None:
        level_state.level.output_tangents[x.node] = tangent


def enter_level() -> None:
    """Open the level. If an interrupt occurs, nothing remains open."""
    level_state.level = Level()
    try:
        add_observer(level_state.level)
    except KeyboardInterrupt:
        leave_level()
        raise


def leave_level() -> None:
    """Close the level. No tensor has a tangent afterwards."""
    level = level_state.level
    assert level is not None
    remove_observer(level)
    level_state.level = None
    level.close()
