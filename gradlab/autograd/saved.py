"""Hooks on saved tensors, as `torch.autograd.graph` spells them: what is kept between forward and backward, and where.

All of them are a pair of functions: `pack` is given each tensor that is saved, and `unpack` what `pack` returned, each time the
tensor is needed. See `core.saved` for how a node holds what was packed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from gradlab.core.observers import Observer, observing
from gradlab.core.saved import Packing, SavedTensor, check_hooks, innermost
from gradlab.core.storage import own_storage
from gradlab.core.tensor import Tensor, constant

__all__ = ["SavedTensor", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class _Refusal(threading.local):
    message: str | None = None


_refusal = _Refusal()


class saved_tensors_hooks:  # noqa: N801  (torch's name)
    """Inside the `with` block, tensors saved for backward go through a pair of hooks.

    Parameters
    ----------
    pack_hook : function of a Tensor
        Called for each tensor when it is saved, with nothing recorded. What it returns is kept instead. It must not write to
        the tensor. Python numbers are not packed.
    unpack_hook : function
        Called with what `pack_hook` returned whenever the tensor is needed: it must return a tensor of the same values.

    Notes
    -----
    The innermost block's hooks are used. A tensor that two operations save is packed twice. Writes in place to a tensor that
    hooks have are not noticed: what is kept is the hooks' affair.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        if _refusal.message is not None:
            raise RuntimeError(_refusal.message)
        check_hooks(type(self).__name__, self.pack_hook, self.unpack_hook)
        self._entered.append(observing(Packing(self.pack_hook, self.unpack_hook)))
        self._entered[-1].__enter__()

    def __exit__(self, *raised: object) -> None:
        self._entered.pop().__exit__(None, None, None)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  (torch's name)
    """Inside the `with` block, tensors saved for backward are kept in the CPU's memory; tensors there already are not copied.

    `pin_memory` is accepted and has no effect on what is computed: there is no pinned memory here.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.detach().cpu()), lambda kept: kept[1].to(kept[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, `saved_tensors_hooks` raises a RuntimeError with this message; so does entering it under such hooks."""
    if innermost() is not None:
        raise RuntimeError(error_message)
    before, _refusal.message = _refusal.message, error_message
    try:
        yield
    finally:
        _refusal.message = before


class _Handle:
    """Stands for one version of one tensor that was saved."""

    __slots__ = ("__weakref__", "version")

    def __init__(self, version: int) -> None:
        self.version = version


class _MutationContext(Observer):
    """Which saved tensors there are, and which of them had to be copied, as something was about to write to their memory.

    `original` and `cloned` map a handle, which the graph holds, to the tensor.
    """

    def __init__(self) -> None:
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self._handles: WeakValueDictionary[tuple[int, int, int], _Handle] = WeakValueDictionary()
        self._saved_of: dict[Any, list[ref[_Handle]]] = {}  # by storage
        self._open = True

    def pack(self, x: Tensor) -> _Handle:
        """One handle for each version of each tensor."""
        storage = own_storage(x)
        key = id(storage), id(x.array), storage.version
        handle = self._handles.get(key)
        if handle is None or self.original.get(handle, x).array is not x.array:
            handle = self._handles[key] = _Handle(storage.version)
            self.original[handle] = kept = constant(x.array)
            kept.storage = storage
            self._saved_of.setdefault(storage, []).append(ref(handle))
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        saved = self.cloned.get(handle, self.original.get(handle)) if self._open else None
        if saved is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph "
                "was originally recorded."
            )
        if handle not in self.cloned and saved.storage.version != handle.version:
            raise RuntimeError(
                "A saved tensor was written to by an operation that allow_mutation_on_saved_tensors does not see "
                "beforehand. Write to a copy: x.clone()."
            )
        return saved

    def before_write(self, tensor: Tensor) -> None:
        """Copy what was saved of this memory, once."""
        for weak in self._saved_of.pop(tensor.storage, ()):
            handle = weak()
            if handle is not None and handle in self.original:
                self.cloned[handle] = constant(self.original.pop(handle).array.copy())

    def clear(self) -> None:
        """Let go of everything."""
        self._open = False
        self.original.clear()
        self.cloned.clear()
        self._saved_of.clear()
        self._handles.clear()


class _Mutable(threading.local):
    active = False


_mutable = _Mutable()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Inside the block, tensors saved for backward may be written to in place: the first write copies what was saved.

    Backward through what was recorded here must run inside the block too. Blocks cannot be nested.
    """
    if _mutable.active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack), observing(context):
        _mutable.active = True
        try:
            yield context
        finally:
            _mutable.active = False
            context.clear()
