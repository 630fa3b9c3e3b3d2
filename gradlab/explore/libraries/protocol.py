"""The interface between explorers and tensor libraries.

`explore` reads autograd graphs only through a `Library`: whether a value is one of its tensors, the tensor's array, the node that
made it, the inputs of that node, and `grad(outputs, inputs, v)`. The nodes of gradlab and PyTorch have the same interface, so one
explorer serves both. To support another library with recorded graphs, derive a subclass and call `register`.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults
from gradlab.diagnose.user_spelling import library_name
from gradlab.explore.libraries.gauging import Gauge
from gradlab.explore.libraries.loss_scaling import LossScaling, ReportScaling
from gradlab.explore.libraries.memory import Region
from gradlab.explore.trace.journal import spaced_sample
from gradlab.explore.trace.notes import Note, RecordedArray, RecordedCut
from gradlab.explore.trace.values import Pending, Value, share, summarize, summarize_arrays

P = ParamSpec("P")
T = TypeVar("T")
See = Callable[[Any, Any, Sequence[Any], Sequence[Any]], None]  # node, cotangent, its inputs, their cotangents
Change = Callable[[Any, Sequence[Any]], Sequence[Any]]  # node and cotangents of its inputs to new cotangents


class Recording:
    """Reports events in this thread to a `Recorder`. Both methods may be called repeatedly, also after an interrupt in
    between."""

    def open(self) -> None:
        """Start reporting."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop reporting, and restore everything."""
        raise NotImplementedError

    def losses(self, tensor: Any) -> Sequence[RecordedCut]:
        """Return the recorded cuts at which a tensor lost its history."""
        return ()


