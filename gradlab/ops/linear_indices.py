"""Elements by their numbers in the flattened tensor, and those numbers as indices of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.destination import takes_out_apart
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.indexed_writes import places, tensor_argument, with_an_axis, with_twin
from gradlab.ops.shapes import reshape
from gradlab.rules import indexing as rules
from gradlab.rules.shapes import reshape as reshape_rule
from gradlab.rules.writing import overwrite

__all__ = [
    "put",
    "take",
    "unravel_index",
]
TAKE = rules.getitem.named("TakeBackward0", view=False)

PUT, PUT_ADD = overwrite.named("PutBackward0"), rules.index_add.named("PutBackward0")


def numbered_places(name: str, array: Any, index: Tensor) -> Any:
    """Checked element numbers, negative ones counted from the end."""
    if index.array.dtype != np.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.word}")
    if not array.size and index.array.size:
        raise IndexError(f"{name}(): tried to {name.rstrip('_')} {'from' if name == 'take' else 'into'} an empty tensor")
    on_axis(
        name,
        index.array,
        array.size,
        lambda wrong: IndexError(f"out of range: tried to access index {wrong} on a tensor of {array.size} elements."),
        negative=True,
    )
    return index.array % array.size if array.size else places(index)


@takes_out_apart
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements with these numbers in the flattened tensor, in the shape of `index`."""
    tensor_argument("take", index, "index", 1)
    at = numbered_places("take", input.array, index)
    flat = reshape(input, (input.array.size,))
    if not at.ndim:
        return reshape_rule.named("TakeBackward0", view=False).record(TAKE.record(flat, index=(at.reshape(1),), skip=0), shape=())
    return TAKE.record(flat, index=(at,), skip=0)


@with_twin
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """A copy with the elements of `source` written to (or added at) the elements with these numbers in the flattened tensor."""
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.word} and source.dtype = {source.dtype.word}"
        )
    if source.array.size != index.array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.array.size}, index.numel() = {index.array.size}"
        )
    x = with_an_axis(input)
    xp = namespace_of[type(x.array)]
    at = xp.unravel_index(numbered_places("put_", input.array, index).reshape(-1), x.array.shape)
    patch = reshape(source, (source.array.size,))
    return PUT_ADD if accumulate else PUT, tuple(at), patch


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices, one tensor for each axis, of elements numbered in a tensor of that shape."""
    tensor_argument("unravel_index", indices, "indices", 1)
    if indices.array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if indices.array.size and 0 in sizes:
        raise RuntimeError(f"ZeroDivisionError: there is no element in a tensor of shape {sizes}.")
    found, rest = [], indices.array.astype(np.int64)
    for n in reversed(sizes):
        found.append(constant(wrap(rest % n)))
        rest = rest // n
    return tuple(reversed(found))
