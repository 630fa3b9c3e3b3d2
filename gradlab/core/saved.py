"""What a node saved, as users see it and as their hooks hold it.

A primitive's node saves a tuple in the order of `op.saves`: Tensors, and the array of its own output (a node must not hold its
output: that would be a cycle). Where hooks have something of it, `node.saved` is a `Packed` instead, whose items are `Held`:
what `pack` returned, and the history that the tensor had. The engine asks `unpacked` for the tuple, for one use.

The output that a pack hook is shown is a twin of the result, with its history; the history is taken off the twin once the hook
has returned and lent to it again while the unpack hook runs. So a hook may keep what it was given, as it is or in a tuple, and
no cycle comes of it.

Hooks watch operations (`core.observers`): without any nothing is added to recording. A node that saves tensors of its own choice
(a custom Function) calls `save` when its outputs have their nodes and `restore` in its backward; both respect hooks, freed
memory and writes in between.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradlab.core.engine import check_unwritten, unpacked
from gradlab.core.errors import overwritten
from gradlab.core.inference import refuse_saving
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS, Observer, observers
from gradlab.core.ports import Own
from gradlab.core.storage import NUMBER, own_storage
from gradlab.core.tensor import Tensor, as_output, constant

Hook = Callable[[Any], Any]


def written_in_pack() -> RuntimeError:
    return RuntimeError(
        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
        "in-place operations as this can lead to unexpected side-effects. Pack a changed copy instead: x.clone()."
    )


def without_history(call: Callable[..., Any], *args: Any) -> Any:
    """`call(*args)` with nothing recorded."""
    before, mode.grad = mode.grad, False
    try:
        return call(*args)
    finally:
        mode.grad = before


class Held:
    """A saved tensor that hooks have. `own` is the number of the output it is, or None for what the node was given."""

    __slots__ = ("history", "own", "packed", "twin", "unpack")

    def __init__(self, tensor: Tensor, pack: Hook, unpack: Hook, own: int | None = None, *, detached: bool = False) -> None:
        shown = tensor
        if own is not None or detached:
            shown = constant(tensor.array)
            shown.storage, shown.node = own_storage(tensor), None if detached else tensor.node
        before = own_storage(shown).version
        self.own, self.history = own, tensor.node if own is None else None
        self.packed, self.unpack = without_history(pack, shown), unpack
        if shown.storage.version != before:
            raise written_in_pack()
        self.twin = None
        if own is not None:
            shown.node, self.twin = None, weakref.ref(shown)

    def value(self, node: Any, output: Callable[[int], Any]) -> Tensor:
        """The tensor, unpacked and with its history."""
        history = self.history if self.own is None else output(self.own)
        twin = self.twin() if self.twin is not None else None
        if twin is not None:
            twin.node = history
        try:
            unpacked: Any = self.unpack(self.packed)
        finally:
            if twin is not None:
                twin.node = None
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


class KeptTensor:
    """A tensor that a node saved of its own choice, with the version it had; an output without its history."""

    __slots__ = ("own", "tensor", "version")

    def __init__(self, tensor: Tensor, own: int | None) -> None:
        self.own, self.version = own, tensor.storage.version
        self.tensor = tensor
        if own is not None:
            self.tensor = constant(tensor.array)
            self.tensor.storage = own_storage(tensor)

    def value(self, node: Any, output: Callable[[int], Any]) -> Tensor:
        """The tensor with its history; an error if it was written to."""
        kept = self.tensor
        if kept.storage.version != self.version:
            maker = kept.grad_fn if self.own is None else output(self.own)
            producer = None if maker is None else f"output {self.own or 0} of {maker.name().rstrip('0123456789')}"
            raise overwritten(
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


class Packed:
    """What a primitive's node saved, where hooks have some of it: Held items among plain ones."""

    __slots__ = ("items", "node")

    def __init__(self, node: Any, items: tuple[Any, ...]) -> None:
        self.node, self.items = weakref.ref(node), items

    def __iter__(self) -> Iterator[Any]:
        """For a sweep that found the plain tuple which another thread's sweep had put in place, and has put back meanwhile."""
        return iter(self.unpacked(self.node()))

    def unpacked(self, node: Any) -> tuple[Any, ...]:
        """The plain tuple, for one use: each hook runs. What hooks have is not checked for writes: its memory is theirs."""
        check_unwritten(node, tuple(None if type(x) is Held else x for x in self.items))
        values = []
        for name, item in zip(node.op.saves, self.items, strict=True):
            if type(item) is Held:
                tensor = item.value(node, output_of(node))
                values.append(tensor.array if name == "out" else tensor)
            else:
                values.append(item)
        return tuple(values)


class Packing(Observer):
    """Hands every tensor that is saved to a pack hook, while it is the innermost of its kind."""

    def __init__(self, pack: Hook, unpack: Hook) -> None:
        self.pack, self.unpack = pack, unpack

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        node = result.node
        if node is None or type(node.saved) is not tuple or not op.saves or node.op is not op or innermost() is not self:
            return
        items = []
        for name, x in zip(op.saves, node.saved, strict=True):
            if x is None or (name != "out" and x.storage is NUMBER):
                items.append(x)
            elif name == "out":
                items.append(Held(result, self.pack, self.unpack, 0))
            else:
                items.append(Held(x, self.pack, self.unpack))
        node.saved = Packed(node, tuple(items))


def innermost() -> Packing | None:
    """The hooks that this thread's saved tensors go to."""
    for observer in reversed(observers.active):
        if isinstance(observer, Packing):
            return observer
    return None


