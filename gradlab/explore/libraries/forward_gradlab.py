"""Reports of gradlab's primitives and modules to a forward `Run`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from gradlab.core.inplace import rerecord_view
from gradlab.core.observers import Observer, add_observer, count_active, remove_observer
from gradlab.core.storage import FRESH
from gradlab.diagnose.sites import site_here
from gradlab.explore.forward.costs import count_flops
from gradlab.explore.forward.labels import label_of
from gradlab.explore.forward.run import Run, RunNode
from gradlab.explore.libraries.protocol import Recording

REVERSE = {"sub": "__rsub__", "div": "__rtruediv__", "pow": "__rpow__"}
DEEPEST = 6  # maximum number of frames between a primitive and the function that records it again


class GradlabForward(Observer, Recording):
    """Observer that reports the primitives and modules of one thread to a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self._write: tuple[Any, int] | None = None  # a tensor that was written to, and the last node at that time
        self._buffers: list[list[tuple[Any, Any]]] = []  # of each running module, with their values before
        self._created: dict[int, Any] = {}  # tensors that no operation made, by their arrays

    def open(self) -> None:
        if count_active(self) == 0:
            add_observer(self)

    def close(self) -> None:
        remove_observer(self)
        with self.run.faults:
            self._finish_write()
        self._created.clear()
        self._buffers.clear()

    # --------------------------------------------------------------------------------------------------------- operations
    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        with self.run.faults:
            self._finish_write()
            if not (op.view and _is_rerecorded()):
                self._record(op, result, [one for one in args if one is not None], meta)

    def _record(self, op: Any, result: Any, args: list[Any], meta: tuple[Any, ...]) -> None:
        name = op.name
        settings = tuple(one for one in meta if type(one) in (int, float) or _is_axes(one))
        shown = [one.array.item() if self._is_number(one) else one for one in args]
        reverse = REVERSE.get(name, name) if shown and shown[0] is not args[0] else name
        text = label_of(reverse, (*shown, *settings) if name != "getitem" else (None, _without_end(meta[0])), {})
        node = RunNode("call", text, name, site=site_here(3))
        node.flops = count_flops(_rule(name, meta), args, {}, result)
        tensors = [one for one, text in zip(args, shown, strict=True) if one is text]
        self.run.on_call(node, [*self._with_statistics(tensors), *self._masks(meta)], [result])
        if op.view:
            node.size = 0

    def _with_statistics(self, tensors: list[Any]) -> list[Any]:
        """Return the arguments of an operation; for a layer with statistics also these, which it reads internally."""
        call = self.run.module
        if call is None or not type(call.module).__module__.startswith("gradlab."):
            return tensors
        own = [one for _, one in call.module.named_buffers(recurse=False) if one.array.dtype.kind == "f"]
        if own:
            tensors = [one for one in tensors if id(one.array) not in self._created or self.run.is_known(one)]
        return [*tensors, *own] if call.calls == 0 else tensors

    def _is_number(self, tensor: Any) -> bool:
        """Return whether a tensor was made from a number in an expression."""
        return tensor.array.shape == () and not self.run.is_known(tensor)

    def _masks(self, meta: tuple[Any, ...]) -> list[Any]:
        """Return the tensors whose arrays are among an operation's settings."""
        found = []
        for array in meta:
            if isinstance(array, np.ndarray):
                held = self._created.get(id(array))
                tensor = held() if held is not None else next((x for x in self.run.before if x.array is array), None)
                if tensor is not None and tensor.array is array:
                    found.append(tensor)
        return found

    def on_create(self, result: Any) -> None:
        with self.run.faults:
            self._created[id(result.array)] = self.run.library.weak(result)

    def on_alias(self, result: Any, source: Any) -> None:
        with self.run.faults:
            self._finish_write()
            self.run.alias(result, source)

    def on_detach(self, result: Any, source: Any, how: str) -> None:
        with self.run.faults:
            self._finish_write()
            self.run.on_call(RunNode("call", label_of(how, (), {}), how, site=site_here(2)), [source], [result])

    def on_index(self, result: Any, indices: Any) -> None:
        with self.run.faults:
            self.run.also_from(result, indices)

    def on_cast(self, result: Any, source: Any) -> None:
        with self.run.faults:
            self._finish_write()
            dtype = self.run.library.dtype_name(result)
            self.run.on_call(RunNode("call", f"to({dtype})", "to", site=site_here(2)), [source], [result])

    def on_join(self, results: Any, members: Any) -> None:
        """Ignore it: the results of several primitives became those of one, but they are the same tensors."""

    # ------------------------------------------------------------------------------------------------------------- writes
    def on_after_write(self, tensor: Any) -> None:
        with self.run.faults:
            self._finish_write()
            self._write = tensor, len(self.run.nodes) - 1

    def on_store(self, target: Any, region: Any, value: Any) -> None:
        """Record a write: the result of the last operation, or another tensor, to a part."""
        with self.run.faults:
            self._write = None
            if not region and self.run.is_last(value):
                self.run.nodes[-1].size = 0
                self.run.on_write(target, len(self.run.nodes) - 1)
                return
            index = region[0][1].get("index") if len(region) == 1 and region[0][0].name == "getitem" else None
            whole = not region or (index is not None and len(index) == 1 and index[0] is Ellipsis)
            label = "copy_" if whole else "[…] ="
            if not whole and index is not None:
                label = label_of("__setitem__", (None, _without_end(index)), {})
            sources = [target] if self._is_number(value) else [target, value]
            node = RunNode("call", label, "copy_" if label == "copy_" else "__setitem__", site=site_here(2))
            self.run.on_call(node, [*sources, *self._masks(index or ())], [target], [target])

    def on_data_replaced(self, tensor: Any) -> None:
        with self.run.faults:
            self._finish_write()
            self.run.on_call(RunNode("call", ".data =", "set data", site=site_here(2)), [], [], [tensor])
            others = (one for one in (*self.run.results(), *self.run.before) if one is not tensor)
            same = next((one for one in others if np.may_share_memory(one.array, tensor.array)), None)
            if same is not None:
                self.run.also_from(tensor, [same])

    def _finish_write(self) -> None:
        """Record a write that the last operation did itself, for example with `out`."""
        if self._write is not None:
            (tensor, last), self._write = self._write, None
            if tensor.storage is not FRESH:
                self.run.on_write(tensor, last)

    # --------------------------------------------------------------------------------------------- values and modules
    def on_leave_autograd(self, source: Any, how: str) -> None:
        """Record that a value was read, on which the program's control flow may depend."""
        with self.run.faults:
            self._finish_write()
            self.run.on_call(RunNode("call", how.removesuffix("()"), how.removesuffix("()"), site=site_here(2)), [source], [])

    def on_module_enter(self, module: Any) -> None:
        with self.run.faults:
            self._finish_write()
            self.run.on_module_enter(module, site_here(2))
            buffers = [one for _, one in module.named_buffers(recurse=False)]
            self._buffers.append([(one, one.array.copy()) for one in buffers])

    def on_module_exit(self, module: Any) -> None:
        with self.run.faults:
            self._finish_write()
            before = self._buffers.pop() if self._buffers else []
            self.run.on_buffer_writes([one for one, array in before if not np.array_equal(one.array, array)])
            self.run.on_module_exit(None)


def _is_rerecorded() -> bool:
    """Return whether a view is being recorded again because its base was written to."""
    frame: Any = sys._getframe(2)
    for _ in range(DEEPEST):
        if frame is None or frame.f_code is rerecord_view.__code__:
            return frame is not None
        frame = frame.f_back
    return False


def _without_end(index: tuple[Any, ...]) -> Any:
    """Return an index without trailing dots, as it is written in code."""
    index = index[:-1] if len(index) > 1 and index[-1] is Ellipsis else index
    return index[0] if len(index) == 1 else index


def _is_axes(value: Any) -> bool:
    return type(value) is tuple and all(type(one) is int for one in value)


def _rule(name: str, meta: tuple[Any, ...]) -> str:
    """Return the name of the rule that counts the operations of a primitive."""
    if name == "conv_input" or (name == "conv_bias" and meta and meta[-1] is True):
        return "conv_transpose2d"
    return name
