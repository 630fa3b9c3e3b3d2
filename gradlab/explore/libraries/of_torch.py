"""PyTorch's graphs. torch is never imported here: the adapter is made once the user has."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradlab.explore.libraries.protocol import Library, See


class Torch(Library):
    """PyTorch's tensors, once the user has imported torch."""

    name, usual = "torch", "torch"

    def is_tensor(self, value: Any) -> bool:
        tensor = getattr(sys.modules["torch"], "Tensor", None)  # torch may be on its way in
        return tensor is not None and issubclass(type(value), tensor)

    def array(self, tensor: Any) -> np.ndarray:
        torch = sys.modules["torch"]
        tensor = tensor.detach().cpu()
        return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())

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
        except RuntimeError:  # a tensor that was freed
            return None
        if isinstance(value, (tuple, list)):
            return tuple(map(_signed, value))
        return _signed(value)

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None, *, batched: bool = False
    ) -> list[Any]:
        grad = sys.modules["torch"].autograd.grad
        return list(grad(outputs, inputs, weights, retain_graph=True, allow_unused=True, is_grads_batched=batched))

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        return sys.modules["torch"].as_tensor(array, dtype=like.dtype, device=like.device)

    @contextmanager
    def watching(self, nodes: Sequence[Any], see: See) -> Iterator[None]:
        handles: list[Any] = []
        try:
            handles.extend(
                node.register_hook(lambda cotangents, _, node=node: see(node, self.inputs(node), cotangents))
                for node in nodes
                if self.variable(node) is None
            )
            yield
        finally:
            for handle in handles:
                handle.remove()


def _signed(value: Any) -> Any:
    """PyTorch keeps axes unsigned: 2**64 - 1 is the last."""
    return value - 2**64 if isinstance(value, int) and value >= 2**63 else value


TORCH = Torch()
