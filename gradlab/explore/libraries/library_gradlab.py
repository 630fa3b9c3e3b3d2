"""Adapter to gradlab's own graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from gradlab import autograd, random
from gradlab.autograd.graph import GradientEdge
from gradlab.backend.namespaces import CPU, device_of, read_floats, to_host
from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.engine import unbroadcast
from gradlab.core.forward import jvp_sweep
from gradlab.core.modes import no_grad
from gradlab.core.observers import Observer, observing
from gradlab.core.ports import Bundle
from gradlab.core.scopes import scope_guard
from gradlab.core.storage import own_storage, peek_tick
from gradlab.core.tensor import Tensor
from gradlab.diagnose.autopsy import why_lost
from gradlab.explore.libraries.gauging import Gauge
from gradlab.explore.libraries.memory import Region, region
from gradlab.explore.libraries.protocol import Change, Library, Recording, See, buffers_of, rebind
from gradlab.explore.libraries.recording_gradlab import GradlabRecording
from gradlab.explore.trace.journal import spaced_sample
from gradlab.explore.trace.notes import Note
from gradlab.explore.trace.slopes import sharp, slopes
from gradlab.explore.trace.values import Value, dtype_name, read_pending, share, summarize, summarize_arrays, summarize_on_device
from gradlab.nn.parameter import Parameter
from gradlab.ops.from_data import tensor

FIRST = 1024  # elements that are checked first for a nonzero one


class Gradlab(Library):
    """Adapter to gradlab's own tensors."""

    name, usual = "gradlab", "gl"

    def is_tensor(self, value: Any) -> bool:
        return issubclass(type(value), Tensor)  # not `isinstance`, which may call the value's own code

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(to_host(tensor.array))

    def own_array(self, tensor: Any) -> Any:
        return tensor.array

    def node(self, tensor: Any) -> Any:
        return tensor.node

    def variable(self, node: Any) -> Any:
        return getattr(node, "variable", None)

    def inputs(self, node: Any) -> list[Any]:
        return list(node.edges)

    def order(self, node: Any) -> int:
        return -int(node.order)  # ticks count down

    def whole(self, node: Any) -> Any:
        if node is not None and node.op is not None and node.op.kind == "output":  # a node with several outputs
            return node.edges[0]
        while (
            node is not None
            and node.op is not None
            and node.op.name in ("getitem", "reshape")
            and (type(node.edges[0]).__name__ == type(node).__name__ and not node.op.view)
        ):
            node = node.edges[0]
        return node

    def shape(self, node: Any) -> tuple[int, ...] | None:
        several = node.op is not None and (node.op.properties.several or node.dtype is Bundle.dtype)
        return None if several else tuple(node.shape)

    def why_lost(self, tensor: Any) -> str:
        return why_lost(tensor)

    def note(self, node: Any) -> Note | None:
        note: Note | None = getattr(node, "note", None)
        return note

    def site(self, node: Any) -> Any:
        return getattr(node, "site", None)

    def dtype_of(self, node: Any) -> str:
        return "" if node.dtype is Bundle.dtype else dtype_name(node.dtype)

    def values(self, tensors: Sequence[Any], *, histograms: bool = False) -> list[Value]:
        return summarize_arrays([getattr(tensor, "array", tensor) for tensor in tensors], histograms=histograms)

    def summary(self, cotangent: Any) -> Any:
        if cotangent is None:
            return None
        array = getattr(cotangent, "array", cotangent)
        if type(array) is Bundle:
            return next((self.summary(part) for part in array.parts if part is not None), None)
        return (
            summarize(array)
            if isinstance(array, np.ndarray)
            else summarize(np.asarray(array))
            if np.isscalar(array)
            else summarize_on_device(array)
        )

    def read_pending(self, values: list[Any]) -> list[Any]:
        return read_pending(values, read_floats)

    def copy(self, cotangent: Any) -> Any:
        array = getattr(cotangent, "array", cotangent)
        return None if type(array) is Bundle else array.copy()

    def bytes_of(self, cotangent: Any) -> int:
        array = getattr(cotangent, "array", cotangent)
        return 0 if array is None or type(array) is Bundle else int(array.nbytes)

    def base_of(self, tensor: Any) -> Any:
        return None

    def memory_of(self, tensor: Any) -> Any:
        return id(own_storage(tensor))

    def region_of(self, tensor: Any) -> Region | None:
        place = getattr(tensor.array, "__array_interface__", None) or getattr(tensor.array, "__cuda_array_interface__", None)
        if place is None:
            return None
        return region(place["data"][0], tensor.array.shape, tensor.array.strides, tensor.array.itemsize)

    def sample(self, tensor: Any) -> np.ndarray | None:
        array = getattr(tensor, "array", tensor)
        if type(array) is Bundle or array.dtype.kind != "f":
            return None
        part = spaced_sample(array.reshape(-1))
        return np.array(part if isinstance(part, np.ndarray) else part.get(), np.float64)

    def is_zero(self, tensor: Any) -> bool:
        flat = tensor.array.reshape(-1)
        return not (bool(flat[:FIRST].any()) or bool(flat.any()))

    def version(self, tensor: Any) -> int:
        return int(tensor.storage.version)

    def moment(self) -> int:
        return -peek_tick()

    def is_parameter(self, tensor: Any) -> bool:
        return isinstance(tensor, Parameter)

    def share(self, part: Any, whole: Any) -> Any:
        array = getattr(whole, "array", whole)
        return None if type(array) is Bundle else share(part, array)

    def kept_value(self, kept: Any) -> Any:
        if kept.numbers is not None:
            return Value(kept.shape, dtype_name(kept.dtype), kept.numbers)
        array = kept.array() if kept.array is not None else None
        if array is None or kept.owner.version != kept.version:
            return None
        return self.summary(array)

    def output_of(self, node: Any) -> Any:
        variable = self.variable(node)
        if variable is not None:
            return variable.array
        note = self.note(node)
        kept = None if note is None else note.made
        if kept is None:
            return None
        if kept.numbers is not None:
            return np.array(kept.numbers, kept.dtype).reshape(kept.shape)
        array = kept.array() if kept.array is not None else None
        return None if array is None or kept.owner.version != kept.version else array

    def slopes(self, g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
        return slopes(getattr(g, "array", g), getattr(handed, "array", handed), flat, axis)

    def sharp(self, rows: Any, inputs: Any, axis: int) -> Any:
        return sharp(rows, inputs, axis)

    def gauge(self, tensors: Sequence[Any]) -> Gauge:
        return Gauge(not all(isinstance(tensor.array, (np.ndarray, np.generic)) for tensor in tensors))

    @contextmanager
    def preserving(self, model: Any) -> Iterator[None]:
        if model is None or not self.owns_module(model):
            yield
            return
        held = buffers_of(model)
        before = [buffer.array.copy() for _, _, buffer in held]
        state = random.get_rng_state()

        def restore() -> None:
            random.set_rng_state(state)
            rebind(model, held)
            for (_, _, buffer), array in zip(held, before, strict=True):
                if buffer.array.shape != array.shape:
                    buffer.array = array
                elif bool((buffer.array != array).any()):  # batch norm writes its statistics without a new version
                    buffer.array[...] = array

        with scope_guard(lambda: None, restore):
            yield

    def forward_recording(self, run: Any) -> Recording:
        from gradlab.explore.libraries.forward_gradlab import GradlabForward

        return GradlabForward(run)

    def recording(self, recorder: Any) -> Recording:
        return GradlabRecording(self, recorder)

    def setting(self, node: Any, name: str) -> Any:
        node = getattr(node, "members", (node,))[0]
        if node.op is None or name not in node.op.meta:
            return None
        return node.meta[node.op.meta.index(name) - len(node.op.meta)]  # from the right, since shapes may come first

    def settings(self, node: Any, names: Sequence[str]) -> dict[str, Any]:
        first = getattr(node, "members", (node,))[0]
        return super().settings(node, names) if first.op is not None and first.op.meta else {}

    def retain_no_more(self, tensor: Any) -> None:
        if tensor.node is not None and tensor.node.hooks is not None:
            tensor.node.hooks.retain = None

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        return tensor(array, dtype=like.dtype, device=like.device)

    def watching(self, nodes: Sequence[Any], see: See, *, arrivals: Collection[Any] = ()) -> AbstractContextManager[Any]:
        return observing(Seeing(see))

    def end(self, node: Any) -> Any:
        return GradientEdge(node, 0) if node.op is None else None  # the leaf may no longer exist

    def targets(self, node: Any) -> list[tuple[Any, int] | None]:
        return [None if edge is None else (edge, 0) for edge in node.edges]

    def parts(self, cotangent: Any) -> list[Any]:
        array = getattr(cotangent, "array", cotangent)
        return array.parts if type(array) is Bundle else [array]

    def fit(self, cotangent: Any, node: Any, target: Any) -> Any:
        array = getattr(cotangent, "array", cotangent)
        if type(array) is Bundle:  # one of several outputs: their common node reports the sum
            return None
        return array if array.shape == target.shape and array.dtype == target.dtype else unbroadcast(array, target, (), node)

    def numbers(self, cotangent: Any) -> np.ndarray:
        return np.array(to_host(getattr(cotangent, "array", cotangent)))

    def like(self, cotangent: Any) -> Any:
        array = getattr(cotangent, "array", cotangent)
        return array.dtype, CPU if isinstance(array, np.generic) else device_of(array)

    def alone(self, node: Any, outputs: Sequence[np.ndarray | None], likes: Sequence[Any]) -> list[np.ndarray | None]:
        cotangents = [
            None if g is None else tensor(g, dtype=from_numpy_dtype(like[0]), device=like[1])
            for g, like in zip(outputs, likes, strict=True)
        ]
        with no_grad():
            results = node(*cotangents)
        results = results if isinstance(results, tuple) else (results,)
        return [None if c is None or type(c.array) is Bundle else self.numbers(c) for c in results]

    def saved(self, node: Any) -> list[tuple[str, Any]]:
        kept: list[tuple[str, Any]] = []
        for one in getattr(node, "members", (node,)):
            if one.op is None or type(one.saved) is not tuple:
                continue
            names = one.op.saves if len(one.op.saves) == len(one.saved) else [""] * len(one.saved)
            kept += [(name, item) for name, item in zip(names, one.saved, strict=True) if hasattr(item, "nbytes")]
        return kept

    def values_saved(self, node: Any) -> list[tuple[Any, Any]]:
        values = []
        for name, item in self.saved(node):
            maker = item.grad_fn if isinstance(item, Tensor) else node if name == "out" else None
            if maker is not None and self.whole(maker) is maker:  # not one of several outputs
                values.append((maker, item))
        return values

    def is_freed(self, node: Any) -> bool:
        return any(
            type(one.saved) is not tuple and not hasattr(one.saved, "unpacked") for one in getattr(node, "members", (node,))
        )

    def rule_is_known(self, node: Any) -> bool:
        return type(node.saved) is tuple and not node.op.foreign

    def hooks(self, node: Any, tensor: Any) -> bool:
        own = node.hooks
        return own is not None and bool(own.tensor or own.pre or own.post)

    def retaining(self, nodes: Sequence[Any]) -> list[Any]:
        refs = [node.hooks.retain for node in nodes if node.hooks is not None and node.hooks.retain is not None]
        return [tensor for ref in refs if (tensor := ref()) is not None]

    def autograd(self) -> Any:
        return autograd

    @contextmanager
    def handing(self, nodes: Sequence[Any], change: Change) -> Iterator[None]:
        bare = [node for node in nodes if node.hooks is None]
        try:
            with super().handing(nodes, change):
                yield
        finally:
            for node in bare:  # nodes without hooks cost a sweep nothing
                node.hooks = None

    has_forward = True

    def tangents(self, nodes: Sequence[Any], inputs: Sequence[Any], directions: Sequence[np.ndarray]) -> list[Any]:
        return jvp_sweep(nodes, {x.node: self.tensor(u, x).array for x, u in zip(inputs, directions, strict=True)})


class Seeing(Observer):
    """Observer that passes sweeps on to a function."""

    def __init__(self, see: See) -> None:
        self._see = see

    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Pass on a node of a sweep."""
        self._see(node, g, node.edges if node.op is not None else (), cotangents)


GRADLAB = Gradlab()
