"""Rows of an embedding table by index, and the transpose.

`factor` scales the rows of the table's gradient as PyTorch does: 0 for the padding row and 1 / n for a row that was read n times
(`scale_grad_by_freq`). It is None if no row is scaled.
"""

from __future__ import annotations

from gradlab.backend.accumulate import add_rows
from gradlab.core.primitive import Primitive, linear
from gradlab.core.properties import Properties
from gradlab.core.tensor import Tensor, constant
from gradlab.rules.arguments import Array, Namespace


def scale_rows(xp: Namespace, total: Array, factor: Array | None) -> Array:
    """Multiply the rows by their factors. A factor of 0 gives 0 even if a row is not finite."""
    if factor is None:
        return total
    return xp.where(factor == 0, 0, total * (constant(factor) if isinstance(total, Tensor) else factor))


embedding: Primitive = linear(
    "embedding",
    lambda xp, weight, *, indices, factor: xp.take(weight, indices, axis=-2),
    reads="index",
    tex="{weight}_{{i}}",
    weight=lambda xp, g, weight_shape, indices, factor: scale_rows(
        xp, embedding_dense(g, indices=indices, count=weight_shape[-2]), factor
    ),
    properties=Properties(looks_up=True),
)
embedding_dense: Primitive = linear(
    "embedding_dense",
    lambda xp, rows, *, indices, count: add_rows(xp, rows, indices, count),
    reads="into",
    node="EmbeddingDenseBackwardBackward0",
    tex=r"\mathrm{{scatter}}({rows})",
    rows=lambda g, indices: embedding(g, indices=indices, factor=None),
)
