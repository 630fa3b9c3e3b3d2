"""Saved tensors of a node: pack and unpack hooks, and the SavedTensor objects that users see.

A primitive's node saves a tuple in the order of `op.saves`. It contains Tensors and, for the node's own output, only the array,
since a reference to the output Tensor would be a cycle. If hooks hold some of it, `node.saved` is a `PackedItems` instead. Its
`HookedTensor` items store the value that `pack` returned and the history of the tensor. The engine calls `unpack_items` to get
the tuple for one use.

For an output, the pack hook receives an alias of the result with its memory and history. The history is removed from the
alias after the hook returns, and is set again while the unpack hook runs. A hook may therefore keep its argument, directly or in
a tuple, without creating a cycle.

Hooks are observers of operations (`core.observers`), so recording costs nothing extra without them. A node that chooses which
tensors to save (a custom Function) calls `save` once its outputs have their nodes, and `restore` in its backward. Both take
hooks, freed memory and in-place writes into account.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradlab.core.engine import check_not_overwritten, unpack_saved
from gradlab.core.errors import saved_tensor_modified
from gradlab.core.inference import refuse_saving
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, Observer, observers
from gradlab.core.ports import UserSaved
from gradlab.core.storage import NUMBER_STORAGE, own_storage
from gradlab.core.tensor import Tensor, as_output, constant

Hook = Callable[[Any], Any]


def pack_hook_write_error() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
        "in-place operations as this can lead to unexpected side-effects. Pack a modified copy instead: x.clone()."
    )


def call_without_history(call: Callable[..., Any], *args: Any) -> Any:
    """Return `call(*args)`, computed without recording."""
    before, mode.grad = mode.grad, False
    try:
        return call(*args)
    finally:
        mode.grad = before


class HookedTensor:
    """A saved tensor held by hooks. `own` is its output number, or None if it was an argument of the node."""

    __slots__ = ("alias", "history", "own", "packed", "unpack")

    def __init__(self, tensor: Tensor, pack: Hook, unpack: Hook, own: int | None = None, *, detached: bool = False) -> None:
        shown = tensor
        if own is not None or detached:
            shown = constant(tensor.array)
            shown.storage, shown.node = own_storage(tensor), None if detached else tensor.node
        before = own_storage(shown).version
        self.own, self.history = own, tensor.node if own is None else None
        self.packed, self.unpack = call_without_history(pack, shown), unpack
        if shown.storage.version != before:
            raise pack_hook_write_error()
        self.alias = None
        if own is not None:
            shown.node, self.alias = None, weakref.ref(shown)

    def value(self, node: Any, output: Callable[[int], Any]) -> Tensor:
        """Return the unpacked tensor with its history."""
        history = self.history if self.own is None else output(self.own)
        alias = self.alias() if self.alias is not None else None
        if alias is not None:
            alias.node = history
        try:
            unpacked: Any = self.unpack(self.packed)
        finally:
            if alias is not None:
                alias.node = None
        if not isinstance(unpacked, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(unpacked).__name__}"
            )
        tensor: Tensor = unpacked
        if unpacked.node is history:
            return tensor
        tensor = constant(unpacked.array)
        tensor.node, tensor.storage = history, unpacked.storage
        return tensor


class VersionedTensor:
    """A tensor passed to `save`, with its version at that time. An output is stored without its history."""

    __slots__ = ("own", "tensor", "version")

    def __init__(self, tensor: Tensor, own: int | None) -> None:
        self.own, self.version = own, tensor.storage.version
        self.tensor = tensor
        if own is not None:
            self.tensor = constant(tensor.array)
            self.tensor.storage = own_storage(tensor)

    def value(self, node: Any, output: Callable[[int], Any]) -> Tensor:
        """Return the tensor with its history. Raise if it was modified in place."""
        kept = self.tensor
        if kept.storage.version != self.version:
            maker = kept.grad_fn if self.own is None else output(self.own)
            producer = None if maker is None else f"output {self.own or 0} of {maker.name().rstrip('0123456789')}"
            raise saved_tensor_modified(
                f"gradlab.{kept.dtype.legacy}",
                kept.array.shape,
                producer and producer.removesuffix("Backward"),
                kept.storage.version,
                node.name(),
                node,
                "",
                kept.storage,
            )
        if self.own is None:
            return kept
        tensor = constant(kept.array)
        tensor.node, tensor.storage = output(self.own), kept.storage
        return tensor


class PackedItems:
    """Saved values of a primitive's node if hooks hold some of them: HookedTensor and plain items."""

    __slots__ = ("items", "node")

    def __init__(self, node: Any, items: tuple[Any, ...]) -> None:
        self.node, self.items = weakref.ref(node), items

    def __iter__(self) -> Iterator[Any]:
        """Unpack. Needed if a sweep saw the plain tuple of a sweep in another thread, which has since restored this object."""
        return iter(self.unpack_items(self.node()))

    def unpack_items(self, node: Any) -> tuple[Any, ...]:
        """Return the plain tuple for one use, calling each unpack hook.

        Items held by hooks are not checked for in-place writes, since their memory belongs to the hooks.
        """
        check_not_overwritten(node, tuple(None if type(x) is HookedTensor else x for x in self.items))
        values = []
        for name, item in zip(node.op.saves, self.items, strict=True):
            if type(item) is HookedTensor:
                tensor = item.value(node, output_node_getter(node))
                values.append(tensor.array if name == "out" else tensor)
            else:
                values.append(item)
        return tuple(values)


