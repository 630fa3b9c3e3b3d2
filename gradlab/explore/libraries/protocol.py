"""The few questions an explorer asks of a tensor library.

Everything in `explore` reads an autograd graph through a `Library`: is this a tensor of yours, what is its array, which node
made it, what does that node lead to, and `grad(outputs, inputs, v)`. gradlab's nodes and PyTorch's answer alike, so one explorer
serves both; another library with a recorded graph is a subclass and a call of `register`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradlab.diagnose.speaking import library_name

See = Callable[[Any, Sequence[Any], Sequence[Any]], None]


class Library:
    """The questions, each to be answered by a subclass unless it has an answer here.

    Tensors have PyTorch's face: `shape`, `dtype`, `device`, `requires_grad`, `is_leaf`, `grad`. `node` is whatever object the
    library links its graph with; it can be hashed and compared by identity. Nothing is written to a user's tensor, and nothing
    but `grad` and `tangents` runs anything.
    """

    name = ""  # "gradlab" or "torch", as in error messages
    usual = ""  # what code calls it mostly: "gl" or "torch"

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

    def node(self, tensor: Any) -> Any:
        """The node a cotangent of `tensor` arrives at: its `grad_fn`, a leaf's accumulator, or None."""
        raise NotImplementedError

    def inputs(self, node: Any) -> list[Any]:
        """The nodes that `node` hands its cotangents on to, in the order of its arguments; None where no gradient is wanted."""
        return [source for source, _ in node.next_functions]

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

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None, *, batched: bool = False
    ) -> list[Any]:
        """vᵀJ of each input as a tensor, None where unused. The graph is kept, and no `.grad` is written."""
        raise NotImplementedError

    def retain_no_more(self, tensor: Any) -> None:
        """Undo `retain_grad()`, where the library has a way to."""

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        """`array` as a tensor of the dtype and on the device of the tensor `like`."""
        raise NotImplementedError

    def why_lost(self, tensor: Any) -> str:
        """Where and by what a tensor lost its history; "" if that was not noted."""
        return ""

    def place(self, node: Any) -> tuple[str, str]:
        """The line and the source that a node was recorded at: ("cell line 3", "x.exp()"); ("", "") if that was not noted."""
        return "", ""

    def dtype_name(self, tensor: Any) -> str:
        """ "float32"."""
        return str(tensor.dtype).rpartition(".")[2]

    # ------------------------------------------------------------------------------------------------- sweeps, watched
    def watching(self, nodes: Sequence[Any], see: See) -> AbstractContextManager[Any]:
        """While the block runs, `see(node, its inputs, their cotangents)` is called for each of `nodes` that a reverse sweep
        of this thread runs (others may be told too). Cotangents are the library's, or None; nothing is left behind."""
        raise NotImplementedError

    has_forward = False  # whether there is a forward sweep over a recorded graph

    def tangents(self, nodes: Sequence[Any], inputs: Sequence[Any], given: Sequence[np.ndarray]) -> list[Any]:
        """The tangents at some nodes, by one forward sweep from those given at the inputs; None where nothing arrives. Of
        libraries that have one."""
        raise NotImplementedError
