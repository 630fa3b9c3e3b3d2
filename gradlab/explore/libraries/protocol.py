"""The few questions an explorer asks of a tensor library.

Everything in `explore` reads an autograd graph through a `Library`: is this a tensor of yours, what is its array, which node
made it, what does that node lead to, and `grad(outputs, inputs, v)`. gradlab's nodes and PyTorch's answer alike, so one explorer
serves both; another library with a recorded graph is a subclass and a call of `register`.
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
from gradlab.explore.libraries.memory import Region
from gradlab.explore.trace.journal import spaced_sample
from gradlab.explore.trace.notes import Note, RecordedArray, RecordedCut
from gradlab.explore.trace.values import Pending, Value, share, summarize, summarize_arrays

P = ParamSpec("P")
T = TypeVar("T")
See = Callable[[Any, Any, Sequence[Any], Sequence[Any]], None]  # node, cotangent, its inputs, theirs
Change = Callable[[Any, Sequence[Any]], Sequence[Any]]  # a node and what it hands to its inputs; what it is to hand on


class Recording:
    """What tells a `Recorder` of what happens in this thread. Both may be called again, and after an interrupt in between."""

    def open(self) -> None:
        """From here on."""
        raise NotImplementedError

    def close(self) -> None:
        """No more; nothing is left behind."""
        raise NotImplementedError

    def losses(self, tensor: Any) -> Sequence[RecordedCut]:
        """The cuts at which a tensor lost its history, as far as they were seen."""
        return ()


class Library:
    """The questions, each to be answered by a subclass unless it has an answer here.

    Tensors have PyTorch's face: `shape`, `dtype`, `device`, `requires_grad`, `is_leaf`, `grad`. `node` is whatever object the
    library links its graph with; it can be hashed and compared by identity. Nothing is written to a user's tensor, and nothing
    but `grad` and `tangents` runs anything.
    """

    name = ""  # "gradlab" or "torch", as in error messages
    usual = ""  # what code calls it mostly: "gl" or "torch"
    touches: int | None = None  # nodes of one graph that may be looked at; None: any number

    def at_most(self, most: int | None) -> int | None:
        """How many nodes of a graph are looked at where `most` are asked for; None of all."""
        return most if self.touches is None else self.touches if most is None else min(most, self.touches)

    @property
    def alias(self) -> str:
        """What the user's code calls it, which code for the user is written with."""
        return library_name(self.name) or self.usual

    def is_tensor(self, value: Any) -> bool:
        """Whether `value` is a tensor of this library."""
        raise NotImplementedError

    def array(self, tensor: Any) -> np.ndarray:
        """The tensor's values as a NumPy array on the host. Shares memory where it can: read only."""
        raise NotImplementedError

    def own_array(self, tensor: Any) -> Any:
        """The tensor's array where it lies, for a library whose arrays the explorers reduce there; else on the host."""
        return self.array(tensor)

    def unseen(self, function: Callable[P, T]) -> Callable[P, T]:
        """`function`, whose operations on tensors no mode of the program's sees, as far as the library has modes."""
        return function

    def weak(self, tensor: Any) -> Callable[[], Any]:
        """A weak reference to a tensor: it returns None once the tensor is gone."""
        return weakref.ref(tensor)

    def form(self, tensor: Any) -> str:
        """Describe a tensor that is not an ordinary dense one: "sparse, 12 of 9 000 stored". Return "" for an ordinary one."""
        return ""

    def is_leaf(self, tensor: Any) -> bool:
        """Whether no recorded operation made a tensor, as far as it may be asked."""
        return bool(tensor.is_leaf)

    def shape_of(self, tensor: Any) -> tuple[int, ...] | None:
        """A tensor's shape; None of a kind that has none."""
        return tuple(tensor.shape)

    def node(self, tensor: Any) -> Any:
        """The node a cotangent of `tensor` arrives at: its `grad_fn`, a leaf's accumulator, or None."""
        raise NotImplementedError

    def inputs(self, node: Any) -> list[Any]:
        """The nodes that `node` hands its cotangents on to, in the order of its arguments; None where no gradient is wanted."""
        return [source for source, _ in node.next_functions]

    def order(self, node: Any) -> int:
        """A number that is greater for what was recorded later."""
        raise NotImplementedError

    def whole(self, node: Any) -> Any:
        """The node of the operation that `node` hands out a part of; `node` itself where it is no such part."""
        return node

    def name_of(self, node: Any) -> str:
        """The node's class name: "MulBackward0", "AccumulateGrad"."""
        return str(node.name()).removeprefix("torch::autograd::")

    def variable(self, node: Any) -> Any:
        """The leaf tensor an accumulator writes to; None for an operation and for a leaf that is gone."""
        raise NotImplementedError

    def shape(self, node: Any) -> tuple[int, ...] | None:
        """The shape of the value that `node` made (of its first output); None if the library does not tell."""
        raise NotImplementedError

    def setting(self, node: Any, name: str) -> Any:
        """What an operation's node keeps under a name such as "axis" or "exponent"; None if there is no such thing."""
        raise NotImplementedError

    def settings(self, node: Any, names: Sequence[str]) -> dict[str, Any]:
        """What it keeps under any of some names."""
        return {name: value for name in names if (value := self.setting(node, name)) is not None}

    def autograd(self) -> Any:
        """The library's module `autograd`."""
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
        """vᵀJ of each input as a tensor, None where unused. The graph is kept, and no leaf's `.grad` is written. With
        `create_graph` the sweep is recorded itself."""
        with self.unchecked():
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

    def unchecked(self) -> AbstractContextManager[Any]:
        """Anomaly mode does not check for NaN while the block runs: a NaN that an explorer looks for is not an error."""
        package: Any = sys.modules.get(self.name)
        switch = getattr(package, "set_anomaly_enabled", None)  # not every library has the mode
        if switch is None or not (package.is_anomaly_enabled() and package.is_anomaly_check_nan_enabled()):
            return nullcontext()
        return scope_guard(partial(switch, True, False), partial(switch, True, True))

    def retain_no_more(self, tensor: Any) -> None:
        """Undo `retain_grad()`, where the library has a way to."""

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        """`array` as a tensor of the dtype and on the device of the tensor `like`."""
        raise NotImplementedError

    def why_lost(self, tensor: Any) -> str:
        """Where and by what a tensor lost its history; "" if that was not noted."""
        return ""

    # ---------------------------------------------------------------------------------------- what was seen, see `trace`
    def note(self, node: Any) -> Note | None:
        """What was noted when the node was recorded; None if nobody looked."""
        return None

    def site(self, node: Any) -> Any:
        """Where a node was recorded, a pair of a code object and an offset; None if that was not noted."""
        note = self.note(node)
        return None if note is None else note.site

    def dtype_of(self, node: Any) -> str:
        """The dtype of the value that `node` made: "float32"; "" if the library does not tell."""
        return ""

    def values(self, tensors: Sequence[Any], *, histograms: bool = False) -> list[Value]:
        """What is remembered of tensors, reduced where they lie and read in one transfer."""
        return summarize_arrays([self.array(tensor) for tensor in tensors], histograms=histograms)

    def summary(self, cotangent: Any) -> Value | Pending | None:
        """What is remembered of a cotangent in a sweep, reduced at once; None of None."""
        return None if cotangent is None else summarize(np.asarray(self.array(cotangent)))

    def settled(self, values: list[Any]) -> list[Any]:
        """The same with what was `Pending` read, in one transfer."""
        return values

    def copied(self, cotangent: Any) -> Any:
        """A cotangent that outlives the node at which it was seen: sweeps reuse their memory."""
        return np.array(self.array(cotangent))

    def bytes_of(self, cotangent: Any) -> int:
        """How much memory a cotangent takes."""
        return int(self.array(cotangent).nbytes)

    def elements(self, tensor: Any) -> int:
        """The number of elements of a tensor."""
        return math.prod(self.shape_of(tensor) or ())

    def base_of(self, tensor: Any) -> Any:
        """The tensor of whose memory another is a view, or None."""
        return None

    def inner_of(self, tensor: Any) -> Any:
        """The tensor that another one represents in a transform of functions, as `vmap`; None for an ordinary tensor."""
        return None

    def memory_of(self, tensor: Any) -> Any:
        """What identifies the memory of a tensor as long as the tensor lives, or None if it is not known."""
        return None

    def region_of(self, tensor: Any) -> Region | None:
        """The part of its memory that a tensor has, or None if it is not known."""
        return None

    def sample(self, tensor: Any) -> np.ndarray | None:
        """Some elements of a tensor or a cotangent, evenly spaced and copied (`journal.spaced_sample`), as float64 on the host;
        None of one that has no dense real numbers."""
        return np.array(spaced_sample(np.asarray(self.array(tensor)).reshape(-1)), np.float64)

    def is_zero(self, tensor: Any) -> bool:
        """Whether every element is zero."""
        return not np.asarray(self.array(tensor)).any()

    def moment(self) -> int:
        """How many operations this thread has recorded so far, as far as the library counts them: two that are alike say that
        none was in between."""
        return 0

    def is_parameter(self, tensor: Any) -> bool:
        """Whether a leaf is a `Parameter`."""
        return False

    def is_sharded(self, tensor: Any) -> bool:
        """Whether this process holds a part of a tensor only; what is computed with is another, which is put together for it."""
        return False

    def version(self, tensor: Any) -> int:
        """How often the memory of a tensor was written to."""
        raise NotImplementedError

    def share(self, part: Any, whole: Any) -> Any:
        """⟨part, whole⟩ / ‖whole‖² of a copied part, `Pending` on a device; None where `whole` is 0 or not finite."""
        return share(part, np.asarray(self.array(whole)))

    def made(self, node: Any) -> Any:
        """The library's array or tensor that a node made, where it still exists as it was; else None."""
        return None

    def slopes(self, g: Any, handed: Any, flat: tuple[float, float], axis: int) -> Any:
        """What an activation passed on of a cotangent; see `trace.slopes`."""
        return None

    def sharp(self, rows: Any, inputs: Any, axis: int) -> Any:
        """The same of a softmax."""
        return None

    def weakly(self, tensor: Any) -> Any:
        """A weak reference to a tensor."""
        return weakref.ref(tensor)

    def kept_value(self, kept: RecordedArray) -> Value | Pending | None:
        """What was kept of a tensor; None if it is gone, or was overwritten since."""
        return None

    def value_at(self, node: Any) -> Value | Pending | None:
        """The value that a node made, where it still exists as it was; `Pending` if it lies on a device."""
        note = self.note(node)
        if note is not None and note.made is not None:
            return self.kept_value(note.made)
        leaf = self.variable(node)
        return None if leaf is None else self.summary(leaf)

    def recording(self, recorder: Any) -> Recording | None:
        """What tells a recorder of what this thread does, not yet open; None of a library that cannot be recorded."""
        return None

    def forward_recording(self, run: Any) -> Recording:
        """What reports the calls of functions and modules of this thread to a `forward.run.Run`, not yet open."""
        raise NotImplementedError

    def owns_module(self, module: Any) -> bool:
        """Whether a model's class derives from this library's `Module`."""
        return any(kind.__module__.partition(".")[0] == self.name for kind in type(module).__mro__)

    def preserving(self, model: Any) -> AbstractContextManager[Any]:
        """In the block, a call of `model` leaves no traces: its buffers and the random generators are put back. None changes
        nothing."""
        return nullcontext()

    def dtype_name(self, tensor: Any) -> str:
        """ "float32"."""
        return str(tensor.dtype).rpartition(".")[2]

    # ------------------------------------------------------------------------------------------------- sweeps, watched
    def watching(self, nodes: Sequence[Any], see: See, *, arrivals: Collection[Any] = ()) -> AbstractContextManager[Any]:
        """While the block runs, `see(node, cotangent, its inputs, their cotangents)` is called for each of `nodes` that a reverse
        sweep of this thread runs (others may be told too), for leaves with no inputs and before `.grad` is written. Cotangents
        are the library's, or None, and those of the inputs may be missing for the nodes in `arrivals`; nothing is left behind."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------- one node, see `steps`
    def end(self, node: Any) -> Any:
        """What `grad` takes as an input for the gradient of a leaf, by its node; None for an operation."""
        return self.variable(node)

    def targets(self, node: Any) -> list[tuple[Any, int] | None]:
        """Where a node's cotangents go, in the order of its arguments: (the node, which of its outputs); None where none is
        wanted."""
        return [None if source is None else (source, number) for source, number in node.next_functions]

    def parts(self, cotangent: Any) -> list[Any]:
        """The cotangents of a node's outputs, one after the other, None where there is none."""
        return list(cotangent) if isinstance(cotangent, tuple) else [cotangent]

    def fitted(self, cotangent: Any, node: Any, target: Any) -> Any:
        """What `node` returned for `target`, as it arrives there; None where that is told elsewhere."""
        return cotangent

    def numbers(self, cotangent: Any) -> np.ndarray:
        """A cotangent's numbers on the host, in memory of their own."""
        return np.array(self.array(cotangent))

    def like(self, cotangent: Any) -> Any:
        """What tells how to make another cotangent of the same kind; it holds no numbers."""
        raise NotImplementedError

    def alone(self, node: Any, outputs: Sequence[np.ndarray | None], likes: Sequence[Any]) -> list[np.ndarray | None]:
        """What a node's rule makes of cotangents of its outputs, for each target; the graph is kept and no hook runs. `likes`
        are `like` of the cotangents in a sweep.

        Raises
        ------
        Exception
            Whatever the library raises, of a node that cannot be run by itself.
        """
        raise NotImplementedError

    def saved(self, node: Any) -> list[tuple[str, Any]]:
        """The tensors or arrays that a node keeps for its rule, by their names; none of one that was freed, or whose saved
        tensors hooks have."""
        return []

    def values_saved(self, node: Any) -> list[tuple[Any, Any]]:
        """Results of operations that a node has saved for its rule: (the node of the operation, the tensor or array)."""
        return []

    def freed(self, node: Any) -> bool:
        """Whether what a node had saved is gone: no sweep can pass it again."""
        return False

    def rule_is_known(self, node: Any) -> bool:
        """Whether a node's rule is the library's own and what it saved is at hand, so that running it again does nothing else."""
        raise NotImplementedError

    def hooks(self, node: Any, tensor: Any) -> bool:
        """Whether the user has hooks that a sweep through a node will call, or on its tensor, as far as the library tells."""
        raise NotImplementedError

    def retaining(self, nodes: Sequence[Any]) -> list[Any]:
        """The tensors that keep the gradient that arrives at one of some nodes."""
        return []

    @contextmanager
    def handing(self, nodes: Sequence[Any], change: Change) -> Iterator[None]:
        """While the block runs, what each of `nodes` (operations) hands to its inputs in a reverse sweep is what `change` makes
        of it: of tensors, None where there is none; None takes one away. Nothing is left behind."""
        handles: list[Any] = []
        try:
            for node in nodes:
                handles.append(node.register_hook(lambda handed, _, node=node: tuple(change(node, handed))))  # noqa: PERF401
            yield
        finally:
            for handle in handles:
                handle.remove()

    # ------------------------------------------------------------------------------------------- a training, watched
    def gauge(self, tensors: Sequence[Any]) -> Gauge:
        """What takes the norms of many tensors like these at once."""
        raise NotImplementedError

    def risky(self, born: Callable[[Any, Sequence[Any]], None], share: float, faults: Faults) -> Any:
        """What hooks the nodes of one sweep after the other at which a finite cotangent may become one that is not, in a share
        of a step's time, and calls `born` with such a node and what it was given; an error of ours ends in `faults`. For a
        library whose sweeps are not ours."""
        raise NotImplementedError

    has_forward = False  # whether there is a forward sweep over a recorded graph

    def tangents(self, nodes: Sequence[Any], inputs: Sequence[Any], directions: Sequence[np.ndarray]) -> list[Any]:
        """The tangents at some nodes, by one forward sweep from those given at the inputs; None where nothing arrives. Of
        libraries that have one."""
        raise NotImplementedError


Buffers = list[tuple[Any, str, Any]]  # modules, names, tensors


def buffers_of(model: Any) -> Buffers:
    """The buffers of all modules of a model."""
    return [(module, key, one) for module in model.modules() for key, one in module.named_buffers(recurse=False)]


def rebind(model: Any, buffers: Buffers) -> None:
    """Bind the names of buffers to the tensors that they were bound to."""
    known = {(id(module), key) for module, key, _ in buffers}
    for module, key, one in buffers:
        if getattr(module, key, None) is not one:
            setattr(module, key, one)
    for module, key, _ in buffers_of(model):
        if (id(module), key) not in known:  # it was None
            setattr(module, key, None)
