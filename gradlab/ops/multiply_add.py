"""Products of matrices and vectors with a tensor added: beta · input + alpha · product."""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import broadcast_mismatch
from gradlab.core.operator import composed
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import check_tensors, number, one_dim
from gradlab.ops.products import check_batches, check_dtypes, mm, mv, outer, placed
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
    """The numbers before the terms; whole ones for integers, as torch takes them."""
    values = tuple(v.array.item() if isinstance(v, Tensor) else v for v in values)
    return values if like.array.dtype.kind == "f" else tuple(number(v, like.array.dtype) for v in values)


@composed(inplace="method")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta · input + alpha · mat1 mat2.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to (n, p).
    mat1 : Tensor
        Of shape (n, m).
    mat2 : Tensor
        Of shape (m, p).
    beta : number, default 1
        Factor of `input`. With 0, nan and infinity in `input` do not count.
    alpha : number, default 1
        Factor of the product.
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
        If the dtypes differ, `mat1` or `mat2` is no matrix, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

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
    one_dtype(mat1, mat2, input)
    if beta == 1 and alpha == 1:
        return matrix.addmm.record(input, mat1, mat2, out=out)
    beta, alpha = coefficients(mat1, beta, alpha)
    return placed("addmm", matrix.scaled_addmm.record(input, mat1, mat2, beta=beta, alpha=alpha), out)


def one_dtype(a: Tensor, b: Tensor, added: Tensor) -> None:
    """Torch's refusals for three operands."""
    if added.array.dtype is a.array.dtype is b.array.dtype and a.array.dtype.kind != "b":
        return
    for which, x in (("self", added), ("mat1", a)):
        if x.array.dtype != b.array.dtype:
            raise RuntimeError(
                f"{which} and mat2 must have the same dtype, but got {x.dtype.word} and {b.dtype.word}. Convert "
                "one of them: x.float(), x.to(w.dtype)."
            )
    check_dtypes(a, b)


def check_three(one: Tensor, two: Tensor) -> None:
    for x in (one, two):
        if x.array.ndim != 3:
            one_dim(2, x.array.ndim)
            raise RuntimeError(f"batches of matrices are 3-D tensors; this one has shape {list(x.array.shape)}.")


@composed(inplace="method")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta · input + alpha · batch1 batch2, matrix by matrix.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to (b, n, p).
    batch1 : Tensor
        Of shape (b, n, m).
    batch2 : Tensor
        Of shape (b, m, p).
    beta : number, default 1
        Factor of `input`. With 0, nan and infinity in `input` do not count.
    alpha : number, default 1
        Factor of the product.
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
        If the dtypes differ, a batch is not 3-D, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.baddbmm(gl.ones(2, 1, 1), gl.ones(2, 1, 2), gl.ones(2, 2, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    check_tensors("baddbmm", input=input, batch1=batch1, batch2=batch2)
    check_three(batch1, batch2)
    check_batches(batch1, batch2)
    if input.array.dtype != batch1.array.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {input.dtype.c_name}, batch1: {batch1.dtype.c_name}, "
            f"batch2: {batch2.dtype.c_name}. Convert one of them: x.float(), x.to(w.dtype)."
        )
    check_dtypes(batch1, batch2)
    beta, alpha = coefficients(batch1, beta, alpha)
    return matrix.baddbmm.record(input, batch1, batch2, beta=beta, alpha=alpha, out=out)


def _added(name: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta · input + alpha · product, the sum under the name of the whole."""
    have, want = input.array.shape, product.array.shape
    if (
        len(have) > len(want)
        or broadcast_mismatch(have, want)
        or any(n not in (1, m) for n, m in zip(reversed(have), reversed(want), strict=False))
    ):
        raise matrix.affine_misfit(have, (*want[:-1], 0), (0, want[-1])) or RuntimeError(
            f"expand: the number of sizes provided ({len(want)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(have)})"
        )
    beta, alpha = coefficients(product, beta, alpha)
    if alpha != 1:
        product = product * alpha
    if beta != 1:
        input = el.fill.record(input, value=0) if beta == 0 else input * beta
    return NAMED[name].record(input, product)


NAMED = {name: el.add.named(f"{name.title()}Backward0") for name in ("addmv", "addr", "addbmm")}


@composed(inplace="method")
@takes_out
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta · input + alpha · mat vec.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to (n,).
    mat : Tensor
        Of shape (n, m).
    vec : Tensor
        Of shape (m,).
    beta : number, default 1
        Factor of `input`. With 0, nan and infinity in `input` do not count.
    alpha : number, default 1
        Factor of the product.
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
        If the dtypes differ, the ranks or sizes do not fit.
    NotImplementedError
        If the operands hold bools.

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
    return _added("addmv", input, mv(mat, vec), beta, alpha)


@composed(inplace="method")
@takes_out
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta · input + alpha · the outer product of two vectors.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to (n, m).
    vec1 : Tensor
        Of shape (n,).
    vec2 : Tensor
        Of shape (m,).
    beta : number, default 1
        Factor of `input`. With 0, nan and infinity in `input` do not count.
    alpha : number, default 1
        Factor of the product.
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
        If a vector is not 1-D, `input` does not broadcast, or integers get a factor that is floating point.

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
    return _added("addr", input, outer(vec1, vec2), beta, alpha)


@composed(inplace="method")
@takes_out
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """beta · input + alpha · the sum of the products of two batches of matrices.

    Parameters
    ----------
    input : Tensor
        Of a shape that broadcasts to (n, p).
    batch1 : Tensor
        Of shape (b, n, m).
    batch2 : Tensor
        Of shape (b, m, p).
    beta : number, default 1
        Factor of `input`. With 0, nan and infinity in `input` do not count.
    alpha : number, default 1
        Factor of the product.
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
        If the dtypes differ, a batch is not 3-D, or the sizes do not fit.
    NotImplementedError
        If the operands hold bools.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addbmm(gl.ones(1, 1), gl.ones(2, 1, 2), gl.ones(2, 2, 1))
    tensor([[5.]])
    """
    check_tensors("addbmm", input=input, batch1=batch1, batch2=batch2)
    check_three(batch1, batch2)
    one, two = batch1.array.shape, batch2.array.shape
    if one[0] != two[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {one[0]} and {two[0]}")
    if one[2] != two[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({one[1]}x{one[2]} and {two[1]}x{two[2]})")
    one_dtype(batch1, batch2, input)
    side = shapes.permute.record(batch1, axes=(-2, -3, -1))  # one product, of the batch and the shared axis
    flat = (
        shapes.reshape.record(side, shape=(one[1], one[0] * one[2])),
        shapes.reshape.record(batch2, shape=(one[0] * one[2], two[2])),
    )
    return _added("addbmm", input, mm(*flat), beta, alpha)
