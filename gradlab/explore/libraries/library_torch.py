"""Adapter to PyTorch's graphs. torch is never imported here: the adapter is created once the user has imported it."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.gauging import Gauge
from gradlab.explore.libraries.loss_scaling import LossScaling, ReportScaling
from gradlab.explore.libraries.memory import Region, region
from gradlab.explore.libraries.protocol import Library, Recording, See, buffers_of, rebind
from gradlab.explore.trace.notes import NOTE, Note, RecordedArray
from gradlab.explore.trace.values import Value, read_pending

P = ParamSpec("P")
T = TypeVar("T")


class Torch(Library):
    """Adapter to PyTorch's tensors, once the user has imported torch."""

    name, usual = "torch", "torch"
    touches = 10_000  # torch frees a chain of nodes with Python objects by recursion, and 40 000 of them exhaust a stack of 8 MB

    def is_tensor(self, value: Any) -> bool:
        """Return False for a parameter of a lazy layer (`LazyLinear`) before its first call: it has no shape and no numbers."""
        tensor = getattr(sys.modules["torch"], "Tensor", None)  # torch may be in the middle of its import
        if tensor is None or not issubclass(type(value), tensor):
            return False
        lazy = getattr(sys.modules.get("torch.nn.parameter"), "UninitializedTensorMixin", ())
        return not issubclass(type(value), lazy)

    def array(self, tensor: Any) -> np.ndarray:
        from gradlab.explore.libraries.reducing_torch import array

        return array(tensor)

    def weak(self, tensor: Any) -> Callable[[], Any]:
        from torch.utils.weak import TensorWeakRef

        weak: Callable[[], Any] = TensorWeakRef(tensor)
        return weak

    def form(self, tensor: Any) -> str:
        from gradlab.explore.libraries.forms_torch import form

        return form(tensor)

    def is_leaf(self, tensor: Any) -> bool:
        from gradlab.explore.libraries.forms_torch import is_leaf

        return is_leaf(tensor)

    def shape_of(self, tensor: Any) -> tuple[int, ...] | None:
        from gradlab.explore.libraries.forms_torch import shape_of

        return shape_of(tensor)

    def node(self, tensor: Any) -> Any:
        from gradlab.explore.libraries.forms_torch import node_of

        return node_of(tensor)

    def unseen(self, function: Callable[P, T]) -> Callable[P, T]:
        from gradlab.explore.libraries.unseen_torch import unseen

        return unseen(function)

    def variable(self, node: Any) -> Any:
        return getattr(node, "variable", None)

    def order(self, node: Any) -> int:
        return int(node._sequence_nr())

    def shape(self, node: Any) -> tuple[int, ...] | None:
        variable = self.variable(node)
        made: Any = _output_metadata(node) if variable is None else variable
        try:
            return None if made is None else tuple(made.shape)
        except RuntimeError:  # nested tensors have no shape
            return None

    # ---------------------------------------------------------------------------------------- recorded data, see `trace`
    def note(self, node: Any) -> Note | None:
        note: Note | None = node.metadata.get(NOTE) if hasattr(node, "metadata") else None
        return note

    def dtype_of(self, node: Any) -> str:
        variable = self.variable(node)
        if variable is not None:
            return self.dtype_name(variable)
        metadata: Any = _output_metadata(node)
        return "" if metadata is None else str(metadata.dtype).rpartition(".")[2]

    def values(self, tensors: Sequence[Any], *, histograms: bool = False) -> list[Any]:
        from gradlab.explore.libraries.reducing_torch import summarize

        return self.read_pending([summarize(tensor, histogram=histograms) for tensor in tensors])

    def summary(self, cotangent: Any) -> Any:
        from gradlab.explore.libraries.reducing_torch import summarize

        cotangent = _first(cotangent)
        return None if cotangent is None else summarize(cotangent)

    def read_pending(self, values: list[Any]) -> list[Any]:
        from gradlab.explore.libraries.reducing_torch import read

        return read_pending(values, read)

    def copy(self, cotangent: Any) -> Any:
        from gradlab.explore.libraries.reducing_torch import copy

        return copy(cotangent)

    def bytes_of(self, cotangent: Any) -> int:
        try:
            return int(cotangent.numel() * cotangent.element_size())
        except RuntimeError:  # of a kind that does not report it
            return 0

    def elements(self, tensor: Any) -> int:
        try:
            return int(tensor.numel())
        except RuntimeError:
            return 0

    def base_of(self, tensor: Any) -> Any:
        return tensor._base

    def inner_of(self, tensor: Any) -> Any:
        from gradlab.explore.libraries.forms_torch import inner_of

        return inner_of(tensor)

    def memory_of(self, tensor: Any) -> Any:
        try:
            return tensor.untyped_storage().data_ptr() or id(tensor if tensor._base is None else tensor._base)  # meta tensors
        except (NotImplementedError, RuntimeError):  # a sparse tensor, or a subclass without memory
            return None

    def region_of(self, tensor: Any) -> Region | None:
        if tensor.layout != sys.modules["torch"].strided:
            return None
        width = tensor.element_size()
        return region(tensor.storage_offset() * width, tensor.shape, [width * step for step in tensor.stride()], width)

    def sample(self, tensor: Any) -> np.ndarray | None:
        from gradlab.explore.libraries.reducing_torch import sample

        return sample(_first(tensor))

    def is_zero(self, tensor: Any) -> bool:
        from gradlab.explore.libraries.reducing_torch import is_zero

        return is_zero(tensor)

    def version(self, tensor: Any) -> int:
        return 0 if tensor.is_inference() else int(tensor._version)  # tensors of inference mode do not count

    def moment(self) -> int:
        return int(sys.modules["torch"].autograd._get_sequence_nr())

    def is_parameter(self, tensor: Any) -> bool:
        return isinstance(tensor, sys.modules["torch"].nn.Parameter)

    def is_sharded(self, tensor: Any) -> bool:
        return hasattr(type(tensor), "to_local")  # a DTensor

    def share(self, part: Any, whole: Any) -> Any:
        from gradlab.explore.libraries.reducing_torch import share

        return share(part, whole)

    def kept_value(self, kept: RecordedArray) -> Any:
        if kept.numbers is not None:
            return Value(kept.shape, str(kept.dtype).rpartition(".")[2], kept.numbers)
        tensor = kept.array() if kept.array is not None else None
        if tensor is None or self.version(tensor) != kept.version:
            return None
        return self.summary(tensor)

    def output_of(self, node: Any) -> Any:
        variable = self.variable(node)
        if variable is not None:
            return variable.detach()
        note = self.note(node)
        kept = None if note is None else note.made
        if kept is None:
            return None
        if kept.numbers is not None:
            return sys.modules["torch"].tensor(kept.numbers, dtype=kept.dtype).reshape(kept.shape)
        tensor = kept.array() if kept.array is not None else None
        return None if tensor is None or self.version(tensor) != kept.version else tensor

    def slopes(self, g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
        from gradlab.explore.libraries.reducing_torch import slopes

        return slopes(g, handed, flat, axis)

    def sharp(self, rows: Any, inputs: Any, axis: int) -> Any:
        from gradlab.explore.libraries.reducing_torch import sharp

        return sharp(rows, inputs, axis)

    def gauge(self, tensors: Sequence[Any]) -> Gauge:
        from gradlab.explore.libraries.gauging_torch import TorchGauge

        return TorchGauge(any(tensor.device.type != "cpu" for tensor in tensors))

    def output_hook(self, hook: Callable[..., None]) -> Callable[..., None]:
        from gradlab.explore.libraries.compiling_torch import not_compiled

        return not_compiled(self.unseen(hook))

    def loss_scaling(self, faults: Faults, report: ReportScaling) -> LossScaling:
        from gradlab.explore.libraries.scaling_torch import GradScalers

        return GradScalers(faults, report)

    def risky_node_hooks(self, report: Callable[[Any, Sequence[Any]], None], share: float, faults: Faults) -> Any:
        from gradlab.explore.libraries.risky_torch import RiskyNodeHooks

        return RiskyNodeHooks(report, share, faults, self.touches)

    def recording(self, recorder: Any) -> Recording:
        from gradlab.explore.libraries.recording_torch import TorchRecording

        return TorchRecording(self, recorder)

    def forward_recording(self, run: Any) -> Recording:
        from gradlab.explore.libraries.forward_torch import TorchForward

        return TorchForward(run)

    @contextmanager
    def preserving(self, model: Any) -> Iterator[None]:
        if model is None or not self.owns_module(model):
            yield
            return
        torch = sys.modules["torch"]
        held = buffers_of(model)
        is_lazy = torch.nn.parameter.is_lazy
        with torch.no_grad():
            before = [None if one.is_meta or is_lazy(one) else (self.version(one), one.clone()) for _, _, one in held]
        cpu, there = torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

        def restore() -> None:
            torch.set_rng_state(cpu)
            if there:
                torch.cuda.set_rng_state_all(there)
            rebind(model, held)
            for (_, _, tensor), kept in zip(held, before, strict=True):
                if kept is not None:
                    self._put_back(tensor, *kept)

        with scope_guard(lambda: None, restore):
            yield

    def _put_back(self, tensor: Any, version: int, values: Any) -> None:
        """Write values to a tensor if its own differ, without a new version: backward may need it.

        Versions do not show changes: batch norm writes its statistics without a new one.
        """
        torch = sys.modules["torch"]
        with torch.inference_mode(tensor.is_inference()), torch.no_grad():
            if tensor.shape != values.shape:
                tensor.data = values
            elif self.version(tensor) != version or (tensor.layout == torch.strided and not torch.equal(tensor, values)):
                tensor.data.copy_(values)

    def setting(self, node: Any, name: str) -> Any:
        try:
            value = getattr(node, f"_saved_{name}", None)
        except RuntimeError:  # a tensor that was freed
            return None
        if isinstance(value, (tuple, list)):
            return tuple(map(_signed_axis, value))
        return _signed_axis(value)

    def settings(self, node: Any, names: Sequence[str]) -> dict[str, Any]:
        kind = type(node)
        kept = _kept_by_kind.get(kind)
        if kept is None:
            kept = _kept_by_kind[kind] = [name for name in names if hasattr(kind, f"_saved_{name}")]
        return super().settings(node, kept)

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        return sys.modules["torch"].as_tensor(array, dtype=like.dtype, device=like.device)

    @contextmanager
    def watching(self, nodes: Sequence[Any], see: See, *, arrivals: Collection[Any] = ()) -> Iterator[None]:
        look = self.unseen(see)

        def add_hook(node: Any) -> Any:
            if self.variable(node) is not None:
                return node.register_prehook(lambda cotangents: look(node, cotangents[0], (), ()))
            if node in arrivals:  # a hook after the node would make torch keep the cotangent longer, which other hooks can notice
                return node.register_prehook(lambda cotangents: look(node, cotangents, self.inputs(node), ()))
            return node.register_hook(lambda handed, cotangents: look(node, cotangents, self.inputs(node), handed))

        handles: list[Any] = []
        try:
            for node in nodes:
                handles.append(add_hook(node))  # noqa: PERF401  (each is removed, also after an interrupt between two)
            yield
        finally:
            for handle in handles:
                handle.remove()

    def like(self, cotangent: Any) -> Any:
        return cotangent.dtype, cotangent.device

    def alone(self, node: Any, outputs: Sequence[np.ndarray | None], likes: Sequence[Any]) -> list[np.ndarray | None]:
        torch = sys.modules["torch"]
        cotangents = [
            None if g is None else torch.as_tensor(g).to(dtype=like[0], device=like[1])
            for g, like in zip(outputs, likes, strict=True)
        ]
        with torch.no_grad():
            results = node(*cotangents)
        return [None if c is None else self.numbers(c) for c in (results if isinstance(results, tuple) else (results,))]

    def saved(self, node: Any) -> list[tuple[str, Any]]:
        tensor, kept = sys.modules["torch"].Tensor, []
        for key in _saved_names(node.__class__):
            try:
                value = getattr(node, key)
            except RuntimeError:  # freed
                continue
            if isinstance(value, tensor):
                kept.append((key.removeprefix("_saved_"), value))
        return kept

    def values_saved(self, node: Any) -> list[tuple[Any, Any]]:
        values = [(value.grad_fn, value) for _, value in self.saved(node) if value.grad_fn is not None]
        return [(maker, value) for maker, value in values if len(getattr(maker, "_input_metadata", "?")) == 1]

    def is_freed(self, node: Any) -> bool:
        try:
            for key in _saved_names(node.__class__):
                getattr(node, key)
        except RuntimeError:
            return True
        return False

    def rule_is_known(self, node: Any) -> bool:
        torch = sys.modules["torch"]
        return not isinstance(node, torch.autograd.function.BackwardCFunction)

    def hooks(self, node: Any, tensor: Any) -> bool:
        return bool(tensor is not None and getattr(tensor, "_backward_hooks", None))

    def retaining(self, nodes: Sequence[Any]) -> list[Any]:
        wanted_nodes, kinds = set(nodes), [sys.modules["torch"].Tensor]
        for kind in kinds:  # grows while it is read
            kinds += kind.__subclasses__()
        wanted = frozenset(kinds)
        tensors = [one for one in gc.get_objects() if type(one) in wanted]  # nodes do not know their tensors
        return [one for one in tensors if one.retains_grad and one.grad_fn in wanted_nodes]

    def grad(self, *args: Any, **kwargs: Any) -> list[Any]:
        from gradlab.explore.libraries.unseen_torch import by_subclass

        return by_subclass(super().grad)(*args, **kwargs)

    def autograd(self) -> Any:
        return sys.modules["torch"].autograd


_kept_by_kind: dict[type, list[str]] = {}  # names of `settings` that the nodes of a class have


def _first(cotangent: Any) -> Any:
    """Return the first cotangent that a node with several outputs has."""
    if isinstance(cotangent, tuple):
        return next((part for part in cotangent if part is not None), None)
    return cotangent


def _output_metadata(node: Any) -> Any:
    """Return the shape and dtype of a node's output. PyTorch before 2.6 does not know them; there, only if we saw the node
    made."""
    metadata = getattr(node, "_input_metadata", None)
    if metadata:
        return metadata[0]
    note = node.metadata.get(NOTE) if hasattr(node, "metadata") else None
    return None if note is None else note.made


@functools.cache
def _saved_names(kind: Any) -> list[str]:
    """Return the attributes of a kind of node that hold saved tensors and settings."""
    return [name for name in dir(kind) if name.startswith("_saved_")]


def _signed_axis(value: Any) -> Any:
    """Convert an axis, which PyTorch stores unsigned: 2**64 - 1 is the last one."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


TORCH = Torch()
