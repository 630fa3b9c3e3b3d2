"""The steps of optimizers: where one begins, and when the step of several is over."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from gradlab.explore.watch.hooks import has_closure, remove_all, weakly


class Stepped(Protocol):
    """Whose steps they are."""

    def before_step(self, *, has_gradients: bool) -> None:
        """Look at what is there before weights move; at the gradients only if `has_gradients`, else a closure computes them."""

    def after_closure(self) -> None:
        """Look at the gradients that a closure has computed; the weights have moved."""

    def after_step(self, made: list[Any]) -> None:
        """End the step that these optimizers have made."""


class OptimizerSteps:
    """Counts the steps of optimizers, and of no others.

    A step of several is over when each has stepped, when one steps again, or when the next sweep begins. A single one is hooked
    before its step only where something is looked at there.

    Parameters
    ----------
    of : Stepped
        Held weakly.
    unseen : callable
        Makes a hook whose operations on tensors no mode of the program sees.

    Attributes
    ----------
    made : list
        The optimizers that have stepped since the step that runs began, as weak references. Empty of a single one.
    is_single : bool
        Whether one optimizer makes the steps.
    optimizers : list of Optimizer
        Held weakly.
    """

    def __init__(self, of: Stepped, unseen: Callable[..., Any], optimizers: list[Any]) -> None:
        self._of, self._unseen = weakref.ref(of), unseen
        self._optimizers = [weakref.ref(one) for one in optimizers]
        self.made: list[Any] = []
        self.is_single = len(optimizers) == 1
        self._handles: list[Any] = []
        self._before_handles: list[Any] = []
        self._computes = False  # whether an optimizer is in a step whose closure computes the gradients
        self._looks = True

    def open(self) -> None:
        """Count the steps of the optimizers that were given."""
        self.follow(*(one() for one in self._optimizers))

    def follow(self, *optimizers: Any) -> None:
        """Count the steps of these from now on."""
        self.remove()
        self._optimizers, self.made = [weakref.ref(one) for one in optimizers], []
        self.is_single = len(optimizers) == 1
        for one in optimizers:
            self._handles.append(one.register_step_post_hook(weakly(self._after)))
        self.look(self._looks)

    def look(self, wanted: bool) -> None:
        """Have `before_step` called in the steps to come, or not."""
        self._looks = wanted
        if wanted or not self.is_single:
            if not self._before_handles:
                for one in filter(None, (one() for one in self._optimizers)):
                    self._before_handles.append(one.register_step_pre_hook(self._unseen(weakly(self._before))))
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
        """Whether an optimizer whose steps are counted is gone."""
        return any(one() is None for one in self._optimizers)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._computes = False
        if self.made and any(one() is optimizer for one in self.made):
            self.end()
        of = self._of()
        if of is not None:
            self._computes = has_closure(optimizer, args, kwargs)
            if not self.made:
                of.before_step(has_gradients=not self._computes)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        of = self._of()
        if of is None:
            return
        if self._computes:
            self._computes = False
            of.after_closure()
        if self.is_single:
            of.after_step([optimizer])
        else:
            self.made.append(weakref.ref(optimizer))
            if len(self.made) == len(self._optimizers):
                self.end()

    def end(self) -> None:
        """End the step if one was made."""
        if self.made:
            of, made, self.made = self._of(), [one() for one in self.made], []
            if of is not None:
                of.after_step(made)
                if self._computes:  # the closure of the next one sweeps
                    of.before_step(has_gradients=False)
