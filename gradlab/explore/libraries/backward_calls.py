"""Detection of calls of `backward` in this thread. Operations are not observed, so they cost nothing extra.

A `SweepInspector` also examines the sweeps. Both engines free the saved tensors of a node as soon as it has run, so its operation
cannot be examined after the sweep. gradlab's engine can keep them until the end. Where that takes too much memory, and in
PyTorch, an inspector examines nodes while they run, if their rules can turn a finite cotangent into a non-finite one
(`PoleObserver`, `risky_torch`).
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
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.libraries.replacing import give_back, replace

# Called with each tensor that `backward` is called on, before it runs. Its operations must be hidden (`Library.unseen`).
OnBackward = Callable[[Any], None]


class SweepInspector:
    """Base of inspectors of sweeps that write `.grad`. This one inspects nothing."""

    def wants(self, library: str) -> bool:
        """Return whether to inspect the current sweep of a library, "gradlab" or "torch"."""
        return False

    def keeps_graph(self) -> bool:
        """Return whether gradlab's graph must be kept until the sweep ends. Otherwise its nodes are inspected while they run."""
        return True

    def inspect(self, loss: Any, seed: Any) -> None:
        """Inspect the sweep from a tensor, which has ended. Its graph still exists. `seed` is the array that it started with."""

    def inspect_node(self, node: Any, cotangents: Sequence[Any]) -> None:
        """Inspect a running node that turned these finite cotangents, tensors, into non-finite ones. Its graph still exists."""

    def finish(self) -> None:
        """Handle the end of a sweep in which `inspect_node` was called."""

    def add_hooks(self, loss: Any) -> bool:
        """Hook the nodes of a PyTorch sweep before it starts, if it must be inspected. Return whether to call `remove_hooks`."""
        return False

    def remove_hooks(self) -> None:
        """Remove the hooks after the sweep, whose graph has been freed."""


class GradlabBackwardCalls(Watcher):
    """Detection of gradlab's sweeps that write `.grad`."""

    def __init__(self, report: OnBackward, inspector: SweepInspector, faults: Faults) -> None:
        self._report, self._inspector, self._keeps, self.faults = report, inspector, False, faults
        self._poles = PoleObserver(inspector, faults)  # active only while graphs are not kept: it slows down every node

    def close(self) -> None:
        """Stop observing."""
        remove_observer(self)
        remove_observer(self._poles)

    def on_sweep_begin(self, sweep: ReverseSweep) -> None:
        if _is_backward(sweep):
            self._report(sweep.outputs[0])

    def keeps_saved(self, sweep: ReverseSweep) -> bool:
        self._keeps = _is_backward(sweep) and self._inspector.wants("gradlab") and self._inspector.keeps_graph()
        return self._keeps

    def on_sweep_end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        if not _is_backward(sweep):
            return
        if self._keeps and error is None:
            self._keeps = False
            self._inspector.inspect(sweep.outputs[0], sweep.roots[0][1])
        if self._inspector.keeps_graph():
            remove_observer(self._poles)
        elif count_active(self._poles) == 0:
            add_observer(self._poles)


class PoleObserver(Watcher):
    """Observer of the nodes of gradlab's sweeps at which a finite cotangent may become non-finite."""

    def __init__(self, inspector: SweepInspector, faults: Faults) -> None:
        self._inspector, self._on, self._found, self.faults = inspector, False, False, faults

    def on_sweep_begin(self, sweep: ReverseSweep) -> None:
        self._on = _is_backward(sweep) and self._inspector.wants("gradlab") and not self._inspector.keeps_graph()

    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        op = node.op
        if not self._on or op is None or type(g) is Bundle:
            return
        if not (op.properties.poles or op.properties.normalises or op.foreign):
            return
        if not all(map(_is_finite, cotangents)) and _is_finite(g):
            self._on, self._found = False, True
            self._inspector.inspect_node(node, [constant(wrap(g))])

    def on_sweep_end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        if self._found and _is_backward(sweep):
            self._on = self._found = False
            self._inspector.finish()


def _is_finite(array: Any) -> bool:
    if type(array) is Bundle:
        return all(map(_is_finite, array.parts))
    return array is None or bool(np.isfinite(np.sum(array))) or bool(np.isfinite(array).all())  # a sum may overflow


def _is_backward(sweep: ReverseSweep) -> bool:
    return sweep.accumulates and not sweep.lead and len(sweep.outputs) == 1


class BackwardCalls(Recording):
    """Detection of calls of `backward` on gradlab's tensors, and on PyTorch's if the user has imported it."""

    def __init__(self, report: OnBackward, inspector: SweepInspector, faults: Faults) -> None:
        self._report, self._inspector, self._faults = report, inspector, faults
        self._thread = threading.get_ident()
        self._root: Any = None  # the PyTorch tensor whose sweep is running
        self._observer = GradlabBackwardCalls(report, inspector, faults)

    def open(self) -> None:
        if count_active(self._observer) == 0:
            add_observer(self._observer)
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None:
            replace(tensor, "backward", self._reporting)

    def close(self) -> None:
        self._observer.close()
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if tensor is not None:
            give_back(tensor, "backward", self._reporting)

    def _reporting(self, original: Any) -> Any:
        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread or self._root is tensor:
                return original(tensor, *args, **kwargs)  # a function mode receives this replacement as the method
            is_hooked = False
            outer, self._root = self._root, tensor
            try:
                try:
                    self._report(tensor)
                    is_hooked = self._inspector.add_hooks(tensor)
                except Exception as error:  # noqa: BLE001  (faster than `with`, in every sweep)
                    self._faults.handle(error)
                return original(tensor, *args, **kwargs)
            finally:
                self._root = outer
                if is_hooked:
                    with self._faults:
                        self._inspector.remove_hooks()

        return outside_compiler(backward)
