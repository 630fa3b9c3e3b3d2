"""Find the factor by which an operation multiplies its upstream gradient, if both are small matrices.

The gradients of a matrix product are `C.grad @ B.T` and `A.T @ C.grad`, which is clearer than the local derivative with its 81
numbers for 3 × 3. The other factor and its side are found by multiplying a generic cotangent and comparing with the product of
the local derivative, because several products may be equal for an upstream gradient of zeros or ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.graph.ports import is_small_matrix
from gradlab.explore.trace.data import GraphEdge, Trace
from gradlab.explore.trace.values import FEW

CLOSE = 1e-5  # relative, of products in float32


@dataclass(frozen=True, eq=False)
class Factor:
    """The factor by which the upstream gradient is multiplied.

    Attributes
    ----------
    symbol : str
        "@", "*", or "⊗" for the outer product of two vectors.
    name : str
        The factor in the user's source: "B.T"; "" if it is unknown.
    numbers : ndarray
    first : bool
        True if it is the left factor.
    turned : bool
        True if the upstream gradient is transposed.
    """

    symbol: str
    name: str
    numbers: np.ndarray
    first: bool
    turned: bool = False

    def product(self, arrived: str) -> str:
        """Return the product with names: "C.grad @ B.T"; "" if the factor has no name."""
        other = f"{arrived}.T" if self.turned else arrived
        one, two = (self.name, other) if self.first else (other, self.name)
        return f"{one} {self.symbol} {two}" if self.name else ""


def edges_into(trace: Trace) -> Mapping[int, Sequence[GraphEdge]]:
    """Return the edges into each node."""
    edges: dict[int, list[GraphEdge]] = {}
    for edge in trace.edges:
        edges.setdefault(edge.target, []).append(edge)
    return edges


def factor_of(
    trace: Trace, into: Mapping[int, Sequence[GraphEdge]], node: int, to: int, arrived: Any, local: Any, handed: Any
) -> Factor | None:
    """Return the factor by which an operation multiplied `arrived` to get `handed`, or None if `handed` is not a small matrix.

    Parameters
    ----------
    trace : Trace
    into : mapping of int to sequence of GraphEdge
        The edges into each node.
    node : int
        The operation.
    to : int
        The node that gets `handed`.
    arrived, handed : int, float, ndarray or Value
    local : float, ndarray or None
        The local derivative; see `data.Share`.
    """
    if not isinstance(handed, np.ndarray) or not isinstance(arrived, (int, float, np.ndarray)):
        return None
    arrived = np.asarray(arrived)
    if max(handed.size, arrived.size) > FEW or not isinstance(local, np.ndarray):
        return None
    if "@" in trace.nodes[node].label and local.shape == (arrived.size, handed.size):
        generic = np.cos(np.arange(1.0, arrived.size + 1)).reshape(arrived.shape)
        wanted = (generic.ravel() @ local).reshape(handed.shape)
        for name, value in _values(trace, into, node, to):
            both = zip(_products(name, value, generic), _products(name, value, arrived), strict=True)
            for (factor, product), (_, now) in both:
                if _is_close(product, wanted) and _is_close(now, handed):
                    return factor
    elementwise = _elementwise(local, arrived, handed)
    if elementwise is None or not is_small_matrix(handed.shape):
        return None
    known = (name for name, value in _values(trace, into, node, to) if np.array_equal(value, elementwise))
    return Factor("*", next(known, ""), elementwise, first=True)


def _is_close(product: np.ndarray, wanted: np.ndarray) -> bool:
    return product.shape == wanted.shape and np.allclose(product, wanted, CLOSE, CLOSE, equal_nan=True)


def _elementwise(local: np.ndarray, arrived: np.ndarray, handed: np.ndarray) -> np.ndarray | None:
    """Return a local derivative in the shape of `handed` if it multiplies element by element or multiplies one number, else
    None."""
    if local.ndim == 1 or arrived.size == 1:
        return local.reshape(handed.shape)
    diagonal = np.diagonal(local)
    if arrived.shape != handed.shape or not np.array_equal(local, np.diag(diagonal), equal_nan=True):
        return None
    return diagonal.reshape(handed.shape)


def _values(trace: Trace, into: Mapping[int, Sequence[GraphEdge]], node: int, to: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the names and values of the other small vectors and matrices among the arguments of an operation, named ones first.
    If a tensor is passed twice, it is an other argument, too."""
    edges = into.get(node, ())
    own = next((edge for edge in edges if edge.source == to), None)
    given = [(_name_of(trace, into, edge.source), trace.nodes[edge.source].value) for edge in edges if edge is not own]
    given += [(operand.text, operand.value) for operand in trace.nodes[node].operands]
    for name, value in sorted(given, key=lambda one: not one[0]):
        if value is not None and value.numbers is not None and len(value.shape) in (1, 2):
            yield name, np.array(value.numbers).reshape(value.shape)


def _name_of(trace: Trace, into: Mapping[int, Sequence[GraphEdge]], i: int) -> str:
    """Return the name of a node, "A", or "A.T" if it is the transpose of A; "" if it is unknown."""
    node = trace.nodes[i]
    if node.name or node.kind == "leaf":
        return (node.name or node.label).partition(", ")[0]
    sources = [edge.source for edge in into.get(i, ())]
    name = _name_of(trace, into, sources[0]) if node.label == ".T" and len(sources) == 1 else ""
    return _transpose_name(name)


def _transpose_name(name: str) -> str:
    return name.removesuffix(".T") if name.endswith(".T") else f"{name}.T" if name else ""


def _products(name: str, value: np.ndarray, arrived: np.ndarray) -> Iterator[tuple[Factor, np.ndarray]]:
    """Yield all possible products of a value and the upstream gradient, as gradients of a matrix product."""
    if arrived.ndim == value.ndim == 1:
        yield Factor("⊗", name, value, first=False), np.outer(arrived, value)
        yield Factor("⊗", name, value, first=True), np.outer(value, arrived)
    for turned, g in ((False, arrived), (True, arrived.T))[: arrived.ndim]:
        for called, v in ((_transpose_name(name), value.T), (name, value))[2 - value.ndim :]:
            for first, (a, b) in ((False, (g, v)), (True, (v, g))):
                if a.ndim and b.ndim and a.shape[-1] == b.shape[0]:
                    yield Factor("@", called, v, first, turned), a @ b
