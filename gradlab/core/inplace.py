"""In-place operations on tensors with history and on their views.

An in-place operation records its out-of-place variant on the old value of the tensor, copies the result into the tensor's memory
and replaces the tensor's node. This suffices for a tensor that is not a view. A write through a view also gives its base new
history: a node of `overwrite`, by which the elements under the view come from the written value. The two rules of `overwrite` are
the view operations themselves. The other live views of the base are recorded again from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_writable
from gradlab.core.dtypes import CATEGORY_OF_KIND
from gradlab.core.errors import leaf_in_place, overlapping_memory, view_of_leaf_in_place, wrong_type
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Invalid
from gradlab.core.observers import OBSERVERS, notify_alias, notify_before_write, notify_rebase, notify_store
from gradlab.core.registry import core_primitives
from gradlab.core.storage import FRESH, Storage, View, mark_written, own_storage, tick, view_of
from gradlab.core.tensor import Tensor, constant

MODE_REFUSALS = {
    "no_grad": "no_grad mode and is being modified inplace with grad mode enabled",
    "inference": "inference mode and is being modified inplace in normal mode",
}
# Part of the refusal of a view from a custom Function, which is the whole message.
FUNCTION_VIEW_REFUSAL = " is a view and is being modified inplace. This view "


def check_writable(tensor: Tensor, wanted: bool = False) -> None:
    """Raise if PyTorch forbids an in-place write to `tensor` in grad mode. `wanted` is True if the written value has history."""
    if OBSERVERS:
        notify_before_write(tensor)
    if not mode.grad:
        return
    view = view_of(tensor)
    if view is not None and tensor.node is not None and FUNCTION_VIEW_REFUSAL in view.refusal:
        raise RuntimeError(view.refusal)
    if view is not None and (wanted or tensor.node is not None or view.base.node is not None):
        if view.refusal:
            raise RuntimeError(refusal_message(view.refusal))
        if type(view.base.node) is AccumulateGrad or (view.base.node is None and starts_at_leaf(tensor.node)):
            raise view_of_leaf_in_place()
    if type(tensor.node) is AccumulateGrad:
        raise leaf_in_place() if view is None else view_of_leaf_in_place()


def starts_at_leaf(node: Any) -> bool:
    """Return True if a chain of views starts at a leaf: a view of a base without history, on which requires_grad was set."""
    while node is not None and type(node) is not AccumulateGrad:
        node = node.edges[0] if len(node.edges) == 1 else None
    return node is not None


def refusal_message(refusal: str) -> str:
    """Return the message of the error for a write to this view."""
    if refusal in MODE_REFUSALS:
        block = "no_grad" if refusal == "no_grad" else "inference_mode"
        return (
            f"A view was created in {MODE_REFUSALS[refusal]}. Given that this use case is ambiguous and error-prone, it is "
            "forbidden. You can clarify your code by moving both the view and the inplace either both inside the "
            f"{block} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
            "tracked)."
        )
    return (
        refusal
        if FUNCTION_VIEW_REFUSAL in refusal
        else (
            f"{refusal} is a view and is being modified inplace. This view is the output of a function that returns multiple "
            "views. Such functions do not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one."
        )
    )


def alias(tensor: Tensor, copied: bool) -> Tensor:
    """Return a new Tensor with the present value and history of `tensor`, on which the out-of-place variant is recorded."""
    old = constant(tensor.array.copy() if copied else tensor.array)
    old.node = tensor.node
    if old.node is not None and old.node.hooks is not None and (view := view_of(tensor)) is not None:
        old.node = rerecord_view(view).node  # the hooks stay with the view as it was before the write
    if copied and old.node is not None:
        old.storage = Storage()  # not the storage of the node's output
    if OBSERVERS:
        notify_alias(old, tensor)
    return old


def in_place(op: Any, target: Tensor, *others: Any, **meta: Any) -> Tensor:
    """Compute `op(target, …)` in `target`'s memory and return `target`."""
    wanted = False
    try:  # free if it is a tensor
        node = target.node
    except AttributeError:
        raise wrong_type(f"{op.name.strip('_')}_", "input", 1, "Tensor", target) from None
    if mode.grad:
        wanted = node is not None or any(isinstance(x, Tensor) and x.node is not None for x in others)
        check_writable(target, wanted)
    elif OBSERVERS:
        notify_before_write(target)
    if not wanted and not meta and not OBSERVERS and write_directly(op.forward, target.array, others):
        mark_written(target)
        return target
    first = op.args[0]
    saves_target = any(first in op.needs[arg] for arg in op.rules)
    if OBSERVERS:
        wanted = True
    others = tuple(alias(x, wanted) if x is target or (wanted and overlaps(x, target)) else x for x in others)
    result = op.record(alias(target, copied=saves_target and wanted), *others, **meta)
    if result is NotImplemented:
        raise TypeError(f"{op.name}_(): unsupported operand types: {', '.join(type(x).__name__ for x in others)}.")
    store(target, result)
    return target