def save(tensors: Sequence[Tensor | None], outputs: Sequence[Any] = ()) -> tuple[Any, ...]:
    """What a node keeps of tensors of its own choice, to be given to `restore`.

    To be called when the node's `outputs` (those of the tensors that are outputs are known by identity) have their nodes: the
    pack hooks run. Drop the result to free the tensors.
    """
    hooks, number, items = innermost(), {id(y): i for i, y in enumerate(outputs)}, []
    for t in tensors:
        own = number.get(id(t))
        if OBSERVERS and t is not None and not mode.inference:
            refuse_saving(t)
        items.append(None if t is None else KeptTensor(t, own) if hooks is None else Held(t, hooks.pack, hooks.unpack, own))
    return tuple(items)


def restore(node: Any, items: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The tensors behind `items`, as `save` made them, each with its history. Errors: overwritten, what an unpack hook raises.

    `node.output_node(i)`, if there is such a method, is the node of the i-th output (else `node`): it is not kept, for that would
    be a cycle.
    """
    return tuple(None if x is None else x.value(node, output_of(node)) for x in items)


def output_of(node: Any) -> Callable[[int], Any]:
    """Where the history of the node's i-th output is to be had."""
    return getattr(node, "output_node", lambda i: node)


def present(node: Any) -> tuple[Any, ...] | None:
    """The items of `node.saved`, packed or not; None if they are freed. (What stands for freed ones may be a tuple too.)"""
    saved = node.saved
    return saved.items if type(saved) is Packed else saved if type(saved) in (tuple, Own) else None


def items_of(node: Any) -> tuple[Any, ...]:
    """The items of `node.saved`, packed or not; an error if they are freed."""
    items = present(node)
    return unpacked(node) if items is None else items


def value_of(node: Any, at: int) -> Tensor | None:
    """The `at`-th saved tensor, with its history, checked."""
    item = items_of(node)[at]
    if item is None:
        return None
    if isinstance(item, (Held, KeptTensor)):
        return item.value(node, output_of(node))
    check_unwritten(node, tuple(item if i == at else None for i in range(len(node.op.saves))))
    return as_output(item, node) if node.op.saves[at] == "out" else item


class SavedTensor:
    """One tensor as a node saved it: what `node._raw_saved_self` and its like are.

    Parameters
    ----------
    *args : optional
        It cannot be made by hand.

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
            "Trying to create a SavedTensor object from Python is forbidden. Read node._raw_saved_self and its like."
        )

    @property
    def _item(self) -> Any:
        items = present(self._node)
        return None if items is None else items[self._at]

    @property
    def data(self) -> Any:
        """What the pack hook returned, or the tensor where there is no hook; unchecked. None when it is freed."""
        item = self._item
        if isinstance(item, Held):
            return item.packed
        if isinstance(item, KeptTensor):
            return item.tensor
        return item if item is None or isinstance(item, Tensor) else as_output(item, self._node)

    @property
    def unpack_hook(self) -> Hook | None:
        """The unpack hook, if there are hooks."""
        return self._item.unpack if isinstance(self._item, Held) else None

    def unpack(self) -> Tensor | None:
        """The tensor, as the node's backward gets it.

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
        return value_of(self._node, self._at)

    def register_hooks(self, pack_hook: Hook, unpack_hook: Hook) -> None:
        """Keep something else in the place of the tensor.

        Parameters
        ----------
        pack_hook : callable
            It is given the tensor, and returns what is kept.
        unpack_hook : callable
            It is given that, and returns the tensor.

        Returns
        -------
        None

        Raises
        ------
        RuntimeError
            If it has hooks already, or is freed.
        TypeError
            If a hook cannot be called.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([3.0], requires_grad=True)
        >>> saved = x.square().grad_fn._raw_saved_self
        >>> saved.register_hooks(lambda tensor: tensor.numpy(), gl.from_numpy)
        """
        node, at, item = self._node, self._at, self._item
        if present(node) is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
                "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through "
                "the graph a second time or if you need to access saved variables after calling backward."
            )
        if item is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if isinstance(item, Held):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
                "of hooks is allowed at a time."
            )
        check_hooks("register_hooks", pack_hook, unpack_hook)
        if isinstance(item, KeptTensor):
            own, tensor = item.own, item.tensor
        elif isinstance(item, Tensor):
            own, tensor = None, item
        else:
            own, tensor = 0, as_output(item, node)
        held = Held(tensor, pack_hook, unpack_hook, own, detached=True)
        items = items_of(node)
        items = (*items[:at], held, *items[at + 1 :])
        node.saved = type(node.saved)(items) if isinstance(item, KeptTensor) else Packed(node, items)

    def __repr__(self) -> str:
        return f"<SavedTensor {self._at} of {self._node.title}>"


def saved_tensor(node: Any, at: int) -> SavedTensor:
    """The `at`-th thing that a node saved, as `_raw_saved_*` hands it out."""
    saved = object.__new__(SavedTensor)
    saved._node, saved._at = node, at
    return saved


def check_hooks(name: str, pack: Any, unpack: Any) -> None:
    """Refuse hooks that cannot be called."""
    for which, hook in (("pack_hook", pack), ("unpack_hook", unpack)):
        if not callable(hook):
            raise TypeError(
                f"{name}(): incompatible function arguments. {which} must be a function of one argument, not "
                f"{type(hook).__name__}."
            )
