"""The steps of optimizers: when one starts, and when a step of several optimizers has ended."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from gradlab.explore.libraries.loss_scaling import is_skipped
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.watch.hooks import has_closure, remove_all, weakly


def optimizers_of(optimizer: Any) -> list[Any]:
    """Return `None`, an optimizer, or several as a list."""
    return [] if optimizer is None else list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]


class StepListener(Protocol):
    """Receiver of the start and the end of steps."""

    def before_step(self, *, has_gradients: bool) -> None:
        """Measure before the weights are updated. Without `has_gradients`, a closure will compute the gradients."""

    def after_closure(self) -> None:
        """Measure the gradients that a closure has computed. The weights have been updated."""

    def after_step(self, made: list[Any]) -> None:
        """End the step that these optimizers made."""


class OptimizerSteps:
    """Counter of the steps of some optimizers.

    A step of several optimizers ends when each has stepped, when one steps again, or when the next sweep starts. A single one is
    hooked before its step only if something is measured there.

    Parameters
    ----------
    listener : StepListener
        Held weakly.
    unseen : callable
        Makes a hook whose operations on tensors are hidden from the program's modes.
    optimizers : list of Optimizer
        Held weakly.

    Attributes
    ----------
    made : list
        Weak references to the optimizers that have stepped in the current step. Empty for a single optimizer.
    is_single : bool
        Whether there is a single optimizer.
    """

    def __init__(self, listener: StepListener, unseen: Callable[..., Any], optimizers: list[Any]) -> None:
        self._listener, self._unseen = weakref.ref(listener), unseen
        self._optimizers = [weakref.ref(one) for one in optimizers]
        self.made: list[Any] = []
        self.is_single = len(optimizers) == 1
        self._handles: list[Any] = []
        self._before_handles: list[Any] = []
        self._computes = False  # whether an optimizer is in a step whose closure computes gradients
        self._hooks_before = True

    def open(self) -> None:
        """Start counting the steps of the given optimizers."""
        self.follow(*(one() for one in self._optimizers))

    def follow(self, *optimizers: Any) -> None:
        """Count the steps of these optimizers from now on."""
        self.remove()
        self._optimizers, self.made = [weakref.ref(one) for one in optimizers], []
        self.is_single = len(optimizers) == 1
        for one in optimizers:
            self._handles.append(one.register_step_post_hook(outside_compiler(weakly(self._after))))
        self.hook_before_step(self._hooks_before)

    def hook_before_step(self, wanted: bool) -> None:
        """Set whether `before_step` is called in the next steps."""
        self._hooks_before = wanted
        if wanted or not self.is_single:
            if not self._before_handles:
                hook = outside_compiler(self._unseen(weakly(self._before)))
                for one in filter(None, (one() for one in self._optimizers)):
                    self._before_handles.append(one.register_step_pre_hook(hook))
        else:
            remove_all(self._before_handles)

    def remove(self) -> None:
        """Remove the hooks."""
        remove_all(self._handles)
        remove_all(self._before_handles)

    def __contains__(self, optimizer: Any) -> bool:
        return any(one() is optimizer for one in self._optimizers)

    @property
    def has_lost_one(self) -> bool:
        """Return whether one of the optimizers no longer exists."""
        return any(one() is None for one in self._optimizers)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._computes = False
        if is_skipped(optimizer):
            return
        if self.made and any(one() is optimizer for one in self.made):
            self.end()
        listener = self._listener()
        if listener is not None:
            self._computes = has_closure(optimizer, args, kwargs)
            if not self.made:
                listener.before_step(has_gradients=not self._computes)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        listener = self._listener()
        if listener is None or is_skipped(optimizer):
            return
        if self._computes:
            self._computes = False
            listener.after_closure()
        if self.is_single:
            listener.after_step([optimizer])
        else:
            self.made.append(weakref.ref(optimizer))
            if len(self.made) == len(self._optimizers):
                self.end()

    def end(self) -> None:
        """End the step if an optimizer has stepped."""
        if self.made:
            listener, made, self.made = self._listener(), [one() for one in self.made], []
            if listener is not None:
                listener.after_step(made)
                if self._computes:  # called by the sweep in the closure of the next step
                    listener.before_step(has_gradients=False)
