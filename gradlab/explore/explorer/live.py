"""What a live view holds of a graph: its outputs, and with them every node. It answers what plain data cannot tell.

It runs sweeps of its own, which keep the graph and write no `.grad`, and rules of single nodes. `close` lets all of it go.
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

OWN = ("result", "output", "out")  # what nodes call what they made among what they saved
DENSE = 16  # elements of a local Jacobian's sides, up to which it is shown whole


@dataclass
class Met:
    """What passed a node in a sweep.

    Attributes
    ----------
    arrived : ndarray or None
        The cotangent of what it made; of a node with several outputs that of the first.
    handed : list of (int, ndarray or None)
        What it handed on: to which node, by number, and what; in the order of its arguments.
    outputs : list of (ndarray or None)
        The cotangents of all its outputs.
    likes : list
        What they are like; see `Library.alone`.
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
        The cotangents that sweeps start with.
    most : int
        How many nodes of it there are in the trace, at most.
    names : mapping of str to Tensor
        What tensors on the way are called. They are held weakly.
    """

    def __init__(
        self, library: Library, outputs: Sequence[Any], starts: Sequence[Any], most: int, names: Mapping[str, Any]
    ) -> None:
        self.library, self.outputs, self.starts = library, list(outputs), list(starts)
        self._names = {name: library.weakly(tensor) for name, tensor in names.items() if library.is_tensor(tensor)}
        self.nodes, _ = spine_first(library, [library.whole(library.node(out)) for out in outputs], most)
        self.number = {node: i for i, node in enumerate(self.nodes)}

    def keeping(self) -> AbstractContextManager[None]:
        """While the block runs, tensors that retain their gradient get none."""
        return grads_kept(self.library, self.nodes, self.names)

    @property
    def freed(self) -> bool:
        """Whether backward has freed what some node had saved."""
        return any(self.library.freed(node) for node in self.nodes)

    @property
    def leaves(self) -> dict[int, Any]:
        """The leaf tensors that still exist, by the numbers of their nodes."""
        variables = {i: self.library.variable(node) for i, node in enumerate(self.nodes)}
        return {i: tensor for i, tensor in variables.items() if tensor is not None}

    def value(self, i: int) -> np.ndarray | None:
        """What node `i` made, if it still exists as it was."""
        if i >= len(self.nodes):
            return np.asarray(self.library.array(self.outputs[i - len(self.nodes)].detach()))
        node = self.nodes[i]
        output = self.library.made(node)
        if output is None:  # a tensor that the user has a name for, or that the node has saved
            output = next((tensor for tensor in self.names.values() if self.library.node(tensor) is node), None)
        if output is None:
            output = next((item for name, item in self.library.saved(node) if name in OWN), None)
        return None if output is None else self._host(output)

    @property
    def names(self) -> dict[str, Any]:
        """The tensors that have names and still exist."""
        tensors = {name: ref() for name, ref in self._names.items()}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None and tensor.requires_grad}

    def met(self, i: int) -> Met:
        """What passes node `i` in one sweep.

        Raises
        ------
        RuntimeError
            If the graph was freed.
        """
        library = self.library
        if i >= len(self.nodes):
            start = self._host(self.starts[i - len(self.nodes)])
            return Met(start, [], [start], [])
        node, leaves, met = self.nodes[i], self.leaves, Met()

        def see(one: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
            if one is not node or g is None:
                return
            parts = library.parts(g)
            met.likes = [None if part is None else library.like(part) for part in parts]
            met.outputs = [None if part is None else library.numbers(part) for part in parts]
            met.arrived = next((part for part in met.outputs if part is not None), None)
            for source, c in zip(sources, cotangents, strict=False):
                if source is not None:
                    fitted = None if c is None else library.fitted(c, node, source)
                    at = self.number.get(library.whole(source), -1)
                    met.handed.append((at, None if fitted is None else library.numbers(fitted)))

        with self.keeping(), library.watching([node], see):
            gradients = library.grad(self.outputs, list(leaves.values()), self.starts)
        if i in leaves and met.arrived is None:  # not every library runs the nodes of leaves
            gradient = dict(zip(leaves, gradients, strict=True))[i]
            met.arrived = None if gradient is None else self._host(gradient)
        return met

    def saved(self, i: int) -> list[tuple[str, tuple[int, ...], str, int]]:
        """What node `i` has saved for its rule: name, shape, dtype, bytes."""
        if i >= len(self.nodes):
            return []
        return [
            (name, tuple(item.shape), str(item.dtype).rpartition(".")[2], int(item.nbytes))
            for name, item in self.library.saved(self.nodes[i])
        ]

    def local(self, i: int, met: Met) -> list[np.ndarray | None]:
        """The local Jacobian of node `i` with respect to each of its inputs, as a matrix with a row for each element that it
        made; None where that is too large, or where the rule cannot be run by itself."""
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
        except Exception:  # noqa: BLE001  (a rule that cannot be run by itself: what is saved may come only once)
            return [None for _ in met.handed]
        blocks: list[np.ndarray | None] = []
        for at in range(len(met.handed)):
            parts = [row[at] if at < len(row) else None for row in rows]
            small = [part.reshape(-1) for part in parts if part is not None and part.size <= DENSE]
            blocks.append(np.array(small) if len(small) == len(parts) else None)
        return blocks

    def bytes(self) -> int:
        """How much memory is held: what nodes have saved, leaves, and outputs, what shares memory once."""
        held: dict[int, int] = {}
        for array in self._held():
            address = _address(array)
            held[address] = max(held.get(address, 0), int(array.nbytes))
        return sum(held.values())

    def _held(self) -> Iterator[Any]:
        for node in self.nodes:
            for _, item in self.library.saved(node):
                yield item
        yield from (*self.leaves.values(), *self.outputs)

    def _host(self, value: Any) -> np.ndarray:
        if self.library.is_tensor(value):
            return np.asarray(self.library.array(value))
        return np.asarray(to_host(value))


def _address(array: Any) -> int:
    """Where an array's or a tensor's memory begins, about."""
    array = getattr(array, "array", array)  # gradlab's tensors
    base = getattr(array, "base", None)
    if hasattr(array, "untyped_storage"):
        try:
            return int(array.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # it is sparse, or on no device
            return id(array)
    return id(base if base is not None else array)
