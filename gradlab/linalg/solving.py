"""Systems of equations, inverses and determinants."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import host, namespace_of
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.matrices import (
    LinAlgError,
    first_failure,
    handing_out,
    integers,
    matrices,
    number,
    refused,
    same_dtype,
    singular,
    zero_pivot,
)
from gradlab.ops.arguments import check_tensors, not_a_tensor
from gradlab.ops.products import exchanged
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import linalg as rules
from gradlab.rules import matrix as products
from gradlab.rules import shapes

InvEx, SolveEx = result_type("linalg_inv_ex", "inverse", "info"), result_type("linalg_solve_ex", "result", "info")
SlogDet = result_type("linalg_slogdet", "sign", "logabsdet")
LstSq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# ------------------------------------------------------------------------------------------------------------ inverses
@takes_out
def inv(A: Tensor) -> Tensor:
    r"""The inverse of square matrices.

    Parameters
    ----------
    A : Tensor
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

    Notes
    -----
    .. math:: \bar{A} = -A^{-\mathsf{T}} \bar{Y} A^{-\mathsf{T}}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.inv(gl.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inverted("linalg.inv", matrices("linalg.inv", A))


def inverted(name: str, A: Tensor) -> Tensor:
    try:
        return rules.inv.record(A)
    except np.linalg.LinAlgError:
        raise singular(name, A.array) from None


def pivots_missing(A: Tensor) -> np.ndarray:
    """For each matrix the number of its first zero pivot, or 0 (int32)."""
    flat = host(A.array).reshape(-1, *A.array.shape[-2:])
    return np.array([zero_pivot(matrix) for matrix in flat], np.int32).reshape(A.array.shape[:-2])


def made_regular(A: Tensor, missing: np.ndarray) -> Tensor:
    """Each singular matrix replaced by nan, which LAPACK inverts to nan."""
    return el.where.record(integers(missing[..., None, None] > 0, A), float("nan"), A) if missing.any() else A


@takes_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Result:
    """The inverse of square matrices, without an error where there is none.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    check_errors : bool, default False
        Whether a matrix that cannot be treated is an error all the same.

    Returns
    -------
    named tuple
        `inverse`, NaN of a singular matrix, and `info` (…), int32: 0, or the number of the zero pivot that forbids it.

    Raises
    ------
    RuntimeError
        If they are not square, or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.inv_ex(gl.ones(2, 2)).info
    tensor(2, dtype=gradlab.int32)
    """
    A = matrices("linalg.inv_ex", A)
    try:
        return InvEx((rules.inv.record(A), integers(np.zeros(A.array.shape[:-2], np.int32), A)))
    except np.linalg.LinAlgError:
        if check_errors:
            raise singular("linalg.inv_ex", A.array) from None
        missing = pivots_missing(A)
        return InvEx((rules.inv.record(made_regular(A, missing)), integers(missing, A)))


def tolerance(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """(absolute, relative): by default none and the rounding error of the largest singular value."""
    default = (
        np.finfo(A.array.dtype).eps * max(A.array.shape[-2:])
        if atol is None or (not isinstance(atol, Tensor) and atol == 0)
        else 0.0
    )
    absolute, relative = (number(0.0 if t is None else t) for t in (atol, default if rtol is None else rtol))
    return tuple(t if isinstance(t, (int, float)) else t[..., None] for t in (absolute, relative))  # type: ignore[return-value]


@takes_out
def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    rcond, atol, rtol : float or Tensor, optional
        Singular values up to max(atol, rtol · the largest) count as 0; rtol is by default the rounding error, max(m, n) eps.
    hermitian : bool, default False
        Whether the matrices are symmetric: their lower triangle alone is read.

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
    >>> gl.linalg.pinv(gl.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    if type(input) is not Tensor:
        check_tensors("linalg_pinv", input=input)
    if input.array.ndim < 2 or input.array.dtype.kind != "f":
        raise RuntimeError(
            f"linalg.pinv({input.dtype.word}{{{list(input.array.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types. Call .float() on integers."
        )
    if hermitian:
        input = matrices("linalg.eigh", input)
    return rules.pinv.record(input, cutoff=tolerance(input, atol, rcond if rtol is None else rtol), hermitian=hermitian)


@takes_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of the map that contracts over all but the first axes.

    Parameters
    ----------
    input : Tensor
        Floating point; the first `ind` axes have as many elements as the others.
    ind : int, default 2
        How many axes are the first.

    Returns
    -------
    Tensor
        Of shape input.shape[ind:] + input.shape[:ind].

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the numbers of elements differ, or `ind` is not positive.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.tensorinv(gl.eye(4).reshape(4, 2, 2), ind=1).shape
    gradlab.Size([2, 2, 4])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("tensorinv", input)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, rest = input.array.shape[:ind], input.array.shape[ind:]
    if prod(first) != prod(rest):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(rest)} != {prod(first)}"
        )
    square = shapes.reshape.record(input, shape=(prod(first), prod(rest)))
    return shapes.reshape.record(inv(square), shape=rest + first)


# ------------------------------------------------------------------------------------------------------------- systems
SOLVE = "LinalgSolveExBackward0"
SOLVE_T = shapes.permute.named(SOLVE, view=False)


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a batch of vectors, by torch's rule."""
    a, b = A.array.shape, B.array.shape
    return len(b) == 1 or (len(a) - 1 == len(b) and a[:-1] == b)


def as_columns(x: Tensor) -> Tensor:
    return shapes.reshape.record(x, shape=(*x.array.shape, 1))


def flipped(x: Tensor, op: Any = shapes.permute) -> Tensor:
    return op.record(x, axes=exchanged(x.array.ndim))


@takes_out
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    r"""X with A X = B, for square A.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    B : Tensor
        The right sides: (…, n, k), or vectors (…, n).
    left : bool, default True
        Whether A X = B is solved, else X A = B.

    Returns
    -------
    Tensor
        The shape of B, its batch broadcast with A's.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the shapes do not fit, or they are not floating point.

    Notes
    -----
    .. math:: \bar{B} = A^{-\mathsf{T}} \bar{X}, \quad \bar{A} = -\bar{B} X^\mathsf{T}

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.solve(gl.tensor([[4.0, 2.0], [2.0, 3.0]]), gl.tensor([8.0, 7.0]))
    tensor([1.2500, 1.5000])
    """
    check_tensors("linalg_solve", A=A, B=B)
    return solved("linalg.solve", A, B, left)


def solved(name: str, A: Tensor, B: Tensor, left: bool) -> Tensor:
    vector = is_vector(A, B) if A.array.ndim >= 2 else False
    A = matrices(name, A)
    same_dtype(name, A, B)
    columns = as_columns(B) if vector else B
    n, have = A.array.shape[-1], columns.array.shape
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if have[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and {have[-2]}x{have[-1]})"
        )
    try:
        if not left:
            return flipped(rules.solve.record(flipped(A), flipped(B)), SOLVE_T)
        result = rules.solve.record(A, columns)
    except np.linalg.LinAlgError:
        batch, _ = first_failure(A.array, zero_pivot)
        raise LinAlgError(
            f"gradlab.{name}: {batch}The solver failed because the input matrix is singular. pinv() gives a "
            "pseudo-inverse; lstsq() the best solution there is."
        ) from None
    return handing_out(SOLVE)[1](result, shape=result.array.shape[:-1]) if vector else result


