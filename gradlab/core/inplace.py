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
from gradlab.core.errors import expected, leaf_in_place, view_of_leaf_in_place
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Invalid
from gradlab.core.observers import OBSERVERS, notify_rebase, notify_alias, notify_store, notify_before_write
from gradlab.core.registry import used
from gradlab.core.storage import FRESH, Storage, View, own_storage, tick, view_of, wrote
from gradlab.core.tensor import Tensor, constant

UNRECORDED = {
    "no_grad": "no_grad mode and is being modified inplace with grad mode enabled",
    "inference": "inference mode and is being modified inplace in normal mode",
}
OF_FUNCTION = " is a view and is being modified inplace. This view "  # of a custom Function: the refusal is the sentence


def check_writable(tensor: Tensor, wanted: bool = False) -> None:
    """Raise where torch forbids writing into `tensor` in grad mode; `wanted` says that what is written has history."""
    if OBSERVERS:
        notify_before_write(tensor)
    if not mode.grad:
        return
    view = view_of(tensor)
    if view is not None and tensor.node is not None and OF_FUNCTION in view.refusal:
        raise RuntimeError(view.refusal)
    if view is not None and (wanted or tensor.node is not None or view.base.node is not None):
        if view.refusal:
            raise RuntimeError(refused(view.refusal))
        if type(view.base.node) is AccumulateGrad or (view.base.node is None and shows_leaf(tensor.node)):
            raise view_of_leaf_in_place()
    if type(tensor.node) is AccumulateGrad:
        raise leaf_in_place() if view is None else view_of_leaf_in_place()


def shows_leaf(node: Any) -> bool:
    """Whether a chain of views, whose base has no history, starts at a leaf: a view on which requires_grad was set."""
    while node is not None and type(node) is not AccumulateGrad:
        node = node.edges[0] if len(node.edges) == 1 else None
    return node is not None


def refused(refusal: str) -> str:
    """Why a view may not be written to, in full."""
    if refusal in UNRECORDED:
        block = "no_grad" if refusal == "no_grad" else "inference_mode"
        return (
            f"A view was created in {UNRECORDED[refusal]}. Given that this use case is ambiguous and error-prone, it is "
            "forbidden. You can clarify your code by moving both the view and the inplace either both inside the "
            f"{block} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
            "tracked)."
        )
    return (
        refusal
        if OF_FUNCTION in refusal
        else (
            f"{refusal} is a view and is being modified inplace. This view is the output of a function that returns multiple "
            "views. Such functions do not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one."
        )
    )


def shadow(tensor: Tensor, copied: bool) -> Tensor:
    """The tensor's present value and history under another object: what the out-of-place twin is recorded on."""
    old = constant(tensor.array.copy() if copied else tensor.array)
    old.node = tensor.node
    if old.node is not None and old.node.hooks is not None and (view := view_of(tensor)) is not None:
        old.node = seen_again(view).node  # hooks belong to the view as it was read before the write
    if copied and old.node is not None:
        old.storage = Storage()  # else it would share that of the node's output
    if OBSERVERS:
        notify_alias(old, tensor)
    return old


def in_place(op: Any, target: Tensor, *others: Any, **meta: Any) -> Tensor:
    """`target = op(target, …)` written into `target`'s memory. Returns `target`."""
    wanted = False
    try:  # costs nothing where it is a tensor
        node = target.node
    except AttributeError:
        raise expected(f"{op.name.strip('_')}_", "input", 1, "Tensor", target) from None
    if mode.grad:
        wanted = node is not None or any(isinstance(x, Tensor) and x.node is not None for x in others)
        check_writable(target, wanted)
    elif OBSERVERS:
        notify_before_write(target)
    if not wanted and not meta and not OBSERVERS and written_directly(op.forward, target.array, others):
        wrote(target)
        return target
    first = op.args[0]
    saves_target = any(first in op.needs[arg] for arg in op.rules)
    if OBSERVERS:
        wanted = True
    others = tuple(shadow(x, wanted) if x is target or (wanted and overlaps(x, target)) else x for x in others)
    result = op.record(shadow(target, copied=saves_target and wanted), *others, **meta)
    if result is NotImplemented:
        raise TypeError(f"{op.name}_(): unsupported operand types: {', '.join(type(x).__name__ for x in others)}.")
    store(target, result)
    return target


def composed_in_place(function: Any, target: Tensor, *others: Any, **options: Any) -> Tensor:
    """The same for a function made of several operations, which may save its argument anywhere."""
    try:
        node = target.node
    except AttributeError:
        raise expected(f"{function.__name__.strip('_')}_", "input", 1, "Tensor", target) from None
    wanted = node is not None or any(isinstance(x, Tensor) and x.node is not None for x in (*others, *options.values()))
    check_writable(target, wanted)
    copied = bool(OBSERVERS) or (mode.grad and wanted)
    old = shadow(target, copied)
    store(
        target,
        function(
            old, *(old if x is target else shadow(x, True) if copied and overlaps(x, target) else x for x in others), **options
        ),
    )
    return target


