"""gradlab's own graphs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradlab.autograd import grad
from gradlab.core.forward import jvp_sweep
from gradlab.core.tensor import Tensor
from gradlab.core.watching import Watcher, watching
from gradlab.creation.data import tensor
from gradlab.diagnose.autopsy import why_lost
from gradlab.diagnose.places import mark
from gradlab.explore.libraries.protocol import Library, See


class Gradlab(Library):
    """gradlab's own tensors."""

    name, usual = "gradlab", "gl"

    def is_tensor(self, value: Any) -> bool:
        return issubclass(type(value), Tensor)  # `isinstance` asks the value, which may be anything of the user's

    def array(self, tensor: Any) -> np.ndarray:
        return np.asarray(tensor.detach().cpu().numpy())

    def node(self, tensor: Any) -> Any:
        return tensor.node

    def variable(self, node: Any) -> Any:
        return getattr(node, "variable", None)

    def inputs(self, node: Any) -> list[Any]:
        return list(node.edges)

    def whole(self, node: Any) -> Any:
        if node is not None and node.op is not None and node.op.kind == "output":  # of a node with several
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
        several = node.op is not None and (node.op.name in ("qr", "svd", "eigh", "slogdet") or node.dtype == "bundle")
        return None if several else tuple(node.shape)

    def why_lost(self, tensor: Any) -> str:
        return why_lost(tensor)

    def place(self, node: Any) -> tuple[str, str]:
        return mark(getattr(node, "site", None))

    def setting(self, node: Any, name: str) -> Any:
        node = getattr(node, "members", (node,))[0]
        if node.op is None or name not in node.op.meta:
            return None
        return node.meta[node.op.meta.index(name) - len(node.op.meta)]  # from the right: shapes may come first

    def grad(
        self, outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any] | None = None, *, batched: bool = False
    ) -> list[Any]:
        return list(grad(outputs, inputs, weights, retain_graph=True, allow_unused=True, is_grads_batched=batched))

    def retain_no_more(self, tensor: Any) -> None:
        if tensor.node is not None and tensor.node.hooks is not None:
            tensor.node.hooks.retain = None

    def tensor(self, array: np.ndarray, like: Any) -> Any:
        return tensor(array, dtype=like.dtype, device=like.device)

    def watching(self, nodes: Sequence[Any], see: See) -> AbstractContextManager[Any]:
        return watching(Seeing(see))

    has_forward = True

    def tangents(self, nodes: Sequence[Any], inputs: Sequence[Any], given: Sequence[np.ndarray]) -> list[Any]:
        return jvp_sweep(nodes, {x.node: self.tensor(u, x).array for x, u in zip(inputs, given, strict=True)})


class Seeing(Watcher):
    """Hands on what it sees of sweeps."""

    def __init__(self, see: See) -> None:
        self._see = see

    def visit(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Hand on."""
        self._see(node, node.edges, cotangents)


GRADLAB = Gradlab()
