"""Matrix and vector products added to a tensor: beta · input + alpha · product."""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import broadcast_mismatch
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import check_tensors, convert_number, negative_dim
from gradlab.ops.products import check_batches, check_dtypes, mm, mv, outer, write_to_out
from gradlab.rules import elementwise as el
from gradlab.rules import matrix, shapes

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
]


def coefficients(like: Tensor, *values: Any) -> Any:
    """Return the multipliers as numbers. For integer tensors, convert them to integers as PyTorch does."""
    values = tuple(v.array.item() if isinstance(v, Tensor) else v for v in values)
    return values if like.array.dtype.kind == "f" else tuple(convert_number(v, like.array.dtype) for v in values)


@composite(inplace="method")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute beta · input + alpha · (mat1 @ mat2).

    Parameters
    ----------
    input : Tensor
        Tensor to add, of a shape that broadcasts to (n, p).
    mat1 : Tensor
        Matrix of shape (n, m).
    mat2 : Tensor
        Matrix of shape (m, p).
    beta : number, default: 1
        Multiplier of `input`. If it is 0, NaN and infinity in `input` are ignored.
    alpha : number, default: 1
        Multiplier of the product.
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
        If the dtypes differ, if `mat1` or `mat2` is not a matrix, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addmm(gl.tensor([[1., 2.], [1., 2.]]), gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([[1., 2.], [3., 4.]]))
    tensor([[ 8., 12.],
            [16., 24.]])
    """
    check_tensors("addmm", input=input, mat1=mat1, mat2=mat2)
    for which, x in (("mat1", mat1), ("mat2", mat2)):
        if x.array.ndim != 2:
            raise RuntimeError(f"{which} must be a matrix, got {x.array.ndim}-D tensor")
    check_common_dtype(mat1, mat2, input)
    if beta == 1 and alpha == 1:
        return matrix.addmm.record(input, mat1, mat2, out=out)
    beta, alpha = coefficients(mat1, beta, alpha)
    return write_to_out("addmm", matrix.scaled_addmm.record(input, mat1, mat2, beta=beta, alpha=alpha), out)


def check_common_dtype(a: Tensor, b: Tensor, added: Tensor) -> None:
    """Raise PyTorch's error unless the three operands have the same, supported dtype."""
    if added.array.dtype is a.array.dtype is b.array.dtype and a.array.dtype.kind != "b":
        return
    for which, x in (("self", added), ("mat1", a)):
        if x.array.dtype != b.array.dtype:
            raise RuntimeError(
                f"{which} and mat2 must have the same dtype, but got {x.dtype.word} and {b.dtype.word}. Convert "
                "one of them: x.float(), x.to(w.dtype)."
            )
    check_dtypes(a, b)


def check_batch_ndim(one: Tensor, two: Tensor) -> None:
    for x in (one, two):
        if x.array.ndim != 3:
            negative_dim(2, x.array.ndim)
            raise RuntimeError(f"expected a 3-D tensor (a batch of matrices), got shape {list(x.array.shape)}.")


