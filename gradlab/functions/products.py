"""Products of matrices and vectors."""
from __future__ import annotations

from math import prod
from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.functions.arguments import checked
from gradlab.functions.shapes import UNSAFE_VIEW, squeeze, unsqueeze
from gradlab.rules import matrix, shapes

__all__ = ["dot", "matmul", "mm", "mv"]


def operator(input: Tensor, other: Tensor) -> Any:
    """What `@` does. The matrix product; vectors on either side as in NumPy, leading axes are batches."""
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        return NotImplemented
    if input.array.dtype is not other.array.dtype or input.array.dtype.kind == "b":
        check_dtypes(input, other)
    m, n = input.array.ndim, other.array.ndim
    if m == 2 and n == 2:
        return matrix.matmul.record(input, other)
    if m == 1 and n == 1:
        return matrix.dot.record(input, other)
    if m == 2 and n == 1:
        return matrix.matvec.record(input, other)
    if m == 1 and n == 2:
        return SQUEEZE.record(matrix.matmul.record(unsqueeze(input, 0), other), shape=other.array.shape[1:])
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if n <= 2:                                                           # one product of all rows, not one for each batch
        rows = shapes.reshape.record(input, shape=(prod(input.array.shape[:-1]), input.array.shape[-1]))
        op = matrix.matmul if n == 2 else matrix.matvec
        return UNSAFE_VIEW.record(op.record(rows, other), shape=input.array.shape[:-1] + other.array.shape[1:])
    if m == 1:
        return squeeze(matrix.bmm.record(unsqueeze(input, 0), other), -2)
    return matrix.bmm.record(input, other)


SQUEEZE = shapes.reshape.named("SqueezeBackward4", view=False)


def check_dtypes(input: Tensor, other: Tensor) -> None:
    """Torch's refusals: products promote nothing, and there are none of bools."""
    one, two, ranks = input.dtype, other.dtype, (input.array.ndim, other.array.ndim)
    if one is two:
        if one.numpy.kind == "b":
            name = "dot" if ranks == (1, 1) else "addmv_impl_cpu" if ranks == (2, 1) else "addmm_impl_cpu_"
            raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'. Call .int() or .float() first.")
        return
    words = (f"dot : expected both vectors to have same dtype, but found {one.word} and {two.word}" if ranks == (1, 1) else
             f"addmv input tensors must have the same dtype, but got {two.word}, {one.word}, and {two.word}" if ranks == (2, 1)
             else f"expected scalar type {one.word} but found {two.word}" if min(ranks) > 2 else
             f"expected m1 and m2 to have the same dtype, but got: {one.c_name} != {two.c_name}")
    raise RuntimeError(f"{words}. Convert one of them: x.float(), x.to(w.dtype).")


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product; vectors on either side as in NumPy, leading axes are batches."""
    return checked("matmul", operator(input, other), other)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    if input.array.ndim != 2 or mat2.array.ndim != 2:
        raise RuntimeError(f"{'self' if input.array.ndim != 2 else 'mat2'} must be a matrix: mm() multiplies 2-D tensors, got "
                           f"shapes {list(input.array.shape)} and {list(mat2.array.shape)}; matmul (@) takes other ranks.")
    return matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector."""
    return matmul(input, vec)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two 1-D tensors."""
    if input.array.ndim != 1 or other.array.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.array.ndim}D and {other.array.ndim}D tensors")
    return matmul(input, other)