class PackingObserver(Observer):
    """Observer that passes every saved tensor to a pack hook, while it is the innermost one of this class."""

    def __init__(self, pack: Hook, unpack: Hook) -> None:
        self.pack, self.unpack = pack, unpack

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        node = result.node
        if node is None or type(node.saved) is not tuple or not op.saves or node.op is not op or innermost_hooks() is not self:
            return
        items = []
        for name, x in zip(op.saves, node.saved, strict=True):
            if x is None or (name != "out" and x.storage is NUMBER_STORAGE):
                items.append(x)
            elif name == "out":
                items.append(HookedTensor(result, self.pack, self.unpack, 0))
            else:
                items.append(HookedTensor(x, self.pack, self.unpack))
        node.saved = PackedItems(node, tuple(items))


def innermost_hooks() -> PackingObserver | None:
    """Return the hooks that receive the saved tensors of this thread, or None."""
    for observer in reversed(observers.active):
        if isinstance(observer, PackingObserver):
            return observer
    return None


def save(tensors: Sequence[Tensor | None], outputs: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Save tensors for a node and return the items to pass to `restore`. Calls the pack hooks.

    Call it after the node's `outputs` have their nodes. Tensors that are outputs are recognised by identity. Drop the result to
    free the tensors.
    """
    hooks, number, items = innermost_hooks(), {id(y): i for i, y in enumerate(outputs)}, []
    for t in tensors:
        own = number.get(id(t))
        if OBSERVERS and t is not None and not mode.inference:
            refuse_saving(t)
        items.append(
            None if t is None else VersionedTensor(t, own) if hooks is None else HookedTensor(t, hooks.pack, hooks.unpack, own)
        )
    return tuple(items)


def restore(node: Any, items: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """Return the tensors saved as `items` by `save`, each with its history.

    Raise if one was modified in place. Errors of unpack hooks propagate. The node of output i is `node.output_node(i)` if that
    method exists, and `node` otherwise; it is looked up because storing it would be a cycle.
    """
    return tuple(None if x is None else x.value(node, output_node_getter(node)) for x in items)


def output_node_getter(node: Any) -> Callable[[int], Any]:
    """Return a function that maps an output number to the node of that output."""
    return getattr(node, "output_node", lambda i: node)


def items_or_none(node: Any) -> tuple[Any, ...] | None:
    """Return the items of `node.saved`, packed or not, or None if they were freed.

    The types are compared exactly, because the marker of freed items may also be a kind of tuple.
    """
    saved = node.saved
    return saved.items if type(saved) is PackedItems else saved if type(saved) in (tuple, UserSaved) else None


def items_of(node: Any) -> tuple[Any, ...]:
    """Return the items of `node.saved`, packed or not. Raise if they were freed."""
    items = items_or_none(node)
    return unpack_saved(node) if items is None else items


def get_value(node: Any, at: int) -> Tensor | None:
    """Return saved tensor number `at` with its history. Raise if it was freed or modified in place."""
    item = items_of(node)[at]
    if item is None:
        return None
    if isinstance(item, (HookedTensor, VersionedTensor)):
        return item.value(node, output_node_getter(node))
    check_not_overwritten(node, tuple(item if i == at else None for i in range(len(node.op.saves))))
    return as_output(item, node) if node.op.saves[at] == "out" else item


class SavedTensor:
    """A tensor saved by a node: the value of `node._raw_saved_self` and similar attributes.

    Parameters
    ----------
    *args : optional
        Not accepted. Instances cannot be created from Python.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.ones(2, requires_grad=True)
    >>> type((x * x).grad_fn._raw_saved_self).__name__
    'SavedTensor'
    """

    __slots__ = ("_at", "_node")
    _node: Any
    _at: int

    def __new__(cls, *args: Any) -> SavedTensor:
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden. Use an attribute such as node._raw_saved_self."
        )

    @property
    def _item(self) -> Any:
        items = items_or_none(self._node)
        return None if items is None else items[self._at]

    @property
    def data(self) -> Any:
        """The value that the pack hook returned, or the tensor if there is no hook, without checks. None if it was freed."""
        item = self._item
        if isinstance(item, HookedTensor):
            return item.packed
        if isinstance(item, VersionedTensor):
            return item.tensor
        return item if item is None or isinstance(item, Tensor) else as_output(item, self._node)

    @property
    def unpack_hook(self) -> Hook | None:
        """The unpack hook, or None."""
        return self._item.unpack if isinstance(self._item, HookedTensor) else None

    def unpack(self) -> Tensor | None:
        """Return the tensor as the node's backward receives it.

        Returns
        -------
        Tensor or None

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([3.0], requires_grad=True)
        >>> saved = x.square().grad_fn._raw_saved_self
        >>> saved.unpack()
        tensor([3.], requires_grad=True)
        """
        return get_value(self._node, self._at)

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Replace the saved tensor by the value that a pack hook returns.

        Parameters
        ----------
        pack_hook : callable
            Called with the tensor. Its result is stored.
        unpack_hook : callable
            Called with the stored object. It must return the tensor.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If the tensor already has hooks, is None, or was freed.
        TypeError
            If a hook is not callable.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([3.0], requires_grad=True)
        >>> saved = x.square().grad_fn._raw_saved_self
        >>> saved.register_hooks(lambda tensor: tensor.numpy(), gl.from_numpy)
        """
        node, at, item = self._node, self._at, self._item
        if items_or_none(node) is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
                "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
                "the graph a second time or if you need to access saved variables after calling backward."
            )
        if item is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(item, HookedTensor):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
                "of hooks is allowed at a time."
            )
        check_hooks("register_hooks", pack_hook, unpack_hook)
        if isinstance(item, VersionedTensor):
            own, tensor = item.own, item.tensor
        elif isinstance(item, Tensor):
            own, tensor = None, item
        else:
            own, tensor = 0, as_output(item, node)
        held = HookedTensor(tensor, pack_hook, unpack_hook, own, detached=True)
        items = items_of(node)
        items = (*items[:at], held, *items[at + 1 :])
        node.saved = type(node.saved)(items) if isinstance(item, VersionedTensor) else PackedItems(node, items)

    def __repr__(self) -> str:
        return f"<SavedTensor {self._at} of {self._node.title}>"


def saved_tensor(node: Any, at: int) -> SavedTensor:
    """Return item `at` saved by a node, as `_raw_saved_*` attributes do."""
    saved = object.__new__(SavedTensor)
    saved._node, saved._at = node, at
    return saved


def check_hooks(name: str, pack: Any, unpack: Any) -> None:
    """Raise if a hook is not callable."""
    for which, hook in (("pack_hook", pack), ("unpack_hook", unpack)):
        if not callable(hook):
            raise TypeError(
                f"{name}(): incompatible function arguments. {which} must be a function of one argument, got "
                f"{type(hook).__name__}."
            )
