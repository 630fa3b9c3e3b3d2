"""The two sweeps over a kept graph, on plain arrays: vᵀJ backward and Ju forward, for one vector or a batch.

Jacobians are computed only by `vjp` and `jvp`, so these are all that a tensor library must provide. Rows are the outputs'
elements in C order, one output after the other; columns likewise the inputs' elements.

gradlab has both sweeps over the recorded graph, and the user's hooks do not run in them. PyTorch records no forward sweep: vᵀJ is
linear in v, so its derivative with respect to v, weighted with u, is Ju, a backward through the recorded backward.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from gradlab.backend.namespaces import to_host
from gradlab.explore.libraries import Library

Shape = tuple[int, ...]


class DifferentiatedGraph:
    """Outputs, the inputs to differentiate with respect to, and the sweeps between them.

    `forward_cost` is the cost of a forward sweep relative to a backward one. `tells_pattern` says whether the graph knows which
    elements its operations read.
    """

    forward_cost, tells_pattern, symmetric = 1.0, False, False
    samples = 0  # size of a batch, each sample of which has its own Jacobian
    unused: tuple[bool, ...] | None = None  # for each input, whether the outputs do not depend on it; None if unknown

    def __init__(self, library: Library, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        self.library, self.outputs, self.inputs = library, tuple(outputs), tuple(inputs)
        self.output_shapes: tuple[Shape, ...] = tuple(tuple(y.shape) for y in outputs)
        self.input_shapes: tuple[Shape, ...] = tuple(tuple(x.shape) for x in inputs)
        self.shape = sum(map(prod, self.output_shapes)), sum(map(prod, self.input_shapes))
        self.dtype = np.result_type(*(array_dtype(library, x) for x in inputs))
        self._sizes: dict[str, int] = {}

    def vjp(self, v: np.ndarray) -> np.ndarray:
        """Return vᵀJ: shape (columns,) for v of shape (rows,), (k, columns) for (k, rows)."""
        parts = self._backward(list(split(v, self.output_shapes)), v.shape[:-1])
        if self.unused is None:
            self.unused = tuple(part is None for part in parts)
        return self._join(parts, self.input_shapes, v.shape[:-1])

    def jvp(self, u: np.ndarray) -> np.ndarray:
        """Return Ju: shape (rows,) for u of shape (columns,), (k, rows) for (k, columns)."""
        tangent = self._join(self._forward(list(split(u, self.input_shapes)), u.shape[:-1]), self.output_shapes, u.shape[:-1])
        return tangent.copy() if np.may_share_memory(tangent, u) else tangent  # the tangent of a view is a view of u

    def likes(self) -> Sequence[Any]:
        """Tensors that have the shapes of the parts of a row."""
        return self.inputs

    def output(self) -> np.ndarray:
        """Return the function's output, flat. Another process that records the graph must get the same, up to rounding."""
        return np.concatenate([np.reshape(self.library.array(y), -1) for y in self.outputs])

    def derivative(self) -> np.ndarray:
        """Return one weighted backward, which must be the same, too."""
        return self.vjp(np.random.default_rng(0).uniform(0.5, 1.0, self.shape[0]).astype(self.dtype))

    def of_samples(self, start: int, stop: int) -> np.ndarray:
        """Return the rows of some samples, if the graph is of a batch."""
        raise NotImplementedError

    def refusal(self) -> RuntimeError | None:
        """Return the error of a second backward after one without retain_graph=True, without freeing the graph; None if the graph
        saves nothing that would be freed."""
        raise NotImplementedError

    def fingerprint(self) -> int:
        """Return a number that graphs of the same operations on the same shapes, indices and axes share; 0 if the library does
        not provide one."""
        return 0

    def bytes_of_a_vector(self, by: str) -> int:
        """Estimate the peak memory per additional vector in a sweep, including the vector and the result."""
        if not self._sizes:
            backward, forward = self._peaks()
            ends = sum(self.shape)
            self._sizes = {"rows": (backward + ends) * self.dtype.itemsize, "columns": (forward + ends) * self.dtype.itemsize}
        return max(self._sizes[by], 1)

    def _peaks(self) -> tuple[int, int]:
        """Return the maximum number of elements that a backward and a forward sweep hold at a time."""
        raise NotImplementedError

    def pattern(self, limit: int | None = None) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (rows, columns), row-major, of the entries that can be nonzero; None if there are more than `limit`."""
        raise NotImplementedError

    def _join(self, parts: Sequence[Any], shapes: Sequence[Shape], lead: Shape) -> np.ndarray:
        flat = [
            np.zeros((*lead, prod(shape)), self.dtype) if part is None else np.reshape(part, (*lead, prod(shape)))
            for part, shape in zip(parts, shapes, strict=True)
        ]
        whole = flat[0] if len(flat) == 1 else np.concatenate(flat, -1)
        return whole if whole.dtype == self.dtype else whole.astype(self.dtype)

    def _backward(self, weights: list[np.ndarray], lead: Shape) -> list[Any]:
        raise NotImplementedError

    def _forward(self, tangents: list[np.ndarray], lead: Shape) -> list[Any]:
        raise NotImplementedError


class GradlabGraph(DifferentiatedGraph):
    """Sweeps by gradlab's own engine, which accepts batches."""

    tells_pattern = True

    def __init__(self, library: Library, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        super().__init__(library, outputs, inputs)
        from gradlab.core.search import reachable_nodes

        self.ends, self.starts = [y.node for y in outputs], [x.node for x in inputs]  # in-place writes would replace them
        self._number = {node: k for k, node in enumerate(reachable_nodes(filter(None, self.ends)))}
        self.unused = tuple(node not in self._number for node in self.starts)
        nodes = set(self.starts)
        self.nested = len(nodes) < len(inputs) or any(_reaches(x.node, nodes) for x in inputs if not x.is_leaf)

    def _backward(self, weights: list[np.ndarray], lead: Shape) -> list[Any]:
        from gradlab.core.engine import vjp_sweep

        roots = [(node, _like(v, y)) for node, y, v in zip(self.ends, self.outputs, weights, strict=True) if node is not None]
        gradients = vjp_sweep(roots, lead, wanted=self.starts, retain=True, hooks=False, accumulates=False)
        return [to_host(gradients.get(node)) for node in self.starts]

    def _forward(self, tangents: list[np.ndarray], lead: Shape) -> list[Any]:
        from gradlab.core.forward import jvp_sweep

        ends = [node for node in self.ends if node is not None]
        seeds = [(node, _like(u, x)) for node, x, u in zip(self.starts, self.inputs, tangents, strict=True)]
        results: list[Any] = [None] * len(ends)
        # A sweep uses a tangent as the total tangent of its node, so an input that depends on another one needs its own node.
        for some in [[pair] for pair in seeds] if self.nested else [seeds]:
            for k, t in enumerate(jvp_sweep(ends, dict(some), lead)):
                results[k] = t if results[k] is None else results[k] if t is None else results[k] + t
        values: Iterator[Any] = iter(results)
        return [None if node is None else to_host(next(values)) for node in self.ends]

    def refusal(self) -> RuntimeError | None:
        from gradlab.core.errors import graph_freed
        from gradlab.core.search import nodes_leading_to, reachable_nodes

        ends = [node for node in self.ends if node is not None]
        needed = nodes_leading_to(self.starts, ends).difference(self.starts)
        first = next((node for node in reachable_nodes(ends) if node in needed and _saves(node)), None)  # in the order of a sweep
        return None if first is None else graph_freed(first)

    def fingerprint(self) -> int:
        number: dict[Any, int] = self._number
        ends = [[number.get(node, -1) for node in side] for side in (self.ends, self.starts)]
        nodes = [
            (
                type(node).__name__,
                node.shape,
                [number.get(edge, -1) for edge in node.edges],
                _with_checksums(getattr(node, "meta", ())),
            )
            for node in number
        ]  # everything that determines a pattern: see core.sparsity
        return crc32(repr((ends, nodes)).encode())

    def _peaks(self) -> tuple[int, int]:
        from gradlab.core.search import nodes_leading_to, reachable_nodes

        ends = [node for node in self.ends if node is not None]
        wanted = set(self.starts)
        needed = nodes_leading_to(wanted, ends)
        waiting = {node: prod(node.shape) for node in ends}
        live = peak = sum(waiting.values())
        for node in reachable_nodes(ends):  # a cotangent is held from its first contribution until its node
            if node not in needed:
                continue
            own = waiting.get(node, 0)
            for edge in node.edges:
                if edge in needed and edge not in waiting:
                    waiting[edge] = prod(edge.shape)
                    live += waiting[edge]
            peak = max(peak, live + own)
            live -= 0 if node in wanted else own
        return peak, self._forward_peak(needed, reachable_nodes(ends))

    def _forward_peak(self, needed: set[Any], nodes: Sequence[Any]) -> int:
        """Return the peak of a forward sweep. A tangent is held until its last use."""
        readers = Counter(edge for node in nodes for edge in node.edges)
        live = peak = 0
        for node in reversed(nodes):
            own = prod(node.shape) if node in needed else 0
            live += own
            peak = max(peak, live + own)  # twice its own: two arguments contribute a part each
            for edge in node.edges:
                readers[edge] -= 1
                if edge in needed and not readers[edge]:
                    live -= prod(edge.shape)
        return peak

    def pattern(self, limit: int | None = None) -> tuple[np.ndarray, np.ndarray] | None:
        from gradlab.core.sparsity import pattern

        columns = self.shape[1]
        parts, down = [(np.zeros(0, int), np.zeros(0, int))], 0
        for end, size in zip(self.ends, map(prod, self.output_shapes), strict=True):
            right = 0
            for start, width in zip(self.starts, map(prod, self.input_shapes), strict=True):
                if end is not None:
                    entries = pattern(end, start, limit)
                    if entries is None:
                        return None
                    parts.append((entries[0] + down, entries[1] + right))
                right += width
            down += size
        if len(parts) <= 2:
            return parts[-1]
        keys = np.concatenate([rows * columns + several for rows, several in parts])
        keys.sort()
        return keys // columns, keys % columns


class TorchGraph(DifferentiatedGraph):
    """Sweeps by torch.autograd.grad."""

    forward_cost = 2.0

    twice: tuple[list[Any], list[Any]] | None = None  # (weights, vᵀJ recorded as a function of them)

    def __init__(self, library: Library, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
        super().__init__(library, outputs, inputs)
        torch = sys.modules["torch"]
        edge = torch.autograd.graph.get_gradient_edge  # an in-place write would replace the tensor's edge
        differentiates_edges = torch.__version__ >= (
            2,
            6,
        )  # older versions differentiate only tensors: there, a copy keeps the old edge
        with torch.enable_grad():
            self.ends = [(edge(y) if differentiates_edges else y.clone()) if y.requires_grad else None for y in outputs]
        self.starts = [edge(x) for x in inputs]

    def _backward(self, weights: list[np.ndarray], lead: Shape) -> list[Any]:
        kept = [
            (end, self.library.tensor(v, y))
            for end, y, v in zip(self.ends, self.outputs, weights, strict=True)
            if end is not None
        ]
        if not kept:  # the gradient of a linear function is constant
            return [None] * len(self.inputs)
        gradients = self._grad([end for end, _ in kept], self.starts, [v for _, v in kept], lead)
        return [None if part is None else self.library.array(part) for part in gradients]

    def _forward(self, tangents: list[np.ndarray], lead: Shape) -> list[Any]:
        torch = sys.modules["torch"]
        if self.twice is None:
            kept = [end for end in self.ends if end is not None]
            if not kept:
                return [None] * len(self.outputs)
            weights = [
                torch.zeros_like(y, requires_grad=True) for y, end in zip(self.outputs, self.ends, strict=True) if end is not None
            ]
            with torch.enable_grad():
                rows = torch.autograd.grad(kept, self.starts, weights, create_graph=True, allow_unused=True)
            self.twice, self.unused = (weights, list(rows)), tuple(part is None for part in rows)
        weights, rows = self.twice
        used = [
            (g, self.library.tensor(u, x))
            for g, u, x in zip(rows, tangents, self.inputs, strict=True)
            if g is not None and g.requires_grad
        ]
        products = iter(self._grad([g for g, _ in used], weights, [u for _, u in used], lead) if used else [None] * len(weights))
        results = [next(products) if end is not None else None for end in self.ends]
        return [None if part is None else self.library.array(part) for part in results]

    def refusal(self) -> RuntimeError | None:
        torch = sys.modules["torch"]
        waiting = [self.library.node(y) for y, end in zip(self.outputs, self.ends, strict=True) if end is not None]
        seen = set(waiting)
        while waiting:
            node = waiting.pop()
            if any(name.startswith("_raw_saved") for name in dir(node)):
                break
            new = {edge for edge in self.library.inputs(node) if edge is not None} - seen
            seen |= new
            waiting += new
        else:
            return None
        with torch.enable_grad():  # PyTorch's sentence is the same for every graph, so it is taken from a square
            square = torch.ones((), requires_grad=True).square()
        square.backward()
        try:
            square.backward()
        except RuntimeError as error:
            return error.with_traceback(None)
        return None

    def _peaks(self) -> tuple[int, int]:
        seen = {self.library.node(y) for y in self.outputs} - {None}
        stack, most = list(seen), 0
        while stack:
            node = stack.pop()
            most = max(most, prod(self.library.shape(node) or ()))
            new = [edge for edge in self.library.inputs(node) if edge is not None and edge not in seen]
            seen.update(new)
            stack += new
        return 3 * most, 6 * most  # a rough estimate: PyTorch does not say which cotangents are held at a time

    def _grad(self, outputs: list[Any], inputs: list[Any], weights: list[Any], lead: Shape) -> list[Any]:
        torch = sys.modules["torch"]
        if not lead:
            return self.library.grad(outputs, inputs, weights)
        try:
            return self.library.grad(outputs, inputs, weights, batched=True)
        except RuntimeError as error:  # vmap does not support an operation: one vector at a time
            if "vmap" not in str(error) and "batching rule" not in str(error):
                raise
        rows = [self.library.grad(outputs, inputs, [w[k] for w in weights]) for k in range(lead[0])]
        return [None if part[0] is None else torch.stack(part) for part in zip(*rows, strict=True)]


def graph_of(library: Library, outputs: Sequence[Any], inputs: Sequence[Any], *, symmetric: bool = False) -> DifferentiatedGraph:
    """Return the graph between tensors of a library. `symmetric`: whether its Jacobian is known to be."""
    graph = (GradlabGraph if library.name == "gradlab" else TorchGraph)(library, outputs, inputs)
    graph.symmetric = symmetric
    return graph


def recording(library: Library) -> Any:
    """Return a context in which operations are recorded, whatever the caller's mode."""
    if library.name == "gradlab":
        from gradlab.core.modes import enable_grad

        return enable_grad()
    return sys.modules["torch"].enable_grad()


def recorded_gradient(library: Library, output: Any, inputs: list[Any]) -> list[Any]:
    """Return the recorded gradient of a one-element tensor for each input; None if it does not depend on it."""
    if library.name == "gradlab":
        from gradlab.autograd import grad

        return list(grad(output, inputs, create_graph=True, allow_unused=True, hooks=False))
    return list(sys.modules["torch"].autograd.grad(output, inputs, create_graph=True, allow_unused=True))


def split(vectors: np.ndarray, shapes: Sequence[Shape]) -> Iterator[np.ndarray]:
    """Yield the parts of flat vectors, (…, sum of sizes), that belong to each shape."""
    lead, start = vectors.shape[:-1], 0
    for shape in shapes:
        size = prod(shape)
        yield vectors[..., start : start + size].reshape(lead + shape)
        start += size


def array_dtype(library: Library, tensor: Any) -> np.dtype:
    """Return the NumPy dtype of a tensor's values on the host; float32 for bfloat16, which NumPy lacks."""
    name = library.dtype_name(tensor)
    return np.dtype("float32" if name == "bfloat16" else name)


def _like(values: np.ndarray, tensor: Any) -> Any:
    """Return `values` in the dtype and on the device of a gradlab tensor."""
    array = tensor.array
    if type(array) is np.ndarray:
        return values if values.dtype == array.dtype else values.astype(array.dtype)
    from gradlab.backend.namespaces import namespace_of

    return namespace_of[type(array)].asarray(values, array.dtype)


def _saves(node: Any) -> bool:
    """Return whether a sweep frees a tensor of a node, so that the next sweep fails there."""
    if not (node.op.frees or node.saved):
        return False
    spared = getattr(node.op, "spared", None)
    return not (spared and all(edge is None or spare for edge, spare in zip(node.edges, spared, strict=True)))


def _with_checksums(value: Any) -> Any:
    """Return metadata with a checksum for each array, so that `repr` shows everything."""
    if type(value) in (int, slice, str):
        return value
    if isinstance(value, (tuple, list)):
        return [_with_checksums(part) for part in value]
    if isinstance(value, dict):
        return _with_checksums(list(value.items()))
    if not hasattr(value, "shape"):
        return value
    array = np.ascontiguousarray(to_host(getattr(value, "array", value)))
    return array.shape, array.dtype, crc32(array.data)


def _reaches(node: Any, others: set[Any]) -> bool:
    from gradlab.core.search import reachable_nodes

    return any(other in others for other in reachable_nodes([node]) if other is not node)
