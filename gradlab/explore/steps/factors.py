"""Both factors of what a step hands on, where they are small matrices: what arrived, and what the operation multiplies it by.

A product of matrices hands on `C.grad @ B.T` and `A.T @ C.grad`, which says more than its local derivative, 81 numbers for 3 × 3.
Which value is the other factor, and on which side, is found by multiplying and comparing with what was handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.graph.ports import is_small_matrix
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.values import FEW

CLOSE = 1e-5  # relative, of products in float32


@dataclass(frozen=True, eq=False)
class Factor:
    """What the cotangent that arrived is multiplied by.

    Attributes
    ----------
    symbol : str
        "@", "*", or "⊗" of the outer product of two vectors.
    name : str
        As the user wrote it: "B.T"; "" where that is not known.
    numbers : ndarray
    first : bool
        Whether it is the first factor.
    turned : bool
        Whether what arrived is transposed.
    """

    symbol: str
    name: str
    numbers: np.ndarray
    first: bool
    turned: bool = False

    def product(self, arrived: str) -> str:
        """Both factors by their names: "C.grad @ B.T"; "" if this one has none."""
        other = f"{arrived}.T" if self.turned else arrived
        one, two = (self.name, other) if self.first else (other, self.name)
        return f"{one} {self.symbol} {two}" if self.name else ""


def sources_of(trace: Trace) -> Mapping[int, Sequence[int]]:
    """The nodes that each node was given, in the order of its arguments."""
    sources: dict[int, list[int]] = {}
    for edge in trace.edges:
        sources.setdefault(edge.target, []).append(edge.source)
    return sources


def factor_of(trace: Trace, node: int, sources: Sequence[int], arrived: Any, local: Any, handed: Any) -> Factor | None:
    """Return what an operation multiplied `arrived` by to get `handed`; None where that is no small matrix."""
    if not isinstance(handed, np.ndarray) or not isinstance(arrived, (int, float, np.ndarray)):
        return None
    arrived = np.asarray(arrived)
    if max(handed.size, arrived.size) > FEW:
        return None
    if "@" in trace.nodes[node].label:
        for name, value in _values(trace, node, sources):
            for factor, product in _products(name, value, arrived):
                if product.shape == handed.shape and np.allclose(product, handed, CLOSE, CLOSE, equal_nan=True):
                    return factor
    elementwise = _elementwise(local, arrived, handed)
    if elementwise is None or not is_small_matrix(handed.shape):
        return None
    known = (name for name, value in _values(trace, node, sources) if np.array_equal(value, elementwise))
    return Factor("*", next(known, ""), elementwise, first=True)


def _elementwise(local: Any, arrived: np.ndarray, handed: np.ndarray) -> np.ndarray | None:
    """A local derivative in the shape of what is handed on, if it multiplies element by element or multiplies one number."""
    if not isinstance(local, np.ndarray):
        return None
    if local.ndim == 1 or arrived.size == 1:
        return local.reshape(handed.shape)
    diagonal = np.diagonal(local)
    if arrived.shape != handed.shape or not np.array_equal(local, np.diag(diagonal), equal_nan=True):
        return None
    return diagonal.reshape(handed.shape)


def _values(trace: Trace, node: int, sources: Iterable[int]) -> Iterator[tuple[str, np.ndarray]]:
    """What an operation was given: the names and the numbers of small vectors and matrices, first of those that have a name."""
    nodes = [trace.nodes[i] for i in sources]
    given = [(node.name or (node.label if node.kind == "leaf" else ""), node.value) for node in nodes]
    given += [(operand.text, operand.value) for operand in trace.nodes[node].operands]
    for name, value in sorted(given, key=lambda one: not one[0]):
        if value is not None and value.numbers is not None and len(value.shape) in (1, 2):
            yield name.partition(", ")[0], np.array(value.numbers).reshape(value.shape)


def _products(name: str, value: np.ndarray, arrived: np.ndarray) -> Iterator[tuple[Factor, np.ndarray]]:
    """The products of a value and what arrived that are possible, as gradients of a product of matrices."""
    if arrived.ndim == value.ndim == 1:
        yield Factor("⊗", name, value, first=False), np.outer(arrived, value)
        yield Factor("⊗", name, value, first=True), np.outer(value, arrived)
    for turned, g in ((False, arrived), (True, arrived.T))[: arrived.ndim]:
        for called, v in ((f"{name}.T" if name else "", value.T), (name, value))[2 - value.ndim :]:
            for first, (a, b) in ((False, (g, v)), (True, (v, g))):
                if a.ndim and b.ndim and a.shape[-1] == b.shape[0]:
                    yield Factor("@", called, v, first, turned), a @ b
