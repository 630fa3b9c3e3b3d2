"""Products of matrices and vectors."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import broadcast_mismatch
from gradlab.core.modes import mode
from gradlab.core.operator import composite
from gradlab.core.out_argument import copy_to_out, takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, negative_dim, require_implemented
from gradlab.ops.copies import clone, contiguous
from gradlab.ops.permutation import TRANSPOSE
from gradlab.ops.shapes import UNSAFE_VIEW, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import matrix, shapes

__all__ = [
    "bmm",
    "chain_matmul",
    "cross",
    "dot",
    "ger",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
]


def matmul_operator(input: Tensor, other: Tensor) -> Any:
    """Compute input @ other. Vectors on either side are treated as in NumPy, and leading axes are batches."""
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
        return SQUEEZE_ROW.record(matrix.matmul.record(unsqueeze(input, 0), other), shape=other.array.shape[1:])
    if m == 0 or n == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D. Multiply a tensor by a number with *."
        )
    if n <= 2:  # a single product of all rows instead of one for each matrix
        return multiply_rows(input, other)
    if m <= 2 and input.node is not None and mode.grad:  # the same from the left, so that the gradient is a single product
        product = multiply_rows(TRANSPOSE.record(other, axes=last_axes_swapped(n)), input if m == 1 else input.T)
        return product if m == 1 else contiguous(TRANSPOSE.record(product, axes=last_axes_swapped(n)))
    if m == 1:
        product = matrix.bmm.record(unsqueeze(input, 0), other)
        return UNSAFE_VIEW.record(product, shape=product.array.shape[:-2] + product.array.shape[-1:])
    product = matrix.bmm.record(input, other)
    return UNSAFE_VIEW.record(product, shape=product.array.shape)


SQUEEZE_ROW = shapes.reshape.with_node("SqueezeBackward4", view=False)


def multiply_rows(input: Tensor, other: Tensor) -> Tensor:
    """Multiply `input`, of more than two axes, by a matrix or vector, as a single product of all its rows."""
    shape = input.array.shape
    rows = shapes.reshape.record(input, shape=(prod(shape[:-1]), shape[-1]))
    op = matrix.matmul if other.array.ndim == 2 else matrix.matvec
    return UNSAFE_VIEW.record(op.record(rows, other), shape=shape[:-1] + other.array.shape[1:])


def last_axes_swapped(ndim: int) -> tuple[int, ...]:
    """Return the negative axes of a tensor with the last two swapped."""
    return (*range(-ndim, -2), -1, -2)


def check_dtypes(input: Tensor, other: Tensor) -> None:
    """Raise PyTorch's errors: products do not promote dtypes, and bools are not supported unless there is nothing to multiply."""
    one, two, ranks = input.dtype, other.dtype, (input.array.ndim, other.array.ndim)
    if one is two:
        if one.numpy.kind == "b" and input.array.size and other.array.size:
            name = (
                "dot"
                if ranks == (1, 1)
                else "addmv_impl_cpu"
                if ranks == (2, 1)
                else "bmm"
                if min(ranks) > 2
                else "addmm_impl_cpu_"
            )
            raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'. Call .int() or .float() first.")
        return
    words = (
        f"dot : expected both vectors to have same dtype, but found {one.word} and {two.word}"
        if ranks == (1, 1)
        else f"addmv input tensors must have the same dtype, but got {two.word}, {one.word}, and {two.word}"
        if ranks == (2, 1)
        else f"expected scalar type {one.word} but found {two.word}"
        if min(ranks) > 2
        else f"expected m1 and m2 to have the same dtype, but got: {one.c_name} != {two.c_name}"
    )
    raise RuntimeError(f"{words}. Convert one of them: x.float(), x.to(w.dtype).")


WARNINGS_GIVEN: set[str] = set()


def warn_once(text: str) -> None:
    """Warn about a deprecated function. Each warning is given once per process, as in PyTorch."""
    if text not in WARNINGS_GIVEN:
        WARNINGS_GIVEN.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