@takes_out
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Result:
    """X with A X = B, without an error where A is singular.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    B : Tensor
        The right sides: (…, n, k), or vectors (…, n).
    left : bool, default True
        Whether A X = B is solved, else X A = B.
    check_errors : bool, default False
        Whether a matrix that cannot be treated is an error all the same.

    Returns
    -------
    named tuple
        `result`, NaN where a matrix is singular, and `info` (…), int32: 0, or the number of its zero pivot.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or they are not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.solve_ex(gl.ones(2, 2), gl.ones(2)).info
    tensor(2, dtype=gradlab.int32)
    """
    check_tensors("linalg_solve_ex", A=A, B=B)
    try:
        return SolveEx((solved("linalg.solve_ex", A, B, left), integers(np.zeros(A.array.shape[:-2], np.int32), A)))
    except LinAlgError:
        if check_errors:
            raise
        missing = pivots_missing(A)
        return SolveEx((solved("linalg.solve_ex", made_regular(A, missing), B, left), integers(missing, A)))


@takes_out
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with input X = B, for a triangular matrix.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point. The other triangle is not read.
    B : Tensor
        The right sides, (…, n, k).
    upper : bool
        Which triangle.
    left : bool, default True
        Whether input X = B is solved, else X input = B.
    unitriangular : bool, default False
        Whether the diagonal is 1, and not read.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or they are not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.solve_triangular(gl.tensor([[2.0, 0.0], [1.0, 1.0]]), gl.tensor([[4.0], [5.0]]), upper=False)
    tensor([[2.],
            [3.]])
    """
    check_tensors("linalg_solve_triangular", input=input, B=B)
    name = "linalg.solve_triangular"
    input = matrices(name, input)
    same_dtype(name, input, B)
    if B.array.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor B must have at least 2 dimensions. B.unsqueeze(-1) makes a column of a vector."
        )
    n, have = input.array.shape[-1], B.array.shape
    if have[-2 if left else -1] != n:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({n}x{n} and {have[-2]}x{have[-1]})"
        )
    if left:
        return rules.triangular.record(input, B, upper=upper, unit=unitriangular)
    return flipped(rules.triangular.record(flipped(input), flipped(B), upper=not upper, unit=unitriangular), TRIANGULAR_T)


TRIANGULAR_T = shapes.permute.named("LinalgSolveTriangularBackward0", view=False)


@takes_out
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(input, X, X.ndim) = other.

    Parameters
    ----------
    input : Tensor
        Floating point.
    other : Tensor
        The right side.
    dims : tuple of ints, optional
        Axes of `input` that are moved to its end first.

    Returns
    -------
    Tensor
        Of shape input.shape[other.ndim:].

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the shapes do not fit.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.tensorsolve(gl.eye(4).reshape(4, 2, 2), gl.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """
    check_tensors("linalg_tensorsolve", input=input, other=other)
    ndim = input.array.ndim
    if dims is not None:
        moved = [d % ndim for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]
        order = [d for d in range(ndim) if d not in moved] + moved
        input = shapes.permute.record(input, axes=tuple(d - ndim for d in order))
    front, result = input.array.shape[: other.array.ndim], input.array.shape[other.array.ndim :]
    if prod(front) != prod(result):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {prod(result)} != {prod(front)}"
        )
    square = shapes.reshape.record(input, shape=(prod(front), prod(result)))
    return shapes.reshape.record(solve(square, shapes.reshape.record(other, shape=(prod(front),))), shape=result)


