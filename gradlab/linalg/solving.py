"""Systems of linear equations, inverses, pseudo-inverses and least squares."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, to_host
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.matrices import (
    LinAlgError,
    check_same_dtype,
    dtype_error,
    first_failure,
    first_zero_pivot,
    integer_tensor,
    number_or_array,
    pick_and_reshape,
    require_matrices,
    singular_error,
)
from gradlab.ops.arguments import check_tensors, not_a_tensor
from gradlab.ops.products import last_axes_swapped
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import linalg as rules
from gradlab.rules import matrix as products
from gradlab.rules import shapes

InvEx, SolveEx = result_type("linalg_inv_ex", "inverse", "info"), result_type("linalg_solve_ex", "result", "info")
LstSq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# ------------------------------------------------------------------------------------------------------------ inverses
@takes_out
def inv(A: Tensor) -> Tensor:
    r"""Compute the inverse of square matrices.

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
        If the matrices are not square or not floating point.

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
    return invert("linalg.inv", require_matrices("linalg.inv", A))


def invert(name: str, A: Tensor) -> Tensor:
    try:
        return rules.inv.record(A)
    except np.linalg.LinAlgError:
        raise singular_error(name, A.array) from None


def first_zero_pivots(A: Tensor) -> np.ndarray:
    """Return the number of the first zero pivot of each matrix, or 0 (int32)."""
    flat = to_host(A.array).reshape(-1, *A.array.shape[-2:])
    return np.array([first_zero_pivot(matrix) for matrix in flat], np.int32).reshape(A.array.shape[:-2])


def replace_singular_by_nan(A: Tensor, missing: np.ndarray) -> Tensor:
    """Replace each singular matrix by nan, which LAPACK inverts to nan."""
    return el.where.record(integer_tensor(missing[..., None, None] > 0, A), float("nan"), A) if missing.any() else A


@takes_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Result:
    """Compute the inverse of square matrices without raising an error for singular ones.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    check_errors : bool, default: False
        Raise an error if a matrix is singular.

    Returns
    -------
    named tuple
        `inverse`, NaN for a singular matrix, and `info` (…), int32: 0, or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If the matrices are not square or not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.inv_ex(gl.ones(2, 2)).info
    tensor(2, dtype=gradlab.int32)
    """
    A = require_matrices("linalg.inv_ex", A)
    try:
        return InvEx((rules.inv.record(A), integer_tensor(np.zeros(A.array.shape[:-2], np.int32), A)))
    except np.linalg.LinAlgError:
        if check_errors:
            raise singular_error("linalg.inv_ex", A.array) from None
        missing = first_zero_pivots(A)
        return InvEx((rules.inv.record(replace_singular_by_nan(A, missing)), integer_tensor(missing, A)))


