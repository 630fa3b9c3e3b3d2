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
    """The inverse of square matrices. Raises gradlab.linalg.LinAlgError for a singular one."""
    return inv(input)


@takes_out
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices."""
    return determinant(input)


def matrix_exp(input: Tensor) -> Tensor:
    """e^A = 1 + A + A² / 2 + … of square matrices."""
    return exponential(input)


@takes_out
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n times the same square matrix; of its inverse, for negative n."""
    return power(input, n)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The Moore-Penrose inverse; singular values up to rcond times the largest count as 0."""
    return pinv(input, rtol=rcond)


def slogdet(input: Tensor) -> Result:
    """The sign of the determinant (0 of a singular matrix) and the logarithm of its magnitude."""
    return SlogDet(sign_and_logarithm("linalg.slogdet", input))


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: -inf where it is 0, nan where it is negative."""
    sign, logarithm = sign_and_logarithm("logdet", input)
    return LOGDET.record(constant(sign.array == -1), float("nan"), logarithm)


@takes_out
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """As gradlab.linalg.cholesky."""
    warn_once(superseded("cholesky"))
    return positive_root("cholesky", matrices("cholesky", input), upper, CHOLESKY)


@takes_out
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, from the Cholesky factor L of A (its transpose, with upper=True)."""
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
    """The inverse of A, from its Cholesky factor L (its transpose, with upper=True)."""
    L = matrices("cholesky_inverse", L)
    return through_cholesky(identity_like(L, L.array.shape[-1]), L, upper, INVERTED)


@takes_out
def qr(input: Tensor, some: bool = True) -> Result:
    """As gradlab.linalg.qr, "reduced" with some=True, else "complete"."""
    warn_once(superseded("qr"))
    return QR(orthogonal(input, "reduced" if some else "complete"))


@takes_out
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Result:
    """U, S and V (not its transpose) with U diag(S) Vᵀ = input; with some=False U and V are square. With compute_uv=False they
    are zeros, square ones."""
    if not compute_uv:
        s = singular(input, False)[1]
        m, n = input.array.shape[-2:]
        batch = input.array.shape[:-2]
        return SVD((input.new_zeros((*batch, m, m)).detach(), s, input.new_zeros((*batch, n, n)).detach()))
    u, s, vh = singular(input, not some)
    return SVD((u, s, TRANSPOSED.record(vh, axes=exchanged(vh.array.ndim))))


@takes_out
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """As gradlab.linalg.lu_factor: L and U in one tensor, and the row exchanges."""
    warn_once(superseded("lu", "lu_factor / gradlab.linalg.lu_factor_ex"))
    made = tuple(lu_factor_ex(A, pivot=pivot, check_errors=not get_infos))
    return made if get_infos else made[:2]


@takes_out
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with A X = b, from the factors that `lu` gave."""
    warn_once(superseded("lu_solve"))
    return solve_from_factors(LU_data, LU_pivots, b)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers N - 1 to 0 of each element of a vector as columns; 0 to N - 1 with increasing=True."""
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
def _removed(name: str, instead: str) -> Any:
    def function(*args: Any, **options: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. Use gradlab.linalg.{instead}.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Removed from torch: use gradlab.linalg.{instead}."
    return function


eig, symeig, solve, lstsq, matrix_rank = (
    _removed(name, instead)
    for name, instead in (
        ("eig", "eigh, of a symmetric matrix"),
        ("symeig", "eigh"),
        ("solve", "solve(A, B), its arguments reversed"),
        ("lstsq", "lstsq(A, B), its arguments reversed"),
        ("matrix_rank", "matrix_rank"),
    )
)
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