class Library:
    """Interface of a tensor library. Subclasses implement each method that has no default here.

    Tensors have PyTorch's interface: `shape`, `dtype`, `device`, `requires_grad`, `is_leaf`, `grad`. `node` is any object of the
    library's graph that can be hashed and compared by identity. Nothing is written to a user's tensor, and only `grad` and
    `tangents` compute anything.
    """

    name = ""  # "gradlab" or "torch", as in error messages
    usual = ""  # usual name in code: "gl" or "torch"
    touches: int | None = None  # maximum number of nodes of one graph that may be touched; None for any number

    def at_most(self, most: int | None) -> int | None:
        """Return how many nodes of a graph to read if `most` are requested; None for all."""
        return most if self.touches is None else self.touches if most is None else min(most, self.touches)

    @property
    def alias(self) -> str:
        """Name of the library in the user's code, for generated code."""
        return library_name(self.name) or self.usual

    def is_tensor(self, value: Any) -> bool:
        """Return whether `value` is a tensor of this library."""
        raise NotImplementedError

    def array(self, tensor: Any) -> np.ndarray:
        """Return the tensor's values as a NumPy array on the host. It may share memory, and must not be written."""
        raise NotImplementedError

    def own_array(self, tensor: Any) -> Any:
        """Return the tensor's array on its device, if explorers can reduce arrays of the library there; else on the host."""
        return self.array(tensor)

    def unseen(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap `function` so that no mode of the program sees its operations on tensors, if the library has modes."""
        return function

    def weak(self, tensor: Any) -> Callable[[], Any]:
        """Return a weak reference to a tensor, which returns None once the tensor is gone."""
        return weakref.ref(tensor)

    def form(self, tensor: Any) -> str:
        """Describe a tensor that is not an ordinary dense one: "sparse, 12 of 9 000 stored". Return "" for an ordinary one."""
        return ""

    def is_leaf(self, tensor: Any) -> bool:
        """Return whether no recorded operation made a tensor."""
        return bool(tensor.is_leaf)

    def shape_of(self, tensor: Any) -> tuple[int, ...] | None:
        """Return a tensor's shape; None for kinds without one."""
        return tuple(tensor.shape)

    def node(self, tensor: Any) -> Any:
        """Return the node at which a cotangent of `tensor` arrives: its `grad_fn`, a leaf's accumulator, or None."""
        raise NotImplementedError

    def inputs(self, node: Any) -> list[Any]:
        """Return the nodes to which `node` passes its cotangents, in the order of its arguments; None where no gradient is
        needed."""
        return [source for source, _ in node.next_functions]

    def order(self, node: Any) -> int:
        """Return a number that is greater for nodes that were recorded later."""
        raise NotImplementedError

    def whole(self, node: Any) -> Any:
        """Return the operation's node if `node` is one of its several outputs; else `node` itself."""
        return node

    def name_of(self, node: Any) -> str:
        """Return the node's class name: "MulBackward0", "AccumulateGrad"."""
        return str(node.name()).removeprefix("torch::autograd::")

    def variable(self, node: Any) -> Any:
        """Return the leaf tensor of an accumulator; None for an operation, and for a leaf that no longer exists."""
        raise NotImplementedError

    def shape(self, node: Any) -> tuple[int, ...] | None:
        """Return the shape of the node's (first) output; None if unknown."""
        raise NotImplementedError

    def setting(self, node: Any, name: str) -> Any:
        """Return a setting of an operation's node, such as "axis" or "exponent"; None if it has none."""
        raise NotImplementedError

    def settings(self, node: Any, names: Sequence[str]) -> dict[str, Any]:
        """Return the node's settings among some names."""
        return {name: value for name in names if (value := self.setting(node, name)) is not None}

    def autograd(self) -> Any:
        """Return the library's module `autograd`."""
        raise NotImplementedError

    def grad(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        weights: Sequence[Any] | None = None,
        *,
        batched: bool = False,
        create_graph: bool = False,
    ) -> list[Any]:
        """Return vᵀJ for each input as a tensor, None if unused. The graph is kept, and no leaf's `.grad` is written. With
        `create_graph`, the sweep itself is recorded."""
        with self.without_anomaly_checks():
            return list(
                self.autograd().grad(
                    outputs,
                    inputs,
                    weights,
                    retain_graph=True,
                    create_graph=create_graph,
                    allow_unused=True,
                    is_grads_batched=batched,
                )
            )

    def without_anomaly_checks(self) -> AbstractContextManager[Any]:
        """Return a context without anomaly mode's checks for NaN, since a NaN that an explorer looks for is not an error."""
        package: Any = sys.modules.get(self.name)
        switch = getattr(package, "set_anomaly_enabled", None)  # not every library has the mode
        if switch is None or not (package.is_anomaly_enabled() and package.is_anomaly_check_nan_enabled()):
            return nullcontext()
        return scope_guard(partial(switch, True, False), partial(switch, True, True))

    def retain_no_more(self, tensor: Any) -> None:
        """Undo `retain_grad()`, if the library supports it."""

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        """Convert `array` to a tensor with the dtype and device of the tensor `like`."""
        raise NotImplementedError

    def why_lost(self, tensor: Any) -> str:
        """Return where and how a tensor lost its history; "" if that was not recorded."""
        return ""

    # ---------------------------------------------------------------------------------------- recorded data, see `trace`
    def note(self, node: Any) -> Note | None:
        """Return the note made when the node was recorded; None if nothing was recording."""
        return None

    def site(self, node: Any) -> Any:
        """Return where a node was recorded, as a code object and an offset; None if unknown."""
        note = self.note(node)
        return None if note is None else note.site

    def dtype_of(self, node: Any) -> str:
        """Return the dtype of the node's output, "float32"; "" if unknown."""
        return ""

    def values(self, tensors: Sequence[Any], *, histograms: bool = False) -> list[Value]:
        """Return summaries of tensors, reduced on their devices and read in one transfer."""
        return summarize_arrays([self.array(tensor) for tensor in tensors], histograms=histograms)

    def summary(self, cotangent: Any) -> Value | Pending | None:
        """Return a summary of a cotangent in a sweep, reduced immediately; None for None."""
        return None if cotangent is None else summarize(np.asarray(self.array(cotangent)))

    def read_pending(self, values: list[Any]) -> list[Any]:
        """Read all `Pending` values in one transfer."""
        return values

    def copy(self, cotangent: Any) -> Any:
        """Copy a cotangent so that it outlives its node: sweeps reuse their memory."""
        return np.array(self.array(cotangent))

    def bytes_of(self, cotangent: Any) -> int:
        """Return the memory of a cotangent in bytes."""
        return int(self.array(cotangent).nbytes)

    def elements(self, tensor: Any) -> int:
        """Return the number of elements of a tensor."""
        return math.prod(self.shape_of(tensor) or ())

    def base_of(self, tensor: Any) -> Any:
        """Return the tensor of which this one is a view, or None."""
        return None

    def inner_of(self, tensor: Any) -> Any:
        """Return the tensor that another one represents in a function transform such as `vmap`; None for an ordinary tensor."""
        return None

    def memory_of(self, tensor: Any) -> Any:
        """Return a key that identifies the memory of a tensor while it lives; None if unknown."""
        return None

    def region_of(self, tensor: Any) -> Region | None:
        """Return the part of its memory that a tensor uses; None if unknown."""
        return None

    def sample(self, tensor: Any) -> np.ndarray | None:
        """Return some elements of a tensor or cotangent, evenly spaced and copied (`journal.spaced_sample`), as float64 on the
        host; None if it has no dense real numbers."""
        return np.array(spaced_sample(np.asarray(self.array(tensor)).reshape(-1)), np.float64)

    def is_zero(self, tensor: Any) -> bool:
        """Return whether every element is zero."""
        return not np.asarray(self.array(tensor)).any()

    def moment(self) -> int:
        """Return how many operations this thread has recorded so far, if the library counts them. Equal numbers mean that no
        operation was recorded in between."""
        return 0

    def is_parameter(self, tensor: Any) -> bool:
        """Return whether a leaf is a `Parameter`."""
        return False

    def is_sharded(self, tensor: Any) -> bool:
        """Return whether this process holds only a shard of a tensor. Operations use another tensor, gathered from all shards."""
        return False

    def version(self, tensor: Any) -> int:
        """Return how often the memory of a tensor was written to."""
        raise NotImplementedError

    def share(self, part: Any, whole: Any) -> Any:
        """Return ⟨part, whole⟩ / ‖whole‖² for a copied part, `Pending` on a device; None if `whole` is 0 or not finite."""
        return share(part, np.asarray(self.array(whole)))

    def output_of(self, node: Any) -> Any:
        """Return the array or tensor that a node made if it still exists unchanged; else None."""
        return None

    def slopes(self, g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
        """Return how much of a cotangent an activation passed on; see `trace.slopes`."""
        return None

    def sharp(self, rows: Any, inputs: Any, axis: int) -> Any:
        """Return the same for a softmax."""
        return None

    def weakly(self, tensor: Any) -> Any:
        """Return a weak reference to a tensor."""
        return weakref.ref(tensor)

    def kept_value(self, kept: RecordedArray) -> Value | Pending | None:
        """Return the kept value of a tensor; None if it no longer exists or was overwritten."""
        return None

    def value_at(self, node: Any) -> Value | Pending | None:
        """Return the value that a node made if it still exists unchanged; `Pending` if it is on a device."""
        note = self.note(node)
        if note is not None and note.made is not None:
            return self.kept_value(note.made)
        leaf = self.variable(node)
        return None if leaf is None else self.summary(leaf)

    def recording(self, recorder: Any) -> Recording | None:
        """Return a recording of this thread for a recorder, not yet open; None if the library cannot be recorded."""
        return None

    def forward_recording(self, run: Any) -> Recording:
        """Return a recording that reports this thread's calls of functions and modules to a `forward.run.Run`, not yet open."""
        raise NotImplementedError

    def owns_module(self, module: Any) -> bool:
        """Return whether a model's class derives from this library's `Module`."""
        return any(kind.__module__.partition(".")[0] == self.name for kind in type(module).__mro__)

    def preserving(self, model: Any) -> AbstractContextManager[Any]:
        """Return a context after which the buffers of `model` and the random generators are restored. For None, nothing is
        restored."""
        return nullcontext()

    def dtype_name(self, tensor: Any) -> str:
        """Return the dtype's name, "float32"."""
        return str(tensor.dtype).rpartition(".")[2]

    # ------------------------------------------------------------------------------------------------- watching sweeps
    def watching(self, nodes: Sequence[Any], see: See, *, arrivals: Collection[Any] = ()) -> AbstractContextManager[Any]:
        """Return a context in which `see(node, cotangent, its inputs, their cotangents)` is called for each of `nodes` that a
        reverse sweep of this thread runs (and possibly for others); for leaves without inputs, before `.grad` is written.
        Cotangents are the library's, or None. The inputs' cotangents may be missing for the nodes in `arrivals`."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------- one node, see `steps`
    def end(self, node: Any) -> Any:
        """Return the input for `grad` that gives the gradient of a leaf, by its node; None for an operation."""
        return self.variable(node)

    def targets(self, node: Any) -> list[tuple[Any, int] | None]:
        """Return the target of each of a node's cotangents, in the order of its arguments: (node, number of its output); None if
        no gradient is needed."""
        return [None if source is None else (source, number) for source, number in node.next_functions]

    def parts(self, cotangent: Any) -> list[Any]:
        """Return the cotangents of a node's outputs in order, None where there is none."""
        return list(cotangent) if isinstance(cotangent, tuple) else [cotangent]

    def fit(self, cotangent: Any, node: Any, target: Any) -> Any:
        """Return the cotangent that `node` computed for `target` in the shape in which it arrives; None if another node reports
        it."""
        return cotangent

    def numbers(self, cotangent: Any) -> np.ndarray:
        """Copy a cotangent's numbers to the host."""
        return np.array(self.array(cotangent))

    def like(self, cotangent: Any) -> Any:
        """Return the kind of a cotangent, for creating similar ones; it holds no numbers."""
        raise NotImplementedError

    def alone(self, node: Any, outputs: Sequence[np.ndarray | None], likes: Sequence[Any]) -> list[np.ndarray | None]:
        """Apply a node's rule to cotangents of its outputs, and return one for each target. The graph is kept and no hook runs.
        `likes` are the kinds (`like`) of the cotangents in a sweep.

        Raises
        ------
        Exception
            Whatever the library raises for a node that cannot be run separately.
        """
        raise NotImplementedError

    def saved(self, node: Any) -> list[tuple[str, Any]]:
        """Return the saved tensors or arrays of a node with their names; none if they were freed or are handled by saved-tensor
        hooks."""
        return []

    def values_saved(self, node: Any) -> list[tuple[Any, Any]]:
        """Return saved results of operations: (the operation's node, the tensor or array)."""
        return []

    def is_freed(self, node: Any) -> bool:
        """Return whether a node's saved tensors were freed, so that no sweep can pass it again."""
        return False

    def rule_is_known(self, node: Any) -> bool:
        """Return whether a node's rule is the library's own and its saved tensors exist, so that running it has no side
        effects."""
        raise NotImplementedError

    def hooks(self, node: Any, tensor: Any) -> bool:
        """Return whether the user has hooks on a node or its tensor that a sweep will call, as far as the library knows."""
        raise NotImplementedError

    def retaining(self, nodes: Sequence[Any]) -> list[Any]:
        """Return the tensors at some nodes that retain their gradient."""
        return []

    @contextmanager
    def handing(self, nodes: Sequence[Any], change: Change) -> Iterator[None]:
        """Return a context in which `change` replaces the cotangents that each of `nodes` (operations) passes to its inputs in a
        reverse sweep. They are tensors or None; None removes a cotangent."""
        handles: list[Any] = []
        try:
            for node in nodes:
                handles.append(node.register_hook(lambda handed, _, node=node: tuple(change(node, handed))))  # noqa: PERF401
            yield
        finally:
            for handle in handles:
                handle.remove()

    # ------------------------------------------------------------------------------------------- watching a training
    def gauge(self, tensors: Sequence[Any]) -> Gauge:
        """Return a gauge that computes the norms of many tensors like these at once."""
        raise NotImplementedError

    def output_hook(self, hook: Callable[..., None]) -> Callable[..., None]:
        """Return a forward hook of a module that hides its operations (`unseen`), and does nothing in compiled code."""
        return self.unseen(hook)

    def loss_scaling(self, faults: Faults, report: ReportScaling) -> LossScaling:
        """Return a detection of scaled losses in this thread, not yet open, which calls `report`; `faults` collects errors of
        ours."""
        return LossScaling()

    def risky_node_hooks(self, report: Callable[[Any, Sequence[Any]], None], share: float, faults: Faults) -> Any:
        """Return an object that hooks, one sweep after the other, the nodes at which a finite cotangent may become non-finite,
        within a share of a step's time. It calls `report` with such a node and its cotangents; `faults` collects errors of ours.
        For libraries whose sweeps are not gradlab's."""
        raise NotImplementedError

    has_forward = False  # whether a recorded graph can be swept forward

    def tangents(self, nodes: Sequence[Any], inputs: Sequence[Any], directions: Sequence[np.ndarray]) -> list[Any]:
        """Compute the tangents at some nodes by one forward sweep from those given at the inputs; None where none arrives. Only
        if `has_forward`."""
        raise NotImplementedError


Buffers = list[tuple[Any, str, Any]]  # modules, names, tensors


def buffers_of(model: Any) -> Buffers:
    """Return the buffers of all modules of a model."""
    return [(module, key, one) for module in model.modules() for key, one in module.named_buffers(recurse=False)]


def rebind(model: Any, buffers: Buffers) -> None:
    """Bind the names of buffers to their original tensors again."""
    known = {(id(module), key) for module, key, _ in buffers}
    for module, key, one in buffers:
        if getattr(module, key, None) is not one:
            setattr(module, key, one)
    for module, key, _ in buffers_of(model):
        if (id(module), key) not in known:  # it was None
            setattr(module, key, None)
