"""Seeing operations as they are recorded, tensors as they are written to or cut off, and reverse sweeps.

Source lines, hooks on saved tensors, forward-mode tangents and inference mode all need to know of every operation, and none of
them may cost anything while nobody asks. So a recording function ends with `if OBSERVERS:`, a global list that is empty unless
some thread watches: 5 ns. What then follows asks for the observers of the thread at hand, outermost first.

An observer sees the finished result and may change what it holds: its node, what the node saved, its storage. Of a sweep it sees
the beginning, each node, and the end; the engine asks once a sweep who wants to. An observer is told what its class overrides:
one that sees sweeps alone costs operations nothing, and the other way round.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, TypeVar

from gradlab.core.scopes import scoped

OBSERVERS: list[Observer] = []  # one entry for each observer at work in any thread


class ReverseSweep(NamedTuple):
    """What an observer is told of a reverse sweep: the (node, cotangent) pairs it starts from, the batch axes, the wanted
    nodes (None: all leaves), whether it writes `.grad`, and the tensors that `backward` was called on, where it was."""

    roots: tuple[tuple[Any, Any], ...]
    lead: tuple[int, ...]
    wanted: frozenset[Any] | None
    accumulates: bool
    outputs: tuple[Any, ...] = ()


class Observer:
    """What may be seen; each method does nothing unless a subclass says otherwise."""

    sees_operations: ClassVar[bool] = False
    sees_sweeps: ClassVar[bool] = False
    sees_nodes: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name for name, value in vars(Observer).items() if callable(value) and getattr(cls, name) is not value}
        cls.sees_sweeps, cls.sees_operations = bool(own & OF_SWEEPS), bool(own - OF_SWEEPS)
        cls.sees_nodes = "visit" in own

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """The primitive `op` made the tensor `result` of the tensors `args` and the metadata; with `made.node`, if recorded."""

    def before_write(self, tensor: Any) -> None:
        """The memory of `tensor` is about to be written to in place."""

    def after_write(self, tensor: Any) -> None:
        """The memory of `tensor` was written to in place."""

    def on_data_replaced(self, tensor: Any) -> None:
        """`tensor` was given the memory of another: `w.data = new`."""

    def on_detach(self, result: Any, source: Any, how: str) -> None:
        """`result` was made of `source` without its history, by `how`: "detach", "data" …"""

    def on_index(self, result: Any, indices: Sequence[Any]) -> None:
        """The elements of `result` were picked by the tensors `indices`."""

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """The values of `source` went on as Python numbers or as a NumPy array, by `how`: "item()", "numpy()" …"""

    def on_create(self, result: Any) -> None:
        """A tensor was made that no operation made."""

    def on_alias(self, result: Any, source: Any) -> None:
        """`result` is `source` in another object, with its history: what a write in place is computed from."""

    def on_cast(self, result: Any, source: Any) -> None:
        """`result` is `source` in another dtype, with its node: a promotion."""

    def on_become_view(self, tensor: Any, old: Any, op: Any, meta: Any) -> None:
        """`tensor` became the view `op` of itself, in place; `old` is what it was."""

    def on_store(self, target: Any, region: Any, value: Any) -> None:
        """The tensor `value` was written into `target`, where the (primitive, metadata) steps of `region` lead."""

    def on_restore(self, result: Any) -> None:
        """`result` is the output of its node in another object, for a rule that is recorded."""

    def on_rebase(self, node: Any) -> None:
        """`node` was made for a tensor that was overwritten, in part or whole."""

    def on_join(self, results: Sequence[Any], members: Sequence[Any]) -> None:
        """The tensors `results`, which were recorded one by one with the nodes `members`, are the outputs of one node now."""

    def on_module_enter(self, module: Any) -> None:
        """A module is about to be called."""

    def on_module_exit(self, module: Any) -> None:
        """The call of a module is over, however it ended."""

    def on_optimizer_step(self, optimizer: Any) -> None:
        """An optimizer has made a step."""

    def on_backward_refused(self, output: Any) -> None:
        """A reverse sweep was asked of a tensor without history."""

    def sweep_origin(self) -> Any:
        """A reverse sweep starts: what it shall leave in the nodes that it frees, or None."""

    def begin(self, sweep: ReverseSweep) -> None:
        """A reverse sweep starts."""

    def keeps_saved(self, sweep: ReverseSweep) -> bool:
        """Whether what the nodes saved shall still be there at the `end` of a sweep that has begun; it is freed then."""
        return False

    def visit(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """`node` turned the cotangent `g` into one cotangent for each of its edges. Arrays are the sweep's own: copy what is
        kept."""

    def end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        """The sweep is over; `error` is what stopped it, if anything did."""


OF_SWEEPS = {"begin", "keeps_saved", "visit", "end"}


class _Observers(threading.local):
    active: tuple[Observer, ...] = ()  # outermost first
    sweeps: tuple[Observer, ...] = ()  # those of them that see sweeps


observers = _Observers()
EVERYWHERE: list[Observer] = []  # those that see every thread, if anything is seen at all
W = TypeVar("W", bound=Observer)
T = TypeVar("T")


def add_observer(observer: W) -> W:
    """Let `observer` see what this thread does from here on."""
    active: tuple[Observer, ...] = (*observers.active, observer)
    sweeps: tuple[Observer, ...] = (*observers.sweeps, observer) if observer.sees_sweeps else observers.sweeps
    observers.active, observers.sweeps = active, sweeps
    if observer.sees_operations:
        OBSERVERS.append(observer)  # an interrupt comes before all three steps or after all: see `extent`
    return observer


def remove_observer(observer: Observer) -> None:
    """Let it see no more, if it does. Others may have come since."""
    if times(observer) == 0:
        return
    active, sweeps = without_last(observers.active, observer), without_last(observers.sweeps, observer)
    observers.active, observers.sweeps = active, sweeps
    if observer.sees_operations:
        OBSERVERS.remove(observer)  # likewise


def times(observer: Observer) -> int:
    """How many times over it watches this thread."""
    return sum([other is observer for other in observers.active])


def without_last(active: tuple[Observer, ...], observer: Observer) -> tuple[Observer, ...]:
    """All but the last that is `observer`."""
    last = max([i for i, other in enumerate(active) if other is observer], default=len(active))
    return (*active[:last], *active[last + 1 :])


def observing(observer: W) -> AbstractContextManager[W]:
    """Let `observer` see what this thread does inside the block. An interrupt finds it at work or not, never in between."""
    outer = times(observer)

    def end() -> None:
        if times(observer) > outer:
            remove_observer(observer)

    return scoped(lambda: add_observer(observer), end)


def notify_record(op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
    """Tell this thread's observers of an operation."""
    for observer in (*EVERYWHERE, *observers.active):
        observer.on_record(op, result, args, meta)