@composite()
@takes_out
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the matrix product `input @ other`.

    Parameters
    ----------
    input : Tensor
        Vector, matrix or batch of matrices, of floating point or integer dtype.
    other : Tensor
        Vector, matrix or batch of matrices, of the same dtype. Batch dimensions broadcast.
    {out}

    Returns
    -------
    Tensor
        Shapes (…, n, m) and (…, m, p) give (…, n, p). A vector counts as one row on the left and as one column on the right,
        and this dimension is dropped from the result. Two vectors give their inner product.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if an operand is 0-d, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matmul(gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([1., 2.]))
    tensor([ 5., 11.])
    """
    if not isinstance(other, Tensor):
        check_tensors("matmul", input=input, other=other)
    return require_implemented("matmul", matmul_operator(input, other), other)


@composite()
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply two matrices.

    Parameters
    ----------
    input : Tensor
        Matrix of shape (n, m).
    mat2 : Tensor
        Matrix of shape (m, p), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Shape (n, p), same dtype as the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if an operand is not a matrix, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.mm(gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([[1., 2.], [3., 4.]]))
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    if type(input) is not Tensor or type(mat2) is not Tensor:
        check_tensors("mm", input=input, mat2=mat2)
    if input.array.ndim != 2 or mat2.array.ndim != 2:
        raise RuntimeError(
            f"{'self' if input.array.ndim != 2 else 'mat2'} must be a matrix. mm() multiplies 2-D tensors, got "
            f"shapes {list(input.array.shape)} and {list(mat2.array.shape)}. matmul (@) accepts other shapes."
        )
    if input.array.dtype is not mat2.array.dtype or input.array.dtype.kind == "b":
        check_dtypes(input, mat2)
    return write_to_out("mm", matrix.matmul.record(input, mat2), out)


@composite()
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply the matrices of two batches.

    Parameters
    ----------
    input : Tensor
        Batch of matrices, of shape (b, n, m).
    mat2 : Tensor
        Batch of matrices, of shape (b, m, p), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Shape (b, n, p), same dtype as the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if an operand is not 3-d, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.bmm(gl.ones(2, 1, 2), gl.ones(2, 2, 1))
    tensor([[[2.]],
    <BLANKLINE>
            [[2.]]])
    """
    check_tensors("bmm", input=input, mat2=mat2)
    for which, x in (("batch1", input), ("batch2", mat2)):
        if x.array.ndim != 3:
            raise RuntimeError(
                f"{which} must be a 3D tensor, but got shape {list(x.array.shape)}. matmul (@) accepts other "
                "shapes and broadcasts batches."
            )
    check_batches(input, mat2)
    check_dtypes(input, mat2)
    return write_to_out("bmm", matrix.bmm.record(input, mat2), out)


def check_batches(a: Tensor, b: Tensor) -> None:
    one, two = a.array.shape, b.array.shape
    if one[0] != two[0] or one[2] != two[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{one[0]}, {one[2]}] but got: "
            f"[{two[0]}, {two[1]}]. The shapes are {list(one)} and {list(two)}."
        )


