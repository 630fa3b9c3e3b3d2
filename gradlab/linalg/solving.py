"""Systems of equations, inverses and determinants."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import host, namespace_of
from gradlab.core.destination import takes_out
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
from gradlab.ops.products import exchanged, tensors
from gradlab.ops.results import Result, result_type
from gradlab.rules import elementwise as el
from gradlab.rules import factorizations, shapes
from gradlab.rules import linalg as rules
from gradlab.rules import matrix as products

InvEx, SolveEx = result_type("linalg_inv_ex", "inverse", "info"), result_type("linalg_solve_ex", "result", "info")
SlogDet = result_type("linalg_slogdet", "sign", "logabsdet")
LstSq = result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


# ------------------------------------------------------------------------------------------------------------ inverses
@takes_out
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. Raises LinAlgError for a singular one."""
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
    """The inverse, and for each matrix 0 or the number of the zero pivot that forbids it. The inverse of a singular matrix
    is nan."""
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
    """The Moore-Penrose inverse. Singular values up to max(atol, rtol · the largest) count as 0; rtol is by default the
    rounding error, max(m, n) eps. With `hermitian` the matrices are symmetric: their lower triangle alone is read."""
    if type(input) is not Tensor:
        tensors("linalg_pinv", input=input)
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
    """The inverse of the map that contracts over all but the first `ind` axes."""
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
    """X with A X = B (or X A = B, with left=False), for square A; B holds vectors or matrices. Raises LinAlgError where A is
    singular."""
    tensors("linalg_solve", A=A, B=B)
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
    """As `solve`, and for each matrix 0 or the number of its zero pivot; the solution is then nan."""
    tensors("linalg_solve_ex", A=A, B=B)
    try:
        return SolveEx((solved("linalg.solve_ex", A, B, left), integers(np.zeros(A.array.shape[:-2], np.int32), A)))
    except LinAlgError:
        if check_errors:
            raise
        missing = pivots_missing(A)
        return SolveEx((solved("linalg.solve_ex", made_regular(A, missing), B, left), integers(missing, A)))


@takes_out
def solve_triangular(input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with input X = B (or X input = B, with left=False), for a triangular matrix, of which the other triangle is not read; nor
    is the diagonal, with unitriangular=True."""
    tensors("linalg_solve_triangular", input=input, B=B)
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
    """X with tensordot(input, X, X.ndim) = other; the axes `dims` of `input` are moved to its end first."""
    tensors("linalg_tensorsolve", input=input, other=other)
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
    """The X of least ‖input X - b‖, and among those of least norm. `rank` and `singular_values` are of `input` (the latter for
    the drivers "gelsd" and "gelss" only); `residuals` are the squared distances, where m > n and the driver is not "gelsy", the
    default."""
    tensors("linalg_lstsq", input=input, b=b)
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


# -------------------------------------------------------------------------------------------------------- determinants
@takes_out
def det(A: Tensor) -> Tensor:
    """The determinant of square matrices. Its gradient is that of the cofactors, where the determinant is 0 as well."""
    return determinant(A)


def determinant(A: Tensor) -> Tensor:
    return factorizations.det.record(matrices("linalg.det", A))


def sign_and_logarithm(name: str, A: Tensor) -> list[Tensor]:
    packed = factorizations.slogdet.record(matrices(name, A))
    pick, _ = handing_out("LinalgSlogdetBackward0")
    return [pick(packed, index=(Ellipsis, i), skip=0) for i in (0, 1)]


@takes_out
def slogdet(A: Tensor) -> Result:
    """The sign of the determinant (0 of a singular matrix) and the logarithm of its magnitude."""
    return SlogDet(sign_and_logarithm("linalg.slogdet", A))
