"""Linear algebra functions that PyTorch has in its top-level namespace. The others are in `gradlab.linalg`."""

from __future__ import annotations

from collections.abc import Sequence

from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (as in torch, `dtype` is a parameter)
from gradlab.core.operator import composite
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.determinants import determinant, sign_and_logarithm
from gradlab.linalg.norms import matrix_norm
from gradlab.linalg.powers import exponential, power, powers
from gradlab.linalg.solving import inv, pinv
from gradlab.ops.arguments import check_tensors, takes_axis
from gradlab.ops.joins import cat
from gradlab.ops.norms import vector_norm
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import indexing

__all__ = [
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "norm",
    "pinverse",
    "slogdet",
    "vander",
]

SlogDet = result_type("slogdet", "sign", "logabsdet")
LOGDET = el.where.with_node("WhereBackward0")
FLIP = indexing.getitem.with_node("FlipBackward0", view=False)


def deprecation_message(name: str, instead: str = "") -> str:
    """Return torch's warning for a function that moved to `linalg`."""
    return (
        f"gradlab.{name} is deprecated in favor of gradlab.linalg.{instead or name} and will be removed in a future "
        "PyTorch release."
    )


@composite()
@takes_out
def inverse(input: Tensor) -> Tensor:
    """Compute the inverse of square matrices.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.inverse(gl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv(input)


@composite()
@takes_out
def det(input: Tensor) -> Tensor:
    """Compute the determinant of square matrices.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Shape (…).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.det(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor(8.)
    """
    return determinant(input)


@composite()
def matrix_exp(input: Tensor) -> Tensor:
    """Compute the exponential of square matrices: 1 + A + A² / 2 + ….

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matrix_exp(gl.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return exponential(input)


@composite()
@takes_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Compute the n-th power of square matrices. A negative `n` raises the inverse to the power -n.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.
    n : int
        The exponent. 0 gives the identity.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.
    LinAlgError
        If `n` is negative and a matrix is singular.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matrix_power(gl.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return power(input, n)


@composite()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Compute the pseudo-inverse (Moore-Penrose inverse) of matrices.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    rcond : float, default: 1e-15
        Singular values up to rcond · the largest one are treated as 0.

    Returns
    -------
    Tensor
        (…, n, m).

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.pinverse(gl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return pinv(input, rtol=rcond)


@composite()
def slogdet(input: Tensor) -> Result:
    """Compute the sign of the determinant and the logarithm of its absolute value.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    named tuple
        `sign` (…), 0 for a singular matrix, and `logabsdet` (…).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.slogdet(gl.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return SlogDet(sign_and_logarithm("linalg.slogdet", input))


@composite()
def logdet(input: Tensor) -> Tensor:
    """Compute the logarithm of the determinant: -inf if it is 0, NaN if it is negative.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Shape (…).

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logdet(gl.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(0.)
    """
    sign, logarithm = sign_and_logarithm("logdet", input)
    return LOGDET.record(constant(sign.array == -1), float("nan"), logarithm)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Compute a Vandermonde matrix: its columns are the powers N - 1 to 0 of the elements of a vector.

    Parameters
    ----------
    x : Tensor
        A vector, (n,).
    N : int, optional
        The number of columns. Defaults to n.
    increasing : bool, default: False
        Return the powers in increasing order, from 0 to N - 1.

    Returns
    -------
    Tensor
        (n, N).

    Raises
    ------
    RuntimeError
        If `x` is not a vector or `N` is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.vander(gl.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    check_tensors("vander", x=x)
    if x.array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    if not count:
        return x.new_empty((x.array.shape[0], 0))
    columns = cat(powers(x, count), -1)
    return columns if increasing else FLIP.record(columns, index=(Ellipsis, slice(None, None, -1)), skip=0)


@composite()
@takes_axis
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    r"""Compute the norm of all elements, or over the axes `dim`.

    Parameters
    ----------
    input : Tensor
        Floating point tensor of any shape.
    p : number, "fro", "nuc" or None, default: "fro"
        The order: a real number or ±inf. "fro" and None mean 2. "nuc" is the sum of the singular values of matrices.
    dim : int or tuple of ints, optional
        The axes to reduce. Defaults to all axes, for "nuc" to the last two. `axis` is an alias.
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        Has the dtype of `input` and its shape without the reduced axes.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is not floating point, an axis is given twice, or `p` is an unknown string.

    Notes
    -----
    .. math:: \Bigl(\sum_i |x_i|^p\Bigr)^{1/p}

    p = 0 gives the number of nonzero elements, p = ±∞ the largest or smallest absolute value. The gradient is taken as 0 if the
    norm is 0. See also `gradlab.linalg.vector_norm` and `gradlab.linalg.matrix_norm`.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([3., 4.], requires_grad=True)
    >>> gl.norm(x).backward()
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    if p is None or p == "fro":
        p = 2
    if isinstance(p, str):
        return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, p, dim, keepdim, dtype=dtype)
