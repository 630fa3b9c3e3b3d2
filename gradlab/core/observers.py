"""Observers of recorded operations, in-place writes, detached tensors and reverse sweeps.

Source lines, hooks on saved tensors, forward-mode tangents and inference mode all need to see every operation, and must cost
nothing while they are not in use. A recording function therefore ends with `if OBSERVERS:`, a global list that is empty unless
some thread is observed (5 ns). The functions below then notify the observers of the current thread, outermost first.

An observer sees the finished result and may change its node, the tensors that the node saved, and its storage. It also sees the
beginning of a sweep, each node, and the end; the engine looks up these observers once per sweep. An observer is notified only
about events whose methods its class overrides: one that overrides only the methods of sweeps costs operations nothing, and vice
versa.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, TypeVar

from gradlab.core.scopes import scope_guard

OBSERVERS: list[Observer] = []  # one entry for each active observer of operations, in any thread


class ReverseSweep(NamedTuple):
    """A reverse sweep, as observers see it.

    `roots` are the (node, cotangent) pairs it starts from and `lead` the batch axes. `wanted` are the nodes whose gradients are
    computed (None: all leaves). `accumulates` says whether it writes `.grad`. `outputs` are the tensors on which `backward` was
    called, if it was.
    """

    roots: tuple[tuple[Any, Any], ...]
    lead: tuple[int, ...]
    wanted: frozenset[Any] | None
    accumulates: bool
    outputs: tuple[Any, ...] = ()


class Observer:
    """Base class of observers. Each method does nothing unless a subclass overrides it."""

    sees_operations: ClassVar[bool] = False
    sees_sweeps: ClassVar[bool] = False
    sees_nodes: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name for name, value in vars(Observer).items() if callable(value) and getattr(cls, name) is not value}
        cls.sees_sweeps, cls.sees_operations = bool(own & SWEEP_METHODS), bool(own - SWEEP_METHODS)
        cls.sees_nodes = "on_node" in own

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """Called after the primitive `op` computed `result` from the tensors `args` and the metadata `meta`.

        `result.node` is None if the call was not recorded.
        """

    def on_before_write(self, tensor: Any) -> None:
        """Called before an in-place write to the memory of `tensor`."""

    def on_after_write(self, tensor: Any) -> None:
        """Called after an in-place write to the memory of `tensor`."""

    def on_data_replaced(self, tensor: Any) -> None:
        """Called after the memory of `tensor` was replaced by another's: `w.data = new`."""

    def on_detach(self, result: Any, source: Any, how: str) -> None:
        """Called after `result` was created from `source` without its history. `how` is "detach", "data" …"""

    def on_index(self, result: Any, indices: Sequence[Any]) -> None:
        """Called after the elements of `result` were selected by the tensors `indices`."""

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """Called when `source` is converted to Python numbers or a NumPy array. `how` is "item()", "numpy()" …"""

    def on_create(self, result: Any) -> None:
        """Called after a tensor was created other than by an operation."""

    def on_alias(self, result: Any, source: Any) -> None:
        """Called after `result` was created as an alias of `source` with its history, the input of an in-place write."""

    def on_cast(self, result: Any, source: Any) -> None:
        """Called after dtype promotion cast `source` to `result`, which has the same node."""

    def on_become_view(self, tensor: Any, old: Any, op: Any, meta: Any) -> None:
        """Called after `tensor` became the view `op` of itself, in place. `old` is the tensor before that."""

    def on_store(self, target: Any, region: Any, value: Any) -> None:
        """Called after `value` was written into the region of `target` given by (primitive, metadata) steps."""

    def on_restore(self, result: Any) -> None:
        """Called after the output of a node was restored as a new tensor `result`, for a recorded rule."""

    def on_rebase(self, node: Any) -> None:
        """Called after `node` was created for a tensor that was overwritten, partly or entirely."""

    def on_join(self, results: Sequence[Any], members: Sequence[Any]) -> None:
        """Called after `results`, recorded separately with the nodes `members`, became the outputs of one node."""

    def on_module_enter(self, module: Any) -> None:
        """Called before the forward of a module."""

    def on_module_exit(self, module: Any) -> None:
        """Called after the call of a module, also if it raised."""

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Called before a step of an optimizer."""

    def on_optimizer_step(self, optimizer: Any) -> None:
        """Called after a step of an optimizer."""

    def on_backward_refused(self, output: Any) -> None:
        """Called if `backward` is refused because `output` has no history."""

    def sweep_origin(self) -> Any:
        """Return the object that a sweep starting here stores in the nodes it frees, or None."""

    def on_sweep_begin(self, sweep: ReverseSweep) -> None:
        """Called when a reverse sweep starts."""

    def keeps_saved(self, sweep: ReverseSweep) -> bool:
        """Return True to keep the saved tensors of all nodes until the end of the sweep."""
        return False

    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Called after `node` turned the cotangent `g` into one cotangent per edge.

        The sweep may reuse the arrays: copy any that are kept.
        """

    def on_sweep_end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        """Called at the end of the sweep. `error` is the exception that stopped it, if any."""


SWEEP_METHODS = {"on_sweep_begin", "keeps_saved", "on_node", "on_sweep_end"}


class _Observers(threading.local):
    active: tuple[Observer, ...] = ()  # outermost first
    sweeps: tuple[Observer, ...] = ()  # the active observers that see sweeps


observers = _Observers()
GLOBAL_OBSERVERS: list[Observer] = []  # notified about every thread while OBSERVERS is not empty
W = TypeVar("W", bound=Observer)
T = TypeVar("T")


