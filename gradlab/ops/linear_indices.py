"""Elements by their numbers in the flattened tensor, and those numbers as indices of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out_apart
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors
from gradlab.ops.indexed_writes import Write, places, tensor_argument, with_an_axis, with_twin
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


@composed()
@takes_out_apart
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements by their numbers in the flattened tensor.

    Parameters
    ----------
    {input}
    index : Tensor
        int64, of any shape; negative numbers count from the end.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `index`.

    Raises
    ------
    TypeError
        If `index` is no tensor.
    RuntimeError
        If it is not int64.
    IndexError
        If a number is out of range.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.take(gl.tensor([[1, 2], [3, 4]]), gl.tensor([0, -1]))
    tensor([1, 4])
    """
    tensor_argument("take", index, "index", 1)
    at = numbered_places("take", input.array, index)
    flat = reshape(input, (input.array.size,))
    if not at.ndim:
        return reshape_rule.named("TakeBackward0", view=False).record(TAKE.record(flat, index=(at.reshape(1),), skip=0), shape=())
    return TAKE.record(flat, index=(at,), skip=0)


@composed(inplace="method")
@with_twin
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor | Write:
    """A copy with elements written by their numbers in the flattened tensor.

    Parameters
    ----------
    {input}
    index : Tensor
        int64; negative numbers count from the end.
    source : Tensor
        What is written, of the dtype of `input` and as many elements as `index` has.
    accumulate : bool, default False
        Whether it is added, each as often as its place comes up, instead.
    {out}

    Returns
    -------
    Tensor
        A copy of the shape of `input`.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or `index` is not int64.
    IndexError
        If a number is out of range, or there are not as many elements as numbers.

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
    x = with_an_axis(input)
    xp = namespace_of[type(x.array)]
    at = xp.unravel_index(numbered_places("put_", input.array, index).reshape(-1), x.array.shape)
    patch = reshape(source, (source.array.size,))
    return PUT_ADD if accumulate else PUT, tuple(at), patch


@composed(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices of elements that are numbered in a tensor of some shape.

    Parameters
    ----------
    indices : Tensor
        Integers: the numbers in the flattened tensor.
    shape : int or sequence of ints
        The shape.

    Returns
    -------
    tuple of Tensor
        One for each dimension: together an index.

    Raises
    ------
    TypeError
        If `indices` is no tensor of integers.
    ValueError
        If a size is negative.
    RuntimeError
        If the shape has no element.

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
        raise RuntimeError(f"ZeroDivisionError: there is no element in a tensor of shape {sizes}.")
    coordinates, rest = [], indices.array.astype(np.int64)
    for n in reversed(sizes):
        coordinates.append(constant(wrap(rest % n)))
        rest = rest // n
    return tuple(reversed(coordinates))
