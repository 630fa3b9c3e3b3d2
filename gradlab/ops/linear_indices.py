"""Read and write elements by their index in the flattened tensor, and convert such indices to coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_axis_indices
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_disjoint_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors
from gradlab.ops.indexed_writes import Write, at_least_1d, copy_index, tensor_argument, with_twin
from gradlab.ops.shapes import reshape
from gradlab.rules import indexing as rules
from gradlab.rules.shapes import reshape as reshape_rule
from gradlab.rules.writing import overwrite

__all__ = [
    "put",
    "take",
    "unravel_index",
]
TAKE = rules.getitem.with_node("TakeBackward0", view=False)

PUT, PUT_ADD = overwrite.with_node("PutBackward0"), rules.index_add.with_node("PutBackward0")


def parse_linear_indices(name: str, array: Any, index: Tensor) -> Any:
    """Check indices of the flattened tensor, and return them as nonnegative numbers."""
    if index.array.dtype != np.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.word}")
    if not array.size and index.array.size:
        raise IndexError(f"{name}(): tried to {name.rstrip('_')} {'from' if name == 'take' else 'into'} an empty tensor")
    check_axis_indices(
        name,
        index.array,
        array.size,
        lambda wrong: IndexError(f"out of range: tried to access index {wrong} on a tensor of {array.size} elements."),
        negative=True,
    )
    return index.array % array.size if array.size else copy_index(index)


@composite()
@takes_disjoint_out
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the elements at the given indices of the flattened tensor.

    Parameters
    ----------
    {input}
    index : Tensor
        int64 indices, of any shape. Negative indices count from the end.
    {out}

    Returns
    -------
    Tensor
        A copy, with the shape of `index`.

    Raises
    ------
    TypeError
        If `index` is not a Tensor.
    RuntimeError
        If `index` is not int64.
    IndexError
        If an index is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.take(gl.tensor([[1, 2], [3, 4]]), gl.tensor([0, -1]))
    tensor([1, 4])
    """
    tensor_argument("take", index, "index", 1)
    at = parse_linear_indices("take", input.array, index)
    flat = reshape(input, (input.array.size,))
    if not at.ndim:
        taken = TAKE.record(flat, index=(at.reshape(1),), skip=0)
        return reshape_rule.with_node("TakeBackward0", view=False).record(taken, shape=())
    return TAKE.record(flat, index=(at,), skip=0)


@composite(inplace="method")
@with_twin
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor | Write:
    """Return a copy with elements replaced at the given indices of the flattened tensor.

    Parameters
    ----------
    {input}
    index : Tensor
        int64 indices. Negative indices count from the end.
    source : Tensor
        Values to write, with the dtype of `input` and as many elements as `index`.
    accumulate : bool, default: False
        Whether to add the values instead. Values at repeated indices are then summed.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or if `index` is not int64.
    IndexError
        If an index is out of range, or if `source` and `index` have different numbers of elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.put(gl.zeros(2, 2), gl.tensor([0, -1]), gl.tensor([5., 7.]))
    tensor([[5., 0.],
            [0., 7.]])
    """
    check_tensors("put", input=input, index=index, source=source)
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
    x = at_least_1d(input)
    xp = namespace_of[type(x.array)]
    at = xp.unravel_index(parse_linear_indices("put_", input.array, index).reshape(-1), x.array.shape)
    patch = reshape(source, (source.array.size,))
    return PUT_ADD if accumulate else PUT, tuple(at), patch


@composite(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert indices of a flattened tensor to coordinates.

    Parameters
    ----------
    indices : Tensor
        Integer positions in the flattened tensor.
    shape : int or sequence of ints
        Shape of the tensor.

    Returns
    -------
    tuple of Tensor
        Coordinates, one tensor for each dimension. Together they index the tensor.

    Raises
    ------
    TypeError
        If `indices` is not a Tensor of integers.
    ValueError
        If a size is negative.
    RuntimeError
        If `shape` has no elements but `indices` does.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.unravel_index(gl.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    tensor_argument("unravel_index", indices, "indices", 1)
    if indices.array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if indices.array.size and 0 in sizes:
        raise RuntimeError(f"ZeroDivisionError: a tensor of shape {sizes} has no elements to index.")
    coordinates, rest = [], indices.array.astype(np.int64)
    for n in reversed(sizes):
        coordinates.append(constant(wrap(rest % n)))
        rest = rest // n
    return tuple(reversed(coordinates))