def composed_in_place(function: Any, target: Tensor, *others: Any, **options: Any) -> Tensor:
    """Compute a composed function in `target`'s memory and return `target`. Any of its operations may save its argument."""
    try:
        node = target.node
    except AttributeError:
        raise wrong_type(f"{function.__name__.strip('_')}_", "input", 1, "Tensor", target) from None
    wanted = node is not None or any(isinstance(x, Tensor) and x.node is not None for x in (*others, *options.values()))
    check_writable(target, wanted)
    copied = bool(OBSERVERS) or (mode.grad and wanted)
    old = alias(target, copied)
    store(
        target,
        function(
            old, *(old if x is target else alias(x, True) if copied and overlaps(x, target) else x for x in others), **options
        ),
    )
    return target


def overlaps(x: Any, target: Tensor) -> bool:
    """Return True if another operand shares memory with `target`, so that a copy of it must be saved.

    An in-place operation is recorded after its write, so the version check would not detect that it overwrote the operand.
    """
    return isinstance(x, Tensor) and (
        (x.storage is target.storage and x.storage is not FRESH)
        or (x.array if x.array.base is None else x.array.base)
        is (target.array if target.array.base is None else target.array.base)
    )


def broadcasts_to(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Return True if an array of this shape broadcasts to the shape `into`."""
    if shape == into:
        return True
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(into), strict=False))


def write_directly(forward: Any, array: Any, others: tuple[Any, ...]) -> bool:
    """Let a ufunc write directly to the array if all operands have its dtype. Return False if that is not possible.

    The memory is read once instead of twice, as for an optimizer's `p -= …`. The caller needs no history.
    """
    if type(forward) is not np.ufunc or array.dtype.char not in "fd" or not is_writable(array):
        return False
    operands = []
    for x in others:
        if type(x) is Tensor:
            x = x.array
        if (
            type(x) is not float
            and type(x) is not int
            and (
                type(x) is not type(array)
                or x.dtype is not array.dtype
                or not (x.shape == array.shape or broadcasts_to(x.shape, array.shape))
            )
        ):
            return False
        operands.append(x)
    try:
        forward(array, *operands, out=array)
    except RuntimeWarning:
        return True  # raised after everything is written
    return True


def store(target: Tensor, value: Tensor) -> None:
    """Copy a freshly computed `value` into `target`'s memory and give `target` its history."""
    have, new = target.array, value.array
    if CATEGORY_OF_KIND[new.dtype.kind] > CATEGORY_OF_KIND[have.dtype.kind]:
        raise RuntimeError(
            f"result type {value.dtype.word} can't be cast to the desired output type "
            f"{target.dtype.word}. Use the out-of-place operation."
        )
    if new.shape != have.shape:
        raise RuntimeError(
            f"output with shape {list(have.shape)} doesn't match the broadcast shape {list(new.shape)}. An "
            "in-place operation cannot make its tensor larger."
        )
    if not is_writable(have):
        raise overlapping_memory()
    have[...] = new
    commit(target, (), value)


def commit(target: Tensor, region: tuple[tuple[Any, dict[str, Any]], ...], value: Tensor, op: Any = None) -> None:
    """Record that `value` was written to `target`, or to a region of it.

    The memory is already written. Every `x[index] = value` ends here.

    Parameters
    ----------
    target : Tensor
    region : tuple of (primitive, metadata)
        The view operations that lead from `target` to the region.
    value : Tensor
    op : Primitive, optional
        `overwrite` under PyTorch's name for this write.
    """
    mark_written(target)
    if OBSERVERS:
        notify_store(target, region, value)
    if not mode.grad:
        return
    view = view_of(target)
    if view is None and not region:
        if value.node is not None:
            set_history(target, value.node)
        refresh_views(target)
        return
    base, steps = (target, region) if view is None else (view.base, (*view.steps, *region))
    if value.node is None and base.node is None:
        return
    node = make_overwrite_node(base, steps, value, core_primitives.overwrite if op is None or view is not None else op)
    set_history(base, node)
    if OBSERVERS:
        notify_rebase(node)
    refresh_views(base)


def make_overwrite_node(base: Tensor, steps: tuple[tuple[Any, dict[str, Any]], ...], value: Tensor, overwrite: Any) -> Any:
    """Create the node of the base after `value` was written to the part of it that the steps lead to."""
    node: Any = object.__new__(overwrite.node_class)
    node.edges, node.saved, node.meta, node.hooks = (base.node, value.node), (), (steps,), None
    node.shape, node.dtype, node.storage, node.order = base.array.shape, base.array.dtype, base.storage, tick()
    return node


def set_history(target: Tensor, node: Any) -> None:
    """Make `node` the node of `target`, recorded after the write. An output that it saved becomes `target`'s array."""
    old = target.node
    node.order, node.storage = tick(), own_storage(target)
    if "out" in node.op.saves and type(node.saved) is tuple:
        at = node.op.saves.index("out")
        if node.saved[at] is not None:
            node.saved = (*node.saved[:at], target.array, *node.saved[at + 1 :])
    target.node = node
    move_retain_grad(target, old)


def move_retain_grad(tensor: Tensor, old: Any) -> None:
    """Move `retain_grad` from the tensor's `old` node to its new one."""
    old = None if old is None else old.real_node
    if old is not None and old.hooks is not None and old.hooks.retain is not None and old.hooks.retain() is tensor:
        assert tensor.node is not None
        tensor.node.ensure_hooks().retain, old.hooks.retain = old.hooks.retain, None


def rerecord_view(view: View) -> Tensor:
    """Record the view again, from the present node of its base."""
    source = constant(view.base.array)
    source.node = view.base.node
    for op, meta in view.steps:
        source = op.record(source, **meta)
    return source


def invalidate_view(other: Tensor, view: View, node: Any) -> bool:
    """Return True if a view has no valid history after a write to its base, whose new node is `node`.

    The view then gets a node that raises an error when it is used.
    """
    if view.refusal not in MODE_REFUSALS and FUNCTION_VIEW_REFUSAL not in view.refusal:
        return False
    if node is not None:
        other.node = Invalid(
            (node,),
            other,
            refusal_message(view.refusal).replace(
                "is being modified", "its base or another view of its base has been modified", 1
            ),
        )
    return True


def refresh_views(base: Tensor) -> None:
    """Record every live view of `base` again, from its present node.

    Views that were not recorded, or that come from a custom Function, become invalid.
    """
    if base.storage is FRESH:
        return
    for ref in tuple(base.storage.views):
        other = ref()
        view = None if other is None else view_of(other)
        if other is None or view is None or view.base is not base:
            continue
        old = other.node
        if invalidate_view(other, view, base.node):
            continue
        other.node = rerecord_view(view).node
        if other.node is not None:
            other.node.storage = base.storage
            move_retain_grad(other, old)
