"""Writing into a tensor that has history, and through a view of one.

An in-place operation is its out-of-place twin recorded on the tensor's old value, whose result is then copied into the
memory; the tensor's node becomes the new one. Nothing else is needed for a tensor that is no view. Through a view, the
base gets new history as well: `overwrite` says that its elements under the view now come from the written value, and its
two rules are the view operations themselves. The other live views of that base are recorded again from it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable
from gradlab.core.dtypes import CATEGORY
from gradlab.core.errors import leaf_in_place, view_of_leaf_in_place
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.primitive import PRIMITIVES
from gradlab.core.storage import FRESH, own_storage, tick, view_of, wrote
from gradlab.core.tensor import Tensor, constant


def check_writable(tensor: Tensor) -> None:
    """Raise where torch forbids writing into `tensor` in grad mode."""
    if not mode.grad:
        return
    view = view_of(tensor)
    if type(tensor.node) is AccumulateGrad:
        raise leaf_in_place()
    if view is not None and view.base.node is not None:
        if type(view.base.node) is AccumulateGrad:
            raise view_of_leaf_in_place()
        if view.refusal == "no_grad":
            raise RuntimeError("A view was created in no_grad mode and is being modified inplace with grad mode enabled. Make "
                               "the view outside no_grad(), or write inside it.")
        if view.refusal:
            raise RuntimeError(f"{view.refusal} is a view and is being modified inplace. This view is the output of a function "
                               "that returns multiple views. Such functions do not allow the output views to be modified "
                               "inplace. You should replace the inplace operation by an out-of-place one.")


def shadow(tensor: Tensor, copied: bool) -> Tensor:
    """The tensor's present value and history under another object: what the out-of-place twin is recorded on."""
    old = constant(tensor.array.copy() if copied else tensor.array)
    old.node = tensor.node
    return old


def in_place(op: Any, target: Tensor, *others: Any, **meta: Any) -> Tensor:
    """`target = op(target, …)` written into `target`'s memory. Returns `target`."""
    wanted = False
    if mode.grad:
        check_writable(target)
        wanted = target.node is not None or any(isinstance(x, Tensor) and x.node is not None for x in others)
    if not wanted and not meta and written_directly(op.forward, target.array, others):
        wrote(target)
        return target
    first = op.args[0]
    saves_target = any(first in op.needs[arg] for arg in op.rules)
    others = tuple(shadow(x, saves_target) if x is target else x for x in others)
    result = op.record(shadow(target, copied=saves_target and wanted), *others, **meta)
    if result is NotImplemented:
        raise TypeError(f"{op.name}_(): unsupported operand types: {', '.join(type(x).__name__ for x in others)}.")
    store(target, result)
    return target


def composed_in_place(function: Any, target: Tensor, *others: Any, **options: Any) -> Tensor:
    """The same for a function made of several operations, which may save its argument anywhere."""
    check_writable(target)
    old = shadow(target, copied=mode.grad and (target.node is not None or any(
        isinstance(x, Tensor) and x.node is not None for x in (*others, *options.values()))))
    store(target, function(old, *(old if x is target else x for x in others), **options))
    return target


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of that shape broadcasts to `into`."""
    if shape == into:
        return True
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(into), strict=False))


def written_directly(forward: Any, array: Any, others: tuple[Any, ...]) -> bool:
    """Let a ufunc write into the memory itself where no history is wanted and the operands are of one dtype: an optimizer's
    `p -= …` in one pass instead of two. Whether it was done."""
    if type(forward) is not np.ufunc or array.dtype.kind != "f" or not is_writable(array):
        return False
    operands = [x.array if type(x) is Tensor else x for x in others]
    for x in operands:
        if type(x) not in (float, int) and (getattr(x, "dtype", None) is not array.dtype or not fits(x.shape, array.shape)):
            return False
    forward(array, *operands, out=array)
    return True


def store(target: Tensor, value: Tensor) -> None:
    """Copy a freshly computed `value` into `target`'s memory and give `target` its history."""
    have, new = target.array, value.array
    if CATEGORY[new.dtype.kind] > CATEGORY[have.dtype.kind]:
        raise RuntimeError(f"result type {value.dtype.word} can't be cast to the desired output type "
                           f"{target.dtype.word}. Use the operation that makes a new tensor.")
    if new.shape != have.shape:
        raise RuntimeError(f"output with shape {list(have.shape)} doesn't match the broadcast shape {list(new.shape)}. An "
                           "in-place operation cannot make its tensor larger.")
    if not is_writable(have):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory "
                           "location, or the memory is read-only. Please clone() the tensor before performing the operation.")
    have[...] = new
    commit(target, (), value)


def commit(target: Tensor, region: tuple[tuple[Any, dict[str, Any]], ...], value: Tensor, op: Any = None) -> None:
    """Note that `target` was overwritten by `value`, or the region of it that the (primitive, metadata) steps pick, and
    record what follows. The memory is written already: this is how `x[index] = value` works for every index. `op` is
    `overwrite`, under the name torch gives it there."""
    wrote(target)
    if not mode.grad:
        return
    view = view_of(target)
    if view is None and not region:
        if value.node is not None:
            own_history(target, value.node)
        refresh_views(target)
        return
    base, steps = (target, region) if view is None else (view.base, (*view.steps, *region))
    if value.node is None and base.node is None:
        return
    own_history(base, overwriting_node(base, steps, value, PRIMITIVES["overwrite"] if op is None or view is not None else op))
    refresh_views(base)


def overwriting_node(base: Tensor, steps: tuple[tuple[Any, dict[str, Any]], ...], value: Tensor, overwrite: Any) -> Any:
    """The node that says: the base as it was, but with `value` where the steps lead. Its memory is already so."""
    node: Any = object.__new__(overwrite.node_class)
    node.edges, node.saved, node.meta, node.hooks = (base.node, value.node), (), (steps,), None
    node.shape, node.dtype, node.storage, node.order = base.array.shape, base.array.dtype, base.storage, tick()
    return node


def own_history(target: Tensor, node: Any) -> None:
    """Make `node` the node of `target`, as recorded after the write; what it saved of its output is `target`'s memory."""
    old = target.node
    node.order, node.storage = tick(), own_storage(target)
    if "out" in node.op.saves and node.saved is not None:
        at = node.op.saves.index("out")
        if node.saved[at] is not None:
            node.saved = (*node.saved[:at], target.array, *node.saved[at + 1:])
    if old is not None and old.hooks is not None and old.hooks.retain is not None and old.hooks.retain() is target:
        node.hooks_of_its_own().retain, old.hooks.retain = old.hooks.retain, None
    target.node = node


def refresh_views(base: Tensor) -> None:
    """Record every live view of `base` again from its present node."""
    if base.storage is FRESH:
        return
    for ref in base.storage.views:
        other = ref()
        view = None if other is None else view_of(other)
        if other is None or view is None or view.base is not base or view.refusal == "no_grad":
            continue
        source = constant(base.array)
        source.node = base.node
        for op, meta in view.steps:
            source = op.record(source, **meta)
        other.node = source.node
        if other.node is not None:
            other.node.storage = base.storage