def add_observer(observer: W) -> W:
    """Start notifying `observer` about the current thread."""
    active: tuple[Observer, ...] = (*observers.active, observer)
    sweeps: tuple[Observer, ...] = (*observers.sweeps, observer) if observer.sees_sweeps else observers.sweeps
    observers.active, observers.sweeps = active, sweeps
    if observer.sees_operations:
        OBSERVERS.append(observer)  # no call before this line, so an interrupt comes before both steps or after both
    return observer


def remove_observer(observer: Observer) -> None:
    """Stop notifying `observer`, if it is active. Observers added since then stay active."""
    if count_active(observer) == 0:
        return
    active, sweeps = without_last(observers.active, observer), without_last(observers.sweeps, observer)
    observers.active, observers.sweeps = active, sweeps
    if observer.sees_operations:
        OBSERVERS.remove(observer)  # as in add_observer


def count_active(observer: Observer) -> int:
    """Return how many times `observer` is active in this thread."""
    return sum([other is observer for other in observers.active])


def without_last(active: tuple[Observer, ...], observer: Observer) -> tuple[Observer, ...]:
    """Return `active` without the last occurrence of `observer`."""
    last = max([i for i, other in enumerate(active) if other is observer], default=len(active))
    return (*active[:last], *active[last + 1 :])


def observing(observer: W) -> AbstractContextManager[W]:
    """Notify `observer` about this thread inside a `with` block. It stays consistent if an interrupt occurs."""
    outer = count_active(observer)

    def end() -> None:
        if count_active(observer) > outer:
            remove_observer(observer)

    return scope_guard(lambda: add_observer(observer), end)


def notify_record(op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
    """Notify this thread's observers about an operation."""
    for observer in (*GLOBAL_OBSERVERS, *observers.active):
        observer.on_record(op, result, args, meta)


def notify_detach(result: Any, source: Any, how: str) -> None:
    """Notify this thread's observers about a tensor created without the history of its source."""
    for observer in observers.active:
        observer.on_detach(result, source, how)


def notify_before_write(tensor: Any) -> None:
    """Notify this thread's observers before an in-place write."""
    for observer in (*GLOBAL_OBSERVERS, *observers.active):
        observer.on_before_write(tensor)


def notify_after_write(tensor: Any) -> None:
    """Notify this thread's observers after an in-place write."""
    for observer in (*GLOBAL_OBSERVERS, *observers.active):
        observer.on_after_write(tensor)


def notify_data_replaced(tensor: Any) -> None:
    """Notify this thread's observers about a tensor whose memory was replaced: `w.data = new`."""
    for observer in observers.active:
        observer.on_data_replaced(tensor)


def notify_create(result: T) -> T:
    """Notify this thread's observers about a tensor created other than by an operation, and return it."""
    for observer in (*GLOBAL_OBSERVERS, *observers.active):
        observer.on_create(result)
    return result


def notify_alias(result: Any, source: Any) -> None:
    """Notify this thread's observers about an alias created for an in-place write."""
    for observer in observers.active:
        observer.on_alias(result, source)


def notify_cast(result: Any, source: Any) -> None:
    """Notify this thread's observers about a dtype promotion."""
    for observer in (*GLOBAL_OBSERVERS, *observers.active):
        observer.on_cast(result, source)


def notify_become_view(tensor: Any, old: Any, op: Any, meta: Any) -> None:
    """Notify this thread's observers about a tensor that became a view of itself."""
    for observer in observers.active:
        observer.on_become_view(tensor, old, op, meta)


def notify_store(target: Any, region: Any, value: Any) -> None:
    """Notify this thread's observers about a value written into a region of a tensor."""
    for observer in observers.active:
        observer.on_store(target, region, value)


def notify_restore(result: Any) -> None:
    """Notify this thread's observers about a saved output restored as a Tensor."""
    for observer in observers.active:
        observer.on_restore(result)


def notify_rebase(node: Any) -> None:
    """Notify this thread's observers about the new node of an overwritten tensor."""
    for observer in observers.active:
        observer.on_rebase(node)


def notify_join(results: Sequence[Any], members: Sequence[Any]) -> None:
    """Notify this thread's observers about tensors that became the outputs of one node."""
    for observer in observers.active:
        observer.on_join(results, members)


def notify_module_enter(module: Any) -> None:
    """Notify this thread's observers before the call of a module."""
    for observer in observers.active:
        observer.on_module_enter(module)


def notify_module_exit(module: Any) -> None:
    """Notify this thread's observers after the call of a module."""
    for observer in observers.active:
        observer.on_module_exit(module)


def notify_index(result: T, *indices: Any) -> T:
    """Notify this thread's observers about the index tensors that selected `result`, and return `result`."""
    for observer in observers.active:
        observer.on_index(result, indices)
    return result


def notify_before_optimizer_step(optimizer: Any) -> None:
    """Notify this thread's observers before an optimizer's step."""
    for observer in observers.active:
        observer.on_before_optimizer_step(optimizer)


def notify_optimizer_step(optimizer: Any) -> None:
    """Notify this thread's observers about an optimizer's step."""
    for observer in observers.active:
        observer.on_optimizer_step(optimizer)


def notify_backward_refused(output: Any) -> None:
    """Notify this thread's observers about a refused `backward`."""
    for observer in observers.active:
        observer.on_backward_refused(output)


def notify_leave_autograd(source: Any, how: str) -> None:
    """Notify this thread's observers about values that leave autograd."""
    for observer in observers.active:
        observer.on_leave_autograd(source, how)


def find_sweep_origin() -> Any:
    """Return the origin that a reverse sweep starting here stores in the nodes it frees, or None.

    It is the line of the call, if sites are recorded.
    """
    return next((freed for observer in observers.active if (freed := observer.sweep_origin()) is not None), None)