def tolerance(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return (absolute, relative) tolerances. They default to 0 and max(m, n) · eps."""
    default = (
        np.finfo(A.array.dtype).eps * max(A.array.shape[-2:])
        if atol is None or (not isinstance(atol, Tensor) and atol == 0)
        else 0.0
    )
    absolute, relative = (number_or_array(0.0 if t is None else t) for t in (atol, default if rtol is None else rtol))
    return tuple(t if isinstance(t, (int, float)) else t[..., None] for t in (absolute, relative))  # type: ignore[return-value]


@takes_out
def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Compute the pseudo-inverse (Moore-Penrose inverse) of matrices.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    rcond, atol, rtol : float or Tensor, optional
        Singular values up to max(atol, rtol · the largest one) are treated as 0. `rtol` defaults to max(m, n) · eps.
    hermitian : bool, default: False
        Treat the matrices as symmetric and read only their lower triangle.

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
        input = require_matrices("linalg.eigh", input)
    return rules.pinv.record(input, cutoff=tolerance(input, atol, rcond if rtol is None else rtol), hermitian=hermitian)


@takes_out
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Compute the inverse of a tensor with respect to `tensordot`.

    Parameters
    ----------
    input : Tensor
        Floating point. The product of its first `ind` sizes must equal the product of the others.
    ind : int, default: 2
        The number of axes that form the rows of the matrix to invert.

    Returns
    -------
    Tensor
        Shape input.shape[ind:] + input.shape[:ind].

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the products differ or `ind` is not positive.

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
SOLVE_TRANSPOSE = shapes.permute.with_node(SOLVE, view=False)


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Return True if torch treats B as a batch of vectors."""
    a, b = A.array.shape, B.array.shape
    return len(b) == 1 or (len(a) - 1 == len(b) and a[:-1] == b)


def as_columns(x: Tensor) -> Tensor:
    return shapes.reshape.record(x, shape=(*x.array.shape, 1))


def transpose(x: Tensor, op: Any = shapes.permute) -> Tensor:
    return op.record(x, axes=last_axes_swapped(x.array.ndim))


@takes_out
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    r"""Solve A X = B for X, with square A.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    B : Tensor
        Right-hand sides, (…, n, k) or (…, n).
    left : bool, default: True
        Solve A X = B if True, X A = B otherwise.

    Returns
    -------
    Tensor
        The shape of `B`, with its batch axes broadcast with those of `A`.

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the shapes do not match or the tensors are not floating point.

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
    return solve_system("linalg.solve", A, B, left)


def solve_system(name: str, A: Tensor, B: Tensor, left: bool) -> Tensor:
    vector = is_vector(A, B) if A.array.ndim >= 2 else False
    A = require_matrices(name, A)
    check_same_dtype(name, A, B)
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
            return transpose(rules.solve.record(transpose(A), transpose(B)), SOLVE_TRANSPOSE)
        result = rules.solve.record(A, columns)
    except np.linalg.LinAlgError:
        batch, _ = first_failure(A.array, first_zero_pivot)
        raise LinAlgError(
            f"gradlab.{name}: {batch}The solver failed because the input matrix is singular. pinv() computes a "
            "pseudo-inverse, lstsq() a least-squares solution."
        ) from None
    return pick_and_reshape(SOLVE)[1](result, shape=result.array.shape[:-1]) if vector else result


@takes_out
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Result:
    """Solve A X = B for X without raising an error for singular A.

    Parameters
    ----------
    A : Tensor
        Square matrices, (…, n, n), floating point.
    B : Tensor
        Right-hand sides, (…, n, k) or (…, n).
    left : bool, default: True
        Solve A X = B if True, X A = B otherwise.
    check_errors : bool, default: False
        Raise an error if a matrix is singular.

    Returns
    -------
    named tuple
        `result`, NaN for a singular matrix, and `info` (…), int32: 0, or the number of the first zero pivot.

    Raises
    ------
    RuntimeError
        If the shapes do not match or the tensors are not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.solve_ex(gl.ones(2, 2), gl.ones(2)).info
    tensor(2, dtype=gradlab.int32)
    """
    check_tensors("linalg_solve_ex", A=A, B=B)
    try:
        return SolveEx((solve_system("linalg.solve_ex", A, B, left), integer_tensor(np.zeros(A.array.shape[:-2], np.int32), A)))
    except LinAlgError:
        if check_errors:
            raise
        missing = first_zero_pivots(A)
        return SolveEx(
            (solve_system("linalg.solve_ex", replace_singular_by_nan(A, missing), B, left), integer_tensor(missing, A))
        )


@takes_out
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Solve input X = B for X, with triangular matrices.

    Parameters
    ----------
    input : Tensor
        Square matrices, (…, n, n), floating point. The other triangle is not read.
    B : Tensor
        Right-hand sides, (…, n, k).
    upper : bool
        Whether the matrices are upper triangular.
    left : bool, default: True
        Solve input X = B if True, X input = B otherwise.
    unitriangular : bool, default: False
        Assume that the diagonal is 1, without reading it.

    Returns
    -------
    Tensor
        (…, n, k).

    Raises
    ------
    RuntimeError
        If the shapes do not match or the tensors are not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.solve_triangular(gl.tensor([[2.0, 0.0], [1.0, 1.0]]), gl.tensor([[4.0], [5.0]]), upper=False)
    tensor([[2.],
            [3.]])
    """
    check_tensors("linalg_solve_triangular", input=input, B=B)
    name = "linalg.solve_triangular"
    input = require_matrices(name, input)
    check_same_dtype(name, input, B)
    if B.array.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor B must have at least 2 dimensions. Use B.unsqueeze(-1) for a single vector."
        )
    n, have = input.array.shape[-1], B.array.shape
    if have[-2 if left else -1] != n:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({n}x{n} and {have[-2]}x{have[-1]})"
        )
    if left:
        return rules.triangular.record(input, B, upper=upper, unit=unitriangular)
    return transpose(
        rules.triangular.record(transpose(input), transpose(B), upper=not upper, unit=unitriangular), TRIANGULAR_TRANSPOSE
    )


TRIANGULAR_TRANSPOSE = shapes.permute.with_node("LinalgSolveTriangularBackward0", view=False)


@takes_out
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None) -> Tensor:
    """Solve tensordot(input, X, X.ndim) = other for X.

    Parameters
    ----------
    input : Tensor
        Floating point.
    other : Tensor
        Right-hand side.
    dims : tuple of ints, optional
        Axes of `input` to move to its end first.

    Returns
    -------
    Tensor
        Shape input.shape[other.ndim:].

    Raises
    ------
    LinAlgError
        If a matrix is singular.
    RuntimeError
        If the shapes do not match.

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


def empty_residuals(solution: Tensor) -> Tensor:
    """Return an empty tensor that requires a gradient if the solution does, as in PyTorch."""
    pick, reshape = pick_and_reshape("LinalgLstsqBackward0")
    return pick(reshape(solution, shape=(solution.array.size,)), index=(slice(0, 0),), skip=0)


LSTSQ = products.matmul.with_node("LinalgLstsqBackward0")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Result:
    """Compute the X that minimizes ‖input X - b‖. If there are several, return the one with the smallest norm.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    b : Tensor
        Right-hand sides, (…, m, k) or (…, m).
    rcond : float, optional
        Singular values up to rcond · the largest one are treated as 0.
    driver : {"gelsy", "gels", "gelsd", "gelss"}, optional
        Name of a LAPACK driver. Defaults to "gelsy". The solution does not depend on it, but it determines which of the other
        results are returned.

    Returns
    -------
    named tuple
        `solution` (…, n, k). `residuals` are the squared norms of the residuals if m > n, all matrices have rank n and the driver
        is not "gelsy". `rank` is returned for all drivers except "gels", `singular_values` for "gelsd" and "gelss". Results that
        are not returned are empty tensors.

    Raises
    ------
    RuntimeError
        If the shapes do not match or `driver` is unknown.

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
        raise dtype_error("linalg.lstsq", input)
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
        else empty_residuals(solution)
    )
    if vector:
        solution = pick_and_reshape("LinalgLstsqBackward0")[1](solution, shape=solution.array.shape[:-1])
    return LstSq(
        (
            solution,
            left,
            integer_tensor(rank, input) if driver != "gels" else integer_tensor(np.zeros(0, np.int64), input),
            constant(xp.linalg.svd(input.array, compute_uv=False)) if driver in ("gelsd", "gelss") else input.new_empty(0),
        )
    )
