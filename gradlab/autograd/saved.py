"""Hooks on tensors saved for the backward pass, with the names of `torch.autograd.graph`.

They are pairs of functions. `pack` is called with every tensor that is saved, and `unpack` with the value that `pack` returned,
each time the tensor is needed. `core.saved` describes how a node stores packed values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from gradlab.core.observers import Observer, observing
from gradlab.core.saved import PackingObserver, SavedTensor, check_hooks, innermost_hooks
from gradlab.core.storage import own_storage
from gradlab.core.tensor import Tensor, constant

__all__ = ["SavedTensor", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class _DisabledHooks(threading.local):
    message: str | None = None


_disabled_hooks = _DisabledHooks()


class saved_tensors_hooks:  # noqa: N801  (torch's name)
    """Context manager that applies a pair of hooks to the tensors saved for the backward pass.

    Parameters
    ----------
    pack_hook : callable
        Function that is called with each tensor when it is saved. Its result is stored instead of the tensor. Its operations are
        not recorded, and it must not modify the tensor in place. Python numbers are not packed.
    unpack_hook : callable
        Function that is called with the result of `pack_hook` each time the tensor is needed. It must return a Tensor with the
        same values.

    Notes
    -----
    If blocks are nested, the hooks of the innermost one are used. A tensor that is saved by two operations is packed twice.
    In-place modifications of a packed tensor are not detected: the hooks are responsible for the values.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        if _disabled_hooks.message is not None:
            raise RuntimeError(_disabled_hooks.message)
        check_hooks(type(self).__name__, self.pack_hook, self.unpack_hook)
        self._entered.append(observing(PackingObserver(self.pack_hook, self.unpack_hook)))
        self._entered[-1].__enter__()

    def __exit__(self, *raised: object) -> None:
        self._entered.pop().__exit__(None, None, None)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  (torch's name)
    """Context manager that stores the tensors saved for the backward pass in CPU memory.

    Tensors that are already on the CPU are not copied. `pin_memory` has no effect.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.detach().cpu()), lambda packed: packed[1].to(packed[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context manager inside which `saved_tensors_hooks` raises a RuntimeError with `error_message`.

    Entering it while such hooks are active raises the same error.
    """
    if innermost_hooks() is not None:
        raise RuntimeError(error_message)
    before, _disabled_hooks.message = _disabled_hooks.message, error_message
    try:
        yield
    finally:
        _disabled_hooks.message = before


class _Handle:
    """Packed form of one version of a saved tensor."""

    __slots__ = ("__weakref__", "version")

    def __init__(self, version: int) -> None:
        self.version = version


class _MutationContext(Observer):
    """Observer that copies saved tensors before their memory is modified in place.

    `original` and `cloned` map a handle, which the graph holds, to the saved tensor or to its copy.
    """

    def __init__(self) -> None:
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self._handles: WeakValueDictionary[tuple[int, int, int], _Handle] = WeakValueDictionary()
        self._saved_of: dict[Any, list[ref[_Handle]]] = {}  # for each storage
        self._open = True

    def pack(self, x: Tensor) -> _Handle:
        """Return the handle for the current version of a tensor."""
        storage = own_storage(x)
        key = id(storage), id(x.array), storage.version
        handle = self._handles.get(key)
        if handle is None or self.original.get(handle, x).array is not x.array:
            handle = self._handles[key] = _Handle(storage.version)
            self.original[handle] = alias = constant(x.array)
            alias.storage = storage
            self._saved_of.setdefault(storage, []).append(ref(handle))
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """Return the tensor with the values that it had when it was saved."""
        saved = self.cloned.get(handle, self.original.get(handle)) if self._open else None
        if saved is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph "
                "was originally recorded."
            )
        if handle not in self.cloned and saved.storage.version != handle.version:
            raise RuntimeError(
                "A saved tensor was modified in place by an operation that does not notify allow_mutation_on_saved_tensors "
                "beforehand. Modify a copy instead: x.clone()."
            )
        return saved

    def on_before_write(self, tensor: Tensor) -> None:
        """Copy the saved tensors that share the memory of `tensor`, once."""
        for weak in self._saved_of.pop(tensor.storage, ()):
            handle = weak()
            if handle is not None and handle in self.original:
                self.cloned[handle] = constant(self.original.pop(handle).array.copy())

    def clear(self) -> None:
        """Release all tensors and handles."""
        self._open = False
        self.original.clear()
        self.cloned.clear()
        self._saved_of.clear()
        self._handles.clear()


class _MutationState(threading.local):
    active = False


_mutation_state = _MutationState()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Context manager inside which tensors saved for the backward pass may be modified in place.

    The first modification copies the saved tensor. The backward pass of a graph that was recorded inside the block must also run
    inside the block. Blocks cannot be nested.
    """
    if _mutation_state.active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with saved_tensors_hooks(context.pack, context.unpack), observing(context):
        _mutation_state.active = True
        try:
            yield context
        finally:
            _mutation_state.active = False
            context.clear()