@composite()
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply a matrix by a vector.

    Parameters
    ----------
    input : Tensor
        Matrix of shape (n, m).
    vec : Tensor
        Vector of shape (m,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Shape (n,), same dtype as the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if the operands are not a matrix and a vector, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.mv(gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([1., 2.]))
    tensor([ 5., 11.])
    """
    check_tensors("mv", input=input, vec=vec)
    if input.array.ndim != 2 or vec.array.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {input.array.ndim}, {vec.array.ndim}. mv() multiplies a "
            "2-D tensor by a 1-D tensor. matmul (@) accepts other shapes."
        )
    check_dtypes(input, vec)
    return write_to_out("mv", matrix.matvec.record(input, vec), out)


@composite()
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inner product of two vectors.

    Parameters
    ----------
    input : Tensor
        Vector of shape (n,).
    tensor : Tensor
        Vector of shape (n,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        0-d, same dtype as the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if an operand is not 1-d, or if the sizes differ.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.dot(gl.tensor([1., 2.]), gl.tensor([1., 2.]))
    tensor(5.)
    """
    return inner_product(matrix.dot, "dot", input, tensor, "tensor", out)


@composite()
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inner product of two vectors. For real numbers, this equals `dot`.

    Parameters
    ----------
    input : Tensor
        Vector of shape (n,).
    other : Tensor
        Vector of shape (n,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        0-d, same dtype as the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the dtypes differ, if an operand is not 1-d, or if the sizes differ.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.vdot(gl.tensor([1., 2.]), gl.tensor([1., 2.]))
    tensor(5.)
    """
    return inner_product(matrix.vdot, "vdot", input, other, "other", out)


def inner_product(op: Any, name: str, a: Tensor, b: Tensor, second: str, out: Tensor | None) -> Tensor:
    if type(a) is not Tensor or type(b) is not Tensor:
        check_tensors(name, **{"input": a, second: b})
    if a.array.ndim != 1 or b.array.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {a.array.ndim}D and {b.array.ndim}D tensors. The sum of all products is (a * b).sum()."
        )
    check_dtypes(a, b)
    return write_to_out(name, op.record(a, b), out)


def write_to_out(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else copy_to_out(name, out, result)


@composite(aliases="ger")
@takes_out
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the outer product of two vectors.

    Parameters
    ----------
    input : Tensor
        Vector of shape (n,).
    vec2 : Tensor
        Vector of shape (m,).
    {out}

    Returns
    -------
    Tensor
        Shape (n, m), common dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If an operand is not 1-d.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.outer(gl.tensor([1., 2.]), gl.tensor([1., 2.]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    check_tensors("outer", input=input, vec2=vec2)
    for which, x in (("self", input), ("vec2", vec2)):
        if x.array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {which}, but got {x.array.ndim}-D. Flatten it: .flatten().")
    return el.mul.record(shapes.reshape.record(input, shape=(*input.array.shape, 1)), vec2)


ger = outer


# ------------------------------------------------------------------------------------------------------ other products
def chain_order(sizes: list[int]) -> list[list[int]]:
    """Find where to split each run of a matrix chain so that the number of multiplications is minimal.

    Matrix i has sizes[i] rows and sizes[i + 1] columns. See Cormen et al., "Introduction to Algorithms", section 14.2.
    """
    n = len(sizes) - 1
    cost = [[0.0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def chain_product(factors: list[Tensor]) -> Tensor:
    """Multiply matrices in the order that needs the fewest operations."""
    split = chain_order([factors[0].array.shape[0], *(x.array.shape[1] for x in factors)])

    def run(i: int, j: int) -> Tensor:
        return factors[i] if i == j else mm(run(i, split[i][j]), run(split[i][j] + 1, j))

    return run(0, len(factors) - 1)


@takes_out
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Multiply several matrices in the order that needs the fewest operations.

    Parameters
    ----------
    *matrices : Tensor
        Matrices of matching sizes.

    Returns
    -------
    Tensor
        The product.

    Raises
    ------
    RuntimeError
        If the sizes do not match.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.chain_matmul(gl.ones(2, 3), gl.ones(3, 1), gl.ones(1, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    warn_once(
        "gradlab.chain_matmul is deprecated and will be removed in a future PyTorch release. Use gradlab.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for at, x in enumerate(matrices):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(x).__name__}")
        if x.array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {x.array.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return clone(matrices[0])
    product = chain_product(list(matrices))
    return shapes.reshape.record(product, shape=product.array.shape)


def vector_product(input: Tensor, other: Tensor, axis: int, shown: int) -> Tensor:
    """Compute `cross` along a negative axis, after PyTorch's checks. `shown` is the axis as the user gave it, for errors."""
    one, two = input.array.shape, other.array.shape
    if input.array.dtype is not other.array.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.word} but found {other.dtype.word}. Convert one of them: "
            "x.float(), x.to(y.dtype)."
        )
    if one[axis] != 3 or two[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {shown} must have length 3. Got {one[axis]} and {two[axis]}")
    if bad := broadcast_mismatch(one, two):
        raise bad
    shape = tuple(max(n, m) if n and m else 0 for n, m in zip(one, two, strict=True))
    both = [x if x.array.shape == shape else shapes.expand.record(x, shape=shape, skip=0) for x in (input, other)]
    return matrix.cross.record(*both, axis=(axis,))


@composite()
@takes_out
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Compute the cross product along a dimension of size 3.

    Parameters
    ----------
    input, other : Tensor
        Tensors whose shapes broadcast.
    dim : int, optional
        Dimension of the vectors. Default: the first of size 3.

    Returns
    -------
    Tensor
        Broadcast shape of the operands.

    Raises
    ------
    RuntimeError
        If there is no dimension of size 3, or if the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cross(gl.tensor([1.0, 0.0, 0.0]), gl.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    check_tensors("cross", input=input, other=other)
    ndim = input.array.ndim
    if dim is None:
        warn_once(
            "Using gradlab.cross without specifying the dim arg is deprecated. Please either pass the dim explicitly or "
            "simply use gradlab.linalg.cross."
        )
        for axis, n in enumerate(input.array.shape):
            if n == 3:
                return vector_product(input, other, axis - ndim, axis)
        raise RuntimeError("no dimension of size 3 in input")
    if ndim != other.array.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    return vector_product(input, other, negative_dim(dim, ndim), dim)


def identity_like(x: Tensor, n: int) -> Tensor:
    """Return the identity matrix with n rows, in the dtype and on the device of `x`."""
    return constant(namespace_of[type(x.array)].eye(n, dtype=x.array.dtype))
