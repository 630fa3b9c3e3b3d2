"""Who is told of calls of `backward` in this thread, and of nothing else: it costs operations nothing.

A `Keeper` is told more. Both engines free what a node has saved as soon as it has been run, so that a sweep that is over tells
nothing of its operations. gradlab's can hold it until the end. Where that is too much memory, and in PyTorch's, a keeper looks at
nodes as they are run: at those whose rules may make of something finite what is not (`AtPoles`, `risky_torch`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import wrap
from gradlab.core.observers import ReverseSweep, add_observer, count_active, remove_observer
from gradlab.core.ports import Bundle
from gradlab.core.tensor import constant
from gradlab.diagnose.faults import Faults, Watcher
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.libraries.replacing import give_back, replace

# Called with each tensor that `backward` is called on, before it runs. It has to compute unseen (`Library.unseen`).
Tell = Callable[[Any], None]


class Keeper:
    """Looks at sweeps that write `.grad`."""

    def wants(self, library: str) -> bool:
        """Whether to look at a sweep of a library's, "gradlab" or "torch", that begins or runs."""
        return False

    def holds(self) -> bool:
        """Whether gradlab's graph shall be held until the sweep is over; else its nodes are looked at."""
        return True

    def over(self, loss: Any, seed: Any) -> None:
        """The sweep from a tensor is over, and its graph is still there. `seed`: the array that it began with."""

    def born(self, node: Any, cotangents: Sequence[Any]) -> None:
        """A node that is being run made of these cotangents, tensors, something that is not finite; its graph is still there."""

    def settle(self) -> None:
        """The sweep in which something was born is over."""

    def arm(self, loss: Any) -> bool:
        """PyTorch's sweep is about to begin: hook its nodes if it is one to look at. Return whether to call `disarm` after it."""
        return False

    def disarm(self) -> None:
        """It is over, and freed: remove the hooks."""


class GradlabBackwardCalls(Watcher):
    """Sweeps of gradlab's own that write `.grad`."""

    def __init__(self, tell: Tell, keeper: Keeper, faults: Faults) -> None:
        self._tell, self._keeper, self._holding, self.faults = tell, keeper, False, faults
        self._poles = AtPoles(keeper, faults)  # there while sweeps are not held: it costs every node something

    def close(self) -> None:
        """Observe no more."""
        remove_observer(self)
        remove_observer(self._poles)

    def begin(self, sweep: ReverseSweep) -> None:
        if _is_backward(sweep):
            self._tell(sweep.outputs[0])

    def keeps_saved(self, sweep: ReverseSweep) -> bool:
        self._holding = _is_backward(sweep) and self._keeper.wants("gradlab") and self._keeper.holds()
        return self._holding

    def end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        if not _is_backward(sweep):
            return
        if self._holding and error is None:
            self._holding = False
            self._keeper.over(sweep.outputs[0], sweep.roots[0][1])
        if self._keeper.holds():
            remove_observer(self._poles)
        elif count_active(self._poles) == 0:
            add_observer(self._poles)


class AtPoles(Watcher):
    """Sees the nodes of gradlab's sweeps at which a finite cotangent may become one that is not."""

    def __init__(self, keeper: Keeper, faults: Faults) -> None:
        self._keeper, self._on, self._found, self.faults = keeper, False, False, faults

    def begin(self, sweep: ReverseSweep) -> None:
        self._on = _is_backward(sweep) and self._keeper.wants("gradlab") and not self._keeper.holds()

    def visit(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        op = node.op
        if not self._on or op is None or type(g) is Bundle:
            return
        if not (op.properties.poles or op.properties.normalises or op.foreign):
            return
        if not all(map(_is_finite, cotangents)) and _is_finite(g):
            self._on, self._found = False, True
            self._keeper.born(node, [constant(wrap(g))])

    def end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        if self._found and _is_backward(sweep):
            self._on = self._found = False
            self._keeper.settle()


def _is_finite(array: Any) -> bool:
    if type(array) is Bundle:
        return all(map(_is_finite, array.parts))
    return array is None or bool(np.isfinite(np.sum(array))) or bool(np.isfinite(array).all())  # a sum may overflow


def _is_backward(sweep: ReverseSweep) -> bool:
    return sweep.accumulates and not sweep.lead and len(sweep.outputs) == 1


class BackwardCalls(Recording):
    """Calls of `backward` on gradlab's tensors and on PyTorch's, as far as the user has imported it."""

    def __init__(self, tell: Tell, keeper: Keeper, faults: Faults) -> None:
        self._tell, self._keeper, self._faults, self._thread = tell, keeper, faults, threading.get_ident()
        self._swept: Any = None  # the tensor of PyTorch's whose sweep runs
        self._observer = GradlabBackwardCalls(tell, keeper, faults)

    def open(self) -> None:
        if count_active(self._observer) == 0:
            add_observer(self._observer)
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None:
            replace(tensor, "backward", self._telling)

    def close(self) -> None:
        self._observer.close()
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None:
            give_back(tensor, "backward", self._telling)

    def _telling(self, original: Any) -> Any:
        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread or self._swept is tensor:
                return original(tensor, *args, **kwargs)  # a function mode is given the method that it can find: this one
            is_armed = False
            outer, self._swept = self._swept, tensor
            try:
                try:
                    self._tell(tensor)
                    is_armed = self._keeper.arm(tensor)
                except Exception as error:  # noqa: BLE001  (a `with` costs more, in every sweep)
                    self._faults.handle(error)
                return original(tensor, *args, **kwargs)
            finally:
                self._swept = outer
                if is_armed:
                    with self._faults:
                        self._keeper.disarm()

        return backward