@composite(inplace="method")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute beta · input + alpha · (batch1 @ batch2) for batches of matrices.

    Parameters
    ----------
    input : Tensor
        Tensor to add, of a shape that broadcasts to (b, n, p).
    batch1 : Tensor
        Batch of matrices, of shape (b, n, m).
    batch2 : Tensor
        Batch of matrices, of shape (b, m, p).
    beta : number, default: 1
        Multiplier of `input`. If it is 0, NaN and infinity in `input` are ignored.
    alpha : number, default: 1
        Multiplier of the product.
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
        If the dtypes differ, if a batch is not 3-d, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.baddbmm(gl.ones(2, 1, 1), gl.ones(2, 1, 2), gl.ones(2, 2, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    check_tensors("baddbmm", input=input, batch1=batch1, batch2=batch2)
    check_batch_ndim(batch1, batch2)
    check_batches(batch1, batch2)
    if input.array.dtype != batch1.array.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {input.dtype.c_name}, batch1: {batch1.dtype.c_name}, "
            f"batch2: {batch2.dtype.c_name}. Convert one of them: x.float(), x.to(w.dtype)."
        )
    check_dtypes(batch1, batch2)
    beta, alpha = coefficients(batch1, beta, alpha)
    return matrix.baddbmm.record(input, batch1, batch2, beta=beta, alpha=alpha, out=out)


def _add_product(name: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta · input + alpha · product. The addition is recorded under the node name of the operation `name`."""
    have, want = input.array.shape, product.array.shape
    if (
        len(have) > len(want)
        or broadcast_mismatch(have, want)
        or any(n not in (1, m) for n, m in zip(reversed(have), reversed(want), strict=False))
    ):
        raise matrix.affine_mismatch(have, (*want[:-1], 0), (0, want[-1])) or RuntimeError(
            f"expand: the number of sizes provided ({len(want)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    beta, alpha = coefficients(product, beta, alpha)
    if alpha != 1:
        product = product * alpha
    if beta != 1:
        input = el.fill.record(input, value=0) if beta == 0 else input * beta
    return ADDITIONS[name].record(input, product)


ADDITIONS = {name: el.add.with_node(f"{name.title()}Backward0") for name in ("addmv", "addr", "addbmm")}


@composite(inplace="method")
@takes_out
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute beta · input + alpha · (mat @ vec).

    Parameters
    ----------
    input : Tensor
        Tensor to add, of a shape that broadcasts to (n,).
    mat : Tensor
        Matrix of shape (n, m).
    vec : Tensor
        Vector of shape (m,).
    beta : number, default: 1
        Multiplier of `input`. If it is 0, NaN and infinity in `input` are ignored.
    alpha : number, default: 1
        Multiplier of the product.
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
        If the dtypes differ, or if the numbers of dimensions or the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addmv(gl.tensor([1., 2.]), gl.tensor([[1., 2.], [3., 4.]]), gl.tensor([1., 2.]))
    tensor([ 6., 13.])
    """
    check_tensors("addmv", input=input, mat=mat, vec=vec)
    ranks = input.array.ndim, mat.array.ndim, vec.array.ndim
    if ranks[1:] != (2, 1) or ranks[0] > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {', '.join(map(str, ranks))}.")
    rows, columns = mat.array.shape
    if columns != vec.array.shape[0] or input.array.size not in (1, rows):
        raise RuntimeError(f"size mismatch, got input ({input.array.size}), mat ({rows}x{columns}), vec ({vec.array.shape[0]})")
    if not input.array.dtype == mat.array.dtype == vec.array.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{input.dtype.word}, {mat.dtype.word}, and {vec.dtype.word}. Convert one of them: x.float()."
        )
    return _add_product("addmv", input, mv(mat, vec), beta, alpha)


@composite(inplace="method")
@takes_out
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute beta · input + alpha · outer(vec1, vec2).

    Parameters
    ----------
    input : Tensor
        Tensor to add, of a shape that broadcasts to (n, m).
    vec1 : Tensor
        Vector of shape (n,).
    vec2 : Tensor
        Vector of shape (m,).
    beta : number, default: 1
        Multiplier of `input`. If it is 0, NaN and infinity in `input` are ignored.
    alpha : number, default: 1
        Multiplier of the product.
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
        If a vector is not 1-d, if `input` does not broadcast, or if the operands are integers and a multiplier is floating
        point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addr(gl.zeros(2, 2), gl.tensor([1., 2.]), gl.tensor([1., 2.]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    check_tensors("addr", input=input, vec1=vec1, vec2=vec2)
    for which, x in (("vec1", vec1), ("vec2", vec2)):
        if x.array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {which}, but got {x.array.ndim}-D")
    if all(x.array.dtype.kind != "f" for x in (input, vec1, vec2)):
        for what, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(
                    f"For integral input tensors, argument {what} must not be a floating point number. Convert "
                    "the tensors: x.float()."
                )
    return _add_product("addr", input, outer(vec1, vec2), beta, alpha)


@composite(inplace="method")
@takes_out
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute beta · input + alpha · (batch1 @ batch2), summed over the batch.

    Parameters
    ----------
    input : Tensor
        Tensor to add, of a shape that broadcasts to (n, p).
    batch1 : Tensor
        Batch of matrices, of shape (b, n, m).
    batch2 : Tensor
        Batch of matrices, of shape (b, m, p).
    beta : number, default: 1
        Multiplier of `input`. If it is 0, NaN and infinity in `input` are ignored.
    alpha : number, default: 1
        Multiplier of the sum of the products.
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
        If the dtypes differ, if a batch is not 3-d, or if the sizes do not match.
    NotImplementedError
        If the operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addbmm(gl.ones(1, 1), gl.ones(2, 1, 2), gl.ones(2, 2, 1))
    tensor([[5.]])
    """
    check_tensors("addbmm", input=input, batch1=batch1, batch2=batch2)
    check_batch_ndim(batch1, batch2)
    one, two = batch1.array.shape, batch2.array.shape
    if one[0] != two[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {one[0]} and {two[0]}")
    if one[2] != two[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({one[1]}x{one[2]} and {two[1]}x{two[2]})")
    check_common_dtype(batch1, batch2, input)
    side = shapes.permute.record(batch1, axes=(-2, -3, -1))  # one product, which sums over the batch as well
    flat = (
        shapes.reshape.record(side, shape=(one[1], one[0] * one[2])),
        shapes.reshape.record(batch2, shape=(one[0] * one[2], two[2])),
    )
    return _add_product("addbmm", input, mm(*flat), beta, alpha)
