"""Linear algebra under the names that torch has at the top level; the rest is in `gradlab.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from gradlab.core.destination import takes_out
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (as in torch, `dtype` is a parameter)
from gradlab.core.operator import composed
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.factors import INVERTED, SOLVED, lu_factor_ex, orthogonal, positive_root, singular, through_cholesky
from gradlab.linalg.factors import lu_solve as solve_from_factors
from gradlab.linalg.matrices import matrices
from gradlab.linalg.norms import matrix_norm
from gradlab.linalg.powers import exponential, power, powers
from gradlab.linalg.solving import determinant, inv, pinv, sign_and_logarithm
from gradlab.ops.arguments import over_dims
from gradlab.ops.joins import cat
from gradlab.ops.norms import vector_norm
from gradlab.ops.products import exchanged, identity_like, tensors, warn_once
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import factorizations as rules
from gradlab.rules import indexing, shapes

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "matrix_exp",
    "matrix_power",
    "norm",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "vander",
]

QR, SVD, SlogDet = result_type("qr", "Q", "R"), result_type("svd", "U", "S", "V"), result_type("slogdet", "sign", "logabsdet")
CHOLESKY, LOGDET = rules.cholesky.named("CholeskyBackward0"), el.where.named("WhereBackward0")
TRANSPOSED = shapes.permute.named("TransposeBackward0")
FLIPPED = indexing.getitem.named("FlipBackward0", view=False)


def superseded(name: str, instead: str = "") -> str:
    """Torch's words for a name that has gone to `linalg`."""
    return (
        f"gradlab.{name} is deprecated in favor of gradlab.linalg.{instead or name} and will be removed in a future "
        "PyTorch release."
    )


@takes_out
def inverse(input: Tensor) -> Tensor:
    """The inverse of square matrices.

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
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.inverse(gl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv(input)


@takes_out
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Of shape (…).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.det(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor(8.)
    """
    return determinant(input)


def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices: 1 + A + A² / 2 + ….

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
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matrix_exp(gl.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return exponential(input)


@takes_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n times the same square matrix; of its inverse, for negative n.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.
    n : int
        How many times; 0 gives the identity.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.
    LinAlgError
        If n is negative, and a matrix is singular.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.matrix_power(gl.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return power(input, n)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The Moore-Penrose inverse.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    rcond : float, default 1e-15
        Singular values up to rcond times the largest count as 0.

    Returns
    -------
    Tensor
        (…, n, m).

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.pinverse(gl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return pinv(input, rtol=rcond)


def slogdet(input: Tensor) -> Result:
    """The sign of the determinant, and the logarithm of its magnitude.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    named tuple
        `sign` (…), 0 of a singular matrix, and `logabsdet` (…).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.slogdet(gl.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    return SlogDet(sign_and_logarithm("linalg.slogdet", input))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: -inf where it is 0, NaN where it is negative.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point.

    Returns
    -------
    Tensor
        Of shape (…).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logdet(gl.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(0.)
    """
    sign, logarithm = sign_and_logarithm("logdet", input)
    return LOGDET.record(constant(sign.array == -1), float("nan"), logarithm)


@takes_out
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The triangular factor of symmetric positive-definite matrices: `gradlab.linalg.cholesky`.

    Parameters
    ----------
    input : Tensor
        Symmetric positive-definite matrices, (…, n, n), floating point, of which one triangle is read.
    upper : bool, default False
        Whether the upper triangle is read and returned.

    Returns
    -------
    Tensor
        L, lower triangular with L Lᵀ = input; with `upper` its transpose.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))
    tensor([[2.0000, 0.0000],
            [1.0000, 1.4142]])
    """
    warn_once(superseded("cholesky"))
    return positive_root("cholesky", matrices("cholesky", input), upper, CHOLESKY)


@takes_out
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, from the Cholesky factor of A.

    Parameters
    ----------
    input : Tensor
        The right sides, (…, n, k).
    L : Tensor
        The factor, (…, n, n).
    upper : bool, default False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky_solve(gl.tensor([[8.0], [7.0]]), gl.cholesky(gl.tensor([[4.0, 2.0], [2.0, 3.0]])))
    tensor([[1.2500],
            [1.5000]])
    """
    tensors("cholesky_solve", input=input, L=L)
    for which, x in (("b", input), ("u", L)):
        if x.array.ndim < 2:
            raise RuntimeError(f"{which} should have at least 2 dimensions, but has {x.array.ndim} dimensions instead")
    n, have = L.array.shape[-2:], input.array.shape[-2:]
    if n[0] != have[0]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {n[0]} by {n[1]} but each b matrix "
            f"is {have[0]} by {have[1]}"
        )
    return through_cholesky(input, matrices("cholesky_solve", L), upper, SOLVED)


@takes_out
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor.

    Parameters
    ----------
    L : Tensor
        The factor, (…, n, n).
    upper : bool, default False
        Whether the factor is upper triangular.

    Returns
    -------
    Tensor
        (…, n, n).

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cholesky_inverse(gl.cholesky(gl.tensor([[4.0, 0.0], [0.0, 1.0]])))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    L = matrices("cholesky_inverse", L)
    return through_cholesky(identity_like(L, L.array.shape[-1]), L, upper, INVERTED)


@takes_out
def qr(input: Tensor, some: bool = True) -> Result:
    """The factors of a matrix: orthonormal columns and an upper triangle.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default True
        Whether as `gradlab.linalg.qr` with "reduced", else "complete".

    Returns
    -------
    named tuple
        `Q` and `R`, with Q R = input.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.qr(gl.tensor([[3.0, 1.0], [4.0, 1.0]])).R.abs()
    tensor([[5.0000, 1.4000],
            [0.0000, 0.2000]])
    """
    warn_once(superseded("qr"))
    return QR(orthogonal(input, "reduced" if some else "complete"))


