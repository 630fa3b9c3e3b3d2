"""The graph of a live view. It holds the outputs, and with them every node, to answer requests for which plain data is not
enough.

It runs additional sweeps, which keep the graph and write no `.grad`, and rules of single nodes. `close` of the explorer releases
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.backend.namespaces import to_host
from gradlab.explore.libraries import Library
from gradlab.explore.trace.reading import spine_first
from gradlab.explore.trace.retained_grads import grads_kept

OWN = ("result", "output", "out")  # names of the node's own result among its saved tensors
DENSE = 16  # rows and columns of a local Jacobian that is shown


@dataclass
class NodeSweep:
    """The cotangents at a node in a sweep.

    Attributes
    ----------
    arrived : ndarray or None
        The upstream gradient, of the first output if there are several.
    handed : list of (int, ndarray or None)
        The node of each input, by index, and its gradient from this node, in the order of the arguments.
    outputs : list of (ndarray or None)
        The upstream gradients of all outputs.
    likes : list
        The dtypes and devices of `outputs`; see `Library.alone`.
    """

    arrived: np.ndarray | None = None
    handed: list[tuple[int, np.ndarray | None]] = field(default_factory=list)
    outputs: list[np.ndarray | None] = field(default_factory=list)
    likes: list[Any] = field(default_factory=list)


class Live:
    """The graph behind some outputs of one library.

    Parameters
    ----------
    library : Library
    outputs : sequence of Tensor
    starts : sequence of Tensor
        The cotangents with which sweeps start.
    most : int
        The maximal number of nodes in the trace.
    names : mapping of str to Tensor
        The names of intermediate tensors, which are held weakly.
    """

    def __init__(
        self, library: Library, outputs: Sequence[Any], starts: Sequence[Any], most: int, names: Mapping[str, Any]
    ) -> None:
        self.library, self.outputs, self.starts = library, list(outputs), list(starts)
        self._names = {name: library.weakly(tensor) for name, tensor in names.items() if library.is_tensor(tensor)}
        self.nodes, _ = spine_first(library, [library.whole(library.node(out)) for out in outputs], most)
        self.number = {node: i for i, node in enumerate(self.nodes)}

    def keeping(self) -> AbstractContextManager[None]:
        """Restore the `.grad` of tensors that retain their gradient after the block."""
        return grads_kept(self.library, self.nodes, self.names)

    @property
    def is_freed(self) -> bool:
        """True if backward has freed the saved tensors of a node."""
        return any(self.library.is_freed(node) for node in self.nodes)

    @property
    def leaves(self) -> dict[int, Any]:
        """The leaf tensors that still exist, by the index of their node."""
        variables = {i: self.library.variable(node) for i, node in enumerate(self.nodes)}
        return {i: tensor for i, tensor in variables.items() if tensor is not None}

    def value(self, i: int) -> np.ndarray | None:
        """Return the result of node `i` if it still exists unchanged."""
        if i >= len(self.nodes):
            return np.asarray(self.library.array(self.outputs[i - len(self.nodes)].detach()))
        node = self.nodes[i]
        output = self.library.output_of(node)
        if output is None:  # a tensor with a name of the user, or one that the node has saved
            output = next((tensor for tensor in self.names.values() if self.library.node(tensor) is node), None)
        if output is None:
            output = next((item for name, item in self.library.saved(node) if name in OWN), None)
        return None if output is None else self._host(output)

    @property
    def names(self) -> dict[str, Any]:
        """The named tensors that still exist."""
        tensors = {name: ref() for name, ref in self._names.items()}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None and tensor.requires_grad}

    def sweep_node(self, i: int) -> NodeSweep:
        """Run one sweep and return the cotangents at node `i`.

        Raises
        ------
        RuntimeError
            If the graph was freed.
        """
        library = self.library
        if i >= len(self.nodes):
            start = self._host(self.starts[i - len(self.nodes)])
            return NodeSweep(start, [], [start], [])
        node, leaves, met = self.nodes[i], self.leaves, NodeSweep()

        def see(one: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
            if one is not node or g is None:
                return
            parts = library.parts(g)
            met.likes = [None if part is None else library.like(part) for part in parts]
            met.outputs = [None if part is None else library.numbers(part) for part in parts]
            met.arrived = next((part for part in met.outputs if part is not None), None)
            for source, c in zip(sources, cotangents, strict=False):
                if source is not None:
                    fitted = None if c is None else library.fit(c, node, source)
                    at = self.number.get(library.whole(source), -1)
                    met.handed.append((at, None if fitted is None else library.numbers(fitted)))

        with self.keeping(), library.watching([node], see):
            gradients = library.grad(self.outputs, list(leaves.values()), self.starts)
        if i in leaves and met.arrived is None:  # not every library runs the nodes of leaves
            gradient = dict(zip(leaves, gradients, strict=True))[i]
            met.arrived = None if gradient is None else self._host(gradient)
        return met

    def saved(self, i: int) -> list[tuple[str, tuple[int, ...], str, int]]:
        """Return the saved tensors of node `i`: name, shape, dtype, bytes."""
        if i >= len(self.nodes):
            return []
        return [
            (name, tuple(item.shape), str(item.dtype).rpartition(".")[2], int(item.nbytes))
            for name, item in self.library.saved(self.nodes[i])
        ]

    def local(self, i: int, met: NodeSweep) -> list[np.ndarray | None]:
        """Return the local Jacobian of node `i` with respect to each input, as a matrix with a row for each element of the
        result; None if it is too large, or if the rule cannot be run again."""
        library = self.library
        outputs = met.outputs
        if i >= len(self.nodes) or len(outputs) != 1 or outputs[0] is None or not 0 < outputs[0].size <= DENSE or not met.handed:
            return [None for _ in met.handed]
        node = self.nodes[i]
        if not library.rule_is_known(node):
            return [None for _ in met.handed]
        rows: list[list[Any]] = []
        try:
            for k in range(outputs[0].size):
                unit = np.zeros_like(outputs[0])
                unit.reshape(-1)[k] = 1
                gradients = library.alone(node, [unit], met.likes)
                rows.append([c for c, to in zip(gradients, library.inputs(node), strict=False) if to is not None])
        except Exception:  # noqa: BLE001  (a rule that cannot be run again: saved tensors may be available only once)
            return [None for _ in met.handed]
        blocks: list[np.ndarray | None] = []
        for at in range(len(met.handed)):
            parts = [row[at] if at < len(row) else None for row in rows]
            small = [part.reshape(-1) for part in parts if part is not None and part.size <= DENSE]
            blocks.append(np.array(small) if len(small) == len(parts) else None)
        return blocks

    def bytes(self) -> int:
        """Return the memory of saved tensors, leaves and outputs. Shared memory counts once."""
        held: dict[int, int] = {}
        for array in self._arrays():
            address = _address(array)
            held[address] = max(held.get(address, 0), int(array.nbytes))
        return sum(held.values())

    def _arrays(self) -> Iterator[Any]:
        for node in self.nodes:
            for _, item in self.library.saved(node):
                yield item
        yield from (*self.leaves.values(), *self.outputs)

    def _host(self, value: Any) -> np.ndarray:
        if self.library.is_tensor(value):
            return np.asarray(self.library.array(value))
        return np.asarray(to_host(value))


def _address(array: Any) -> int:
    """Return a key of the memory of an array or a tensor."""
    array = getattr(array, "array", array)  # gradlab's tensors
    base = getattr(array, "base", None)
    if hasattr(array, "untyped_storage"):
        try:
            return int(array.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # sparse, or without memory
            return id(array)
    return id(base if base is not None else array)