def no_residuals(solution: Tensor) -> Tensor:
    """An empty tensor that requires a gradient where the solution does, as torch's."""
    pick, reshape = handing_out("LinalgLstsqBackward0")
    return pick(reshape(solution, shape=(solution.array.size,)), index=(slice(0, 0),), skip=0)


LSTSQ = products.matmul.named("LinalgLstsqBackward0")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Result:
    """The X of least ‖input X - b‖, and among those of least norm.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    b : Tensor
        The right sides, (…, m, k) or (…, m).
    rcond : float, optional
        Singular values up to rcond · the largest count as 0.
    driver : {"gelsy", "gels", "gelsd", "gelss"}, optional
        How it is computed; "gelsy" by default.

    Returns
    -------
    named tuple
        `solution` (…, n, k); `residuals`, the squared distances, where m > n and the driver is not "gelsy"; `rank`; and
        `singular_values`, for "gelsd" and "gelss".

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or there is no such driver.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.lstsq(gl.tensor([[1.0], [1.0], [1.0]]), gl.tensor([[1.0], [2.0], [6.0]])).solution  # the mean
    tensor([[3.0000]])
    """
    check_tensors("linalg_lstsq", input=input, b=b)
    name = "gradlab.linalg.lstsq"
    if input.array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.array.dtype.kind != "f":
        raise RuntimeError("This function doesn't handle types other than float and double. Call .float() first.")
    if input.array.dtype.itemsize == 2:
        raise refused("linalg.lstsq", input)
    vector = is_vector(input, b)
    columns = as_columns(b) if vector else b
    if input.array.shape[-2] != columns.array.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-2)")
    if input.array.dtype != b.array.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {input.dtype.word} "
            f"and other's dtype {b.dtype.word}"
        )
    if driver not in (None, *DRIVERS):
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(DRIVERS)})")
    inverse, xp = rules.pinv.record(input, cutoff=tolerance(input, None, rcond), hermitian=False), namespace_of[type(input.array)]
    solution = LSTSQ.record(inverse, columns)
    rank = xp.rint((inverse.array.mT * input.array).sum(axis=(-2, -1))).astype(np.int64)  # the trace of a projector
    m, n = input.array.shape[-2:]
    left = (
        (input @ solution - columns).square().sum(-2)
        if driver not in (None, "gelsy") and m > n and bool((rank == n).all())
        else no_residuals(solution)
    )
    if vector:
        solution = handing_out("LinalgLstsqBackward0")[1](solution, shape=solution.array.shape[:-1])
    return LstSq(
        (
            solution,
            left,
            integers(rank, input) if driver != "gels" else integers(np.zeros(0, np.int64), input),
            constant(xp.linalg.svd(input.array, compute_uv=False)) if driver in ("gelsd", "gelss") else input.new_empty(0),
        )
    )
