"""What gradlab's primitives and modules report to a forward `Run`."""

from __future__ import annotations

from typing import Any

from gradlab.core.observers import Observer, add_observer, count_active, remove_observer
from gradlab.core.storage import FRESH
from gradlab.diagnose.sites import site_here
from gradlab.explore.forward.costs import count_flops
from gradlab.explore.forward.labels import label_of
from gradlab.explore.forward.run import Made, Run
from gradlab.explore.libraries.protocol import Recording


class GradlabForward(Observer, Recording):
    """Reports the primitives and modules of one thread to a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def open(self) -> None:
        if count_active(self) == 0:
            add_observer(self)

    def close(self) -> None:
        remove_observer(self)

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        with self.run.faults:
            self._recorded(op, result, [one for one in args if one is not None], meta)

    def _recorded(self, op: Any, result: Any, args: list[Any], meta: tuple[Any, ...]) -> None:
        name = op.name
        settings = tuple(one for one in meta if type(one) in (int, float) or _is_axes(one))
        node = Made("call", label_of(name, (*args, *settings), {}), name, site=site_here(3))
        node.flops = count_flops(_rule(name, meta), args, {}, result)
        self.run.called(node, args, [result])
        if op.view:
            node.size = 0

    def on_cast(self, result: Any, source: Any) -> None:
        with self.run.faults:
            dtype = self.run.library.dtype_name(result)
            self.run.called(Made("call", f"to({dtype})", "to", site=site_here(2)), [source], [result])

    def on_join(self, results: Any, members: Any) -> None:
        """The results of several primitives became those of one: they are the same tensors."""

    def after_write(self, tensor: Any) -> None:
        with self.run.faults:
            if tensor.storage is not FRESH:
                self.run.written(tensor)

    def on_leave_autograd(self, source: Any, how: str) -> None:
        """A value was read, on which the program may decide what it does next."""
        with self.run.faults:
            self.run.called(Made("call", how.removesuffix("()"), how.removesuffix("()"), site=site_here(2)), [source], [])

    def on_module_enter(self, module: Any) -> None:
        with self.run.faults:
            self.run.entered(module, site_here(2))

    def on_module_exit(self, module: Any) -> None:
        with self.run.faults:
            self.run.exited(None)


def _is_axes(value: Any) -> bool:
    return type(value) is tuple and all(type(one) is int for one in value)


def _rule(name: str, meta: tuple[Any, ...]) -> str:
    """The name of the rule that counts the operations of a primitive."""
    if name == "conv_input" or (name == "conv_bias" and meta and meta[-1] is True):
        return "conv_transpose2d"
    return name
