"""Products of matrices and vectors."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import broadcast_mismatch
from gradlab.core.modes import mode
from gradlab.core.operator import composed
from gradlab.core.out_argument import into, takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, checked, one_dim
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
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D. A number times a "
            "tensor is written with *."
        )
    if n <= 2:  # one product of all rows, not one for each batch
        return rows_times(input, other)
    if m <= 2 and input.node is not None and mode.grad:  # so too from the left: its gradient is then one product
        product = rows_times(TRANSPOSE.record(other, axes=exchanged(n)), input if m == 1 else input.T)
        return product if m == 1 else contiguous(TRANSPOSE.record(product, axes=exchanged(n)))
    if m == 1:
        product = matrix.bmm.record(unsqueeze(input, 0), other)
        return UNSAFE_VIEW.record(product, shape=product.array.shape[:-2] + product.array.shape[-1:])
    product = matrix.bmm.record(input, other)
    return UNSAFE_VIEW.record(product, shape=product.array.shape)


SQUEEZE = shapes.reshape.named("SqueezeBackward4", view=False)


def rows_times(input: Tensor, other: Tensor) -> Tensor:
    """`input` of more than two axes times a matrix or a vector, as one product of all its rows."""
    shape = input.array.shape
    rows = shapes.reshape.record(input, shape=(prod(shape[:-1]), shape[-1]))
    op = matrix.matmul if other.array.ndim == 2 else matrix.matvec
    return UNSAFE_VIEW.record(op.record(rows, other), shape=shape[:-1] + other.array.shape[1:])


def exchanged(ndim: int) -> tuple[int, ...]:
    """The axes of a tensor, the last two exchanged."""
    return (*range(-ndim, -2), -1, -2)


def check_dtypes(input: Tensor, other: Tensor) -> None:
    """Torch's refusals: products promote nothing, and there are none of bools, unless there is nothing to multiply."""
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


WARNED: set[str] = set()


def warn_once(text: str) -> None:
    """Torch's warning of a name that is to go: once in a process, as torch gives it."""
    if text not in WARNED:
        WARNED.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


@composed()
@takes_out
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product, written `@` too.

    Parameters
    ----------
    input : Tensor
        A vector, a matrix or a batch of matrices. Floating point or integers, not bools.
    other : Tensor
        The same, of the same dtype. Batches broadcast.
    {out}

    Returns
    -------
    Tensor
        (…, n, m) and (…, m, p) give (…, n, p). A vector of m on the left counts as one row, on the right as one column,
        and that axis is not in the result; two vectors give their inner product.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, an operand is 0-d, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matmul(gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([1., 2.]))
    tensor([ 5., 11.])
    """
    if not isinstance(other, Tensor):
        check_tensors("matmul", input=input, other=other)
    return checked("matmul", operator(input, other), other)


@composed()
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of two matrices.

    Parameters
    ----------
    input : Tensor
        Of shape (n, m).
    mat2 : Tensor
        Of shape (m, p), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Of shape (n, p), of the dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, an operand is no matrix, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

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
            f"shapes {list(input.array.shape)} and {list(mat2.array.shape)}; matmul (@) takes other ranks."
        )
    if input.array.dtype is not mat2.array.dtype or input.array.dtype.kind == "b":
        check_dtypes(input, mat2)
    return placed("mm", matrix.matmul.record(input, mat2), out)


@composed()
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Products of two batches of as many matrices.

    Parameters
    ----------
    input : Tensor
        Of shape (b, n, m).
    mat2 : Tensor
        Of shape (b, m, p), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Of shape (b, n, p), of the dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, an operand is not 3-D, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

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
                f"{which} must be a 3D tensor. This one has shape {list(x.array.shape)}; matmul (@) takes other "
                "ranks, and broadcasts batches."
            )
    check_batches(input, mat2)
    check_dtypes(input, mat2)
    return placed("bmm", matrix.bmm.record(input, mat2), out)


def check_batches(a: Tensor, b: Tensor) -> None:
    one, two = a.array.shape, b.array.shape
    if one[0] != two[0] or one[2] != two[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{one[0]}, {one[2]}] but got: "
            f"[{two[0]}, {two[1]}]. The shapes are {list(one)} and {list(two)}."
        )


@composed()
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Product of a matrix and a vector.

    Parameters
    ----------
    input : Tensor
        Of shape (n, m).
    vec : Tensor
        Of shape (m,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        Of shape (n,), of the dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, the ranks are not 2 and 1, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

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
            "2-D tensor and a 1-D one; matmul (@) takes other ranks."
        )
    check_dtypes(input, vec)
    return placed("mv", matrix.matvec.record(input, vec), out)


@composed()
def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inner product of two vectors.

    Parameters
    ----------
    input : Tensor
        Of shape (n,).
    tensor : Tensor
        Of shape (n,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        0-d, of the dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, an operand is not 1-D, or the sizes differ.
    NotImplementedError
        If the operands hold bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.dot(gl.tensor([1., 2.]), gl.tensor([1., 2.]))
    tensor(5.)
    """
    return inner_product(matrix.dot, "dot", input, tensor, "tensor", out)


@composed()
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Inner product of two vectors; without complex numbers it is `dot`.

    Parameters
    ----------
    input : Tensor
        Of shape (n,).
    other : Tensor
        Of shape (n,), of the same dtype.
    {out}

    Returns
    -------
    Tensor
        0-d, of the dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If the dtypes differ, an operand is not 1-D, or the sizes differ.
    NotImplementedError
        If the operands hold bools.

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
    return placed(name, op.record(a, b), out)


def placed(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    return result if out is None else into(name, out, result)


@composed(aliases="ger")
@takes_out
def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Outer product: each element of a vector times each of another.

    Parameters
    ----------
    input : Tensor
        Of shape (n,).
    vec2 : Tensor
        Of shape (m,).
    {out}

    Returns
    -------
    Tensor
        Of shape (n, m), of the common dtype.

    Raises
    ------
    TypeError
        If an operand is no tensor.
    RuntimeError
        If an operand is not 1-D.

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
    """Where to part each run of a chain of matrices, of sizes[i] × sizes[i + 1], to multiply least (Cormen et al.,
    "Introduction to Algorithms", section 14.2)."""
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
    """The product of matrices, multiplied in the order that takes the fewest steps."""
    split = chain_order([factors[0].array.shape[0], *(x.array.shape[1] for x in factors)])

    def run(i: int, j: int) -> Tensor:
        return factors[i] if i == j else mm(run(i, split[i][j]), run(split[i][j] + 1, j))

    return run(0, len(factors) - 1)


@takes_out
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that takes the fewest steps.

    Parameters
    ----------
    *matrices : Tensor
        Matrices whose sizes fit.

    Returns
    -------
    Tensor
        The product.

    Raises
    ------
    RuntimeError
        If the sizes do not fit.

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
    """`cross` along a negative axis, after torch's checks; `shown` is the axis as it was given."""
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


@composed()
@takes_out
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along an axis of length 3.

    Parameters
    ----------
    input, other : Tensor
        Of shapes that broadcast.
    dim : int, optional
        The axis; by default the first of length 3.

    Returns
    -------
    Tensor
        The shape that they broadcast to.

    Raises
    ------
    RuntimeError
        If there is no axis of length 3, or the shapes do not broadcast.

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
    return vector_product(input, other, one_dim(dim, ndim), dim)


def identity_like(x: Tensor, n: int) -> Tensor:
    """The identity matrix of n rows, where `x` lies and in its dtype."""
    return constant(namespace_of[type(x.array)].eye(n, dtype=x.array.dtype))