@takes_out
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Result:
    """The singular value decomposition: U diag(S) Vᵀ = input.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    some : bool, default True
        Whether U and V have min(m, n) columns; else they are square.
    compute_uv : bool, default True
        Whether U and V are computed; else they are zeros, square ones.

    Returns
    -------
    named tuple
        `U`, `S`, descending, and `V`, not its transpose.

    Raises
    ------
    RuntimeError
        If it has fewer than two axes, or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.svd(gl.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    if not compute_uv:
        s = singular(input, False)[1]
        m, n = input.array.shape[-2:]
        batch = input.array.shape[:-2]
        return SVD((input.new_zeros((*batch, m, m)).detach(), s, input.new_zeros((*batch, n, n)).detach()))
    u, s, vh = singular(input, not some)
    return SVD((u, s, TRANSPOSED.record(vh, axes=exchanged(vh.array.ndim))))


@takes_out
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The factors of a matrix in one tensor, with the row exchanges: `gradlab.linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor
        Matrices, (…, m, n), floating point.
    pivot : bool, default True
        Whether rows are exchanged; False is refused.
    get_infos : bool, default False
        Whether a third result says where a pivot is 0.

    Returns
    -------
    tuple
        (LU, pivots), and with `get_infos` a third, (…), int32: 0, or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If it is no matrix, not floating point, or `pivot` is False.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]]))[0]
    tensor([[4.0000, 2.0000],
            [0.5000, 2.0000]])
    """
    warn_once(superseded("lu", "lu_factor / gradlab.linalg.lu_factor_ex"))
    made = tuple(lu_factor_ex(A, pivot=pivot, check_errors=not get_infos))
    return made if get_infos else made[:2]


@takes_out
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, from the factors that `lu` gave.

    Parameters
    ----------
    b : Tensor
        The right sides, (…, n, k).
    LU_data : Tensor
        (…, n, n).
    LU_pivots : Tensor
        (…, n), int32.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes or dtypes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lu_solve(gl.tensor([[8.0], [7.0]]), *gl.lu(gl.tensor([[4.0, 2.0], [2.0, 3.0]])))
    tensor([[1.2500],
            [1.5000]])
    """
    warn_once(superseded("lu_solve"))
    return solve_from_factors(LU_data, LU_pivots, b)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 to 0 of each element of a vector, as columns.

    Parameters
    ----------
    x : Tensor
        A vector, (n,).
    N : int, optional
        How many; by default n.
    increasing : bool, default False
        Whether from 0 to N - 1.

    Returns
    -------
    Tensor
        (n, N).

    Raises
    ------
    RuntimeError
        If `x` is no vector, or N is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.vander(gl.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    tensors("vander", x=x)
    if x.array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    if not count:
        return x.new_empty((x.array.shape[0], 0))
    columns = cat(powers(x, count), -1)
    return columns if increasing else FLIPPED.record(columns, index=(Ellipsis, slice(None, None, -1)), skip=0)


# -------------------------------------------------------------------------------------------------------------- removed
REMOVED = """Removed from torch: use gradlab.linalg.{instead}.

Parameters
----------
*args, **options : optional
    Whatever is passed.

Returns
-------
None
    It always raises.

Raises
------
RuntimeError
    Always; it says what to write.

Examples
--------
>>> import gradlab as gl
>>> A = gl.tensor([[4.0, 0.0], [0.0, 1.0]])
>>> gl.linalg.{example}
"""


def _removed(name: str, instead: str, example: str) -> Any:
    def function(*args: Any, **options: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. Use gradlab.linalg.{instead}.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = REMOVED.format(instead=instead, example=example)
    return function


eig = _removed("eig", "eigh, of a symmetric matrix", "eigh(A).eigenvalues\ntensor([1., 4.])")
symeig = _removed("symeig", "eigh", "eigh(A).eigenvalues\ntensor([1., 4.])")
solve = _removed("solve", "solve(A, B), its arguments reversed", "solve(A, gl.tensor([4.0, 1.0]))\ntensor([1., 1.])")
lstsq = _removed("lstsq", "lstsq(A, B), its arguments reversed", "lstsq(A, gl.tensor([[4.0], [1.0]])).rank\ntensor(2)")
matrix_rank = _removed("matrix_rank", "matrix_rank", "matrix_rank(A)\ntensor(2)")
__all__ += ["eig", "lstsq", "matrix_rank", "solve", "symeig"]


@composed()
@over_dims
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    r"""The norm of all elements as one vector, or over the axes of `dim`.

    Parameters
    ----------
    input : Tensor
        The tensor, of any shape, floating point.
    p : number, "fro", "nuc" or None, default "fro"
        The order: any real number or an infinity; "fro" and None mean 2; "nuc" is the sum of the singular values of matrices.
    dim : int or tuple of ints, optional
        The axes that are reduced, all by default; of "nuc" two, the last by default. `axis` means the same.
    {keepdim}
    {dtype}
    {out}

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes, of its dtype.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` is not floating point, an axis is named twice, or `p` is another word.

    Notes
    -----
    .. math:: \Bigl(\sum_i |x_i|^p\Bigr)^{1/p}

    At p = 0 it is the number of elements that are not 0, at ±∞ the largest or smallest magnitude. Where the norm is 0, the
    gradient is taken as 0. `gradlab.linalg` has `vector_norm` and `matrix_norm`.

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
