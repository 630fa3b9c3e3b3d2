"""Broadcasting without copying, and the resulting shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.errors import Size, broadcast_mismatch
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor
from gradlab.ops import reductions
from gradlab.ops.arguments import check_tensors
from gradlab.ops.shapes import collect_ints, collect_tensors, is_int
from gradlab.rules import shapes as rules

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
]


@composite(top=False)
def expand(self: Tensor, *sizes: int | Sequence[int], size: Sequence[int] | None = None, implicit: bool = False) -> Tensor:
    """Expand dimensions of size 1 to larger sizes without copying.

    Parameters
    ----------
    *sizes : int or sequence of int
        New shape: `x.expand(2, 3)` or `x.expand((2, 3))`. -1 keeps the size of a dimension. Additional sizes in front add
        dimensions.
    size : sequence of int, optional
        New shape as a keyword.
    implicit : bool, default: False
        Accepted for compatibility with PyTorch; it has no effect.

    Returns
    -------
    Tensor
        A view. Repeated elements share one memory location, and their gradients are summed.

    Raises
    ------
    RuntimeError
        If a dimension whose size is not 1 would change, or there are fewer sizes than dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([[1.], [2.]], requires_grad=True)
    >>> x.expand(2, 3).sum().backward()
    >>> x.grad
    tensor([[3.],
            [3.]])
    """
    wanted: Any = size
    if wanted is None:
        wanted = sizes[0] if len(sizes) == 1 and type(sizes[0]) is not int else sizes
    if type(wanted) is not tuple:
        wanted = collect_ints("expand", "size", (wanted,))
    if -1 not in wanted:
        try:
            return rules.expand.record(self, shape=wanted, skip=0)
        except (TypeError, ValueError, AttributeError):
            wanted = collect_ints("expand", "size", (wanted,))
    have = self.array.shape
    extra = len(wanted) - len(have)
    if extra < 0:
        raise RuntimeError(
            f"expand(gradlab.{self.dtype.legacy}{{{list(have)}}}, size={list(wanted)}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    for at, n in enumerate(wanted):
        if n == -1 and at < extra:
            raise RuntimeError(f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {at}")
    shape = tuple(n if n != -1 else have[at - extra] for at, n in enumerate(wanted))
    for at in range(len(wanted) - 1, extra - 1, -1):
        if have[at - extra] not in (1, shape[at]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[at]}) must match the existing size ({have[at - extra]}) "
                f"at non-singleton dimension {at}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(have)}"
            )
    return rules.expand.record(self, shape=shape, skip=0)


@composite(top=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand dimensions of size 1 to the shape of another tensor without copying.

    Parameters
    ----------
    other : Tensor
        Tensor with the new shape.

    Returns
    -------
    Tensor
        A view; see `expand`.

    Raises
    ------
    RuntimeError
        If the shape does not broadcast to that of `other`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([1., 2.]).expand_as(gl.zeros(2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    check_tensors("expand_as", self=self, other=other)
    return expand(self, other.array.shape)


@composite()
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Broadcast `input` to a shape without copying; `expand` under NumPy's name.

    Parameters
    ----------
    {input}
    size : sequence of int
        New shape. -1 keeps the size of a dimension.

    Returns
    -------
    Tensor
        A view; see `Tensor.expand`.

    Raises
    ------
    RuntimeError
        If a dimension whose size is not 1 would change, or there are fewer sizes than dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.broadcast_to(gl.tensor([1, 2, 3]), (2, 3))
    tensor([[1, 2, 3],
            [1, 2, 3]])
    """
    return expand(input, tuple(size))


@composite(method=False)
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Expand tensors to their common broadcast shape.

    Parameters
    ----------
    *tensors : Tensor or sequence of Tensor
        Tensors, as separate arguments or as one sequence.

    Returns
    -------
    tuple of Tensor
        Views of the same shape.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> a, b = gl.broadcast_tensors(gl.zeros(3, 1), gl.zeros(4))
    >>> a.shape, b.shape
    (gradlab.Size([3, 4]), gradlab.Size([3, 4]))
    """
    several = collect_tensors("broadcast_tensors", tensors)
    shape: tuple[int, ...] = ()
    for x in several:
        shape = joint_shape(shape, x.array.shape)
    return tuple(x if x.array.shape == shape else expand(x, shape) for x in several)


def joint_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the broadcast shape of two shapes, or raise PyTorch's RuntimeError."""
    if error := broadcast_mismatch(a, b):
        raise error
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    return tuple(m if n == 1 else n for n, m in zip(a, b, strict=True))


@composite(method=False)
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the broadcast shape of the given shapes.

    Parameters
    ----------
    *shapes : sequence of int, or int
        Shapes. An integer n means ``(n,)``.

    Returns
    -------
    Size
        Broadcast shape, with the shapes aligned at their last dimensions.

    Raises
    ------
    RuntimeError
        If two sizes differ and neither is 1, or a size is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.broadcast_shapes((2, 1), (3,), 1)
    gradlab.Size([2, 3])
    """
    whole: list[int] = []
    shape: Any
    for at, shape in enumerate(shapes):
        sizes = [int(shape)] if is_int(shape) else [int(n) for n in shape]
        if any(n < 0 for n in sizes):
            raise RuntimeError(f"Trying to create tensor with negative dimension ({min(sizes)}): ({min(sizes)})")
        whole = [1] * (len(sizes) - len(whole)) + whole
        for i in range(-1, -len(sizes) - 1, -1):
            if sizes[i] not in (1, whole[i]) and whole[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[i]} at {i}! Mismatching argument at "
                    f"index {at} had {tuple(sizes)}; but expected shape should be broadcastable to {whole}"
                )
            whole[i] = whole[i] if sizes[i] == 1 else sizes[i]
    return Size(whole)


@composite(top=False)
def sum_to_size(self: Tensor, *size: int | Sequence[int]) -> Tensor:
    """Sum over the dimensions that `expand` would add or enlarge; the adjoint of `expand`.

    Parameters
    ----------
    *size : int or sequence of int
        Shape that broadcasts to that of this tensor: `x.sum_to_size(2, 1)` or `x.sum_to_size((2, 1))`.

    Returns
    -------
    Tensor
        Tensor of shape `size`.

    Raises
    ------
    RuntimeError
        If the shape does not broadcast to that of this tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([[1., 2.], [3., 4.]]).sum_to_size(1, 2)
    tensor([[4., 6.]])
    """
    return reductions.sum_to_size(self, collect_ints("sum_to_size", "size", size))
