"""Which tensor library a value belongs to, and the few questions an explorer asks of it.

Everything in `explore` reads an autograd graph through a `Library`: is this a tensor of yours, what is its array, which
node made it, what does that node lead to, and `grad(outputs, inputs, v)`. gradlab's nodes and PyTorch's answer alike, so
one explorer serves both. PyTorch is never imported here: its adapter is used only if the user has imported it already.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


class Library:
    """The questions. `node` is whatever object the library links its graph with; it can be hashed and compared by identity."""

    name = ""                                                         # "gradlab" or "torch", as in error messages
    usual = ""                                                        # what code calls it mostly: "gl" or "torch"

    @property
    def alias(self) -> str:
        """What the user's code calls it, which code for the user is written with."""
        from gradlab.core.speaking import library_name

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
        return node.name().removeprefix("torch::autograd::")

    def variable(self, node: Any) -> Any:
        """The leaf tensor an accumulator writes to; None for an operation and for a leaf that is gone."""
        raise NotImplementedError

    def shape(self, node: Any) -> tuple[int, ...] | None:
        """The shape of the value that `node` made (of its first output); None if the library does not tell."""
        raise NotImplementedError

    def setting(self, node: Any, name: str) -> Any:
        """What an operation's node keeps under a name such as "axis" or "exponent"; None if there is no such thing."""
        raise NotImplementedError

    def grad(self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None,
             *, batched: bool = False) -> list[Any]:
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
        """"float32"."""
        return str(tensor.dtype).rpartition(".")[2]


class Gradlab(Library):
    """gradlab's own tensors."""

    name, usual = "gradlab", "gl"

    def is_tensor(self, value: Any) -> bool:
        from gradlab.core.tensor import Tensor

        return issubclass(type(value), Tensor)      # `isinstance` asks the value, which may be anything of the user's

    def array(self, tensor: Any) -> np.ndarray:
        return tensor.detach().cpu().numpy()

    def node(self, tensor: Any) -> Any:
        return tensor.node

    def variable(self, node: Any) -> Any:
        return getattr(node, "variable", None)

    def inputs(self, node: Any) -> list[Any]:
        return list(node.edges)

    def whole(self, node: Any) -> Any:
        if node is not None and node.op is not None and node.op.kind == "output":              # of a node with several
            return node.edges[0]
        while node is not None and node.op is not None and node.op.name in ("getitem", "reshape") and (
                type(node.edges[0]).__name__ == type(node).__name__ and not node.op.view):
            node = node.edges[0]
        return node

    def shape(self, node: Any) -> tuple[int, ...] | None:
        several = node.op is not None and (node.op.name in ("qr", "svd", "eigh", "slogdet") or node.dtype == "bundle")
        return None if several else tuple(node.shape)

    def why_lost(self, tensor: Any) -> str:
        from gradlab.core.autopsy import why_lost

        return why_lost(tensor)

    def place(self, node: Any) -> tuple[str, str]:
        site = getattr(node, "site", None)
        if site is None:
            return "", ""
        from gradlab.core.places import mark

        return mark(site)

    def setting(self, node: Any, name: str) -> Any:
        if node.op is None or name not in node.op.meta:
            return None
        return node.meta[node.op.meta.index(name) - len(node.op.meta)]         # from the right: shapes may come first

    def grad(self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None,
             *, batched: bool = False) -> list[Any]:
        from gradlab.autograd import grad

        return list(grad(outputs, inputs, weights, retain_graph=True, allow_unused=True, is_grads_batched=batched))

    def retain_no_more(self, tensor: Any) -> None:
        if tensor.node is not None and tensor.node.hooks is not None:
            tensor.node.hooks.retain = None

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        from gradlab import tensor

        return tensor(array, dtype=like.dtype, device=like.device)


class Torch(Library):
    """PyTorch's tensors, once the user has imported torch."""

    name, usual = "torch", "torch"

    def is_tensor(self, value: Any) -> bool:
        return issubclass(type(value), sys.modules["torch"].Tensor)

    def array(self, tensor: Any) -> np.ndarray:
        torch = sys.modules["torch"]
        tensor = tensor.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()

    def node(self, tensor: Any) -> Any:
        if not tensor.requires_grad:
            return None
        return sys.modules["torch"].autograd.graph.get_gradient_edge(tensor).node

    def variable(self, node: Any) -> Any:
        return getattr(node, "variable", None)

    def shape(self, node: Any) -> tuple[int, ...] | None:
        variable = self.variable(node)
        if variable is not None:
            return tuple(variable.shape)
        metadata = getattr(node, "_input_metadata", None)
        return tuple(metadata[0].shape) if metadata else None

    def setting(self, node: Any, name: str) -> Any:
        try:
            value = getattr(node, f"_saved_{name}", None)
        except RuntimeError:                                                   # a tensor that was freed
            return None
        if isinstance(value, (tuple, list)):
            return tuple(map(_signed, value))
        return _signed(value)

    def grad(self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None,
             *, batched: bool = False) -> list[Any]:
        grad = sys.modules["torch"].autograd.grad
        return list(grad(outputs, inputs, weights, retain_graph=True, allow_unused=True, is_grads_batched=batched))

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        return sys.modules["torch"].as_tensor(array, dtype=like.dtype, device=like.device)


def _signed(value: Any) -> Any:
    """PyTorch keeps axes unsigned: 2**64 - 1 is the last."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


GRADLAB, TORCH = Gradlab(), Torch()


def library_of(value: Any) -> Library | None:
    """The library whose tensor `value` is, or None."""
    if GRADLAB.is_tensor(value):
        return GRADLAB
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "Tensor") and TORCH.is_tensor(value):
        return TORCH
    return None