def overlaps(x: Any, target: Tensor) -> bool:
    """Whether a further operand lies in the memory that is written to, so that what is saved of it must be a copy: a write in
    place is recorded after it was done, and no version would tell."""
    return isinstance(x, Tensor) and (
        (x.storage is target.storage and x.storage is not FRESH)
        or (x.array if x.array.base is None else x.array.base)
        is (target.array if target.array.base is None else target.array.base)
    )


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of that shape broadcasts to `into`."""
    if shape == into:
        return True
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(into), strict=False))


def written_directly(forward: Any, array: Any, others: tuple[Any, ...]) -> bool:
    """Let a ufunc write into the memory itself where no history is wanted and the operands are of one dtype: an optimizer's
    `p -= …` in one pass instead of two. Whether it was done."""
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
                or not (x.shape == array.shape or fits(x.shape, array.shape))
            )
        ):
            return False
        operands.append(x)
    try:
        forward(array, *operands, out=array)
    except RuntimeWarning:
        return True  # it is raised where all is written
    return True


def store(target: Tensor, value: Tensor) -> None:
    """Copy a freshly computed `value` into `target`'s memory and give `target` its history."""
    have, new = target.array, value.array
    if CATEGORY[new.dtype.kind] > CATEGORY[have.dtype.kind]:
        raise RuntimeError(
            f"result type {value.dtype.word} can't be cast to the desired output type "
            f"{target.dtype.word}. Use the operation that makes a new tensor."
        )
    if new.shape != have.shape:
        raise RuntimeError(
            f"output with shape {list(have.shape)} doesn't match the broadcast shape {list(new.shape)}. An "
            "in-place operation cannot make its tensor larger."
        )
    if not is_writable(have):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location, or the memory is read-only. Please clone() the tensor before performing the operation."
        )
    have[...] = new
    commit(target, (), value)


def commit(target: Tensor, region: tuple[tuple[Any, dict[str, Any]], ...], value: Tensor, op: Any = None) -> None:
    """Note that `target` was overwritten by `value`, or the region of it that the (primitive, metadata) steps pick, and
    record what follows. The memory is written already: this is how `x[index] = value` works for every index. `op` is
    `overwrite`, under the name torch gives it there."""
    wrote(target)
    if OBSERVERS:
        notify_store(target, region, value)
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
    node = overwriting_node(base, steps, value, used.overwrite if op is None or view is not None else op)
    own_history(base, node)
    if OBSERVERS:
        notify_rebase(node)
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
    if "out" in node.op.saves and type(node.saved) is tuple:
        at = node.op.saves.index("out")
        if node.saved[at] is not None:
            node.saved = (*node.saved[:at], target.array, *node.saved[at + 1 :])
    target.node = node
    retain_on(target, old)


def retain_on(tensor: Tensor, old: Any) -> None:
    """Let the tensor's node retain its gradient if `old`, which was it, did."""
    old = None if old is None else old.proper
    if old is not None and old.hooks is not None and old.hooks.retain is not None and old.hooks.retain() is tensor:
        assert tensor.node is not None
        tensor.node.hooks_of_its_own().retain, old.hooks.retain = old.hooks.retain, None


def seen_again(view: View) -> Tensor:
    """The view, recorded again from its base as that is now."""
    source = constant(view.base.array)
    source.node = view.base.node
    for op, meta in view.steps:
        source = op.record(source, **meta)
    return source


def invalidated(other: Tensor, view: View, node: Any) -> bool:
    """Whether a view has no valid history once its base, whose node is given, was changed: it then says so if it is asked."""
    if view.refusal not in UNRECORDED and OF_FUNCTION not in view.refusal:
        return False
    if node is not None:
        other.node = Invalid(
            (node,),
            other,
            refused(view.refusal).replace("is being modified", "its base or another view of its base has been modified", 1),
        )
    return True


def refresh_views(base: Tensor) -> None:
    """Record every live view of `base` again from its present node; those that were not recorded then, or whose backward is a
    user's, have no valid history any more."""
    if base.storage is FRESH:
        return
    for ref in tuple(base.storage.views):
        other = ref()
        view = None if other is None else view_of(other)
        if other is None or view is None or view.base is not base:
            continue
        old = other.node
        if invalidated(other, view, base.node):
            continue
        other.node = seen_again(view).node
        if other.node is not None:
            other.node.storage = base.storage
            retain_on(other, old)