def notify_detach(result: Any, source: Any, how: str) -> None:
    """Tell this thread's observers of a tensor without the history of its source."""
    for observer in observers.active:
        observer.on_detach(result, source, how)


def notify_before_write(tensor: Any) -> None:
    """Tell this thread's observers of a write in place, before it is done."""
    for observer in (*EVERYWHERE, *observers.active):
        observer.before_write(tensor)


def notify_after_write(tensor: Any) -> None:
    """Tell this thread's observers of a write in place."""
    for observer in (*EVERYWHERE, *observers.active):
        observer.after_write(tensor)


def notify_data_replaced(tensor: Any) -> None:
    """Tell this thread's observers of a tensor whose memory was exchanged for another's: `w.data = new`."""
    for observer in observers.active:
        observer.on_data_replaced(tensor)


def notify_create(result: T) -> T:
    """Tell this thread's observers of a tensor that no operation made. Returns it."""
    for observer in (*EVERYWHERE, *observers.active):
        observer.on_create(result)
    return result


def notify_alias(result: Any, source: Any) -> None:
    """Tell this thread's observers of a tensor that stands for another in a write."""
    for observer in observers.active:
        observer.on_alias(result, source)


def notify_cast(result: Any, source: Any) -> None:
    """Tell this thread's observers of a promotion."""
    for observer in (*EVERYWHERE, *observers.active):
        observer.on_cast(result, source)


def notify_become_view(tensor: Any, old: Any, op: Any, meta: Any) -> None:
    """Tell this thread's observers of a tensor that became a view of itself."""
    for observer in observers.active:
        observer.on_become_view(tensor, old, op, meta)


def notify_store(target: Any, region: Any, value: Any) -> None:
    """Tell this thread's observers of what was written where."""
    for observer in observers.active:
        observer.on_store(target, region, value)


def notify_restore(result: Any) -> None:
    """Tell this thread's observers of a saved output that is a Tensor again."""
    for observer in observers.active:
        observer.on_restore(result)


def notify_rebase(node: Any) -> None:
    """Tell this thread's observers of the node of an overwritten tensor."""
    for observer in observers.active:
        observer.on_rebase(node)


def notify_join(results: Sequence[Any], members: Sequence[Any]) -> None:
    """Tell this thread's observers of tensors that are the outputs of one node now."""
    for observer in observers.active:
        observer.on_join(results, members)


def notify_module_enter(module: Any) -> None:
    """Tell this thread's observers of a call of a module."""
    for observer in observers.active:
        observer.on_module_enter(module)


def notify_module_exit(module: Any) -> None:
    """Tell this thread's observers of its end."""
    for observer in observers.active:
        observer.on_module_exit(module)


def notify_index(result: T, *indices: Any) -> T:
    """Tell this thread's observers of tensors that picked elements. Returns these."""
    for observer in observers.active:
        observer.on_index(result, indices)
    return result


def notify_optimizer_step(optimizer: Any) -> None:
    """Tell this thread's observers of an optimizer's step."""
    for observer in observers.active:
        observer.on_optimizer_step(optimizer)


def notify_backward_refused(output: Any) -> None:
    """Tell this thread's observers of a reverse sweep that cannot be."""
    for observer in observers.active:
        observer.on_backward_refused(output)


def notify_leave_autograd(source: Any, how: str) -> None:
    """Tell this thread's observers of values that leave autograd."""
    for observer in observers.active:
        observer.on_leave_autograd(source, how)


def find_sweep_origin() -> Any:
    """What a reverse sweep that starts here leaves in the nodes that it frees: where it was called, if sites are recorded."""
    return next((freed for observer in observers.active if (freed := observer.sweep_origin()) is not None), None)
