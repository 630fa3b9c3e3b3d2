"""Reports of PyTorch's functions and modules to a forward `Run`. Imported once the user has imported torch.

A `TorchFunctionMode` sees each call of a function or method on tensors as the program wrote it: `F.linear` is one call, whatever
runs inside. Global hooks report where modules begin and end. Everything applies to one thread and ends with `close`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from sys import _getframe
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from gradlab import clock
from gradlab.explore.forward.arguments import tensors_in
from gradlab.explore.forward.costs import count_flops
from gradlab.explore.forward.labels import READS, SHAPES, describe_call, label_of
from gradlab.explore.forward.run import Run, RunNode, describe_tensors
from gradlab.explore.libraries.compiling_torch import UncompiledCalls
from gradlab.explore.libraries.forms_torch import inner_of
from gradlab.explore.libraries.frames_torch import HANDLED, site_of, user_frame
from gradlab.explore.libraries.protocol import Recording
from gradlab.explore.libraries.unseen_frames import Places, without_ours
from gradlab.explore.libraries.unseen_torch import unseen

PROPERTIES = frozenset(("T", "mT", "H", "mH", "real", "imag", "data", "grad"))
PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))
SET = frozenset(("data", "real", "imag"))


class TorchForward(TorchFunctionMode, Recording):  # type: ignore[misc]
    """Function mode that reports the calls of one thread to a run."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run
        self.thread = threading.get_ident()
        self._handles: list[Any] = []
        self._open = False
        self._places = Places()
        self._running: list[Any] = []
        self._uncompiled = UncompiledCalls(lambda: None, run.faults)
        self._entered, self._exited = unseen(run.on_module_enter), unseen(run.on_module_exit)

    def open(self) -> None:
        if self._open:
            return
        self._handles.append(register_module_forward_pre_hook(self.on_module_enter))
        self._handles.append(register_module_forward_hook(self.on_module_exit, always_call=True))
        self._uncompiled.open()
        self.__enter__()
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            self.__exit__(None, None, None)
        self._uncompiled.close()
        while self._handles:
            self._handles.pop().remove()
        self._places.clear()
        self._running.clear()

    # ------------------------------------------------------------------------------------------------------------ modules
    def on_module_enter(self, module: Any, args: Any) -> None:
        """Global hook before the forward of a module."""
        if threading.get_ident() == self.thread:
            with self.run.faults:
                self._running.append(module)
                self._entered(module, site_of(user_frame()), args)

    def on_module_exit(self, module: Any, args: Any, result: Any) -> None:
        """Global hook after the call of a module, however it ended."""
        if threading.get_ident() == self.thread:
            with self.run.faults:
                if self._running and self._running[-1] is module:
                    self._running.pop()
                    self._exited(result)

    # ---------------------------------------------------------------------------------------------------------- functions
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__"):
            attribute = getattr(getattr(func, "__self__", None), "__name__", "")
            if attribute not in (PROPERTIES if name == "__get__" else SET):
                return func(*args, **kwargs)
            name = attribute if name == "__get__" else f"set {attribute}"
        elif name in SHAPES:
            return func(*args, **kwargs)
        run = self.run
        frame = _getframe(1)
        if frame.f_code is HANDLED:  # a Python function asks whether a mode handles its call, and is called again
            frame = frame.f_back.f_back or frame  # type: ignore[union-attr]
        arguments: Sequence[Any] = ()
        versions: Sequence[int] = ()
        with run.faults:
            arguments = tensors_in((args, kwargs) if kwargs else args if name != "set data" else args[1:], self._is_tensor)
            versions = self._versions(arguments)
        started = self._now(args) if run.timed else 0.0
        try:
            result = self._places.call_from(frame)(func, args, kwargs)
        except BaseException as error:
            with run.faults:
                self._record_failure(name, args, kwargs, arguments, error)
            without_ours(error)
            raise
        seconds = self._now(result) - started if run.timed else 0.0
        if not torch.jit.is_tracing():  # type: ignore[no-untyped-call]
            with run.faults:
                self._record_call(name, args, kwargs, result, seconds, arguments, versions)
        return result

    def _versions(self, tensors: Sequence[Any]) -> list[int]:
        if all(type(one) in PLAIN for one in tensors):  # the program does not notice that we read these
            return [self._version(one) for one in tensors]
        return unseen(lambda: [self._version(one) for one in tensors])()

    @unseen
    def _record_call(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        seconds: float,
        arguments: Sequence[Any],
        versions: Sequence[int],
    ) -> None:
        results = tensors_in(result, self._is_tensor)
        written = [one for one, before in zip(arguments, versions, strict=True) if self._version(one) != before]
        written += self._written_by_name(name, args, kwargs)
        if not results and not written and name not in READS:
            return
        detail = describe_call(name, args, kwargs, result)
        node = RunNode("call", label_of(name, args, kwargs), name, seconds=seconds, site=site_of(user_frame(3)), detail=detail)
        node.flops = count_flops(name, args, kwargs, result)
        if node.flops and results:
            node.flops *= _members(results[0])
        self.run.on_call(node, arguments, results, written)

    def _written_by_name(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the arguments that a function writes to according to its name, where versions do not show it: the statistics of
        batch norm, the tensor whose `data` is set, and tensors of inference mode."""
        if name in ("batch_norm", "instance_norm"):
            if not kwargs.get("training", len(args) > 5 and args[5]):
                return []
            return [x for x in (*args[1:3], kwargs.get("running_mean"), kwargs.get("running_var")) if self._is_tensor(x)]
        if name == "set data":
            return [args[0]]
        found: list[Any] = []
        if name == "__setitem__" or (name.endswith("_") and (not name.startswith("__") or name.startswith("__i"))):
            found = tensors_in(args[:1], self._is_tensor)
        if "out" in kwargs:
            found += tensors_in(kwargs["out"], self._is_tensor)
        return [one for one in found if one.is_inference()]

    def _version(self, tensor: Any) -> int:
        return -1 if tensor.is_inference() else int(tensor._version)

    @unseen
    def _record_failure(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], arguments: Sequence[Any], error: BaseException
    ) -> None:
        node = RunNode("call", label_of(name, args, kwargs), name, site=site_of(user_frame(3)))
        node.detail = describe_tensors(self.run.library, arguments)
        self.run.on_failed_call(node, arguments, error)

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def _now(self, values: Any) -> float:
        """Return the time, after the work on a GPU has ended."""
        if torch.cuda.is_initialized() and any(one.is_cuda for one in tensors_in(values, self._is_tensor)):
            torch.cuda.synchronize()
        return clock.now()


def _members(tensor: Any) -> int:
    """Return how many tensors of its shape a tensor represents inside `torch.vmap`; else 1."""
    inner, size = inner_of(tensor), tensor.numel()
    while inner is not None and (deeper := inner_of(inner)) is not None:
        inner = deeper
    return 1 if inner is None or not size else inner.numel() // size
